"""What happens to ranks on a machine that breaks, with processes of this machine."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from rehearsal.kubelet import ranks
from rehearsal.kubelet.container import Container
from rehearsal.kubelet.process import Sandboxed
from tests.support.patience import until


@pytest.fixture
def container(tmp_path: Path) -> Iterator[Container]:
    """One that runs `sleep` below a shell, as a job's runs below unshare."""
    process = subprocess.Popen(["sh", "-c", "sleep 60 & wait"], stdout=subprocess.PIPE)
    sandboxed = Sandboxed(process, tmp_path / "log")
    made = Container(
        {"name": "node", "image": "i"},
        pod="p",
        policy="Never",
        start=lambda _: sandboxed,
        address=str,
    )
    made.tick()
    until(sandboxed.inside)
    [child] = sandboxed.inside()
    yield made
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    sandboxed.kill()


def process(container: Container) -> Sandboxed:
    assert isinstance(container.process, Sandboxed)
    return container.process


def ended(container: Container, by: Callable[[Sandboxed], None]) -> tuple[int, str]:
    """Exit code and reason, as the pod's status has them."""
    running = process(container)
    children = running.inside()
    by(running)
    for child in children:  # unshare would take it along
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    until(lambda: container.tick() or container.exit_code is not None)
    state = container.status()["state"]["terminated"]
    return state["exitCode"], state["reason"]


def stands(container: Container) -> bool:
    return all(
        " T " in Path(f"/proc/{pid}/stat").read_text() for pid in process(container).inside()
    )


def test_a_hung_rank_is_stopped_with_all_that_it_has_started_and_can_go_on(
    container: Container,
) -> None:
    ranks.stop(process(container))
    assert until(lambda: stands(container))
    ranks.go_on(process(container))
    assert until(lambda: not stands(container))


def test_a_rank_without_memory_ends_with_the_reason_that_kubernetes_gives(
    container: Container,
) -> None:
    assert ended(container, ranks.run_out_of_memory) == (137, "OOMKilled")


def test_a_rank_that_fails_says_why_and_ends_as_a_program_does(
    container: Container, tmp_path: Path
) -> None:
    assert ended(container, lambda one: ranks.fail(one, "OSError: no")) == (1, "Error")
    assert (tmp_path / "log").read_text().endswith("stdout F OSError: no\n")
