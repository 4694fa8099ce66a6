"""Plan of the history, and the rights of its program.

The program: trainyard/in_cluster/history. Who reads what it writes:
trainyard/operations/runs/records.py. Why it is a program: docs/decisions/0019.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.catalog.program_intervals import LOOK_SECONDS
from trainyard.objects.jobs.pod_template import NODES_FOR, POOL
from trainyard.plans.jobs import GOODPUT, INTERVAL
from trainyard.plans.program import ProgramPlan

APP = "trainyard-history"
"""Name of its namespace, its Deployment, its service account, and the label of its pod."""
RECORD = "trainyard.io/history"
"""Label of the ConfigMap of a run."""
LEFT = "trainyard.io/left"
"""Annotation of a recorded pod that was deleted before its containers ended: when it was missed."""
DELETED = "Deleted"
"""State of a recorded job that was deleted before it ended."""
MOST_RUNS = 2000
"""Number of runs that are kept. A record of 16 nodes takes about 3 KB, and etcd of EKS 8 GB."""
LISTS = ("list", "watch")
MAY: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("trainer.kubeflow.org", "trainjobs", LISTS),
    ("kubeflow.org", "pytorchjobs", LISTS),
    ("jobset.x-k8s.io", "jobsets", ("list", "watch")),
    ("", "pods", ("list", "watch")),
    ("", "nodes", ("list", "watch")),
)
"""API group, resource and verbs, in the whole cluster."""
MAY_READ_LOGS = ("", "pods/log", ("get",))
"""In the whole cluster, where it follows what runs print."""
MAY_REMEMBER = ("list", "create", "patch", "delete")
"""Verbs on ConfigMaps in its own namespace."""


@dataclass(frozen=True, kw_only=True)
class HistoryPlan:
    """The program that records what each run took."""

    image: str
    files: Mapping[str, str]
    """Name → text of its program."""
    days: int
    """A run that ended longer ago is forgotten."""
    progress: bool = False
    """It follows what runs print."""
    more_kinds: tuple[str, ...] = ()
    """Kinds that the training-operator runs beside PyTorchJobs."""


def program(plan: HistoryPlan) -> ProgramPlan:
    """Program of its pod, and its rights."""
    return ProgramPlan(
        app=APP,
        name="history",
        image=plan.image,
        files=plan.files,
        settings=settings(plan),
        may=(
            *MAY,
            *more_rights(plan.more_kinds, LISTS),
            *([MAY_READ_LOGS] if plan.progress else []),
        ),
        may_called="looks",
        may_remember=MAY_REMEMBER,
    )


def more_rights(
    kinds: Iterable[str], verbs: tuple[str, ...]
) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Rights to read jobs of these kinds of the training-operator."""
    for kind in kinds:
        group, _, _ = JOB_KINDS[kind].api_version.partition("/")
        yield group, f"{kind.lower()}s", verbs


def more_settings(kinds: Sequence[str]) -> dict[str, Sequence[str]]:
    """Setting of a program that looks at runs; none without such kinds."""
    return {"more_kinds": kinds} if kinds else {}


def settings(plan: HistoryPlan) -> str:
    """Settings that the program reads at its start."""
    # Only here: `trainyard check` needs no expression of it.
    from trainyard.catalog.logs import log_words

    return json.dumps(
        {
            "namespace": APP,
            "record": RECORD,
            "left": LEFT,
            "nodes_label": f"{NODES_FOR}=training",
            "pool_label": POOL,
            "look_seconds": LOOK_SECONDS["history"],
            "days": plan.days,
            "most_runs": MOST_RUNS,
            "interval_note": INTERVAL,
            "goodput_note": GOODPUT,
            "words": log_words.as_text() if plan.progress else None,
            **more_settings(plan.more_kinds),
        },
        indent=1,
    )
