"""The Workload that Kueue keeps beside each job of a queue (Kueue 0.16.2 and 0.19.2, apis/kueue, in each of its
versions)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

WORKLOADS = "workloads.kueue.x-k8s.io"
"""Workloads, as kubectl calls them."""
FINISHED = "Finished"
"""Condition of the Workload of a job that has ended."""


def job_of(workload: Mapping[str, Any]) -> tuple[str, str, str]:
    """Kind, namespace and name of the job of a Workload; kind and name are empty where it has none."""
    meta = workload["metadata"]
    owner, *_ = meta.get("ownerReferences") or [{"kind": "", "name": ""}]
    return owner["kind"], meta["namespace"], owner["name"]


def evictions(workload: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Each reason for which Kueue took the nodes of the job, with the number of times."""
    stats = (workload.get("status") or {}).get("schedulingStats") or {}
    return stats.get("evictions") or ()
