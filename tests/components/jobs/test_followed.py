"""Lines of ranks that are read before their pods are gone, with a stand-in for kubectl."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from components.jobs import followed
from components.jobs.followed import Followed
from tests.support.patience import until

ERROR = "[pod/b/node] Traceback (most recent call last):\n[pod/b/node] ValueError: no such column\n"
LOSS = "[pod/a/node] step 3 loss 0.2\n[pod/a/node] RuntimeError: Connection closed by peer\n"


class Kubectl:
    """A stand-in that prints a file, and waits as a stream does."""

    def __init__(self, folder: Path) -> None:
        self._log, self._calls = folder / "log", folder / "calls"
        program = folder / "kubectl"
        program.write_text(
            f'#!/bin/bash\necho "$@" >> {self._calls}\ncat {self._log}\nexec sleep 60\n'
        )
        program.chmod(0o755)

    def prints(self, text: str) -> None:
        self._log.write_text(text)

    @property
    def calls(self) -> list[str]:
        return self._calls.read_text().splitlines() if self._calls.exists() else []


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kubectl:
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return Kubectl(tmp_path)


@pytest.fixture
def gang() -> Iterator[Followed]:
    made = Followed(("kubectl", "--namespace=training"), "job=mine")
    yield made
    made.close()


def _pod(name: str, number: int, phase: str = "Running") -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "labels": {"batch.kubernetes.io/job-completion-index": str(number)},
        },
        "spec": {"nodeName": f"node-{number}", "containers": [{"name": "node"}]},
        "status": {"phase": phase},
    }


def _read(gang: Followed, lines: int) -> bool:
    return until(lambda: sum(map(len, gang._lines.values())) >= lines)


def test_the_rank_with_the_error_is_named_and_not_the_one_that_lost_it(
    kubectl: Kubectl, gang: Followed
) -> None:
    kubectl.prints(LOSS + ERROR)
    gang.look([_pod("a", 0), _pod("b", 1)])
    assert _read(gang, 4)
    cause = gang.take()
    assert cause and cause.sentence == "node rank 1 on node-1 ended: ValueError: no such column"
    assert cause.shown[-1] == "ValueError: no such column"
    assert gang.take() is None, "the next try has not said anything"
    [call] = kubectl.calls
    assert call.startswith("--namespace=training logs --selector=job=mine --follow --prefix")
    assert call.endswith("--request-timeout=0"), "kubectl would end the stream after 20 s"


def test_a_gang_of_which_each_rank_only_lost_another_one_has_no_known_reason(
    kubectl: Kubectl, gang: Followed
) -> None:
    """A node left: the ranks of the others say nothing of it."""
    kubectl.prints(LOSS)
    gang.look([_pod("a", 0), _pod("b", 1)])
    assert _read(gang, 2) and gang.take() is None


def test_lines_of_work_are_no_reason(kubectl: Kubectl, gang: Followed) -> None:
    kubectl.prints("[pod/a/node] step 3 loss 0.2\n")
    gang.look([_pod("a", 0)])
    assert _read(gang, 1) and gang.take() is None


def test_pods_are_followed_again_once_there_are_new_ones(kubectl: Kubectl, gang: Followed) -> None:
    kubectl.prints(ERROR)
    gang.look([_pod("b", 0, phase="Pending")])
    assert kubectl.calls == [] and gang.take() is None
    for _ in range(3):
        gang.look([_pod("b", 0)])
    assert _read(gang, 2) and len(kubectl.calls) == 1
    kubectl.prints("[pod/c/node] step 1\n")
    gang.look([_pod("c", 0)])
    assert _read(gang, 1) and len(kubectl.calls) == 2
    assert gang.take() is None, "the error was that of the pods before"


def test_a_stream_that_ends_before_its_pods_is_not_begun_at_each_look(
    kubectl: Kubectl, gang: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubectl.prints(ERROR)
    gang.look([_pod("b", 0)])
    assert _read(gang, 2)
    gang.close()
    gang.look([_pod("b", 0)])
    assert len(kubectl.calls) == 1
    monkeypatch.setattr(followed, "AGAIN_SECONDS", 0.0)
    gang.look([_pod("b", 0)])
    assert _read(gang, 2) and len(kubectl.calls) == 2


def test_a_gang_of_more_pods_than_the_bound_is_not_followed(
    kubectl: Kubectl, gang: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followed, "MOST_PODS", 1)
    gang.look([_pod("a", 0), _pod("b", 1)])
    assert kubectl.calls == [] and gang.take() is None


def test_without_kubectl_nothing_is_followed(
    gang: Followed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    gang.look([_pod("a", 0)])
    assert gang.take() is None
