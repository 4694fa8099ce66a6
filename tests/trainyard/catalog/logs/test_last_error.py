"""Of logs in the shape of public failures: the line that says why, and what to do."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from tests.support.launchers import ENDS
from tests.support.recording import CHECKOUT
from trainyard.catalog.logs.known_failures import KNOWN
from trainyard.catalog.logs.last_error import reason_of

CORPUS = CHECKOUT / "tests/corpus"
FAILURES, ON_A_GPU = CORPUS / "failures.txt", CORPUS / "failures_on_a_gpu.txt"
RIGHT = 0.95
"""Share of the logs of which the right line must be found: 38 of 40."""


def _expanded(line: str) -> str:
    name, *given = line.split(" ")
    return ENDS[name](*given) if name in ENDS else line


def _cases(file: Path = FAILURES) -> list[tuple[str, str, str]]:
    """Name, right line and log of each."""
    cases = []
    for part in re.split(r"^== ", file.read_text(), flags=re.MULTILINE)[1:]:
        name, right, log = part.strip("\n").split("\n", 2)
        lines = "\n".join(map(_expanded, log.split("\n")))
        cases.append((name, right.removeprefix("=> "), f"{lines}\n"))
    return cases


def _found(log: str) -> str:
    return reason_of(log, KNOWN).line


def test_of_each_log_of_a_real_gpu_the_right_line_is_found() -> None:
    cases = _cases(ON_A_GPU)
    assert len(cases) >= 30
    assert {name: (right, _found(log)) for name, right, log in cases if _found(log) != right} == {}


OF_THE_PROGRAM = {
    "a data loader raises",
    "the node that raises",
    "Lightning, one process",
}
"""Logs with an exception of the program's own, of which nothing can be known."""
MEANINGS = {
    "a disk is full while torch saves": "a checkpoint cannot be written",
    "/dev/shm is full": "/dev/shm is full",
    "NCCL_SOCKET_IFNAME that the pod lacks": "the pod has no network interface",
    "two ranks on one GPU": "two ranks use one GPU",
    "the other node raises, as this one sees it": "another rank ended first",
    "the host has no memory for a tensor": "the memory of the pod is full",
    "ranks gather tensors of two sizes": "a collective timed out",
    "a parameter that no loss depends on": "a parameter of the model took no part",
}


def test_of_each_log_of_a_real_gpu_there_is_a_meaning_and_advice() -> None:
    found = {name: reason_of(log, KNOWN) for name, _, log in _cases(ON_A_GPU)}
    assert {name for name, reason in found.items() if not reason.do} == OF_THE_PROGRAM
    assert {
        name: found[name].why for name, why in MEANINGS.items() if why not in found[name].why
    } == {}


def test_of_at_least_95_percent_of_the_logs_the_right_line_is_found() -> None:
    cases = _cases()
    wrong = {name: (right, _found(log)) for name, right, log in cases if _found(log) != right}
    assert len(cases) >= 40
    assert len(cases) - len(wrong) >= RIGHT * len(cases), wrong


@pytest.mark.parametrize(("name", "right", "log"), _cases(), ids=[name for name, *_ in _cases()])
def test_no_log_is_said_by_a_line_of_its_launcher(name: str, right: str, log: str) -> None:
    line = _found(log)
    assert line and not re.search(
        r"^[=-]+$|ChildFailedError|Command '\['python|elastic/errors", line
    )


@pytest.mark.parametrize(("name", "right", "log"), _cases(), ids=[name for name, *_ in _cases()])
def test_the_lines_that_are_shown_end_with_the_one_that_says_why(
    name: str, right: str, log: str
) -> None:
    found = reason_of(log, KNOWN)
    if found.line == right:
        assert right in "\n".join(found.shown[-12:]) and len(found.shown) <= 20


@pytest.mark.parametrize("unit", ["x", "a.", "elastic/agent ", "nccl: (local_rank: 1)"])
def test_a_line_without_an_end_takes_no_minutes(unit: str) -> None:
    """A bar of progress without a terminal, or a tensor that is printed: one line of 120,000 characters."""
    began = time.perf_counter()
    read = reason_of(f"{unit * (120_000 // len(unit))}\nValueError: no rows", KNOWN)
    assert read.line == "ValueError: no rows"
    assert time.perf_counter() - began < 10


def test_of_a_line_without_an_end_the_beginning_is_read() -> None:
    assert _found(f"ValueError: {'x' * 120_000}").startswith("ValueError: xxx")
