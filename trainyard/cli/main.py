"""`trainyard <word>`: reads what somebody types, finds the stack and the place, and calls the word.

Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 asked and declined. Ctrl-C is 130.
"""

from __future__ import annotations

import argparse
import atexit
import gc
import importlib
import re
import subprocess
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import NoReturn

from trainyard import command_line
from trainyard.catalog.versions import TRAINYARD
from trainyard.cli.options import OPTIONS
from trainyard.cli.place import Place, Unclear, place_of
from trainyard.cli.words import PLACES, WORDS, Acts, Word

WRONG = 2
"""Exit code where somebody must type something else."""
DEFAULT = "dev"
"""The stack that is meant where a folder has several, and nobody names one."""
QUALIFIED = re.compile(r"\w[\w.-]*(/\w[\w.-]*){1,2}")
"""Name of a stack with its organization, and with its project between them."""
OF_FILES = "organization"
"""Organization of every stack whose state is in files or in S3."""
ARGUMENTS: Mapping[str, Mapping[str, object]] = {
    "stack": {"nargs": "?", "metavar": "STACK", "help": "short for --stack STACK"},
    "job": {"nargs": "?", "metavar": "JOB", "help": "short for --job JOB"},
    "files": {"nargs": "+", "metavar": "FILE", "help": "a YAML file, with all objects in it"},
    "shell": {"choices": ("bash", "zsh"), "metavar": "SHELL", "help": "bash or zsh"},
    "kind": {"choices": ("environment", "team"), "metavar": "KIND", "help": "environment or team"},
    "into": {
        "nargs": "?",
        "metavar": "FOLDER",
        "type": Path,
        "default": Path(),
        "help": "write into this folder (this one by default)",
    },
}
"""Meaning of a word's first or second argument → arguments for argparse."""
CODES = """\
exit codes:
  0  done
  1  {fails}
  2  wrong usage, or it is not clear which account is meant{declined}"""
DECLINED = "\n  3  somebody answered the question with no"


class WrongUsage(RuntimeError):
    """Error: the typed words cannot be meant. The message says which can."""


def main() -> NoReturn:
    """The tool as a process of its own."""
    # These words end before there is garbage that is worth a look: it takes a tenth of their time, and the look
    # of the interpreter at its end another.
    if sys.argv[1:2] in (["check"], ["plan"], ["due"], ["policy"]):
        gc.disable()
        atexit.register(gc.freeze)
    command_line.run(typed)


def typed(arguments: list[str]) -> int:
    """Run what somebody typed behind `trainyard`; the exit code."""
    try:
        options = read(arguments)
        word = WORDS[options.word]
        place = _place(options, word)
    except (WrongUsage, Unclear) as wrong:
        print(wrong, file=sys.stderr)
        return WRONG
    if place and place.to_be_entered:
        sys.stdout.flush()
        return subprocess.call(_inside(word, options, arguments))
    if word.of_a_stack:
        says = place.says if place else f"Pulumi.{options.stack}.yaml, no account"
        print(f"stack {options.stack}: {says}", file=sys.stderr, flush=True)
    options.live = place.live if place else False
    options.then = ""  # a word may set it, where the next one depends on what it has found
    with _showing(options, word):
        code = importlib.import_module(word.module).main(options)
    if code in (0, 1) and (then := _then(options, word, code)):
        sys.stdout.flush()
        print(f"next: {then}", file=sys.stderr)
    return code


def _showing(options: argparse.Namespace, word: Word) -> AbstractContextManager[None]:
    """Prints what the word reads or asks, where that takes long."""
    if not word.reads:
        return nullcontext()
    reads = word.reads.format(stack=options.stack)
    asks = word.acts is Acts.ASKING and options.asks
    doing = f"asks the account what {reads} needs" if asks else f"reads {reads}"
    return command_line.showing(doing, after=command_line.SHORT_SECONDS)


NAMES = {"folder": "from"}
"""Field of the options → its option, where the names differ."""


def read(arguments: list[str]) -> argparse.Namespace:
    """Options from the arguments of the tool, with the stack that is meant. WrongUsage, or
    SystemExit where argparse prints what is wrong.

    `asks` is whether somebody has named a place with --live or --rehearsal."""
    root = parser()
    options, more = root.parse_known_args(arguments)
    word = WORDS[options.word]
    if len(more) == 1 and word.argument == "job" and not more[0].startswith("-"):
        raise WrongUsage(
            f"{options.word} takes one name, that of the job. Fix: --stack {more[0]}"
            f" where that is the stack. {_example(word)}"
        )
    if more:
        root.error(f"unrecognized arguments: {' '.join(more)}")
    if word.of_a_stack:
        _complete(options, word)
    _require(options, word)
    if word.acts is Acts.ON_FILES:
        options.live = options.rehearsal = False
    options.asks = options.live or options.rehearsal
    return options


def _require(options: argparse.Namespace, word: Word) -> None:
    """WrongUsage where the word needs something that nobody has typed."""
    by_yes = word.needs_with_yes if getattr(options, "yes", False) else ()
    for name in (*word.needs, *by_yes):
        if not getattr(options, name):
            why = ", which --yes needs" if name in by_yes else ""
            raise WrongUsage(f"--{NAMES.get(name, name)} is missing{why}. {_example(word)}")


def parser() -> argparse.ArgumentParser:
    """All words with their options."""
    root = argparse.ArgumentParser(
        prog="trainyard",
        description="From a stack file to a distributed training job that runs, and its life there.",
        epilog="trainyard <word> --help prints the options of a word, an example, its exit codes.",
        allow_abbrev=False,
    )
    root.add_argument("--version", action="version", version=f"trainyard {TRAINYARD}")
    words = root.add_subparsers(dest="word", required=True, metavar="word")
    for name, word in WORDS.items():
        each = words.add_parser(
            name,
            help=word.does,
            description=word.does,
            epilog=f"{_example(word)}\n\n{_codes(word)}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        if word.argument:
            each.add_argument(
                "first" if word.of_a_stack else word.argument,
                **ARGUMENTS[word.argument],  # type: ignore[arg-type]
            )
        if word.second:
            each.add_argument(word.second, **ARGUMENTS[word.second])  # type: ignore[arg-type]
        for option in word.options_alone:
            each.add_argument(option, **OPTIONS[option])
        if word.acts is not Acts.ON_FILES:
            one_place = each.add_mutually_exclusive_group()
            for option in PLACES:
                one_place.add_argument(option, **OPTIONS[option])
    return root


def _example(word: Word) -> str:
    return f"example: trainyard {word.example}"


def _codes(word: Word) -> str:
    return CODES.format(fails=word.fails, declined=DECLINED if "--yes" in word.options else "")


def _complete(options: argparse.Namespace, word: Word) -> None:
    """Put the first argument where it belongs, and the stack that is meant. WrongUsage."""
    first, field = options.first, word.argument
    given = getattr(options, field)
    if first and given and first != given:
        raise WrongUsage(f"--{field} {given} and {first} contradict each other. {_example(word)}")
    for name, typed_text in ((field, given), (field, first), ("stack", options.stack)):
        if typed_text == "":  # such as of a variable that is not set
            raise WrongUsage(f"--{name} is empty. {_example(word)}")
    setattr(options, field, given or first)
    if word.acts is not Acts.THERE:  # Pulumi itself takes the longer name
        _require_bare(options.stack)
    if options.stack is None:
        options.stack = _only_stack()
    if options.stack is None:
        found = ", ".join(_stacks())
        there = f"has the stack files of {found}" if found else "has no Pulumi.<stack>.yaml"
        fix = "name one with --stack" if found else "go to the folder of your stack files"
        raise WrongUsage(f"this folder {there}. Fix: {fix}")


def _require_bare(stack: str | None) -> None:
    """WrongUsage for a stack that is named with its organization, as Pulumi Cloud takes it: the name of its file has
    none (pulumi 3.259, sdk/go/common/workspace/paths.go), and Pulumi adds the default one to a bare name
    (pkg/backend/httpstate/backend.go, ParseStackReference)."""
    if stack is None or not QUALIFIED.fullmatch(stack):
        return
    organization, *_, name = stack.split("/")
    default = f", and `pulumi org set-default {organization}` once"
    raise WrongUsage(
        f"--stack: must be the name that Pulumi.<stack>.yaml has, without organization and project; got {stack}. Fix:"
        f" write {name}{default if organization != OF_FILES else ''}"
    )


def _stacks() -> list[str]:
    """Stacks with a file in this folder."""
    return sorted(
        file.name.removeprefix("Pulumi.").removesuffix(".yaml")
        for file in Path().glob("Pulumi.*.yaml")
    )


def _only_stack() -> str | None:
    """The stack that is meant where nobody names one."""
    found = _stacks()
    if len(found) == 1:
        return found[0]
    return DEFAULT if DEFAULT in found else None


def _place(options: argparse.Namespace, word: Word) -> Place | None:
    """Place in which the word acts; None where it reads files only. Unclear, WrongUsage."""
    only_files = word.acts is Acts.ASKING and not options.asks or getattr(options, "list", False)
    if word.acts is Acts.ON_FILES or only_files:
        return None
    place = place_of(options.stack, live=options.live, rehearsal=options.rehearsal)
    if place.live and getattr(options, "yes", False) and not options.live:
        raise WrongUsage(f"--yes needs --live on {place.says}. {_example(word)} --yes --live")
    return place


def _inside(word: Word, options: argparse.Namespace, arguments: list[str]) -> list[str]:
    """Arguments of a call in the environment of the rehearsal, which has a part of its own in some
    words."""
    name = options.word
    enter = [sys.executable, "-m", "development", name if word.by_rehearsal else "run"]
    rest = [argument for argument in arguments[1:] if argument != "--rehearsal"]
    return [*enter, "--stack", options.stack, "--", name, *rest, "--rehearsal"]


def _then(options: argparse.Namespace, word: Word, code: int) -> str:
    """The command to type next; empty where the word has printed its own."""
    text = options.then or word.after(code)
    if not text or not word.of_a_stack:
        return text
    make, pulumi = f"STACK={options.stack}", f"--stack {options.stack}"
    on_account = options.live or not Path("development").is_dir()
    said = text.format(
        stack=options.stack,
        up=f"pulumi up {pulumi}" if on_account else f"make up {make}",
        preview=f"pulumi preview {pulumi}" if on_account else f"make preview {make}",
        destroy=f"pulumi destroy {pulumi} --exclude-protected"
        if on_account
        else f"make down {make}",
    )
    next_word = WORDS.get(said.split()[1])
    if (
        code and word.acts is Acts.ASKING and options.asks
    ):  # what the account refused, it is asked again
        return said + (" --live" if options.live else " --rehearsal")
    return said + " --live" * (bool(next_word) and word.acts is Acts.THERE and options.live)
