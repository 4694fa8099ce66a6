"""Fields that replicas of a PyTorchJob have alike: most people write the same pod for Master and Worker."""

from __future__ import annotations

from trainyard.manifests.document import REPLICAS, Path, Workload, mapping


def in_any_replica(path: Path) -> Path:
    """The path of a field of a replica, whichever it is."""
    depth = len(REPLICAS)
    return (*REPLICAS, "*", *path[depth + 1 :]) if path[:depth] == REPLICAS else path


def alike(job: Workload, path: Path) -> list[Path]:
    """The path, and those at which other replicas have the same value."""
    value, depth = job.get(*path), len(REPLICAS)
    if path[:depth] != REPLICAS or len(path) <= depth:
        return [path]
    places = ((*REPLICAS, role, *path[depth + 1 :]) for role in mapping(job.get(*REPLICAS)))
    return [place for place in places if place == path or job.get(*place) == value]
