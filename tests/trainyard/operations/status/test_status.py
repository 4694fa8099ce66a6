"""What `trainyard status` prints of a cluster that a person may read in part, and of pods that crash."""

from __future__ import annotations

import socket
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from tests.support.tool import run_word
from trainyard.cli import main
from trainyard.operations.reach.snapshot import Snapshot
from trainyard.operations.reach.updates import History, Update
from trainyard.operations.status import locks, status
from trainyard.operations.status.finding import Finding
from trainyard.operations.status.locks import Lock


@pytest.fixture(autouse=True)
def an_update_that_ended_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "deployment", lambda stack: {"deployment": {}})
    monkeypatch.setattr(status, "history_of", lambda stack: History(entries=()))
    monkeypatch.setattr(status, "locks_of", lambda stack: ())


JOB = {
    "kind": "TrainJob",
    "metadata": {
        "namespace": "team-a",
        "name": "mine",
        "creationTimestamp": "2026-11-22T05:00:00Z",
    },
    "spec": {"runtimeRef": {"name": "once"}, "trainer": {"numNodes": 1, "command": ["python"]}},
}


def _pod(waiting: str) -> dict[str, Any]:
    state = {"waiting": {"reason": waiting}} if waiting else {"running": {}}
    return {
        "kind": "Pod",
        "metadata": {
            "namespace": "team-a",
            "name": "mine-node-0-0",
            "creationTimestamp": "2026-11-22T05:00:00Z",
            "labels": {"jobset.sigs.k8s.io/jobset-name": "mine"},
        },
        "spec": {},
        "status": {
            "phase": "Running",
            "containerStatuses": [{"name": "node", "restartCount": 7, "state": state}],
        },
    }


def test_a_listed_team_sees_its_jobs_and_one_line_in_the_place_of_nodes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = Snapshot(objects={"trainjobs": [JOB]}, unseen=frozenset({"nodes", "deployments"}))
    monkeypatch.setattr(status, "look", lambda *_, **__: (seen, [], []))
    run_word("status", ["--stack", "team-a"])
    shown = capsys.readouterr().out
    assert shown.startswith("nodes and pools are not shown: a team that the environment lists")
    assert (
        "team-a/mine" in shown and "no available" not in shown and "nothing launches" not in shown
    )


def test_what_somebody_changed_by_hand_is_said_and_stops_no_script(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = JOB | {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}
    gone = Finding(what="NodePool l4 is gone", why="somebody", do="pulumi refresh")
    seen = Snapshot(objects={"trainjobs": [ended]})
    monkeypatch.setattr(status, "look", lambda *_, **__: (seen, [gone], []))
    assert run_word("status", ["--stack", "dev"]) == 0
    assert "Not as the last update of dev left it: NodePool l4 is gone\n" in capsys.readouterr().out


def test_what_is_said_with_times_begins_with_the_time_and_its_zone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = JOB | {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}
    now = datetime(2026, 11, 30, 14, tzinfo=timezone(timedelta(hours=2)))
    seen = Snapshot(objects={"trainjobs": [ended]}, taken_at=now)
    zone = "\nIt is 2026-11-30 12:00:00 UTC; all times are UTC.\n"
    gone = Finding(what="NodePool l4 is gone", why="somebody", do="pulumi refresh")
    monkeypatch.setattr(status, "look", lambda *_, **__: (seen, [gone], []))
    run_word("status", ["--stack", "dev"])
    assert zone in capsys.readouterr().out
    monkeypatch.setattr(status, "look", lambda *_, **__: (seen, [], []))
    run_word("status", ["--stack", "dev"])
    assert "UTC" not in capsys.readouterr().out


def test_a_job_that_is_called_otherwise_than_its_entry_is_shown_with_its_entry(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A YAML job keeps its own name; `trainyard again` and the stack file know its entry."""
    ended = JOB | {"status": {"conditions": [{"type": "Failed", "status": "True"}]}}
    jobs = {"mine-as-is": {"kind": "TrainJob", "namespace": "team-a", "name": "mine"}}
    snapshot = Snapshot(objects={"trainjobs": [ended]}, entries=jobs)
    monkeypatch.setattr(status, "look", lambda *_, **__: (snapshot, [], []))
    assert run_word("status", ["--stack", "team-a"]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "team-a/mine mine-as-is TrainJob" in shown
    assert "TrainJob mine (entry mine-as-is) failed" in shown
    assert "trainyard again mine-as-is" in shown


def test_an_entry_without_a_run_is_shown_and_a_schedule_between_its_times_is_not() -> None:
    """Its run was stopped, or an update was killed after it had ended the run."""
    entries = {
        name: {"kind": "TrainJob", "namespace": "team-vision", "name": name}
        for name in ("mine", "nightly")
    }
    every_night = {"namespace": "team-vision", "cron": "0 3 * * *", "time_zone": "Etc/UTC"}
    snapshot = Snapshot(objects={}, entries=entries, schedules={"nightly": every_night})
    [row] = [line for line in status.tables(snapshot).splitlines() if "no run" in line]
    assert row.split() == ["team-vision/mine", "mine", "TrainJob", "-", "-", "no", "run", "-"]


def test_the_entries_of_jobs_are_those_of_the_stacks_outputs() -> None:
    def state(outputs: dict[str, Any] | None) -> dict[str, Any]:
        stack = {"type": "pulumi:pulumi:Stack"} | ({"outputs": outputs} if outputs else {})
        bucket = {"type": "aws:s3/bucket:Bucket", "outputs": {"jobs": "of no stack"}}
        return {"deployment": {"resources": [bucket, stack]}}

    jobs = {"mine": {"kind": "TrainJob", "namespace": "training", "name": "mine"}}
    assert status._entries(state({"jobs": jobs})) == jobs
    assert status._entries(state({"zone": "us-east-2a"})) == {}
    assert status._entries(state(None)) == status._entries({"deployment": {}}) == {}


def test_the_entry_of_a_job_is_known_while_the_update_that_made_it_runs() -> None:
    kind = "kubernetes:trainer.kubeflow.org/v1alpha1:TrainJob"
    made = {"type": kind, "id": "training/mine", "urn": f"urn:pulumi:s::p::{kind}::entry"}
    resources = [{"type": "pulumi:pulumi:Stack"}, made, made | {"id": "", "urn": "a::b::c::later"}]
    assert status._entries({"deployment": {"resources": resources}}) == {
        "entry": {"kind": "TrainJob", "namespace": "training", "name": "mine"}
    }


@pytest.mark.parametrize(
    ("waiting", "shown"),
    [("CrashLoopBackOff", "CrashLoopBackOff"), ("ContainerCreating", "Running"), ("", "Running")],
)
def test_a_pod_in_a_crash_loop_does_not_count_as_running(waiting: str, shown: str) -> None:
    snapshot = Snapshot(objects={"trainjobs": [JOB], "pods": [_pod(waiting)]})
    assert [row[2] for row in status._pods(snapshot)] == ["PHASE", shown]


@pytest.mark.parametrize("failed", [True, False])
def test_a_failed_update_of_an_account_is_said_with_the_command_that_goes_on(
    failed: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = Snapshot(objects={}, unseen=frozenset({"nodes", "deployments"}))
    monkeypatch.setattr(status, "look", lambda *_, **__: (empty, [], []))
    result = "failed" if failed else "succeeded"
    last = Update(kind="update", result=result, ended=datetime(2026, 11, 27, tzinfo=UTC))
    monkeypatch.setattr(status, "history_of", lambda stack: History(entries=(last,)))
    run_word("status", ["--live", "--stack", "dev"])
    assert ("`pulumi up --stack dev` goes on from there" in capsys.readouterr().out) is failed


def test_five_hundred_jobs_that_wait_for_one_reason_are_one_finding() -> None:
    waiting = [
        Finding(what=f"job {n} waits", why="the queue is full", do="wait") for n in range(500)
    ]
    other = Finding(what="job 7 failed", why="it is broken", do="mend it")
    shown = [*map(str, status.together([*waiting[:2], other, *waiting[2:]]))]
    assert shown == [
        "job 0 waits\n  job 1 waits\n  job 2 waits\n  job 3 waits\n  job 4 waits\n"
        "  and 495 more, for the same reason:\n    the queue is full\n    → wait",
        str(other),
    ]
    assert [*status.together(waiting[:5])][0].what.endswith("job 4 waits"), "nothing is left out"


def test_a_first_update_that_has_no_cluster_yet_is_said_to_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    urn = "urn:pulumi:dev::trainyard::trainyard:network:Network$aws:ec2/vpc:Vpc::network"
    pending = [{"type": "creating", "resource": {"urn": urn}}]
    monkeypatch.setattr(
        status, "deployment", lambda stack: {"deployment": {"pending_operations": pending}}
    )
    assert run_word("status", ["--live", "--stack", "dev"]) == 1
    shown = capsys.readouterr().out
    assert "stack dev has no cluster" in shown
    assert "An update of dev runs, or was killed while creating Vpc network" in shown


def test_while_the_first_update_runs_nothing_is_told_but_to_look_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    running = Lock(pid=7, host=socket.gethostname(), user="me", since="2026-11-29T11:00:00Z")
    monkeypatch.setattr(status, "locks_of", lambda stack: (running,))
    monkeypatch.setattr(locks, "_lives", lambda pid: True)
    options = main.read(["status", "--stack", "dev"])
    assert status.main(options) == 1 and options.then == "trainyard status dev"
    shown = capsys.readouterr().out
    assert shown == "dev has no cluster yet. An update of dev runs, as process 7 of this machine.\n"


@pytest.mark.parametrize(
    ("stack", "said", "then"),
    [
        ("corp", "stack corp has no cluster: `pulumi up --stack corp` creates one", "{up}"),
        (
            "team-nlp",
            "stack team-nlp is not up, and makes no cluster: its jobs run in that of stack corp",
            "trainyard status corp",
        ),
    ],
)
def test_a_stack_without_a_cluster_has_no_logs_to_read_next_and_lists_what_is_kept(
    stack: str,
    said: str,
    then: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "Pulumi.team-nlp.yaml").write_text(
        "config: {'aws:region': us-east-2, 'trainyard:team': {environment: corp}}"
    )
    monkeypatch.chdir(tmp_path)
    home = {"type": "aws:efs/fileSystem:FileSystem", "id": "fs-1", "protect": True}
    home["urn"] = f"urn:pulumi:{stack}::shop::{home['type']}::home"
    state = {"deployment": {"resources": [home]}}
    monkeypatch.setattr(status, "deployment", lambda _: state)
    monkeypatch.setattr(status.instances, "named", lambda *_: ["still runs: instance i-1"])
    options = main.read(["status", "--live", "--stack", stack])
    assert status.main(options) == 1 and options.then == then
    shown = capsys.readouterr().out
    assert "\nstill runs: instance i-1\n" in shown
    assert said in shown and "kept: FileSystem home fs-1, billed by the data in it" in shown
    assert "\n  aws efs delete-file-system --file-system-id fs-1" in shown
    assert f"\n  pulumi destroy --stack {stack}  # " in shown


def test_a_job_whose_only_pod_cannot_start_is_not_shown_as_running() -> None:
    """The Trainer gives such a job no condition."""
    for waits, state in {"CreateContainerConfigError": "Waiting (Crea", "": "Running"}.items():
        seen = Snapshot(objects={"trainjobs": [JOB], "pods": [_pod(waits)]})
        [job] = seen.jobs()
        assert job.state == state.partition(" ")[0] and not job.ended and job.waits_for == waits
        [row] = [each for each in status.tables(seen).splitlines() if "once" in each]
        assert state in row
    queued = {**JOB, "status": {"conditions": [{"type": "Suspended", "status": "True"}]}}
    [job] = Snapshot(objects={"trainjobs": [queued], "pods": [_pod("ImagePullBackOff")]}).jobs()
    assert job.shown == "Suspended"


def test_an_update_that_was_killed_before_its_first_object_is_told_by_its_lock(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lock = Lock(pid=7, user="ana", host="another", since="2026-11-28T20:00:00Z")
    monkeypatch.setattr(status, "locks_of", lambda stack: (lock,))
    empty = Snapshot(objects={}, unseen=frozenset({"nodes", "deployments"}))
    monkeypatch.setattr(status, "look", lambda *_, **__: (empty, [], []))
    run_word("status", ["--live", "--stack", "dev"])
    assert "Its lock is of process 7 on another" in capsys.readouterr().out


def test_the_next_run_of_a_schedule_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = {"namespace": "training", "cron": "0 3 * * 1", "time_zone": "Asia/Seoul"}
    snapshot = Snapshot(
        objects={},
        taken_at=datetime(2026, 11, 29, 12, 0, tzinfo=UTC),
        schedules={"nightly": told, "old": {**told, "suspended": "true"}},
    )
    monkeypatch.setattr(status, "look", lambda *_, **__: (snapshot, [], []))
    run_word("status", ["--stack", "dev"])
    shown = capsys.readouterr().out
    assert "training/nightly  0 3 * * 1 Asia/Seoul  2026-11-29T18:00:00Z" in shown
    assert "training/old      0 3 * * 1 Asia/Seoul  none: suspended" in shown


def test_schedules_and_entries_are_read_from_the_outputs_of_the_state() -> None:
    outputs = {"jobs": {"a": {"kind": "TrainJob"}}, "schedules": {"b": {"cron": "@daily"}}}
    state = {"deployment": {"resources": [{"type": status.STACK, "outputs": outputs}]}}
    assert status._entries(state) == outputs["jobs"]
    assert status._output(state, "schedules") == outputs["schedules"]
    assert status._output({"deployment": {}}, "schedules") == {}
