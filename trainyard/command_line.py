"""Everything that command lines of this checkout share: how they read their arguments, print a
table and end.

It stands beside the packages, and imports none of them, because each of them has command lines.
"""

from __future__ import annotations

import argparse
import io
import re
import signal
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

WIDTH = 100
"""Columns of a terminal that a line takes at most."""
BEAT_SECONDS = 10.0
"""Seconds between two lines of something that takes long."""
SHORT_SECONDS = 2.0
"""Seconds in which most words have ended. One that has not says what it does."""
INTERRUPTED = 130
"""Exit code after ctrl-C, as shells have it: 128 and the number of SIGINT."""


def parser(module: str, what: str) -> argparse.ArgumentParser:
    """A strict parser for `python -m <module>`; `what` is a sentence about what it does.

    An unknown argument and a shortened option are errors, with exit code 2.
    """
    return argparse.ArgumentParser(prog=f"python -m {module}", description=what, allow_abbrev=False)


def table(rows: Iterable[Sequence[object]], indent: int = 2) -> list[str]:
    """The rows as lines with aligned columns, each line behind `indent` blanks."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        " " * indent
        + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def wrapped(sentence: str) -> list[str]:
    """The sentence in lines of a terminal, set in. No name is broken, so that each can be copied."""
    return textwrap.wrap(
        sentence,
        WIDTH,
        initial_indent="  ",
        subsequent_indent="    ",
        break_on_hyphens=False,
        break_long_words=False,
    )


def is_option(word: str, value: str) -> bool:
    """True where the first of two words of a command is an option, and the second may be its value."""
    value_like = not value.startswith("-") or re.fullmatch(r"-[\d.]+(?:e-?\d+)?", value)
    return bool(value_like and re.fullmatch(r"--?[A-Za-z][\w.-]*", word))


def cut_apart(one: str, other: str, width: int) -> tuple[str, str]:
    """Two texts with at most `width` characters each. What is left out before and behind is …, and the first
    character that differs is never left out."""
    differs = (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    same = next(differs, min(len(one), len(other)))
    begin = max(0, same - width // 3) if max(len(one), len(other)) > width else 0
    return _part(one, begin, width), _part(other, begin, width)


def _part(text: str, begin: int, width: int) -> str:
    if begin:
        text, width = text[begin:], width - 1
    shown = text if len(text) <= width else text[: width - 1] + "…"
    return f"…{shown}" if begin else shown


@contextmanager
def showing(doing: str, *, after: float = 0.0) -> Iterator[None]:
    """Print to stderr what the block does, such as "reads 3 objects", once it has taken `after` seconds, and then
    every BEAT_SECONDS with the time since its begin. What a program reads, on standard output, stays as it is."""
    began, ended = time.monotonic(), threading.Event()

    def beat() -> None:
        if after and not ended.wait(after):
            print(doing, file=sys.stderr, flush=True)
        while not ended.wait(BEAT_SECONDS):
            minutes, seconds = divmod(round(time.monotonic() - began), 60)
            print(f"{doing}, for {minutes}:{seconds:02}", file=sys.stderr, flush=True)

    if not after:
        print(doing, file=sys.stderr, flush=True)
    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def run(main: Callable[[list[str]], int]) -> NoReturn:
    """Call `main` with the arguments of this process, and exit with the code that it returns.

    The reader of the output may leave (`| head`): `main` still goes to its end, without an error.
    Ctrl-C prints one word and no traceback.
    """
    sys.stdout = _with_a_reader_who_may_leave(sys.stdout)
    try:
        code = main(sys.argv[1:])
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        code = INTERRUPTED
    finally:
        sys.stdout.flush()
    # A program that `main` called ends by SIGPIPE where the reader of its output has left.
    sys.exit(0 if code == -signal.SIGPIPE else code)


class _Output(io.FileIO):
    """Standard output. What is written after its reader has left is dropped."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            return memoryview(data).nbytes


def _with_a_reader_who_may_leave(stream: Any) -> io.TextIOWrapper:
    """Stream over _Output; line by line where it was unbuffered."""
    stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(_Output(stream.fileno(), "w", closefd=False)),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering or stream.write_through,
    )
