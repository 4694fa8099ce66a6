"""Who took nodes from a job, when, and whether the job waits again: one sentence in status, watch and runs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.tool import run_word
from tests.trainyard.operations.finished import BEGAN, at, cluster, node, pod, train_job
from trainyard.operations.reach.snapshot import Snapshot
from trainyard.operations.reach.updates import History
from trainyard.operations.runs import runs
from trainyard.operations.runs.frame import frame, plain
from trainyard.operations.runs.records import KEPT, Known, runs_of
from trainyard.operations.runs.view import view
from trainyard.operations.status import status
from trainyard.operations.status.interruptions import interruptions

Object = dict[str, Any]
MESSAGE = (
    "Preempted to accommodate a workload (UID: w-owner, JobUID: uid-of-team-vision-owner) due to"
    " reclamation within the cohort; preemptor path: /nodes/vision; preemptee path: /nodes/nlp"
)
"""As Kueue 0.16.2 and 0.19.2 wrote it in tests/controllers/test_kueue.py."""


def workload(name: str, team: str, *conditions: Object, **status: Any) -> Object:
    return {
        "kind": "Workload",
        "metadata": {
            "name": f"trainjob-{name}-1",
            "namespace": f"team-{team}",
            "uid": f"w-{name}",
            "creationTimestamp": at(0),
            "ownerReferences": [{"kind": "TrainJob", "name": name}],
        },
        "spec": {"queueName": team},
        "status": {"conditions": [*conditions], **status},
    }


def condition(kind: str, minutes: float, *, true: bool = True, **more: str) -> Object:
    status = "True" if true else "False"
    return {"type": kind, "status": status, "lastTransitionTime": at(minutes), **more}


def stats(count: int = 1, reason: str = "Preempted") -> Object:
    return {"evictions": [{"reason": reason, "underlyingCause": "", "count": count}]}


def event(reason: str, about: str, minutes: float, message: str = "", space: str = "") -> Object:
    return {
        "reason": reason,
        "metadata": {"namespace": space},
        "involvedObject": {"name": about},
        "message": message,
        "lastTimestamp": at(minutes),
    }


def lost(*workloads: Object, events: tuple[Object, ...] = (), **more: Any) -> Snapshot:
    """The borrower of nlp, whose nodes the owner of vision took."""
    jobs = [
        train_job("borrower", "team-nlp", ended=None),
        train_job("owner", "team-vision", ended=None),
    ]
    usual: dict[str, Any] = {"trainjobs": jobs, "pods": [], "nodes": []}
    objects = usual | more | {"workloads": [*workloads], "events": [*events]}
    return Snapshot(objects=objects, taken_at=BEGAN.replace(hour=13))


EVICTED = condition("Evicted", 30, reason="Preempted", message=MESSAGE)
GONE = condition("QuotaReserved", 30, true=False, reason="Pending", message=MESSAGE)
WAITS = workload("borrower", "nlp", EVICTED, GONE, schedulingStats=stats())
OWNER = workload("owner", "vision", condition("QuotaReserved", 31))
AGAIN = workload(
    "borrower",
    "nlp",
    condition("Evicted", 40, true=False, reason="QuotaReserved", message=f"Previously: {MESSAGE}"),
    condition("Requeued", 30, reason="Preempted"),
    condition("QuotaReserved", 40),
    schedulingStats=stats(),
)
TAKEN = (
    "TrainJob borrower was preempted at 12:30:00 by TrainJob owner of team vision, whose team took back"
    " nodes that it is guaranteed"
)


def said(snapshot: Snapshot) -> list[str]:
    return [str(each) for each in interruptions(snapshot)]


def test_a_preempted_job_that_waits_says_by_whom_when_and_that_it_waits() -> None:
    assert said(lost(WAITS, OWNER)) == [f"{TAKEN}; it waits again in the queue of team nlp"]


def test_a_preempted_job_that_runs_again_says_when_it_was_and_since_when_it_runs() -> None:
    assert said(lost(AGAIN, OWNER)) == [f"{TAKEN}; it has nodes again since 12:40:00"]


def test_a_job_that_kueue_has_admitted_and_not_started_has_no_nodes() -> None:
    """As of a TrainJob from before the Trainer 2.2, which Kueue cannot start: upgrade.py."""
    jobs = lost().of("trainjobs")
    jobs[0]["spec"]["suspend"] = True
    [found] = said(lost(AGAIN, OWNER, trainjobs=jobs))
    assert found.endswith("; it has its quota again, and is still suspended, since 12:40:00")


def test_several_evictions_are_counted_and_the_last_one_is_told_by_its_event() -> None:
    several = AGAIN | {"status": AGAIN["status"] | {"schedulingStats": stats(3)}}
    [silent] = said(lost(several, OWNER))
    assert "was preempted by TrainJob" in silent and "(3 evictions in all); it has" in silent
    events = [
        event("EvictedDueToPreempted", "trainjob-borrower-1", minutes, space="team-nlp")
        for minutes in (10, 35)
    ]
    other = event("Preempted", "trainjob-borrower-1", 39, space="team-speech")
    [told] = said(lost(several, OWNER, events=(*events, other)))
    assert "was preempted at 12:35:00 by TrainJob owner" in told


def test_who_took_the_nodes_is_known_by_its_job_or_else_by_its_team() -> None:
    [by_job] = said(lost(WAITS))
    assert "by TrainJob owner of team vision" in by_job
    [by_team] = said(lost(WAITS, trainjobs=lost().of("trainjobs")[:1]))
    assert "by a job of team vision" in by_team


@pytest.mark.parametrize(
    ("right", "words"),
    [
        ("prioritization in the ClusterQueue", ", which is more urgent"),
        ("Fair Sharing within the cohort", ", whose team has the smaller share"),
        ("something new", ": something new"),
    ],
)
def test_the_right_to_the_nodes_is_said(right: str, words: str) -> None:
    message = MESSAGE.replace("reclamation within the cohort", right)
    evicted = EVICTED | {"message": message}
    assert f"of team vision{words};" in said(lost(workload("borrower", "nlp", evicted)))[0]


def test_other_evictions_say_why_and_when_the_job_is_tried_again() -> None:
    late = condition("Evicted", 30, reason="PodsReadyTimeout", message="Exceeded the timeout")
    requeue = {"requeueState": {"count": 1, "requeueAt": at(70)}}
    assert said(lost(workload("borrower", "nlp", late, **requeue))) == [
        "TrainJob borrower gave its nodes back at 12:30:00, because it did not get all its pods in time;"
        " it waits again in the queue of team nlp, not before 13:10:00"
    ]
    unknown = condition("Evicted", 30, reason="SomethingNew", message="as Kueue says it")
    assert (
        "gave its nodes back at 12:30:00, as Kueue says it;"
        in said(lost(workload("borrower", "nlp", unknown)))[0]
    )
    before = AGAIN["status"]["conditions"][0] | {"message": "Previously: Exceeded the timeout"}
    ready = workload("borrower", "nlp", before, schedulingStats=stats(1, "PodsReadyTimeout"))
    assert "because it did not get all its pods in time" in said(lost(ready))[0]


def test_a_job_that_nobody_stopped_and_one_that_has_ended_do_not_wait() -> None:
    assert said(lost(OWNER)) == []
    ended = AGAIN["status"]["conditions"] + [condition("Finished", 50)]
    done = AGAIN | {"status": AGAIN["status"] | {"conditions": ended}}
    assert said(lost(done, OWNER))[0].endswith("; it has ended since")


def test_a_time_of_another_day_has_its_day() -> None:
    snapshot = lost(WAITS, OWNER)
    later = Snapshot(objects=snapshot.objects, taken_at=BEGAN.replace(day=23))
    assert "preempted at 2026-11-21 12:30:00 by" in said(later)[0]


def taken_back(*pods: Object, created: float = 0) -> list[str]:
    """Jobs t5 and t5-large, whose node EC2 took back after half an hour."""
    jobs = [train_job("t5", ended=None), train_job("t5-large", ended=None)]
    jobs[1]["metadata"]["creationTimestamp"] = at(created)
    events = (
        event("SpotInterrupted", "node-9", 30),
        event("SpotInterrupted", "node-9", 30),  # of the NodeClaim's, with the node's name
        event(
            "Scheduled",
            "t5-large-node-0-0-abcde",
            3,
            "Successfully assigned training/t5-large-node-0-0-abcde to node-9",
            "training",
        ),
    )
    return said(lost(events=events, trainjobs=jobs, pods=[*pods]))


LOSES = (
    "TrainJob t5-large loses node node-9: EC2 takes the spot instance back within two minutes, as"
    " Karpenter heard at 12:30:00"
)


def test_a_node_that_ec2_takes_back_is_said_of_the_job_that_had_it() -> None:
    new = pod(0, "t5-large", node="node-10")
    new["status"]["phase"] = "Running"
    waits = pod(0, "t5-large")
    waits["status"]["phase"] = "Pending"
    del waits["spec"]["nodeName"]
    old = pod(0, "t5-large", node="node-9")
    old["status"]["phase"] = "Running"
    assert taken_back(new) == [f"{LOSES}; it has nodes again"]
    assert taken_back(waits) == taken_back() == [f"{LOSES}; it waits for nodes again"]
    assert taken_back(old) == [
        f"{LOSES}; its pods are still there, and its gang starts anew without it"
    ]


def test_a_node_of_an_earlier_job_of_that_name_is_not_said() -> None:
    assert taken_back(created=31) == []


def test_status_says_it_and_a_job_that_runs_again_is_no_problem(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(status, "deployment", lambda stack: {"deployment": {}})
    monkeypatch.setattr(status, "history_of", lambda stack: History(entries=()))
    ended = [train_job("borrower", "team-nlp"), train_job("owner", "team-vision")]
    monkeypatch.setattr(
        status, "look", lambda *_, **__: (lost(AGAIN, OWNER, trainjobs=ended), [], [])
    )
    assert run_word("status", ["--stack", "dev"]) == 0
    assert f"\nInterrupted: {TAKEN}; it has nodes again since 12:40:00\n" in capsys.readouterr().out


def test_watch_says_it_and_says_nothing_where_nothing_was_taken() -> None:
    lines = plain(frame(view("dev", lost(WAITS, OWNER), None)))
    assert lines[lines.index("INTERRUPTED") + 1].startswith(f"  ↺ {TAKEN}; it waits again")
    assert "INTERRUPTED" not in plain(frame(view("dev", lost(OWNER), None)))


def known() -> Known:
    return runs_of(lost(AGAIN, OWNER), [], KEPT)


def test_runs_counts_evictions_and_says_who_took_the_nodes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    monkeypatch.setattr(runs, "_read", lambda stack: (known(), {}, {}, {}))
    assert run_word("runs", ["dev"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert ", 1 eviction" in shown and f"interrupted: {TAKEN}; it has nodes again" in shown
    assert run_word("runs", ["dev", "--json"]) == 0
    by_job = {run["job"]: run for run in json.loads(capsys.readouterr().out)["runs"]}
    assert (by_job["borrower"]["evictions"], by_job["owner"]["evictions"]) == (1, 0)
    assert by_job["borrower"]["interrupted"][0].startswith(TAKEN)
    assert run_word("runs", ["dev", "--html", str(tmp_path / "runs.html")]) == 0
    assert "evictions" in (tmp_path / "runs.html").read_text()


def test_evictions_of_a_deleted_job_are_not_known() -> None:
    kept = {
        "job": train_job("gone", "team-nlp", ended=20),
        "pods": {},
        "nodes": {"node-0": node(0)},
        "restarts": 0,
        "complete": True,
        "deleted": "",
    }
    [run] = runs_of(cluster(trainjobs=[]), [kept], KEPT).finished
    assert runs.told(run, {}, going=False).evictions is None
