"""What `up` makes of a run's state, with a stand-in for kubectl."""

from __future__ import annotations

import json
import math
import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from components.jobs import unanswered, wait_for_job
from components.jobs.wait_for_job import RunFailed, wait
from tests.support.launchers import torchrun
from trainyard.catalog.logs.cause import Cause
from trainyard.catalog.logs.noted import WHY, note_of


@pytest.fixture
def says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Decide what kubectl answers, one status a call, the last one for ever; none stands for no
    answer."""
    monkeypatch.setattr(wait_for_job, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(wait_for_job, "EVERY_SECONDS", 0.0)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    def decide(*statuses: dict[str, Any] | None, pods: tuple[dict[str, Any], ...] = ()) -> None:
        (tmp_path / "pods.json").write_text(json.dumps({"items": pods}))
        for number, status in enumerate(statuses):
            (tmp_path / f"{number}.json").write_text(
                "" if status is None else json.dumps({"items": [{"status": status}]})
            )
        program = tmp_path / "kubectl"
        program.write_text(f"""#!/bin/bash
case "$*" in
*" logs --selector"*) echo '[pod/job-node-0-0] loss is nan'; exit;;
*" logs "*) echo "the log of $5 $8"; exit;;
*" get pods "*) cat {tmp_path}/pods.json; exit;;
*" annotate "*) echo "$*" >> {tmp_path}/annotated; exit;;
*" get events "*) cat {tmp_path}/events.json; exit;;
*" get jobsets."*) cat {tmp_path}/jobsets.json 2>/dev/null || echo '{{"items": []}}'; exit;;
*" get pytorchjobs."*) exit;;
esac
n=$(cat {tmp_path}/n 2>/dev/null || echo 0); echo $((n + 1)) > {tmp_path}/n
[ -e {tmp_path}/$n.json ] || n={len(statuses) - 1}
cat {tmp_path}/$n.json; [ -s {tmp_path}/$n.json ]
""")
        program.chmod(0o755)

    return decide


def _condition(kind: str) -> dict[str, Any]:
    return {"conditions": [{"type": kind, "status": "True"}]}


READY, STARTING = (
    {"jobsStatus": [{"name": "node", "ready": 1}]},
    {"jobsStatus": [{"name": "node", "ready": 0}]},
)


@pytest.mark.parametrize(
    ("kind", "until", "statuses", "end"),
    [
        ("TrainJob", "complete", [{}, None, STARTING, READY, _condition("Complete")], "Complete"),
        ("TrainJob", "running", [{}, STARTING, READY], "Running"),
        ("TrainJob", "running", [_condition("Complete")], "Complete"),
        (
            "PyTorchJob",
            "complete",
            [_condition("Created"), _condition("Running"), _condition("Succeeded")],
            "Succeeded",
        ),
        ("PyTorchJob", "running", [_condition("Created"), _condition("Running")], "Running"),
    ],
)
def test_it_ends_when_the_run_is_where_it_should_be(
    says: Any, kind: str, until: str, statuses: list[Any], end: str
) -> None:
    says(*statuses)
    assert wait("kubeconfig", kind, "training", "job", until=until, minutes=1) == end


@pytest.mark.parametrize("until", ["running", "complete"])
def test_a_failed_run_is_said_with_the_last_lines_of_its_ranks(
    says: Any, until: str, tmp_path: Path
) -> None:
    says(STARTING, _condition("Failed"))
    with pytest.raises(RunFailed, match=r"TrainJob training/job is Failed; (?s:.*)loss is nan"):
        wait("kubeconfig", "TrainJob", "training", "job", until=until, minutes=1)
    assert not (tmp_path / "annotated").exists(), "nobody knows why"


def test_a_run_of_which_only_one_part_is_ready_does_not_run_yet(says: Any) -> None:
    """The launcher of an MPI job is up long before its nodes are."""
    parts = [{"name": "launcher", "ready": 1}, {"name": "node", "ready": 0}]
    says({"jobsStatus": parts}, _condition("Failed"))
    with pytest.raises(RunFailed):
        wait("kubeconfig", "TrainJob", "training", "job", until="running", minutes=1)


def _pod(name: str, code: int, at: str, field: str = "state") -> dict[str, Any]:
    end = {"terminated": {"exitCode": code, "finishedAt": f"2026-11-22T05:00:{at}Z"}}
    return {
        "metadata": {"name": name},
        "spec": {"nodeName": f"of-{name}", "containers": [{"name": "node"}]},
        "status": {
            "phase": "Failed" if field == "state" else "Running",
            "containerStatuses": [{"name": "node", "restartCount": field != "state", field: end}],
        },
    }


def test_the_pod_that_failed_first_is_shown_before_those_that_were_ended_for_it(says: Any) -> None:
    pods = (_pod("a", 143, "01"), _pod("b", 1, "03"), _pod("c", 1, "02"), _pod("d", 0, "00"))
    says(_condition("Failed"), pods=pods)
    with pytest.raises(RunFailed) as failure:
        wait("kubeconfig", "TrainJob", "training", "job", until="complete", minutes=1)
    assert str(failure.value) == (
        "TrainJob training/job is Failed: node rank 0 on of-c ended first, with exit code 1: the log of"
        " c\nthe log of pod c, up to the line that says why:\nthe log of c\nthe last line of every"
        " pod:\n[pod/job-node-0-0] loss is nan"
    )


def test_a_failed_run_says_the_line_before_the_summary_of_its_launcher_and_what_to_do(
    says: Any, tmp_path: Path
) -> None:
    says(_condition("Failed"), pods=(_pod("c", 1, "02"),))
    (tmp_path / "log").write_text(f"OSError: [Errno 28] No space left\n{torchrun('1', '0')}\n")
    program = tmp_path / "kubectl"
    program.write_text(
        program.read_text().replace('echo "the log of $5 $8"', f"cat {tmp_path}/log")
    )
    with pytest.raises(RunFailed) as failure:
        wait("kubeconfig", "TrainJob", "training", "job", until="complete", minutes=1)
    said = str(failure.value).splitlines()
    assert said[0].endswith("code 1: OSError: [Errno 28] No space left (a file system is full)")
    assert said[1].startswith("Fix: delete old checkpoints, or raise capacity_gib of the store")
    assert said[3:5] == ["OSError: [Errno 28] No space left", "the last line of every pod:"]


def test_a_failed_run_whose_pods_were_gone_says_the_error_that_they_wrote_before(
    says: Any, tmp_path: Path
) -> None:
    going = {
        "metadata": {"name": "mine-x"},
        "spec": {"nodeName": "n1", "containers": [{"name": "node"}]},
        "status": {"phase": "Running"},
    }
    says(*[STARTING] * 60, _condition("Failed"), pods=(going,))
    program = tmp_path / "kubectl"
    line = "echo '[pod/mine-x/node] ValueError: no such column'"
    program.write_text(program.read_text().replace("echo '[pod/job-node-0-0] loss is nan'", line))
    with pytest.raises(RunFailed) as failure:
        wait("kubeconfig", "TrainJob", "training", "job", until="complete", minutes=1)
    assert str(failure.value) == (
        "TrainJob training/job is Failed: node rank 0 on n1 ended: ValueError: no such column\n"
        "the log of that rank, up to the line that says why:\nValueError: no such column"
    )
    noted = (tmp_path / "annotated").read_text()
    assert " annotate --overwrite trainjob job trainyard.io/why={" in noted
    assert '"sentence": "node rank 0 on n1 ended: ValueError: no such column"' in noted


def test_a_run_that_failed_before_the_update_says_what_another_one_has_noted(
    says: Any, tmp_path: Path
) -> None:
    says(_condition("Failed"))
    note = note_of(Cause("node rank 0 ended: ValueError: no such column", "name it"))
    failed = {"metadata": {"annotations": {WHY: note}}, "status": _condition("Failed")}
    (tmp_path / "0.json").write_text(json.dumps({"items": [failed]}))
    with pytest.raises(RunFailed) as failure:
        wait("kubeconfig", "TrainJob", "training", "job", until="complete", minutes=1)
    assert str(failure.value).splitlines()[:2] == [
        "TrainJob training/job is Failed: node rank 0 ended: ValueError: no such column",
        "Fix: name it",
    ]
    assert not (tmp_path / "annotated").exists(), "it is noted already"


def _waiting(*, placed: bool = True, made: str = "2026-11-22T05:00:00Z") -> dict[str, Any]:
    return {
        "metadata": {"name": "w", "namespace": "training", "creationTimestamp": made},
        "spec": {"nodeName": "node"} if placed else {},
        "status": {"phase": "Pending"},
    }


def _event(message: str) -> dict[str, Any]:
    return {"type": "Warning", "message": message, "involvedObject": {"kind": "Pod", "name": "w"}}


REFUSED = "MountVolume.SetUp failed: Failed fetching secret training/token: AccessDeniedException"


@pytest.mark.parametrize(
    ("pods", "event", "lines"),
    [
        ((), "", ["training/job: no pods yet"]),
        (
            (_waiting(),),
            REFUSED,
            [
                "training/job: 1 Pending",
                (
                    "    Secrets Manager refuses training/token: the role of the pods does not permit it,"
                    " or there is no such secret"
                ),
                f"    {REFUSED}",
                (
                    "    → aws secretsmanager describe-secret --secret-id training/token; compare its name"
                    " with the job's secrets, and with secrets in the environment's entry of the team"
                ),
            ],
        ),
        (
            (_waiting(placed=False),),
            "0/2 nodes are available: Insufficient nvidia.com/gpu",
            [
                "training/job: 1 Pending",
                "    resources: no node has nvidia.com/gpu",
                "    0/2 nodes are available: Insufficient nvidia.com/gpu",
                (
                    "    → request no more than a node of the pool has: kubectl describe nodes, trainyard"
                    " plan"
                ),
            ],
        ),
        ((_waiting(made="2126-11-22T05:00:00Z"),), REFUSED, ["training/job: 1 Pending"]),
        (
            (_pod("c", 1, "02", "lastState"),),
            "",
            [
                "training/job: 1 Running, 1 restart",
                "    node rank 0 on of-c ended first, with exit code 1: the log of c --previous",
            ],
        ),
    ],
)
def test_while_it_waits_it_says_what_the_pods_do_and_why(
    says: Any, tmp_path: Path, pods: tuple[Any, ...], event: str, lines: list[str]
) -> None:
    says({}, {}, {}, _condition("Complete"), pods=pods)
    events = [_event(event)] if event else []
    (tmp_path / "events.json").write_text(json.dumps({"items": events}))
    said = list[str]()
    ended = wait(
        *("kubeconfig", "TrainJob", "training", "job"),
        until="complete",
        minutes=1,
        say=said.append,
    )
    assert ended == "Complete"
    assert [each.splitlines() for each in said] == [lines], "once, because nothing changes"


def test_a_gang_that_changes_all_the_time_is_said_at_most_every_ten_seconds(
    says: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wait_for_job, "EVERY_SECONDS", 10.0)
    says({}, _condition("Complete"))
    clock, number = [0.0], [0]

    def sleep(_: float) -> None:
        clock[0] += 3
        number[0] += 1
        pods = [_waiting(made="2126-11-22T05:00:00Z")] * number[0]
        (tmp_path / "pods.json").write_text(json.dumps({"items": pods}))
        (tmp_path / "n").write_text("1" if number[0] == 9 else "0")

    shown = SimpleNamespace(monotonic=lambda: clock[0], sleep=sleep)
    monkeypatch.setattr(wait_for_job, "time", shown)
    said = list[str]()
    wait(
        *("kubeconfig", "TrainJob", "training", "job"),
        until="complete",
        minutes=1,
        say=said.append,
    )
    assert said == [f"training/job: {what}" for what in ("no pods yet", "4 Pending", "8 Pending")]


def test_the_log_of_a_pod_is_known_after_its_runtime_has_deleted_it(
    says: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    says(READY, READY, _condition("Failed"), pods=(_pod("gone", 1, "01", "lastState"),))

    def sleep(_: float) -> None:
        (tmp_path / "pods.json").write_text('{"items": []}')

    clock = SimpleNamespace(monotonic=time.monotonic, sleep=sleep)
    monkeypatch.setattr(wait_for_job, "time", clock)
    with pytest.raises(RunFailed, match="the log of gone --previous"):
        wait("kubeconfig", "TrainJob", "training", "job", until="complete", minutes=1)


def test_a_gang_that_begins_again_is_said_at_once_with_the_reason(
    says: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a gang that failed and began again only `trainyard runs` knew, hours later."""
    monkeypatch.setattr(wait_for_job, "EVERY_SECONDS", 60.0)
    says(READY, READY, READY, _condition("Complete"), pods=(_pod("a", 1, "01"),))

    def sleep(_: float) -> None:
        new = _pod("b", 0, "09", "lastState")
        new["metadata"] |= {"uid": "b", "creationTimestamp": "2026-11-22T05:00:04Z"}
        (tmp_path / "pods.json").write_text(json.dumps({"items": [new]}))
        restarted = {
            "spec": {"failurePolicy": {"maxRestarts": 3}},
            "status": {"restarts": 1, "restartsCountTowardsMax": 1},
        }
        (tmp_path / "jobsets.json").write_text(json.dumps({"items": [restarted]}))

    clock = SimpleNamespace(monotonic=time.monotonic, sleep=sleep)
    monkeypatch.setattr(wait_for_job, "time", clock)
    said = list[str]()
    wait(
        *("kubeconfig", "TrainJob", "training", "job"),
        until="complete",
        minutes=1,
        say=said.append,
    )
    assert said[1:] == [
        "training/job has failed and begins again, try 2 of 4: node rank 0 on of-a ended first, with exit"
        " code 1: the log of a"
    ]
    assert "exit code 1: the log of a" in (tmp_path / "annotated").read_text()


def test_a_failed_run_fails_the_process_after_everything_else_has_ended(
    says: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the program says after its end is of no use, and what raises before it deletes
    nothing."""
    says(_condition("Failed"))
    said, ends = list[str](), list[Any]()
    monkeypatch.setattr(wait_for_job.pulumi.log, "error", said.append)
    monkeypatch.setattr(wait_for_job.atexit, "register", lambda *call: ends.append(call))
    wait_for_job.fail_at_the_end.cache_clear()
    for job in ("one", "two"):
        wait_for_job.wait_or_report(
            "kubeconfig", "TrainJob", "training", job, until="complete", minutes=1, stack="dev"
        )
    assert [line.splitlines()[0] for line in said] == [
        f"TrainJob training/{job} is Failed; its ranks said last:" for job in ("one", "two")
    ]
    assert ends == [(os._exit, wait_for_job.MESSAGE_SHOWN)]
    wait_for_job.fail_at_the_end.cache_clear()


def test_a_run_that_somebody_stopped_is_not_waited_for(says: Any, tmp_path: Path) -> None:
    says(READY, READY)
    (tmp_path / "1.json").write_text('{"items": []}')
    with pytest.raises(RunFailed, match="not on the cluster any more: .* Fix: increase `run`"):
        wait("kubeconfig", "TrainJob", "training", "job", until="complete", minutes=1)


def test_a_run_that_was_stopped_before_the_update_is_a_warning_and_no_failure(
    says: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every later update of the stack failed until somebody took the entry away."""
    says(READY)
    (tmp_path / "0.json").write_text('{"items": []}')
    said = list[str]()
    monkeypatch.setattr(wait_for_job.pulumi.log, "warn", said.append)
    monkeypatch.setattr(wait_for_job, "fail_at_the_end", lambda: pytest.fail("the update fails"))
    wait_for_job.wait_or_report(
        "kubeconfig", "TrainJob", "training", "job", until="complete", minutes=1, stack="dev"
    )
    [line] = said
    assert line.startswith("TrainJob training/job is not on the cluster: it was stopped or deleted")


def test_the_time_is_limited(says: Any) -> None:
    says(STARTING)
    with pytest.raises(RunFailed, match=r"is Waiting after 0.001 minutes \(wait_minutes\)"):
        wait("kubeconfig", "TrainJob", "training", "job", until="running", minutes=0.001)


LOGGED_OUT = """#!/bin/bash
echo 'E1130 16:00:00.000000  77 memcache.go:265] "Unhandled Error" err="Unauthorized"' >&2
echo 'The SSO session has expired.' >&2
echo 'error: You must be logged in to the server (Unauthorized)' >&2
exit 1
"""


@pytest.fixture
def logged_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """kubectl with credentials that have expired, and waits that are impatient."""
    monkeypatch.setattr(wait_for_job, "POLL_SECONDS", 0.01)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(unanswered, "SECONDS", 0.0)
    program = tmp_path / "kubectl"
    program.write_text(LOGGED_OUT)
    program.chmod(0o755)
    return program


def test_a_cluster_that_answers_nobody_is_said_once(logged_out: Path) -> None:
    said = list[str]()
    with pytest.raises(RunFailed, match=r"is not seen yet after 0.02 minutes \(wait_minutes\)"):
        place = ("kubeconfig", "TrainJob", "training", "job")
        wait(*place, until="complete", minutes=0.02, say=said.append)
    [line] = said
    assert line.startswith("TrainJob training/job: the cluster has not answered for 0 seconds:")
    assert ": The SSO session has expired; error: You must be logged in to the server" in line
    assert "log in again in another terminal" in line and "memcache" not in line


def test_a_cluster_that_answers_nobody_ends_a_wait_without_a_limit(
    logged_out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It held `up` for ever, where keys in the environment have expired."""
    monkeypatch.setattr(unanswered, "MINUTES", 0.01)
    words = "the cluster has not answered for 0.01 minutes: The SSO session has expired"
    with pytest.raises(unanswered.NotAnswered, match=words):
        wait("kubeconfig", "TrainJob", "training", "job", until="complete", minutes=math.inf)


def test_a_cluster_that_answers_again_is_waited_for_as_before(
    says: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unanswered, "SECONDS", 0.0)
    says(STARTING, None, None, STARTING, None, _condition("Complete"))
    said = list[str]()
    place = ("kubeconfig", "TrainJob", "training", "job")
    assert wait(*place, until="complete", minutes=math.inf, say=said.append) == "Complete"
    assert len([line for line in said if "has not answered" in line]) == 2


def test_without_kubectl_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RunFailed, match="needs kubectl on this machine"):
        wait("kubeconfig", "TrainJob", "training", "job", until="running", minutes=1)


def test_a_complete_run_that_had_nothing_to_do_is_a_warning(
    says: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    says(_condition("Complete"))
    program = tmp_path / "kubectl"
    line = "echo '[pod/job-node-0-0] loss is nan'"
    program.write_text(program.read_text().replace(line, "echo resumed from step 81; echo done"))
    said = list[str]()
    monkeypatch.setattr(wait_for_job.pulumi.log, "warn", said.append)
    wait_for_job.wait_or_report(
        "kubeconfig", "TrainJob", "training", "job", until="complete", minutes=1, stack="dev"
    )
    [warning] = said
    assert warning.startswith(
        "TrainJob training/job is Complete, and it had nothing to do: it resumed"
    )


def test_a_byte_that_is_no_text_ends_no_wait(tmp_path: Path) -> None:
    program = tmp_path / "kubectl"
    program.write_text("#!/bin/sh\nprintf 'step 1\\n\\377'\n")
    program.chmod(0o755)
    assert wait_for_job.answer(str(program), "logs") == "step 1\n\ufffd"
