"""Plan of the program that tells people what becomes of runs, its rights and its settings.

The program: trainyard/in_cluster/told. The messages: docs/runs.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from trainyard.catalog.logs.symptoms import PENDING, STARTING
from trainyard.catalog.program_intervals import LOOK_SECONDS
from trainyard.objects.iam.topics import publishing
from trainyard.objects.jobs.pod_template import GPU, NODES_FOR, POOL
from trainyard.objects.programs.history import (
    LEFT,
    MAY_READ_LOGS,
    more_rights,
    more_settings,
)
from trainyard.plans.jobs import RUN, SHELL, TEAM
from trainyard.plans.program import TOPIC_ARN, ProgramPlan, RolePlan
from trainyard.plans.topic import TopicPlan

APP = "trainyard-told"
"""Name of its namespace, its Deployment, its service account, and the label of its pod."""
RECORD = "trainyard.io/told"
"""Label of the ConfigMap of a run."""
READS = ("get", "list", "watch")
MAY: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("trainer.kubeflow.org", "trainjobs", READS),
    ("kubeflow.org", "pytorchjobs", READS),
    ("jobset.x-k8s.io", "jobsets", ("list", "watch")),
    ("", "pods", ("list", "watch")),
    ("", "nodes", ("list", "watch")),
    ("", "namespaces", ("list", "watch")),
    ("", "events", ("list", "watch")),
    MAY_READ_LOGS,
)
"""API group, resource and verbs, in the whole cluster."""
MAY_REMEMBER = ("get", "list", "create", "patch", "delete")
"""Verbs on ConfigMaps in its own namespace."""


@dataclass(frozen=True, kw_only=True)
class ToldPlan:
    """The program that tells people what becomes of runs."""

    stack: str
    region: str
    image: str
    files: Mapping[str, str]
    """Name → text of its program."""
    role_name: str
    topic: TopicPlan
    key_arn: str | None
    """Key that encrypts the topic, where the environment makes the topic with a key of its owner."""
    hung_minutes: int
    starts_anew: bool
    """Repair starts a run anew that stands still."""
    keeps_logs: bool
    """CloudWatch Logs keeps what pods have logged."""
    prices: Mapping[str, Mapping[str, tuple[str, int]]]
    """Pool → instance type → USD an hour of a node, and its GPUs. A type without a known price is
    missing."""
    as_of: str
    """Day or month of the oldest of these prices; empty where none is known."""
    secrets: Mapping[str, str]
    """Name → pattern by which secrets in a log are found."""
    more_kinds: tuple[str, ...] = ()
    """Kinds that the training-operator runs beside PyTorchJobs."""


def program(plan: ToldPlan) -> ProgramPlan:
    """The program in its pod, and its rights."""
    return ProgramPlan(
        app=APP,
        name="told",
        image=plan.image,
        files=plan.files,
        settings=settings(plan),
        topic=plan.topic,
        may=(*MAY, *more_rights(plan.more_kinds, READS)),
        may_called="looks",
        may_remember=MAY_REMEMBER,
        role=RolePlan(
            name=plan.role_name, may="publish", policy=publishing(TOPIC_ARN, plan.key_arn)
        ),
    )


def settings(plan: ToldPlan) -> str:
    """Settings that the program reads at its start."""
    return json.dumps(
        {
            "namespace": APP,
            "stack": plan.stack,
            "region": plan.region,
            "topic": TOPIC_ARN,
            "record": RECORD,
            "left": LEFT,
            "nodes_label": f"{NODES_FOR}=training",
            "pool_label": POOL,
            "shell_label": SHELL,
            "team_label": TEAM,
            "run_note": RUN,
            "gpu": GPU,
            "look_seconds": LOOK_SECONDS["told"],
            "hung_minutes": plan.hung_minutes,
            "starts_anew": plan.starts_anew,
            "keeps_logs": plan.keeps_logs,
            "prices": plan.prices,
            "as_of": plan.as_of,
            "secrets": plan.secrets,
            "symptoms": [asdict(each) for each in STARTING],
            "placement": [asdict(each) for each in PENDING],
            **more_settings(plan.more_kinds),
        },
        indent=1,
    )
