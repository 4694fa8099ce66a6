"""Deletions that go on after an engine was killed, cancelled or had waited long enough.

AWS and the controllers of the cluster take minutes. Whoever reads such an object meanwhile is told that
it exists, and an update that believes it ends well without the object. So a repair waits for the end.
"""

from __future__ import annotations

import time
from typing import Any

import boto3

from trainyard.catalog.aws_types.table import AWS_TYPES
from trainyard.catalog.job_kinds import ENGINE_TYPES
from trainyard.operations.reach.cluster import StackCluster
from trainyard.operations.reach.lookup import leaves
from trainyard.operations.recovery.pause import pause

Entry = dict[str, Any]


def awaited(
    session: boto3.Session, cluster: StackCluster, state: Entry, patience: float
) -> list[str]:
    """URNs of the objects that were being deleted, once all of them are gone; PulumiError after
    `patience` seconds."""
    deadline, seen = time.monotonic() + patience, dict[str, str]()
    while going := _going(session, cluster, state):
        seen |= going
        names = ", ".join(sorted(going.values()))
        over = (
            f"these are still being deleted after {patience:.0f} s: {names}. A NodePool or a node"
            " group waits for its jobs: `trainyard drain` deletes jobs that no stack owns"
        )
        pause(names, "is still being deleted", over, deadline)
    return list(seen)


def _going(session: boto3.Session, cluster: StackCluster, state: Entry) -> dict[str, str]:
    """URN → name of what is being deleted now."""
    every = _held(state)
    leaving = set(cluster.leaving(_in_cluster(every))) | {
        each["urn"] for each in every if _is_awaited(each["type"]) and leaves(session, each)
    }
    return {urn: urn.split("::", 3)[3] for urn in leaving}


def gone(cluster: StackCluster, state: Entry) -> list[str]:
    """URNs of the objects of the cluster that the state has and the cluster has not: a deletion that was stopped
    goes on there. Jobs are left out, because the next update would start them again."""
    jobs = {*ENGINE_TYPES.values()}
    objects = [each for each in _held(state) if each["type"] not in jobs]
    return cluster.gone(_in_cluster(objects))


def _held(state: Entry) -> list[Entry]:
    """Resources of the state and of its operations that have not ended, which have an id."""
    held = state["deployment"]
    begun = [operation["resource"] for operation in held.get("pending_operations") or []]
    return [
        each
        for each in [*(held.get("resources") or []), *begun]
        if each.get("id") and not each.get("external")
    ]


def _in_cluster(resources: list[Entry]) -> dict[str, Entry]:
    """URN → inputs of those that are objects of the cluster."""
    return {each["urn"]: each["inputs"] for each in resources if _is_object(each)}


def _is_object(resource: Entry) -> bool:
    """True where the resource is an object of the cluster, and no Helm release."""
    named = ((resource.get("inputs") or {}).get("metadata") or {}).get("name")
    return resource["type"].startswith("kubernetes:") and isinstance(named, str)


def _is_awaited(kind: str) -> bool:
    row = AWS_TYPES.get(kind)
    return row is not None and row.awaited
