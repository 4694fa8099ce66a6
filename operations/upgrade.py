"""What keeps the Trainer of this cluster from becoming a newer one (docs/decisions/0002)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from operations.drain import KIND
from operations.snapshot import Object, Snapshot
from operations.symptoms import Finding

RELEASE = "kubeflow-trainer"
"""Part of the name of the controller's Deployment."""


def unreadable(snapshot: Snapshot) -> Iterator[Finding]:
    """TrainJobs that a Trainer of 2.2 or later cannot read, those of each namespace."""
    held = [job["metadata"] for job in snapshot.of("trainjobs") if _says_ranks_in_a_word(job)]
    for space, jobs in groupby(sorted(held, key=_place), key=lambda meta: meta["namespace"]):
        names = [meta["name"] for meta in jobs]
        yield Finding(
            what=f"TrainJobs of {space} give numProcPerNode as a word: {', '.join(names)}",
            why=(
                "Trainer 2.1 reads it; one of 2.2 or later, finished jobs or not, reads no job any"
                " more, is never ready, and its Release fails after ten minutes"
            ),
            do=(
                f"before trainer.version is raised: kubectl -n {space} delete {KIND}"
                f" {' '.join(names)}"
            ),
        )


def stuck(snapshot: Snapshot) -> bool:
    """Whether a Trainer that should run does not come up; the one before it may run on
    meanwhile."""
    return any(
        deployment.get("status", {}).get("unavailableReplicas")
        for deployment in snapshot.of("deployments")
        if RELEASE in deployment["metadata"]["name"]
    )


def _says_ranks_in_a_word(job: Object) -> bool:
    return isinstance(job["spec"].get("trainer", {}).get("numProcPerNode"), str)


def _place(meta: Object) -> tuple[str, str]:
    return meta["namespace"], meta["name"]
