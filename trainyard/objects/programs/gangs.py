"""Plan of the program that ends half gangs, and its rights.

The program: trainyard/in_cluster/gangs. Why there is one: docs/decisions/0012.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.catalog.limits import BACKOFF_SECONDS
from trainyard.catalog.program_intervals import LOOK_SECONDS
from trainyard.plans.program import ProgramPlan

APP = "trainyard-gangs"
"""Name of its namespace, its Deployment, its service account, and the label of its pod."""
TRIES = "trainyard.io/gang-tries"
"""Annotation of a Workload: how often its gang has given its nodes back since it last ran whole."""
AGAIN = "trainyard.io/gang-again"
"""Annotation of a Workload that the program has deactivated: when it activates it."""
MAY: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("kueue.x-k8s.io", "workloads", ("list", "watch", "patch")),
    ("", "pods", ("list", "watch")),
    ("", "events", ("create",)),
)
"""API group, resource and verbs, in the whole cluster."""


@dataclass(frozen=True, kw_only=True)
class GangsPlan:
    """The program that gives back the nodes of half gangs."""

    image: str
    files: Mapping[str, str]
    """Name → text of its program."""
    ready_minutes: int
    """A gang that lacks pods for longer gives its nodes back: recovery_minutes of trainyard/objects/queues/queues.py,
    without the minutes for a model."""
    longest_backoff_seconds: int
    """Most until its next try: as there."""


def program(plan: GangsPlan) -> ProgramPlan:
    """Program of its pod, and its rights."""
    return ProgramPlan(
        app=APP,
        name="gangs",
        image=plan.image,
        files=plan.files,
        settings=settings(plan),
        may=MAY,
    )


def settings(plan: GangsPlan) -> str:
    """Settings that the program reads at its start."""
    return json.dumps(
        {
            "pod_label": JOB_KINDS["PyTorchJob"].pod_label,
            "tries_note": TRIES,
            "again_note": AGAIN,
            "look_seconds": LOOK_SECONDS["gangs"],
            "ready_seconds": plan.ready_minutes * 60,
            "backoff_seconds": BACKOFF_SECONDS,
            "longest_backoff_seconds": plan.longest_backoff_seconds,
        },
        indent=1,
    )
