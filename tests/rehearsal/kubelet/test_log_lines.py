"""Containers' logs: as they are written, and as kubectl logs asks for them."""

from __future__ import annotations

import os
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rehearsal.kubelet import log_lines
from tests.support.patience import PATIENCE, until


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Lines of three minutes; the third is one line of a container that is too long for one of the
    log's."""
    path = tmp_path / "main.0.log"
    path.write_text(
        "2026-11-22T10:00:00.000000001Z stdout F a\n"
        "2026-11-22T10:01:00.000000000Z stdout F \n"
        "2026-11-22T10:02:00.000000000Z stdout P long \n"
        "2026-11-22T10:02:01.000000000Z stdout F line\r%\n"
    )
    return path


def _shown(log: Path, **options: str) -> str:
    return b"".join(log_lines.read(log, log_lines.selection(options), None)).decode()


def test_a_log_is_shown_without_times_unless_they_are_asked_for(log: Path) -> None:
    assert _shown(log) == "a\n\nlong line\r%\n"
    assert _shown(log, timestamps="true") == (
        "2026-11-22T10:00:00.000000001Z a\n"
        "2026-11-22T10:01:00.000000000Z \n"
        "2026-11-22T10:02:00.000000000Z long line\r%\n"
    )


def test_the_end_of_a_log_is_so_many_lines_or_so_young(log: Path) -> None:
    assert _shown(log, tailLines="0") == "" and _shown(log, tailLines="9") == _shown(log)
    assert _shown(log, tailLines="3") == "\nlong line\r%\n", "a part of a line counts as one"
    assert _shown(log, sinceTime="2026-11-22T10:01:00Z") == "\nlong line\r%\n"
    assert _shown(log, sinceTime="2026-11-22T10:01:00Z", tailLines="4", limitBytes="3") == "\nlo"
    assert _shown(log, sinceSeconds="60") == ""
    log.write_bytes(log_lines.entry(b"now\n"))
    assert _shown(log, sinceSeconds="60") == "now\n"


def test_each_line_of_a_container_is_logged_when_it_is_written(tmp_path: Path) -> None:
    path, (output, input_) = tmp_path / "main.0.log", os.pipe()
    with open(output, "rb") as reading, open(input_, "wb", buffering=0) as writing:
        recorder = threading.Thread(target=log_lines.record, args=(reading, path))
        recorder.start()
        writing.write(b"one\n")
        assert until(lambda: path.exists() and path.read_bytes().endswith(b" stdout F one\n"))
        between = datetime.now(UTC)
        writing.write(b"x" * (log_lines.LONGEST + 1) + b"\nlast")
        writing.close()
        recorder.join(PATIENCE)
    first, *_, last = _shown(path, timestamps="true").splitlines()
    assert first.endswith(" one") and last.endswith(" last")
    times = [datetime.fromisoformat(line.partition(" ")[0]) for line in (first, last)]
    assert times[0] < between < times[1]
    assert [len(line) for line in _shown(path).splitlines()] == [3, log_lines.LONGEST + 1, 4]
    assert path.read_bytes().count(b"\n") == 4, "the long line is two in the file"


def test_who_follows_a_log_gets_each_whole_line_until_the_container_has_ended(
    tmp_path: Path,
) -> None:
    path, words = tmp_path / "main.0.log", iter((b"two\n", b"three\n"))
    path.write_bytes(log_lines.entry(b"one\n") + b"2026-11-22T10:00:00.000000000Z stdo")

    def running() -> bool:
        with path.open("ab") as log:
            word = next(words, b"")
            log.write(b"ut F half\n" if word == b"two\n" else b"")
            log.write(log_lines.entry(word) if word else b"")
        return word != b""

    pieces = [*log_lines.read(path, log_lines.Selection(), running)]
    assert pieces == [b"one\n", b"half\n", b"two\n", b"three\n"]
