"""Causes that keep the Trainer of this cluster from an upgrade (docs/decisions/0002)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from trainyard.operations.reach.served import KIND
from trainyard.operations.reach.snapshot import Object, Snapshot
from trainyard.operations.status.finding import Finding
from trainyard.replacing.moving import ranks_are_a_string

RELEASE = "kubeflow-trainer"
"""Part of the name of the controller's Deployment."""


def unreadable(snapshot: Snapshot) -> Iterator[Finding]:
    """TrainJobs that a Trainer of 2.2 or later cannot read: a finding for each namespace."""
    unreadable_jobs = [
        job["metadata"] for job in snapshot.of("trainjobs") if ranks_are_a_string(job)
    ]
    by_namespace = groupby(sorted(unreadable_jobs, key=_place), key=lambda meta: meta["namespace"])
    for namespace, jobs in by_namespace:
        names = [meta["name"] for meta in jobs]
        yield Finding(
            what=f"TrainJobs of {namespace} set numProcPerNode to a string: {', '.join(names)}",
            why=(
                "Trainer 2.1 accepts a string; Trainer 2.2 and later then cannot read any TrainJob,"
                " even if these have finished: it never becomes ready, and its Release fails after"
                " ten minutes"
            ),
            do=(
                f"before you raise trainer.version: kubectl -n {namespace} delete {KIND}"
                f" {' '.join(names)}"
            ),
        )


def stuck(snapshot: Snapshot) -> bool:
    """True where a Trainer does not become ready. The previous Trainer may still run."""
    return any(
        deployment.get("status", {}).get("unavailableReplicas")
        for deployment in snapshot.of("deployments")
        if RELEASE in deployment["metadata"]["name"]
    )


def _place(meta: Object) -> tuple[str, str]:
    return meta["namespace"], meta["name"]
