"""Makers of the optional parts of an environment, such as metrics and the history of runs: a
function for each part, and the table of them. What takes jobs, dispatch among it: training.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pulumi

from components.cluster.cluster_access import ClusterAccess
from components.cluster.program import Program
from components.watching.alertmanager import Alertmanager
from components.watching.budget import Budget
from components.watching.exporters import Exporters
from components.watching.grafana import Grafana
from components.watching.managed_prometheus import ManagedPrometheus
from components.watching.metrics import Metrics
from components.watching.pod_logs import PodLogs
from components.watching.push_gateway import PushGateway
from trainyard.objects.metrics import grafana
from trainyard.objects.metrics.metrics import VIEW, MetricsPlan
from trainyard.objects.programs import gangs, history, repair, told
from trainyard.objects.programs.pod_logs import PodLogsPlan
from trainyard.parts.parts import BUDGET, GANGS, HISTORY, LOGS, METRICS, REPAIR, TOLD, AnyPart
from trainyard.plan import EnvironmentPlan
from trainyard.plans.budget import BudgetPlan
from trainyard.plans.program import ProgramPlan

Maker = Callable[[Any, ClusterAccess, pulumi.ResourceOptions], dict[str, Any]]
"""Makes the components of a part from its plan, and returns its outputs. It is given the cluster, and
options with the provider of AWS."""


def watch(
    plan: EnvironmentPlan, cluster: ClusterAccess, *, on_aws: pulumi.ResourceOptions
) -> dict[str, Any]:
    """Make the parts that the environment has; returns their outputs. `on_aws`: options with the provider
    of AWS."""
    outputs = dict[str, Any]()
    for part, make in MAKERS.items():
        if (wanted := part.of(plan)) is not None:
            outputs |= make(wanted, cluster, on_aws)
    return outputs


def _measure(
    plan: MetricsPlan, cluster: ClusterAccess, _: pulumi.ResourceOptions
) -> dict[str, Any]:
    outputs: dict[str, Any] = {"metrics": VIEW}
    nodes, opts, managed = cluster.nodes, cluster.opts, None
    if plan.managed:
        managed = ManagedPrometheus("managed-prometheus", plan.managed, cluster=cluster, opts=opts)
        outputs["managed_prometheus"] = managed.endpoint
    metrics = Metrics("metrics", plan, nodes=nodes, managed=managed, opts=opts)
    namespace = metrics.namespace
    if gateway := plan.push_gateway:
        PushGateway("push-gateway", gateway, namespace=namespace, nodes=nodes, opts=opts)
    if plan.grafana:
        Grafana("grafana", plan.grafana, namespace=namespace, nodes=nodes, opts=opts)
        outputs["grafana"] = grafana.VIEW
    if plan.alerts:
        alertmanager = Alertmanager(
            "alertmanager", plan.alerts, cluster=cluster, namespace=namespace, opts=opts
        )
        outputs["alerts_topic"] = alertmanager.topic_arn
    Exporters("exporters", plan, opts=opts)
    return outputs


def _budget(
    plan: BudgetPlan, cluster: ClusterAccess, on_aws: pulumi.ResourceOptions
) -> dict[str, Any]:
    Budget("budget", plan, identity=cluster.identity, opts=on_aws)
    return {}


def _runs(kind: str, program: Callable[[Any], ProgramPlan]) -> Maker:
    """Maker of a part that is a program of ours in one pod. `kind`: type of its component."""

    def make(plan: Any, cluster: ClusterAccess, _: pulumi.ResourceOptions) -> dict[str, Any]:
        its = program(plan)
        Program(kind, its.name, its, cluster=cluster, opts=cluster.opts)
        return {}

    return make


def _logs(plan: PodLogsPlan, cluster: ClusterAccess, _: pulumi.ResourceOptions) -> dict[str, Any]:
    logs = PodLogs("pod-logs", plan, cluster=cluster, opts=cluster.opts)
    return {"log_group": logs.group}


MAKERS: dict[AnyPart, Maker] = {
    METRICS: _measure,
    BUDGET: _budget,
    REPAIR: _runs("trainyard:nodes:Repair", repair.program),
    GANGS: _runs("trainyard:queues:Gangs", gangs.program),
    HISTORY: _runs("trainyard:jobs:History", history.program),
    LOGS: _logs,
    TOLD: _runs("trainyard:jobs:Program", told.program),
}
"""Part → what makes its components."""
