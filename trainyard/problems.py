"""Errors and warnings about an input: one grammar for every message.

An error reads `<path> [<file>:<line>]: must …; got …. Fix: …`, a warning `<path> [<file>:<line>]:
…`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any


class Removal:
    """The type of REMOVE."""


REMOVE = Removal()
"""InputError.write: delete the setting."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """An error or a warning about one place of an input."""

    path: str
    """The setting, from the project's key; in a job file, the field. Empty for a whole file."""
    file: str = ""
    line: int = 0
    """From 1; 0 where it is not known."""

    @property
    def where(self) -> str:
        """Path, file and line, as far as they are known."""
        return At(self.path, self.file, self.line).where


@dataclass(frozen=True, kw_only=True)
class InputError(Problem):
    """Error: why an input cannot work."""

    must: str
    """Requirement for the value, without the word must: "be a zone", "not be empty"."""
    got: str
    """Value in the input, never a secret."""
    fix: str
    """Advice: what to write instead, from a verb on: "write 4". A literal value wherever there is
    one."""
    write: Any = field(default=None, compare=False)
    """The value that ends this error when it stands at `path`, or REMOVE; None where no single value
    does. No message shows it: `fix` says the same in words."""

    def __str__(self) -> str:
        text = f"must {self.must}; got {cut(self.got)}. Fix: {cut(self.fix)}"
        return visible(f"{cut(self.path)}{self.where[len(self.path) :]}: {text}")


@dataclass(frozen=True, kw_only=True)
class InputWarning(Problem):
    """Warning: what somebody should know about an input that works."""

    text: str

    def __str__(self) -> str:
        return visible(f"{self.where}: {self.text}")


LONG = 2_000
"""Characters of a value, and of a fix, that a message has at most: lists of ours, such as the images that a
registry lacks, are shorter."""
UNSEEN = re.compile(
    "[\\x00-\\x09\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u2069\\ufeff]"
)
"""Characters that a terminal obeys or does not show: controls, escape sequences, marks that turn the
direction of a text or have no width."""


def cut(text: str) -> str:
    """A text, or its beginning and its length where it is long."""
    return text if len(text) <= LONG else f"{text[: LONG // 2]}… ({len(text):,} characters)"


def visible(text: str) -> str:
    """A text that a terminal only shows: what it would obey is written as its code, \\x1b."""
    return UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


@dataclass(frozen=True)
class At:
    """A place of an input, as rules speak about it: `At(f"{path}.nodes").must("be 1", got=nodes,
    write=1)`. The fields are those of Problem."""

    path: str
    file: str = ""
    line: int = 0

    @property
    def where(self) -> str:
        """Path, file and line, as far as they are known."""
        place = f"{self.file}:{self.line}" if self.file and self.line else self.file
        return f"{self.path} [{place}]" if self.path and place else self.path or place

    def must(self, must: str, *, got: object, fix: str = "", write: Any = None) -> InputError:
        """The error of a value. `got`: the value, or words about it. Where writing `write`, or REMOVE,
        is all there is to do, `fix` follows from it."""
        return InputError(
            path=self.path,
            file=self.file,
            line=self.line,
            must=must,
            got=_written(got),
            fix=fix or ("delete it" if write is REMOVE else f"write {_written(write)}"),
            write=write,
        )

    def not_set(self, why: str, *, got: object, instead: str = "") -> InputError:
        """The error of a setting that must be deleted. `why`: from "with", "beside" or "without" on.
        `instead`: another thing to do, from a verb on."""
        fix = f"delete it, or {instead}" if instead else "delete it"
        return self.must(f"not be set {why}", got=got, fix=fix, write=REMOVE)

    def warning(self, text: str) -> InputWarning:
        """The warning about a value."""
        return InputWarning(path=self.path, file=self.file, line=self.line, text=text)


def _written(value: object) -> str:
    """A value as a stack file has it, where it is no list and no map."""
    return str(value).lower() if isinstance(value, bool) else str(value)


class Refused(Exception):
    """The input cannot work; nothing was created."""

    def __init__(self, errors: Iterable[InputError]) -> None:
        self.errors = tuple(errors)
        super().__init__(
            "\n".join([f"{counted(self.errors)} in the stack file", *listed(self.errors)])
        )


def one_of(known: Iterable[str], otherwise: str) -> str:
    """List of what there is, for the middle of a sentence; `otherwise` where there is nothing."""
    names = [*known]
    return f"one of {', '.join(names)}" if len(names) > 1 else "".join(names) or otherwise


SIMILAR = 0.76
"""Similarity of two names from which one is proposed for the other; below it they mean different
things: network_policies is not network, and done is not none."""
ALIKE = 0.85
"""Similarity of names that somebody gave to things of a stack, which often have one beginning."""


def write_one_of(known: Iterable[str], otherwise: str, got: str = "") -> str:
    """A fix that proposes what there is; `otherwise`, a whole fix, where there is nothing. `got`: what somebody wrote;
    a name like it is what they meant."""
    by_letters = {name.lower(): name for name in known}
    meant = get_close_matches(got.lower(), by_letters, n=1, cutoff=ALIKE)
    names = one_of((by_letters[name] for name in meant or by_letters), "")
    return f"write {names}" if names else otherwise


def by_option(option: str, known: Iterable[str], what: str) -> str:
    """A fix that names an option of the tool with what it takes; where there is nothing to take, `what` is to be
    written first."""
    match tuple(known):
        case ():
            return f"write {what} into the stack file"
        case (only,):
            return f"{option} {only}"
        case names:
            return f"name one by {option}: {', '.join(names)}"


FEW = 3
"""Names that a sentence lists at most."""
MANY = 20
"""Errors of one rule at one place that have a line each."""


def few(names: Sequence[str], most: int = FEW) -> str:
    """The first names, `most` of them, and how many others there are."""
    others = len(names) - most
    return ", ".join([*names[:most], *([f"and {others} more"] if others > 0 else [])])


def listed(problems: Iterable[Problem]) -> list[str]:
    """A line for each problem: warnings first, errors last, where the reader's eye is."""
    problems = tuple(problems)
    warnings = told(each for each in problems if isinstance(each, InputWarning))
    errors = grouped(each for each in problems if isinstance(each, InputError))
    return [f"  warning  {line}" for line in warnings] + [f"  error    {line}" for line in errors]


def told(warnings: Iterable[InputWarning]) -> list[str]:
    """A line for each warning. What is said of more than FEW places is one line, with the first
    place: a stack of a hundred jobs says of each what it says of one."""
    by_text: dict[str, list[InputWarning]] = {}
    for warning in warnings:
        by_text.setdefault(warning.text, []).append(warning)
    lines = []
    for text, same in by_text.items():
        if len(same) > FEW:
            lines.append(visible(f"{same[0].where} and {len(same) - 1} other places: {text}"))
        else:
            lines += map(str, same)
    return lines


def grouped(errors: Iterable[InputError]) -> list[str]:
    """A line for each error. Of more than MANY with one rule at one place the first FEW have lines, and one
    says how many others there are: a list of thousands is wrong in the same way thousands of times."""
    alike: dict[tuple[str, str], list[InputError]] = {}
    for error in errors:
        place = re.sub(r"[^.\[]*$|\[\d+\]", "", error.path)
        alike.setdefault((place, error.must), []).append(error)
    lines = []
    for (_, must), same in alike.items():
        shown = same[:FEW] if len(same) > MANY else same
        lines += map(str, shown)
        if len(same) > MANY:
            where = f"{same[FEW].where} and {len(same) - FEW - 1} other places"
            lines.append(visible(f"{where}: must {must}"))
    return lines


def counted(problems: Sequence[Problem]) -> str:
    """Number of errors and warnings: "2 errors, 1 warning"; "no errors" where there is none."""
    errors = sum(isinstance(problem, InputError) for problem in problems)
    warnings = len(problems) - errors
    parts = [f"{errors or 'no'} error{'s' * (errors != 1)}"]
    parts += [f"{warnings} warning{'s' * (warnings != 1)}"] if warnings else []
    return ", ".join(parts)
