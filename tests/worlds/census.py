"""Which runs of a job have pods, Jobs and nodes, looked at all the time while something happens."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import combinations

from tests.worlds.harness import Harness, Object
from trainyard.catalog.job_kinds import JOB_KINDS

EVERY = 0.3
"""Seconds between two looks. A ghost lived for three."""
ASKED = ("jobs", "pods", "nodeclaims")
"""Kinds of objects in the order in which kubectl lists them. Seconds can pass between two lists, so the Job of
a later run beside a pod of an earlier one is a ghost, and a Job of an earlier run beside a pod of a later
one is none: it can have gone meanwhile. A later run whose objects are all being deleted is none either: a
Trainer that hears late of a deletion makes the gang again, which is deleted within a tenth of a second
(docs/limits.md; tests/controllers/test_one_run.py)."""
LABELS = [kind.pod_label for kind in JOB_KINDS.values()]


@dataclass
class Census:
    """What was seen until now. A run is the uid of what owns its pods and Jobs: a JobSet, a
    PyTorchJob."""

    runs: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Job → its runs."""
    overlaps: list[str] = field(default_factory=list[str])
    """Looks that found two runs of one job."""
    nodes: int = 0
    """The most NodeClaims at a time."""
    looks: int = 0

    def look(self, objects: list[Object]) -> None:
        """Count objects in the order of ASKED."""
        now: dict[str, dict[str, _Seen]] = defaultdict(dict)
        for each in objects:
            labels = each["metadata"].get("labels") or {}
            for label in LABELS:
                if name := labels.get(label):
                    now[name].setdefault(_run(each), _Seen()).see(each)
        for name, runs in now.items():
            self.runs[name] |= {*runs}
            if _overlap([*runs.values()]):
                self.overlaps.append(f"{name}: {[runs[each].objects for each in sorted(runs)]}")
        self.nodes = max(self.nodes, sum(each["kind"] == "NodeClaim" for each in objects))
        self.looks += 1


@dataclass
class _Seen:
    """Objects of a run in one look."""

    objects: list[str] = field(default_factory=list[str])
    """The objects, in words."""
    born: str = "9"
    stays: bool = False
    """One of them is not being deleted."""
    first: int = len(ASKED)
    last: int = -1
    """The first and the last list that had one of them."""

    def see(self, each: Object) -> None:
        about = each["metadata"]
        dying = f", deleted {about['deletionTimestamp']}" if "deletionTimestamp" in about else ""
        self.objects.append(
            f"{each['kind']} {about.get('name')} of {about['creationTimestamp']}{dying}"
        )
        at = ASKED.index(f"{each['kind'].lower()}s")
        self.first, self.last = min(self.first, at), max(self.last, at)
        self.born = min(self.born, about["creationTimestamp"])
        self.stays |= "deletionTimestamp" not in about


def _overlap(runs: list[_Seen]) -> bool:
    """True where a later run was there before, or when, an earlier one was still there."""
    runs = sorted(runs, key=lambda run: run.born)
    return any(late.stays and late.first <= early.last for early, late in combinations(runs, 2))


def _run(each: Object) -> str:
    labels = each["metadata"]["labels"]
    owners = each["metadata"].get("ownerReferences") or [{"uid": "nobody"}]
    return labels.get("jobset.sigs.k8s.io/jobset-uid") or owners[0]["uid"]


@contextmanager
def counted(harness: Harness) -> Iterator[Census]:
    """Look until the end of the block."""
    found, over = Census(), threading.Event()

    def watch() -> None:
        while not over.wait(EVERY):
            said = harness.shell(
                f"kubectl get {','.join(ASKED)} --all-namespaces --output json", check=False
            )
            with suppress(ValueError):  # no answer, or one that ends early, as while `down` runs
                found.look(json.loads(said)["items"])

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()
