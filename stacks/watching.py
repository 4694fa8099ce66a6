"""What looks after an environment: metrics, alerts, a budget, repair, half gangs, history and logs. Each
exists where the stack file asks for it."""

from __future__ import annotations

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
from trainyard.objects.programs import gangs, history, repair
from trainyard.plan import EnvironmentPlan


def watch(
    plan: EnvironmentPlan, cluster: ClusterAccess, *, on_aws: pulumi.ResourceOptions
) -> dict[str, Any]:
    """Make what watches the environment, such as metrics and the history of runs; returns its outputs.

    `on_aws`: options with the provider of AWS."""
    opts, outputs = cluster.opts, dict[str, Any]()
    if plan.metrics:
        outputs |= _measure(plan.metrics, cluster)
    if plan.budget:
        Budget("budget", plan.budget, identity=plan.identity, opts=on_aws)
    if plan.repair:
        sick = repair.program(plan.repair)
        Program("trainyard:nodes:Repair", "repair", sick, cluster=cluster, opts=opts)
    if plan.gangs:
        half = gangs.program(plan.gangs)
        Program("trainyard:queues:Gangs", "gangs", half, cluster=cluster, opts=opts)
    if plan.history:
        runs = history.program(plan.history)
        Program("trainyard:jobs:History", "history", runs, cluster=cluster, opts=opts)
    if plan.logs:
        logs = PodLogs("pod-logs", plan.logs, cluster=cluster, opts=opts)
        outputs["log_group"] = logs.group
    return outputs


def _measure(plan: MetricsPlan, cluster: ClusterAccess) -> dict[str, Any]:
    nodes, opts = cluster.nodes, cluster.opts
    outputs: dict[str, Any] = {"metrics": VIEW}
    managed = None
    if plan.managed:
        managed = ManagedPrometheus("managed-prometheus", plan.managed, cluster=cluster, opts=opts)
        outputs["managed_prometheus"] = managed.endpoint
    metrics = Metrics("metrics", plan, nodes=nodes, managed=managed, opts=opts)
    if plan.push_gateway:
        PushGateway(
            "push-gateway", plan.push_gateway, namespace=metrics.namespace, nodes=nodes, opts=opts
        )
    if plan.grafana:
        Grafana("grafana", plan.grafana, namespace=metrics.namespace, nodes=nodes, opts=opts)
        outputs["grafana"] = grafana.VIEW
    if plan.alerts:
        alertmanager = Alertmanager(
            "alertmanager", plan.alerts, cluster=cluster, namespace=metrics.namespace, opts=opts
        )
        outputs["alerts_topic"] = alertmanager.topic_arn
    Exporters("exporters", plan, opts=opts)
    return outputs
