"""A container's log as containerd writes it and as a kubelet reads it.

A line of the file is `<time> stdout <F or P> <text>`: the time at which it was read from the
container, and P where the container's line goes on in the next one. Standard error is in it, too,
since it shares the pipe: so both stay in order. Sources: the CRI logging format (Kubernetes design
proposal kubelet-cri-logging.md); pkg/kubelet/kuberuntime/logs of Kubernetes 1.34.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import BinaryIO

LONGEST = 16 * 1024
"""Bytes of text on one line of the file: containerd's max_container_log_line_size."""
POLL_SECONDS = 0.2
EARLIEST = datetime.min.replace(tzinfo=UTC)


def entry(text: bytes) -> bytes:
    """The line of the file for one line of a container, or for a part of one that is too long."""
    tag = b"P" if len(text) == LONGEST and not text.endswith(b"\n") else b"F"
    seconds, nanoseconds = divmod(time.time_ns(), 10**9)
    when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{when}.{nanoseconds:09}Z stdout ".encode() + tag + b" " + text.rstrip(b"\n") + b"\n"


def record(output: BinaryIO, path: Path) -> None:
    """Write what a container says to its log, until it has ended."""
    with path.open("ab", buffering=0) as log:
        while text := output.readline(LONGEST):
            log.write(entry(text))


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Part of a log that the client asks for."""

    tail: int | None = None
    """So many lines from the end; None: all."""
    since: datetime = EARLIEST
    with_times: bool = False
    limit_bytes: int | None = None


def selection(options: dict[str, str]) -> Selection:
    """From the words of the kubelet's API, which the API server has checked."""
    since = EARLIEST
    if "sinceSeconds" in options:
        since = datetime.now(UTC) - timedelta(seconds=int(options["sinceSeconds"]))
    if "sinceTime" in options:
        since = datetime.fromisoformat(options["sinceTime"])
    return Selection(
        tail=int(options["tailLines"]) if "tailLines" in options else None,
        since=since,
        with_times=options.get("timestamps") == "true",
        limit_bytes=int(options["limitBytes"]) if "limitBytes" in options else None,
    )


def read(path: Path, wanted: Selection, running: Callable[[], bool] | None) -> Iterator[bytes]:
    """Pieces of the log for the client; with `running` also what is written until the container has
    ended."""
    with path.open("rb") as log:
        lines = _new_lines(log)
        first = len(lines) if wanted.tail is None else min(wanted.tail, len(lines))
        more = _later_lines(log, running) if running else ()
        pieces = _shown(chain(lines[len(lines) - first :], more), wanted)
        yield from pieces if wanted.limit_bytes is None else _cut(pieces, wanted.limit_bytes)


def _new_lines(log: BinaryIO) -> list[bytes]:
    """Whole lines since the last call."""
    text = log.read()
    *lines, rest = text.split(b"\n")
    log.seek(-len(rest), 1)
    return lines


def _later_lines(log: BinaryIO, running: Callable[[], bool]) -> Iterator[bytes]:
    more = True
    while more:
        more = running()
        yield from _new_lines(log)
        time.sleep(POLL_SECONDS if more else 0)


def _shown(lines: Iterable[bytes], wanted: Selection) -> Iterator[bytes]:
    """The texts of the lines, with one time for each line of the container."""
    begins = True
    for line in lines:
        when, _, tag, text = line.split(b" ", 3)
        ends = tag == b"F"
        if datetime.fromisoformat(when.decode()) >= wanted.since:
            prefix = when + b" " if wanted.with_times and begins else b""
            yield prefix + text + (b"\n" if ends else b"")
        begins = ends


def _cut(pieces: Iterable[bytes], count: int) -> Iterator[bytes]:
    """The first `count` bytes."""
    for piece in pieces:
        yield piece[:count]
        count -= len(piece)
        if count <= 0:
            return
