"""What makes the optional parts of an environment, such as metrics and the history of runs: a function
for each part, and the table of them. What takes jobs, dispatch among it: training.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi

from components.base.role import Lends
from components.cluster.program import Program
from components.watching.alertmanager import Alertmanager
from components.watching.budget import Budget
from components.watching.exporters import Exporters
from components.watching.grafana import Grafana
from components.watching.managed_prometheus import ManagedPrometheus
from components.watching.metrics import Metrics
from components.watching.pod_logs import PodLogs
from components.watching.push_gateway import PushGateway
from trainyard.objects.iam.policies import Document
from trainyard.objects.metrics import grafana
from trainyard.objects.metrics.metrics import VIEW, MetricsPlan
from trainyard.objects.programs import gangs, history, repair
from trainyard.objects.programs.pod_logs import PodLogsPlan
from trainyard.parts.parts import BUDGET, GANGS, HISTORY, LOGS, METRICS, REPAIR, AnyPart
from trainyard.plan import EnvironmentPlan
from trainyard.plans.budget import BudgetPlan
from trainyard.plans.parts import Identity
from trainyard.plans.program import ProgramPlan


@dataclass(frozen=True, kw_only=True)
class Place:
    """What a part's components are given beside its plan."""

    identity: Identity
    cluster_name: pulumi.Input[str]
    trusts: pulumi.Output[Document]
    """Trust policy for roles that pods of this cluster get through EKS Pod Identity."""
    nodes: Sequence[pulumi.Resource]
    """Nodes that pods without GPUs run on."""
    on_aws: pulumi.ResourceOptions
    """Options with the provider of AWS."""
    in_cluster: pulumi.ResourceOptions
    """Options with the provider of the cluster."""


Maker = Callable[[Any, Place], dict[str, Any]]
"""What makes the components of a part from its plan, and returns its outputs."""


def watch(plan: EnvironmentPlan, at: Place) -> dict[str, Any]:
    """Make the parts that the environment has; returns their outputs."""
    outputs = dict[str, Any]()
    for part, make in MAKERS.items():
        if (wanted := part.of(plan)) is not None:
            outputs |= make(wanted, at)
    return outputs


def _measure(plan: MetricsPlan, at: Place) -> dict[str, Any]:
    outputs: dict[str, Any] = {"metrics": VIEW}
    opts, managed = at.in_cluster, None
    if plan.managed:
        managed = ManagedPrometheus(
            "managed-prometheus",
            plan.managed,
            identity=at.identity,
            cluster_name=at.cluster_name,
            trusts=at.trusts,
            opts=opts,
        )
        outputs["managed_prometheus"] = managed.endpoint
    metrics = Metrics("metrics", plan, nodes=at.nodes, managed=managed, opts=opts)
    namespace = metrics.namespace
    if gateway := plan.push_gateway:
        PushGateway("push-gateway", gateway, namespace=namespace, nodes=at.nodes, opts=opts)
    if plan.grafana:
        Grafana("grafana", plan.grafana, namespace=namespace, nodes=at.nodes, opts=opts)
        outputs["grafana"] = grafana.VIEW
    if plan.alerts:
        alertmanager = Alertmanager(
            "alertmanager",
            plan.alerts,
            identity=at.identity,
            namespace=namespace,
            cluster_name=at.cluster_name,
            trusts=at.trusts,
            nodes=at.nodes,
            opts=opts,
        )
        outputs["alerts_topic"] = alertmanager.topic_arn
    Exporters("exporters", plan, opts=opts)
    return outputs


def _budget(plan: BudgetPlan, at: Place) -> dict[str, Any]:
    Budget("budget", plan, identity=at.identity, opts=at.on_aws)
    return {}


def _runs(kind: str, program: Callable[[Any], ProgramPlan]) -> Maker:
    """What makes a part that is a program of ours in one pod. `kind`: type of its component."""

    def make(plan: Any, at: Place) -> dict[str, Any]:
        its = program(plan)
        lends = Lends(identity=at.identity, cluster_name=at.cluster_name, trusts=at.trusts)
        Program(kind, its.name, its, nodes=at.nodes, lends=lends, opts=at.in_cluster)
        return {}

    return make


def _logs(plan: PodLogsPlan, at: Place) -> dict[str, Any]:
    logs = PodLogs(
        "pod-logs",
        plan,
        identity=at.identity,
        cluster_name=at.cluster_name,
        trusts=at.trusts,
        opts=at.in_cluster,
    )
    return {"log_group": logs.group}


MAKERS: dict[AnyPart, Maker] = {
    METRICS: _measure,
    BUDGET: _budget,
    REPAIR: _runs("trainyard:nodes:Repair", repair.program),
    GANGS: _runs("trainyard:queues:Gangs", gangs.program),
    HISTORY: _runs("trainyard:jobs:History", history.program),
    LOGS: _logs,
}
"""Part → what makes its components."""
