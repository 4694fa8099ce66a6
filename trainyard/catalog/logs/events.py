"""Events of Kubernetes: the object that one is about, and who wrote it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Protocol, TypeVar

from trainyard.catalog.logs.first_end import Object


class Named(Protocol):
    """A job."""

    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...


AJob = TypeVar("AJob", bound=Named)


def about(event: Object) -> str:
    """Name of the object that an event is about; empty where the event names none."""
    return event.get("involvedObject", {}).get("name", "")


def space_of(event: Object) -> str:
    """Namespace of the object that an event is about; empty where the event says none."""
    said, meta = event.get("involvedObject") or {}, event.get("metadata") or {}
    return said.get("namespace") or meta.get("namespace") or ""


def time_of(event: Object) -> str:
    """The last time of an event; empty where it says none."""
    return event.get("lastTimestamp") or event.get("eventTime") or ""


def is_about(event: Object, obj: Object) -> bool:
    """True of an event about this object and no other of its name: in another namespace, of another kind, or that
    was there before it. An object or an event that lacks one of these is told by the others."""
    said, meta = event.get("involvedObject") or {}, obj["metadata"]
    if said.get("name") != meta["name"]:
        return False
    both = (
        (said.get("uid"), meta.get("uid")),
        (space_of(event), meta.get("namespace")),
        (said.get("kind"), obj.get("kind")),
    )
    return all(one == other for one, other in both if one and other)


def owner_of(event: Object, jobs: Iterable[AJob]) -> AJob | None:
    """The job that an event is about, or whose pod or Job it is about, whose name begins with the job's. The longest
    name counts: one job can be called train, and another one train-big."""
    space, name = space_of(event), f"{about(event)}-"
    own = [job for job in jobs if space in ("", job.namespace) and name.startswith(f"{job.name}-")]
    return max(own, key=lambda job: len(job.name), default=None)


def is_of_karpenter(event: Object) -> bool:
    """True of an event that Karpenter wrote."""
    return "karpenter" in json.dumps([event.get("source"), event.get("reportingComponent")])
