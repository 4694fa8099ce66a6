"""Several environments behind one: what the manager's Kueue is told of its workers, what it may do in
their clusters, and the program that renews its passes.

Fields: Kueue 0.19.2, apis/kueue/v1beta2/multikueue_types.go. The program: trainyard/in_cluster/passes. Why it is
one of ours: docs/decisions/0022.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainyard.objects.queues.queues import DISPATCHER, NAMESPACE
from trainyard.objects.teams.team_access import READ, Grant
from trainyard.plans.jobs import Spec
from trainyard.plans.program import ProgramPlan

CHECK = "workers"
"""Name of the AdmissionCheck and of the MultiKueueConfig."""
MOST_WORKERS = 20
"""MultiKueueConfig.spec.clusters."""
APP = "trainyard-passes"
"""Name of the program's namespace, its Deployment, its service account, and the label of its pod."""
RENEW_SECONDS = 300
"""A third of the 15 minutes for which EKS takes a token. With each new pass Kueue connects again."""
MAY_RENEW = ("get", "patch")
"""Verbs on the workers' Secrets, which the stack makes without a pass."""

ENTERS = "trainyard-queue-manager"
"""ClusterRoles and role bindings of the manager in a worker."""
SEES: tuple[Grant, ...] = (
    Grant(group="kueue.x-k8s.io", resources=("workloads",), verbs=READ),
    Grant(group="trainer.kubeflow.org", resources=("trainjobs",), verbs=READ),
    Grant(group="jobset.x-k8s.io", resources=("jobsets",), verbs=READ),
)
"""In the whole cluster: Kueue watches each kind of job that it knows, in all namespaces."""
STARTS: tuple[Grant, ...] = (
    Grant(
        group="kueue.x-k8s.io",
        resources=("workloads",),
        verbs=("create", "delete", "patch", "update"),
    ),
    Grant(group="kueue.x-k8s.io", resources=("workloads/status",), verbs=("patch", "update")),
    Grant(group="trainer.kubeflow.org", resources=("trainjobs",), verbs=("create", "delete")),
)
"""In namespaces of teams."""


@dataclass(frozen=True, kw_only=True)
class DispatchPlan:
    """An environment whose queues hand their jobs to others."""

    workers: tuple[str, ...]
    """Environments."""
    role_name: str
    """With which it enters their clusters."""
    region: str
    image: str
    files: Mapping[str, str]
    """Name → text of the program."""


def secret_name(worker: str) -> str:
    """The Secret with the pass of a worker."""
    return f"worker-{worker}"


def cluster_spec(worker: str) -> Spec:
    """MultiKueueCluster.spec."""
    return {
        "clusterSource": {"kubeConfig": {"location": secret_name(worker), "locationType": "Secret"}}
    }


def config_spec(workers: Sequence[str]) -> Spec:
    """MultiKueueConfig.spec."""
    return {"clusters": [*workers]}


def check_spec() -> Spec:
    """AdmissionCheck.spec."""
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": CHECK}
    return {"controllerName": DISPATCHER, "parameters": parameters}


def program(plan: DispatchPlan) -> ProgramPlan:
    """Program of its pod. Kubernetes gives it no right: its AWS role does, and a Role in Kueue's
    namespace."""
    return ProgramPlan(
        app=APP,
        name="passes",
        image=plan.image,
        files=plan.files,
        settings=settings(plan),
    )


def settings(plan: DispatchPlan) -> str:
    """Settings that the program reads at its start."""
    return json.dumps(
        {
            "namespace": NAMESPACE,
            "secrets": [secret_name(worker) for worker in plan.workers],
            "region": plan.region,
            "renew_seconds": RENEW_SECONDS,
        },
        indent=1,
    )
