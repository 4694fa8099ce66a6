"""Errors about what a container cannot run, whoever wrote it: text that the kernel or bash cannot
take.

What a script does to the ranks of a job: jobs.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from trainyard.derive.job_view import ContainerView, JobView
from trainyard.derive.policies import RESERVED_ENV
from trainyard.derive.scripts import launches
from trainyard.derive.shell import SHELLS, text_at
from trainyard.problems import InputError, InputWarning
from trainyard.rules.bash_syntax import syntax_error
from trainyard.settings.reading.placeholders import WITHOUT_SHELL
from trainyard.settings.reading.yaml_file import as_yaml

ARGUMENT_BYTES = 131_072
"""Longest argument or variable of a process, with the NUL at its end (MAX_ARG_STRLEN of Linux,
include/uapi/linux/binfmts.h)."""
READ_BY_BASH = ("bash", "sh", "dash")
"""Shells whose scripts bash can read."""


def characters(view: JobView, container: ContainerView) -> Iterator[InputError]:
    """Characters that end a word or become part of it."""
    text = "\n".join(container.words)
    if "\0" in text:
        yield container.where("script").must(
            "not contain the character NUL (\\0 in YAML): an argument of a process ends there",
            got="NUL",
            fix="delete that character",
        )
    elif "\r" in text:
        yield container.where("script").must(
            "end its lines with LF: bash takes the CR of CRLF as part of the last word",
            got="CR",
            fix="write \\n for each \\r\\n of the text in quotes",
        )


def length(view: JobView, container: ContainerView) -> Iterator[InputError]:
    """An argument or a variable that the kernel does not hand to a process."""
    variables = {name: f"{name}={value}" for name, value in container.env.items() if value}
    texts = [("script", word) for word in container.words]
    texts += [(f"env.{name}", text) for name, text in variables.items()]
    for name, text in texts:
        size = len(text.encode(errors="replace"))
        if size >= ARGUMENT_BYTES:
            yield container.where(name).must(
                f"be shorter than {ARGUMENT_BYTES} bytes, the most that Linux takes for an argument or a variable",
                got=f"{size} bytes",
                fix="put it into a file (files.sources, a ConfigMap, the image)",
            )


def only_a_file(view: JobView, container: ContainerView) -> Iterator[InputError]:
    """A Python file where its interpreter is missing."""
    script = container.script.strip()
    if not container.own_entrypoint and re.fullmatch(r"[\w.-]+\.py", script):
        yield container.where("script").must(
            "start a program: a file name alone is looked for in PATH, as a command",
            got=script[:60],
            fix=f"write torchrun {script}, or python {script}",
        )


def own_entrypoint(view: JobView, container: ContainerView) -> Iterator[InputWarning]:
    """A job whose program nobody can read."""
    if container.own_entrypoint:
        given = f"with {' '.join(container.words)[:60]}" if container.words else "without arguments"
        yield container.where("script").warning(
            f"the image's own entrypoint starts, {given}: whether it starts the ranks of every"
            " node and where it saves is not known, and was not checked"
        )


def syntax(view: JobView, container: ContainerView) -> Iterator[InputError]:
    """A script that its shell cannot read."""
    script, words = container.script, container.words
    is_shell = words[1:] and PurePosixPath(words[0]).name in READ_BY_BASH and script in words[-1]
    if not is_shell or {"\0", "\r"} & {*script}:
        return
    # Kubernetes makes $ of $$ in a command.
    if wrong := syntax_error(script.replace("$$", "$")):
        got, fix = _open(wrong) or (
            wrong[:120],
            "correct that line, or the quote or block that it belongs to",
        )
        yield container.where("script").must(
            "be a script that bash can read (bash -n)", got=got, fix=fix
        )


def _open(wrong: str) -> tuple[str, str] | None:
    """The quote or block that a script never closes, and the fix; None where bash found something else."""
    if twin := re.search(r"looking for matching `(.+)'", wrong):
        line = re.search(r"line \d+", wrong)
        where = f"{line[0]}, " if line else ""
        return (
            f"{where}after which a closing {twin[1]} is missing",
            f"add a closing {twin[1]}, or delete what it would close",
        )
    if re.search("unexpected (end of file|EOF)", wrong):
        return (
            "its end inside a block that is open",
            "close what is open: fi ends if, done ends for and while, esac ends case",
        )
    return None


def escaped_variable(view: JobView, container: ContainerView) -> Iterator[InputError]:
    """A launch whose variable has a backslash before it, where nothing takes the backslash away: no
    quotes, and no heredoc that may write the line into another script."""
    script = container.script
    if not has_shell(container) or "<<" in script:
        return
    for launch in launches(script):
        found = re.search(r"\\\$[({]?\w+[)}]?", launch.text)
        before = script[: launch.at].replace('\\"', "")
        if found and before.count('"') % 2 == before.count("'") % 2 == 0:
            yield container.where("script").must(
                "not escape a variable: bash hands the program the dollar sign, and no value",
                got=found[0],
                fix=f"write {found[0][1:]}",
            )


def variable_without_shell(view: JobView, container: ContainerView) -> Iterator[InputError]:
    """A variable in the way of a shell, where no shell starts: of the job, or the whole value of an option
    that nobody sets. Inside another word, such as dir=${KEY}, the program itself may know it."""
    if has_shell(container) or container.own_entrypoint:
        return
    place = container.where("script")
    known = {*container.env, *(container.more_env or ()), *RESERVED_ENV}
    used = {
        found[0]: (word, found)
        for word in container.words
        for found in WITHOUT_SHELL.finditer(word)
    }
    for written, (word, found) in used.items():
        name = found[1] or found[2]
        if name in known:
            yield place.must(
                "use $(NAME) for a variable: no shell starts, and Kubernetes knows no other way",
                got=f"${name}",
                fix=f"write $({name})",
            )
        elif container.more_env is not None and re.fullmatch(
            rf"(?:--?[\w.-]+=)?{re.escape(written)}", word
        ):
            yield place.must(
                "not contain a placeholder: no shell starts, and nobody sets such a variable",
                got=written,
                fix=f"write what belongs there, or $({name}) and {name} under env or secrets",
            )


_TAKES_WORDS = re.compile(r"\$\{?[@*#0-9]|\b(?:shift|getopts|set\s+--)\b|\$[A-Z_]*ARGS?\b")
"""A script that reads the words behind it."""


def ignored_words(view: JobView, container: ContainerView) -> Iterator[InputWarning]:
    """Words behind the text of a shell: they are its $0, $1 and so on, and nothing of its program."""
    words, at = container.words, text_at(container.words)
    if at is None or _TAKES_WORDS.search(words[at]):
        return
    if lost := words[at + 1 :]:
        yield container.where("script").warning(
            f"the program gets no {' '.join(lost)[:80]}: a shell keeps what stands behind the text of -c for"
            " $0, $1 and so on; write it into that text"
        )


PROGRAMS = re.compile(r"(?:python[\d.]*|torchrun|bash|sh|accelerate|deepspeed|mpirun)")


def several_words(view: JobView, container: ContainerView) -> Iterator[InputError]:
    """A program and its arguments as one word, of which no file has the name, or an option and more as one. Without
    arguments the program may be a path with a blank."""
    for word in container.words if not (has_shell(container) or container.own_entrypoint) else ():
        if re.match(r"--[\w-]+\s+[^\s={}]+(?:\s|$)", word):
            yield container.where("arguments").must(
                "have an item for each word: a program takes an item for the name of one option",
                got=as_yaml([word[:80]]),
                fix=f"put an item for each word in its place: {as_yaml(word.split())}",
            )
    first = container.words[0] if container.words and not container.own_entrypoint else ""
    program, *arguments = first.split() or [""]
    is_path = program.startswith("/") and not PROGRAMS.fullmatch(PurePosixPath(program).name)
    if arguments and not is_path:
        yield container.where("command").must(
            "have an item for each word: the first one is the program, and no file has this name",
            got=first[:80],
            fix=f"write [{', '.join(first.split())}]",
        )


def process_id(view: JobView, container: ContainerView) -> Iterator[InputWarning]:
    """Two dollar signs in the words of a container. $$( is how one keeps Kubernetes from a
    variable."""
    if any(re.search(r"(?<!\$)\$\$(?![$(])", word) for word in container.words):
        yield container.where("script").warning(
            "Kubernetes makes one $ of $$ before the container starts, so the shell sees no"
            " process id there: write $BASHPID, or $$$$"
        )


def has_shell(container: ContainerView) -> bool:
    """True where a shell reads the words, or may do so: a script that the image has."""
    first = PurePosixPath(container.words[0]).name if container.words else ""
    return first in SHELLS or first.endswith(".sh") or "-c" in container.words
