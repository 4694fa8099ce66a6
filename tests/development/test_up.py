"""How `up` follows the jobs of a stack, with recorded answers of an API server."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import IO, Any
from unittest.mock import Mock

import pytest

from development import causes, engine, steps, up
from development.causes import Causes, Run
from development.engine import Stack
from development.progress import Display, Stages
from development.up import _advice, _follow_jobs
from rehearsal.kube import ApiError
from tests.support.launchers import torchrun
from trainyard.catalog.logs.cause import Cause
from trainyard.catalog.logs.log_words import STEP_LINES
from trainyard.catalog.logs.noted import WHY, note_of

MINE = Run(entry="mine", kind="TrainJob", namespace="training", name="mine")
LOOP = Run(entry="mnist", kind="PyTorchJob", namespace="training", name="pytorch-mnist")


def _pod(restarts: int) -> dict[str, Any]:
    return {
        "metadata": {"name": "p", "uid": "p", "creationTimestamp": "2026-11-26T13:00:00Z"},
        "spec": {"nodeName": "n1", "containers": [{"name": "node"}]},
        "status": {
            "phase": "Running",
            "containerStatuses": [{"name": "node", "restartCount": restarts, "state": {}}],
        },
    }


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
    ends = _follow_jobs(server, [MINE], Display(lines.append), 300, Causes(server))
    assert ends == [up.STOPPED]
    assert _advice(Stack(name="team"), MINE, up.STOPPED) == (
        "stopped: `trainyard again mine --stack team`, then `make up STACK=team`"
    )


def test_of_a_stopped_run_of_a_sweep_the_way_to_begin_it_alone_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`trainyard again` of such a run was proposed, and is refused."""
    monkeypatch.setattr(up, "sweep_with", lambda stack, name: "tune")
    assert _advice(Stack(name="dev"), MINE, up.STOPPED) == (
        'stopped: a run of the sweep tune: `eval "$(make env STACK=dev)"; pulumi refresh --yes --stack dev --target'
        " '**:TrainJob::mine'` begins it alone again, or `trainyard again tune` all of them, then `make up`"
    )


@pytest.mark.parametrize(("end", "code"), [("Complete", 0), ("Failed", 1)])
def test_a_job_that_somebody_stopped_is_no_failure_and_is_not_in_the_cluster(
    end: str,
    code: int,
    checkout: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each later `make up` printed NotFound in its table, proposed its logs, and ended with exit code 2."""
    ended = {"status": {"conditions": [{"type": end, "status": "True"}]}}
    server: Any = Server({"theirs": ended})
    server.text = lambda path: ""
    outputs = {"jobs": {it: {**MINE._asdict(), "name": it} for it in ("mine", "theirs")}}
    monkeypatch.setattr(engine, "outputs", lambda _: outputs)
    monkeypatch.setattr(up.control_plane, "admin", lambda *_, **__: server)
    monkeypatch.setattr(up, "logged_in", lambda _: contextlib.nullcontext(dict))
    monkeypatch.setattr(up, "_kubectl", lambda *words: [" ".join(words[2:4])])
    said: list[str] = []
    display = Display(said.append)
    assert up._finish(engine.find("dev"), Stages(display), 300, first=False) == code
    shown = "\n".join(said)
    assert "job training/theirs" in shown and "trainyard logs theirs" in shown
    assert "\njob training/mine" not in shown and "trainyard logs mine" not in shown
    way = "job training/mine is stopped: `trainyard again mine`, then `make up`"
    assert way in capsys.readouterr().out


def test_a_crash_loop_is_counted_and_not_waited_for_for_ever(lines: list[str]):
    server: Any = Server({"pytorch-mnist": {}})
    display = Display(lines.append, lambda: 0.0)
    assert _follow_jobs(server, [LOOP], display, 300, Causes(server)) == [None]
    assert lines[0].endswith("training/pytorch-mnist: 2 Running, 1 restart")
    assert lines[-1].endswith(f"{up.RESTARTS - 1} restarts")
    said = _advice(Stack(name="dev"), LOOP, None)
    assert "goes on" in said and "`trainyard watch`" in said and "`trainyard status` prints" in said


class Failing:
    """A job whose rank 1 fails at the second look. Its pods are gone at the third."""

    def __init__(self, *, keeps: bool) -> None:
        """`keeps`: the pods are there for one look after the rank has failed."""
        self.keeps, self.looks = keeps, 0
        self.annotations: dict[str, str] = {}

    def request(self, method: str, path: str) -> dict[str, Any]:
        if "/pods" in path:
            return {"items": self._pods()}
        if "/jobsets?" in path:
            return {"items": []}
        if "/trainjobs?" in path:
            return {"items": [{"metadata": {"annotations": self.annotations}}]}
        self.looks += 1
        ended = {"type": "Failed", "status": "True"}
        return {"status": {"conditions": [ended] if self.looks > 2 else []}}

    def _pods(self) -> list[dict[str, Any]]:
        if self.looks > 2 or (self.looks == 2 and not self.keeps):
            return []
        pods = [_pod(0), _pod(0)]
        for number, pod in enumerate(pods):
            pod["metadata"]["labels"] = {"batch.kubernetes.io/job-completion-index": str(number)}
        if self.looks == 2:
            end = {"exitCode": 1, "reason": "Error", "finishedAt": "2026-11-26T13:00:41Z"}
            pods[1]["status"]["containerStatuses"][0]["state"] = {"terminated": end}
        return pods

    def text(self, path: str) -> str:
        assert "previous" not in path
        assert "container=node" in path or path.endswith(f"/log?tailLines={STEP_LINES}")
        return f"step 3\nOSError: [Errno 28] No space left on device\n{torchrun('1', '0')}\n"


def _said(lines: list[str], server: Any) -> str:
    causes = Causes(server)
    assert _follow_jobs(server, [MINE], Display(lines.append), 300, causes) == ["Failed"]
    return _advice(Stack(name="dev"), MINE, "Failed", causes.of(MINE))


def test_a_job_whose_pods_are_gone_with_its_failure_says_what_up_has_read_before(lines: list[str]):
    said = _said(lines, Failing(keeps=True)).splitlines()
    assert said[0] == (
        "Failed: node rank 1 on n1 ended first, with exit code 1: OSError: [Errno 28] No space left on"
        " device (a file system is full)"
    )
    assert said[1].startswith("Fix: delete old checkpoints")
    assert said[2:4] == ["    step 3", "    OSError: [Errno 28] No space left on device"]


def test_a_job_of_which_up_has_read_nothing_names_the_ways_to_have_a_log_next_time(
    lines: list[str],
):
    said = _said(lines, Failing(keeps=False))
    for way in ("own_runtimes", "wait: complete", "logs: {}", "`trainyard status`"):
        assert way in said


class Restarting(Failing):
    """The same, but its runtime makes new pods at the third look, and it is complete at the fourth."""

    def request(self, method: str, path: str) -> dict[str, Any]:
        if "/jobsets?" in path:
            assert path == (
                "/apis/jobset.x-k8s.io/v1alpha2/namespaces/training/jobsets?fieldSelector="
                "metadata.name%3Dmine"
            )
            status = {"restarts": 1, "restartsCountTowardsMax": 1} if self.looks > 2 else {}
            return {"items": [{"spec": {"failurePolicy": {"maxRestarts": 3}}, "status": status}]}
        if "/pods" in path or "/trainjobs?" in path:
            return super().request(method, path)
        self.looks += 1
        ended = {"type": "Complete", "status": "True"}
        return {"status": {"conditions": [ended] if self.looks > 3 else []}}

    def _pods(self) -> list[dict[str, Any]]:
        if self.looks == 2:
            return super()._pods()
        pod = _pod(0)
        pod["metadata"] |= {"uid": "new", "creationTimestamp": "2026-11-26T13:00:50Z"}
        return [pod] if self.looks > 2 else [_pod(0)]


def test_a_gang_that_begins_again_is_said_as_it_happens(lines: list[str]):
    server: Any = Restarting(keeps=True)
    causes = Causes(server)
    assert _follow_jobs(server, [MINE], Display(lines.append), 300, causes) == ["Complete"]
    [said] = [line for line in lines if "begins again" in line]
    assert said.endswith(
        "training/mine has failed and begins again, try 2 of 4: node rank 1 on n1 ended first, with exit code"
        " 1: OSError: [Errno 28] No space left on device (a file system is full)"
    )


def test_an_update_that_saw_no_pod_of_a_failed_job_says_what_another_one_has_noted(
    lines: list[str],
) -> None:
    """It said that no log tells why, and `status` named the reason one command later."""
    server = Failing(keeps=False)
    server.annotations = {WHY: note_of(Cause("node rank 1 ended: OSError: no space", "make room"))}
    assert _said(lines, server).splitlines()[:2] == [
        "Failed: node rank 1 ended: OSError: no space",
        "Fix: make room",
    ]


@pytest.mark.parametrize("known", [True, False])
def test_the_reason_of_a_failed_job_is_noted_on_it(
    known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[tuple[str, ...]] = []
    monkeypatch.setattr(causes.subprocess, "run", lambda words, **_: called.append(words))
    server = Mock(request=lambda *_: {"items": []})
    found = Causes(server, {"KUBECONFIG": "of the world"})
    cause = Cause("node rank 0 on n1 ended: ValueError", "mend it") if known else None
    monkeypatch.setattr(found, "seen", lambda _: cause)
    assert found.of(MINE) == cause
    assert [words[2:6] for words in called] == (
        [("annotate", "--overwrite", "trainjob", "mine")] if known else []
    )
    assert all("trainyard.io/why={" in words[-1] and "ValueError" in words[-1] for words in called)


def test_a_job_that_resumed_and_did_no_step_is_said_to_have_had_nothing_to_do(lines: list[str]):
    server: Any = Failing(keeps=True)
    server.text = lambda path: "resumed from step 81\nrank 0: final loss 0.2\n"
    server.looks = 1
    assert Causes(server).nothing_done(MINE) == "step 81"
    server.text = lambda path: "resumed from step 81\nstep 82 loss 0.2\n"
    assert Causes(server).nothing_done(MINE) is None


def test_a_word_that_up_calls_leaves_it_to_up_what_comes_next(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`make up` said in its third line: next: make up."""

    def call(words: list[str], *, stdout: IO[str], **_: object) -> int:
        stdout.write("stack dev: the rehearsal\ndev: repaired\nnext: make up STACK=dev\n")
        return 0

    monkeypatch.setattr(steps.subprocess, "call", call)
    monkeypatch.setattr(steps.engine, "complete", lambda stack: {})
    monkeypatch.setattr(steps.paths, "LOGS", checkout)
    said: list[str] = []
    assert steps.operate(Stack(name="dev"), Display(said.append), "repair", "looks", "dev") == 0
    assert [line.split(maxsplit=2)[2] for line in said] == ["dev: repaired"]


def test_up_ends_with_the_warnings_that_the_engine_had(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the log of the engine had them."""
    monkeypatch.setattr(up, "logged_in", lambda _: contextlib.nullcontext(dict))
    monkeypatch.setattr(up, "_kubectl", lambda *_: [])
    for warnings, check, first in ((["zone_id: it is not set"], True, True), ([], False, False)):
        said: list[str] = []
        stages = Stages(Display(said.append))
        events = [{"severity": "warning", "message": each} for each in warnings * 2]
        stages.consume([{"diagnosticEvent": each} for each in events])
        up._summary(engine.find("dev"), stages, [], [], first=first)
        assert (said[-2] == "\n1 warning\n  zone_id: it is not set") == check
        assert said[-1].startswith("\nnext\n")
        assert ("  trainyard check  # print the warnings" in said[-1]) == check
        [simulated] = [each for each in said if each.startswith("\nsimulated\n")]
        assert ("Grafana" in simulated, "rehearsal/README.md" in simulated) == (first, not first)


def test_the_end_of_a_job_is_a_line_of_its_own_with_the_last_step(lines: list[str]):
    server: Any = Restarting(keeps=True)
    server.text = lambda path: "step 81 loss 0.31\nstep 82 loss 0.30\nsaved step 82\nbye\n"
    server.looks = 2
    _follow_jobs(server, [MINE], Display(lines.append), 300, Causes(server))
    [said] = [line for line in lines if "Complete" in line]
    assert said.endswith("training/mine is Complete; its last step: step 82 loss 0.30")


class Vanishing(Restarting):
    """The same, but it fails at the fourth look, and nobody has seen how its new pods ended."""

    def request(self, method: str, path: str) -> dict[str, Any]:
        found = super().request(method, path)
        for each in found.get("status", {}).get("conditions", []):
            each["type"] = "Failed"
        return found


def test_a_job_whose_last_try_was_too_short_to_be_read_says_why_the_one_before_failed(
    lines: list[str],
):
    said = _said(lines, Vanishing(keeps=True)).splitlines()
    assert said[0].startswith(
        "Failed: the log of its last try was not read; before, node rank 1 on n1 ended first, with exit code 1: OSError"
    )
