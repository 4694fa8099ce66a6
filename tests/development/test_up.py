"""How `up` follows the jobs of a stack, with recorded answers of an API server."""

from __future__ import annotations

from typing import Any

import pytest

from development import up
from development.engine import Stack
from development.progress import Display
from development.up import Run, _advice, _follow_jobs
from rehearsal.kube import ApiError

MINE = Run(entry="mine", kind="TrainJob", namespace="training", name="mine")
LOOP = Run(entry="mnist", kind="PyTorchJob", namespace="training", name="pytorch-mnist")


def _pod(restarts: int) -> dict[str, Any]:
    return {"status": {"phase": "Running", "containerStatuses": [{"restartCount": restarts}]}}


class Server:
    """Jobs by name, and the pods of all of them; each answer about pods has one more restart."""

    def __init__(self, jobs: dict[str, dict[str, Any]], restarts: int = 0) -> None:
        self.jobs, self.restarts = jobs, restarts

    def request(self, method: str, path: str) -> dict[str, Any]:
        assert method == "GET"
        if "/pods" in path:
            self.restarts += 1
            return {"items": [_pod(self.restarts), _pod(0)]}
        name = path.rpartition("/")[2]
        if name not in self.jobs:
            raise ApiError(404, {"message": f"{name} not found"})
        return self.jobs[name]


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(up, "POLL_SECONDS", 0)
    return []


def test_a_job_that_somebody_stopped_has_ended_and_the_way_back_is_named(lines: list[str]):
    server: Any = Server({})
    assert _follow_jobs(server, [MINE], Display(lines.append), 300) == [up.STOPPED]
    assert _advice(Stack(name="team"), MINE, up.STOPPED) == (
        "stopped: `trainyard again mine --stack team`, then `make up STACK=team`"
    )


def test_a_crash_loop_is_counted_and_not_waited_for_for_ever(lines: list[str]):
    server: Any = Server({"pytorch-mnist": {}})
    assert _follow_jobs(server, [LOOP], Display(lines.append, lambda: 0.0), 300) == [None]
    assert lines[0].endswith("training/pytorch-mnist: 2 Running, 1 restart")
    assert lines[-1].endswith(f"{up.RESTARTS - 1} restarts")
    assert "trainyard status" in _advice(Stack(name="dev"), LOOP, None)
