"""What looks after an environment: metrics, alerts, a budget, repair, half gangs, history and logs. Each
exists where the stack file asks for it."""

from __future__ import annotations

from collections.abc import Sequence
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
from trainyard.plan import EnvironmentPlan
from trainyard.plans.parts import Identity


def watch(
    plan: EnvironmentPlan,
    *,
    cluster_name: pulumi.Input[str],
    trusts: pulumi.Output[Document],
    nodes: Sequence[pulumi.Resource],
    on_aws: pulumi.ResourceOptions,
    in_cluster: pulumi.ResourceOptions,
) -> dict[str, Any]:
    """Make what watches the environment, such as metrics and the history of runs; returns its outputs.

    `trusts`: trust policy for roles that pods of this cluster get through EKS Pod Identity.
    `nodes`: nodes that pods without GPUs run on. `on_aws`, `in_cluster`: options with the provider of
    AWS, and with that of the cluster."""
    me, outputs = plan.identity, dict[str, Any]()
    if plan.metrics:
        outputs |= _measure(plan.metrics, me, cluster_name, trusts, nodes, in_cluster)
    if plan.budget:
        Budget("budget", plan.budget, identity=me, opts=on_aws)
    if plan.repair:
        sick = repair.program(plan.repair)
        lends = Lends(identity=me, cluster_name=cluster_name, trusts=trusts)
        Program("trainyard:nodes:Repair", "repair", sick, nodes=nodes, lends=lends, opts=in_cluster)
    if plan.gangs:
        half = gangs.program(plan.gangs)
        Program("trainyard:queues:Gangs", "gangs", half, nodes=nodes, opts=in_cluster)
    if plan.history:
        runs = history.program(plan.history)
        Program("trainyard:jobs:History", "history", runs, nodes=nodes, opts=in_cluster)
    if plan.logs:
        logs = PodLogs(
            "pod-logs",
            plan.logs,
            identity=me,
            cluster_name=cluster_name,
            trusts=trusts,
            opts=in_cluster,
        )
        outputs["log_group"] = logs.group
    return outputs


def _measure(
    plan: MetricsPlan,
    me: Identity,
    cluster_name: pulumi.Input[str],
    trusts: pulumi.Output[Document],
    nodes: Sequence[pulumi.Resource],
    opts: pulumi.ResourceOptions,
) -> dict[str, Any]:
    outputs: dict[str, Any] = {"metrics": VIEW}
    managed = None
    if plan.managed:
        managed = ManagedPrometheus(
            "managed-prometheus",
            plan.managed,
            identity=me,
            cluster_name=cluster_name,
            trusts=trusts,
            opts=opts,
        )
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
            "alertmanager",
            plan.alerts,
            identity=me,
            namespace=metrics.namespace,
            cluster_name=cluster_name,
            trusts=trusts,
            nodes=nodes,
            opts=opts,
        )
        outputs["alerts_topic"] = alertmanager.topic_arn
    Exporters("exporters", plan, opts=opts)
    return outputs
