"""Shared parts of the rehearsal's command lines: strict arguments, aligned tables, exit codes."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn

REFUSED, FAILED = 2, 1
"""Exit codes: the machine or the words do not allow the command; the command did not succeed."""
INTERRUPTED = 130
"""Exit code after ctrl-C, as shells have it: 128 and the number of SIGINT."""


def parser(module: str, what: str) -> argparse.ArgumentParser:
    """A parser for `python -m <module>` that takes no unknown and no shortened option."""
    return argparse.ArgumentParser(prog=f"python -m {module}", description=what, allow_abbrev=False)


def table(rows: Iterable[Sequence[object]]) -> list[str]:
    """The rows as lines with aligned columns."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  " + "  ".join(map(str.ljust, row, widths)).rstrip()  # as wide as its column
        for row in cells
    ]


def run(main: Callable[[list[str]], int]) -> NoReturn:
    """Call `main` with the arguments of this process and exit with its code; ctrl-C prints one word. The
    reader of the output may leave before its end (`| head`)."""
    try:
        code = main(sys.argv[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        code = INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(0 if code == -signal.SIGPIPE else code)
