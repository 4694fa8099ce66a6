"""Runs as the cluster and the history know them: one reader for `trainyard runs` and `trainyard spent`.

The program of `environment.history` (trainyard/in_cluster/history) keeps a ConfigMap for each run. It has the pods
of all attempts and their nodes, so what a run took is exact, and it stays when the job is deleted.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from trainyard.catalog.job_kinds import ENDED
from trainyard.objects.programs.history import APP, DELETED, RECORD
from trainyard.operations.reach.kubectl import Kubectl, Object
from trainyard.operations.reach.proxy import asking
from trainyard.operations.reach.snapshot import (
    FORBIDDEN,
    JOBS,
    Snapshot,
    last_condition,
    snapshot_of,
)
from trainyard.operations.reach.target import kubeconfig
from trainyard.operations.runs.node_time import Run, finished_runs, going_runs
from trainyard.operations.status.interruptions import Interruption, interruptions_by_uid

MISSING, UNREADABLE, KEPT = "missing", "unreadable", "kept"
"""States of the history: no program keeps one; this caller cannot read it; it is kept."""


@dataclass(frozen=True, kw_only=True)
class Known:
    """Known runs of a cluster."""

    finished: tuple[Run, ...]
    """The first to end first."""
    going: tuple[Run, ...]
    """The first to be created first."""
    history: str
    """MISSING, UNREADABLE or KEPT."""
    interrupted: Mapping[str, tuple[Interruption, ...]]
    """By uid of each job that is there: the Workload that counts evictions goes with its job."""


def known_runs(stack: str) -> Known:
    """Known runs of a stack's cluster. RuntimeError where it does not answer."""
    with asking(kubeconfig(stack)) as kubectl:
        return runs_of(snapshot_of(stack, kubectl), *records(kubectl))


def records(kubectl: Kubectl) -> tuple[list[Object], str]:
    """All records, and whether there is a history."""
    asked = ("get", "configmaps", f"--namespace={APP}", "--output=json")
    try:
        found = json.loads(kubectl(*asked))["items"]
    except RuntimeError as error:
        if FORBIDDEN not in str(error):
            raise
        return [], UNREADABLE
    # An empty namespace and none look alike in a list; the program's own files are always there.
    kept = [each for each in found if RECORD in (each["metadata"].get("labels") or {})]
    return [_unpacked(each) for each in kept], KEPT if found else MISSING


def runs_of(snapshot: Snapshot, kept: list[Object], history: str) -> Known:
    """Every run once. A record and its job that is there go together."""
    by_uid = {record["job"]["metadata"]["uid"]: record for record in kept}
    seen: list[Snapshot] = []
    for job in [each for kind in JOBS for each in snapshot.of(kind)]:
        record = by_uid.pop(job["metadata"].get("uid"), None)
        seen.append(_of_job(snapshot, job, record))
    seen += [_of_job(snapshot, _missed(record), record, gone=True) for record in by_uid.values()]
    finished = [run for one in seen for run in finished_runs(one)]
    going = [run for one in seen for run in going_runs(one)]
    return Known(
        finished=tuple(sorted(finished, key=lambda run: run.ended)),
        going=tuple(sorted(going, key=lambda run: run.created)),
        history=history,
        interrupted=interruptions_by_uid(snapshot),
    )


def _of_job(
    snapshot: Snapshot, job: Object, record: Mapping[str, Any] | None, *, gone: bool = False
) -> Snapshot:
    """The snapshot with this job alone, and with what its record adds. `gone`: the job is deleted;
    another one may have its name and pods."""
    objects = {**snapshot.objects, **{kind: [] for kind in JOBS}}
    objects[f"{job['kind'].lower()}s"] = [job]
    if record is None:
        return replace(snapshot, objects=objects)
    pods = {} if gone else {pod["metadata"]["uid"]: pod for pod in snapshot.of("pods")}
    nodes = {} if gone else {node["metadata"]["name"]: node for node in snapshot.of("nodes")}
    meta = job["metadata"]
    ours = {"metadata": {"name": meta["name"], "namespace": meta["namespace"]}}
    objects |= {
        "pods": [*(_owned(record["pods"], job["kind"]) | pods).values()],
        "nodes": [*(record["nodes"] | nodes).values()],
        "jobsets": [ours | {"status": {"restarts": record["restarts"]}}],
    }
    if gone:
        objects["events"] = []
    return replace(snapshot, objects=objects, complete=record["complete"])


def _owned(pods: Mapping[str, Object], kind: str) -> dict[str, Object]:
    """Recorded pods, by uid, with their owner. Those of each kind of the training-operator have the same labels, and
    a record has the pods of one job only."""
    owner = {"ownerReferences": [{"kind": kind}]}
    return {uid: {**pod, "metadata": pod["metadata"] | owner} for uid, pod in pods.items()}


def _missed(record: Mapping[str, Any]) -> Object:
    """The job of a record. One that was deleted before it ended says so in a condition."""
    job = record["job"]
    if not record["deleted"] or last_condition(job)["type"] in ENDED:
        return job
    condition = {
        "type": DELETED,
        "status": "True",
        "reason": DELETED,
        "message": "the job was deleted before it ended",
        "lastTransitionTime": record["deleted"],
    }
    conditions = [*(job["status"].get("conditions") or []), condition]
    return {**job, "status": {"conditions": conditions}}


def _unpacked(config_map: Object) -> Object:
    """Record that trainyard/in_cluster/runs/record.py has packed."""
    return json.loads(gzip.decompress(base64.b64decode(config_map["binaryData"]["record"])))
