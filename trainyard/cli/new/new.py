"""`trainyard new environment|team [folder]`: a few questions, and a project whose stack file has no errors."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from trainyard.cli.new.address import installed_from
from trainyard.cli.new.project import PROJECT_FILE, New
from trainyard.cli.new.questions import (
    CONTRACT,
    ENVIRONMENT,
    MAX_GPUS,
    NEEDLESS,
    QUESTIONS,
    SOURCE,
    Question,
)
from trainyard.problems import At, InputError, listed
from trainyard.settings.reading.reader import environments

REFUSED, WRONG = 1, 2
"""Exit codes."""
PROMISED = "contract.yaml"
"""The usual name of the file of a contract."""


def main(options: argparse.Namespace) -> int:
    """Ask, judge, write; the exit code."""
    kind, folder = options.kind, options.into
    if wrong := _of_other_kinds(kind, options):
        return _ended(f"new {kind} takes no {', '.join(wrong)}", WRONG)
    if folder.exists() and not folder.is_dir():
        return _refused([At(str(folder)).must("be a folder", got="a file", fix="name another one")])
    interview = Interview(kind, folder, options)
    if (folder / PROJECT_FILE).exists() and (there := interview.stack_file) and there.exists():
        return _refused([_exists(there)])  # an option that joins no project would be refused first
    try:
        code = interview.hold()
    except EOFError:
        return _ended("\nnothing is written: there is no answer", REFUSED)
    return code or _written(New(kind=kind, answers=interview.answers, folder=folder))


def _written(wanted: New) -> int:
    """Write what is wanted, where no file is in the way and the stack file has no errors; the exit
    code."""
    folder, files = wanted.folder, wanted.files()
    paths = [folder / name for name in files]
    taken = [path for path in paths if path.exists() or path.is_symlink()]
    if errors := [*map(_exists, taken)] or wanted.errors():
        return _refused(errors)
    try:
        write(folder, files)
    except OSError as error:
        return _ended(f"{error.filename}: {error.strerror}; nothing is written", REFUSED)
    print("\n".join(map(str, paths)))
    there = "" if folder == Path() else f"cd {folder} && "
    print(f"next: {there}trainyard check {wanted.stack}", file=sys.stderr)
    return 0


class Interview:
    """Questions about one stack, answered by options or at the terminal."""

    def __init__(self, kind: str, folder: Path, options: argparse.Namespace) -> None:
        self._kind, self._folder = kind, folder
        self._given = {q.field: getattr(options, q.field) for q in QUESTIONS[kind]}
        self._known = _defaults(kind, folder)
        samples = {q.field: self._known.get(q.field, q.sample) for q in QUESTIONS[kind]}
        self.answers: dict[str, str] = samples
        """Answers, and samples in the places of those that are still missing."""

    @property
    def stack_file(self) -> Path | None:
        """The stack file to write, where an option or a default names it; None where it is asked."""
        [named] = [each for each in QUESTIONS[self._kind] if each.field == "name"]
        asked = sys.stdin.isatty() and not self._given["name"]
        name = None if asked else self._given["name"] or named.default
        if not name:
            return None
        stack = New(kind=self._kind, answers={"name": name}, folder=self._folder).stack
        return self._folder / f"Pulumi.{stack}.yaml"

    def hold(self) -> int:
        """Get every answer; 0, or the exit code where one is missing or refused."""
        missing, errors = list[str](), list[InputError]()
        for question in QUESTIONS[self._kind]:
            answer = self._given[question.field]
            if not self._is_needed(question):
                why = At(question.option).not_set(NEEDLESS[question.field], got=answer)
                errors += [why] if answer is not None else []
            elif answer is not None or not sys.stdin.isatty():
                errors += self._take(question, answer, missing)
            else:
                self._ask(question)
        if missing:
            told = " and ".join(filter(None, (", ".join(missing[:-1]), missing[-1])))
            many = "is" if len(missing) == 1 else "are"
            print(f"{told} {many} missing, and there is no terminal to ask", file=sys.stderr)
        return _refused(errors, WRONG if missing else REFUSED) if errors else WRONG * bool(missing)

    def _take(self, question: Question, answer: str | None, missing: list[str]) -> list[InputError]:
        """Take the answer of an option, or the default, and return the errors about it; none behind a
        `missing` answer, because it is judged beside those before it."""
        answer = self._known.get(question.field, question.default) if answer is None else answer
        if not answer and not question.optional:
            missing.append(question.option)
            return []
        self.answers[question.field] = answer
        return [] if missing else self._against(question)

    def _is_needed(self, question: Question) -> bool:
        """True where something that is written has the answer."""
        wanted = New(kind=self._kind, answers=self.answers, folder=self._folder)
        if question.field == SOURCE:
            return wanted.begins_a_project
        if question.field == ENVIRONMENT:
            return not self.answers.get(CONTRACT)
        return question.field != MAX_GPUS or not wanted.is_listed

    def _ask(self, question: Question) -> None:
        """Ask until the answer is accepted. Raises EOFError where nobody answers any more."""
        default = self._known.get(question.field, question.default)
        while True:
            print(question.asks + (f" [{default}]" if default else ""), end=": ", file=sys.stderr)
            answer = input().strip() or default
            self.answers[question.field] = answer
            errors = self._against(question) if answer else []
            if errors:
                print("\n".join(listed(errors)), file=sys.stderr)
            elif answer or question.optional:
                return

    def _against(self, question: Question) -> list[InputError]:
        """Errors about the answer, beside those before it."""
        answers = self.answers
        if self._kind == "environment" and question.field == "region":
            answers = answers | {"zone": f"{answers['region']}a"}
        found = New(kind=self._kind, answers=answers, folder=self._folder).errors()
        mine = [error for error in found if question.of(error.path)]
        return [replace(e, file="" if e.path == question.option else question.option) for e in mine]


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Write every file, or none: whatever was written is deleted where one cannot be. Raises OSError,
    which is FileExistsError where somebody else has written a file meanwhile."""
    made = list[Path]()
    try:
        for name, text in files.items():
            file = folder / name
            for parent in [*reversed(file.parents)]:
                if not parent.exists():
                    parent.mkdir()
                    made.append(parent)
            with file.open("x", encoding="utf-8") as opened:
                made.append(file)
                opened.write(text)
    except OSError:
        for path in reversed(made):
            path.rmdir() if path.is_dir() else path.unlink()
        raise


def _defaults(kind: str, folder: Path) -> dict[str, str]:
    """Answers that the folder and this installation know."""
    with New(kind=kind, answers={}, folder=folder).with_a_project() as project:
        here = environments(project)
    promised = PROMISED if kind == "team" and (folder / PROMISED).is_file() else ""
    known = {
        SOURCE: installed_from(),
        ENVIRONMENT: here[0] if len(here) == 1 else "",
        CONTRACT: promised,
    }
    return {field: answer for field, answer in known.items() if answer}


def _of_other_kinds(kind: str, options: argparse.Namespace) -> list[str]:
    """Options that somebody has given and that another kind of stack takes."""
    mine = {question.field for question in QUESTIONS[kind]}
    others = [q for questions in QUESTIONS.values() for q in questions if q.field not in mine]
    return [q.option for q in others if getattr(options, q.field) is not None]


def _exists(file: Path) -> InputError:
    return At(str(file)).must(
        "not exist: no file is overwritten", got="a file", fix="rename it, or name another folder"
    )


def _refused(errors: list[InputError], code: int = REFUSED) -> int:
    print("\n".join(listed(errors)))
    return _ended("nothing is written", code)


def _ended(sentence: str, code: int) -> int:
    print(sentence, file=sys.stderr)
    return code
