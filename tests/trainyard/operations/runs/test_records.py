"""Runs as the cluster and the history know them: each once, and exact where the history saw it."""

from __future__ import annotations

import base64
import gzip
import json
from decimal import Decimal
from typing import Any

import pytest

from tests.trainyard.operations.finished import at, cluster, node, pod, train_job
from trainyard.objects.programs.history import APP, DELETED, LEFT, RECORD
from trainyard.operations.reach.snapshot import Snapshot
from trainyard.operations.runs.node_time import AT_LEAST, AT_MOST, EXACT
from trainyard.operations.runs.records import (
    KEPT,
    MISSING,
    UNREADABLE,
    Known,
    records,
    runs_of,
)

Object = dict[str, Any]


def record(job: Object, *pods: Object, complete: bool = True, deleted: str = "") -> Object:
    return {
        "job": job,
        "pods": {each["metadata"]["uid"]: each for each in pods},
        "nodes": {each["metadata"]["name"]: each for each in (node(0), node(1))},
        "restarts": 1,
        "complete": complete,
        "deleted": deleted,
    }


def first_attempt() -> list[Object]:
    """Two pods of ten minutes, one of which was deleted before its container ended."""
    ended, missed = pod(0, created=0.5, ended=15), pod(1, created=0.5)
    missed["status"]["containerStatuses"] = []
    missed["metadata"]["annotations"] = {LEFT: at(15)}
    return [ended, missed]


def hours(known: Known) -> Decimal:
    [run] = known.finished
    return sum((time.hours for time in run.times), Decimal())


def test_without_a_record_a_run_is_what_the_cluster_says() -> None:
    known = runs_of(cluster(), [], MISSING)
    assert (hours(known), known.finished[0].known, known.going) == (2, EXACT, ())


def test_the_record_of_a_job_adds_the_pods_of_its_earlier_attempts() -> None:
    again = [pod(0, created=16, scheduled=20), pod(1, created=16, scheduled=20)]
    snapshot = cluster(pods=again)
    assert runs_of(snapshot, [], MISSING).finished[0].known == AT_LEAST
    kept = record(train_job(), *first_attempt(), *again)
    known = runs_of(snapshot, [kept], KEPT)
    assert hours(known) == Decimal(2 * 10 + 2 * 45) / 60 and known.finished[0].known == EXACT
    assert known.finished[0].job.restarts == 1


def test_a_record_with_a_gap_says_at_least() -> None:
    again = [pod(0, created=16, scheduled=20), pod(1, created=16, scheduled=20)]
    known = runs_of(
        cluster(pods=again), [record(train_job(), *first_attempt(), *again, complete=False)], KEPT
    )
    assert known.finished[0].known == AT_LEAST


def test_a_run_stays_known_when_its_job_its_pods_and_its_nodes_are_gone() -> None:
    empty = Snapshot(objects={})
    known = runs_of(empty, [record(train_job(), pod(0), pod(1))], KEPT)
    [run] = known.finished
    assert (hours(known), run.known, run.identity) == (2, EXACT, "t5-1")
    assert run.times[0].instance_type == "g6e.48xlarge"


def test_a_job_that_was_deleted_before_it_ended_says_so() -> None:
    job = train_job(ended=None)
    known = runs_of(Snapshot(objects={}), [record(job, pod(0), deleted=at(40))], KEPT)
    [run] = known.finished
    assert (run.job.state, run.ended.minute) == (DELETED, 40)
    assert run.job.message == "Deleted: the job was deleted before it ended"


def test_a_job_that_the_history_saw_without_a_pod_took_nothing() -> None:
    job = train_job(ended=None)
    [run] = runs_of(Snapshot(objects={}), [record(job, deleted=at(40))], KEPT).finished
    assert (run.times, run.known) == ((), EXACT)
    unseen = runs_of(Snapshot(objects={}), [record(job, complete=False, deleted=at(40))], KEPT)
    assert unseen.finished[0].known == AT_MOST and len(unseen.finished[0].times) == 2


def test_a_new_run_of_the_same_name_is_another_run() -> None:
    old = train_job()
    old["metadata"]["uid"] = "old"
    known = runs_of(cluster(), [record(old, pod(0, created=0.2), pod(1, created=0.2))], KEPT)
    assert [len(run.times) for run in known.finished] == [2, 2]


def test_a_job_that_goes_on_counts_to_now() -> None:
    going = [pod(0), pod(1)]
    for each in going:
        each["status"]["containerStatuses"] = []
    snapshot = cluster(trainjobs=[train_job(ended=None)], pods=going)
    [run] = runs_of(snapshot, [], MISSING).going
    assert run.ended == snapshot.taken_at and run.began is not None and run.known == EXACT
    waits = runs_of(cluster(trainjobs=[train_job(ended=None)], pods=[]), [], MISSING)
    assert waits.going[0].times == () and waits.going[0].began is None


def test_a_run_whose_pods_are_gone_is_still_a_bound_without_a_record() -> None:
    assert runs_of(cluster(pods=[]), [], MISSING).finished[0].known == AT_MOST


def answers(found: list[Object] | None, refusal: str = "") -> Any:
    def kubectl(*arguments: str) -> str:
        assert arguments[:3] == ("get", "configmaps", f"--namespace={APP}")
        if found is None:
            raise RuntimeError(refusal)
        return json.dumps({"items": found})

    return kubectl


def test_records_are_read_and_a_missing_history_is_told_from_an_empty_one() -> None:
    text = base64.b64encode(gzip.compress(json.dumps({"job": {}}).encode())).decode()
    kept = {"metadata": {"labels": {RECORD: "run"}}, "binaryData": {"record": text}}
    files = {"metadata": {"name": APP}}
    assert records(answers([kept, files])) == ([{"job": {}}], KEPT)
    assert records(answers([files])) == ([], KEPT)
    assert records(answers([])) == ([], MISSING)


def test_a_team_that_cannot_read_the_history_is_told_so() -> None:
    assert records(answers(None, "configmaps is forbidden")) == ([], UNREADABLE)
    with pytest.raises(RuntimeError, match="timed out"):
        records(answers(None, "timed out"))
