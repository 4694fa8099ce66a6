"""The question before a command ends or changes something."""

from __future__ import annotations

import sys

AGREED, DECLINED, NOBODY_TO_ASK = 0, 3, 2
"""Exit codes: only the first lets a command go on."""


def ask(question: str, *, yes: bool, otherwise: str) -> int:
    """Return AGREED with `yes`, or where a person at the terminal answers y or yes.

    Otherwise print `otherwise`, which tells that nothing was done, and return the exit code of the
    command.
    """
    if yes:
        return AGREED
    if not sys.stdin.isatty():
        print(
            f"{question} There is no terminal to answer this question, and --yes is not given."
            f" {otherwise}",
            file=sys.stderr,
        )
        return NOBODY_TO_ASK
    try:
        answer = input(f"{question} [y/N] ")
    except EOFError:
        answer = ""
        print()
    if answer.strip().lower() in ("y", "yes"):
        return AGREED
    print(otherwise)
    return DECLINED
