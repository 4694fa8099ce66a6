"""Plan of repair, and the rights of its program.

The program: trainyard/in_cluster/repair. Numbers: trainyard/catalog/repair.py. Why it is one of
ours: docs/decisions/0018.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from trainyard.catalog.program_intervals import LOOK_SECONDS
from trainyard.catalog.repair import (
    ASK_SECONDS,
    AT_END,
    BLIND_SECONDS,
    CONDITIONS,
    EVENTS,
    GRACE_SECONDS,
    NOTICES,
    PATIENCE_SECONDS,
    SHARE,
    SILENT_SECONDS,
    TOGETHER_SECONDS,
)
from trainyard.objects.iam.policies import Document, document
from trainyard.objects.jobs.pod_template import NODES_FOR, POOL
from trainyard.plans.jobs import SHELL, Spec
from trainyard.plans.program import ProgramPlan, RolePlan

APP = "trainyard-repair"
"""Name of its namespace, its Deployment, its service account, and the label of its pod."""
AGENT = "eks-node-monitoring-agent"
"""EKS add-on that says in conditions of a Node what is broken."""
AGENT_CONFIGURATION: Spec = {"dcgmAgent": {"tolerations": [{"operator": "Exists"}]}}
"""Without it the agent's server of DCGM runs on no node of a pool, all of which have a taint; the agent
then calls each healthy GPU node broken (its values.yaml)."""
DCGM_PORT = 5555
"""Port of the agent's DCGM server, on the address of its node. A second server on a node would
disturb it (NVIDIA/dcgm-exporter#61)."""
NOTE = "trainyard.io/repair"
"""Annotation of a sick node: what becomes of it."""
TAINT = "trainyard.io/sick"
MAY: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("", "nodes", ("list", "watch", "patch")),
    ("", "pods", ("list", "watch", "delete")),
    ("", "events", ("create", "list", "watch")),
    ("coordination.k8s.io", "leases", ("list", "watch")),
    ("karpenter.sh", "nodeclaims", ("list", "watch", "patch", "delete")),
)
"""API group, resource and verbs, in the whole cluster."""
MAY_READ_LOGS = ("", "pods/log", ("get",))
"""In the whole cluster, where runs that stand still are started anew."""
MAY_REMEMBER = ("get", "create", "patch")
"""Verbs on ConfigMaps in its own namespace, where it records what it has replaced."""


@dataclass(frozen=True, kw_only=True)
class RepairPlan:
    """The program that replaces sick nodes."""

    image: str
    role_name: str
    region: str
    files: Mapping[str, str]
    """Name → text of its program."""
    nodes_an_hour: int | None
    """Most nodes of each pool that it replaces in an hour; None: a share of the pool."""
    hung_minutes: int | None = None
    """None: a run that stands still is told, and goes on."""


def program(plan: RepairPlan) -> ProgramPlan:
    """Program of its pod, and its rights."""
    return ProgramPlan(
        app=APP,
        name="repair",
        image=plan.image,
        files=plan.files,
        settings=settings(plan),
        may=(*MAY, MAY_READ_LOGS) if plan.hung_minutes else MAY,
        may_remember=MAY_REMEMBER,
        role=RolePlan(name=plan.role_name, may="ask", policy=asking(plan.region)),
    )


def asking(region: str) -> Document:
    """The policy of its role: read what EC2 says of instances, and change nothing. EC2 can limit that to
    a region, and not to instances (Service Authorization Reference)."""
    return document(
        {
            "Sid": "ReadInstanceStatus",
            "Action": "ec2:DescribeInstanceStatus",
            "Resource": "*",
            "Condition": {"StringEquals": {"aws:RequestedRegion": region}},
        }
    )


def settings(plan: RepairPlan) -> str:
    """Settings that the program reads at its start."""
    return json.dumps(
        {
            "namespace": APP,
            "taint": TAINT,
            "note": NOTE,
            "nodes_label": f"{NODES_FOR}=training",
            "pool_label": POOL,
            "shell_label": SHELL,
            "conditions": CONDITIONS,
            "at_end": AT_END,
            "events": EVENTS,
            "notices": NOTICES,
            "look_seconds": LOOK_SECONDS["repair"],
            "blind_seconds": BLIND_SECONDS,
            "silence": {
                "ask": ASK_SECONDS,
                "silent": SILENT_SECONDS,
                "patience": PATIENCE_SECONDS,
                "together": TOGETHER_SECONDS,
            },
            "region": plan.region,
            "grace_seconds": GRACE_SECONDS,
            "share": SHARE,
            "nodes_an_hour": plan.nodes_an_hour,
            "hung_minutes": plan.hung_minutes,
        },
        indent=1,
    )
