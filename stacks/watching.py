"""What looks after an environment: metrics, alerts, a budget, repair, half gangs, history and logs. Each
exists where the stack file asks for it."""

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
from trainyard.parts.parts import BUDGET, AnyPart
from trainyard.plan import EnvironmentPlan
from trainyard.plans.budget import BudgetPlan
from trainyard.plans.parts import Identity


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


def watch(plan: EnvironmentPlan, at: Place) -> dict[str, Any]:
    """Make what watches the environment, such as metrics and the history of runs; returns its outputs."""
    outputs = dict[str, Any]()
    for part, make in MAKERS.items():
        if (wanted := part.of(plan)) is not None:
            outputs |= make(wanted, at)
    me = plan.identity
    if plan.metrics:
        outputs |= _measure(plan.metrics, me, at.cluster_name, at.trusts, at.nodes, at.in_cluster)
    if plan.repair:
        sick = repair.program(plan.repair)
        lends = Lends(identity=me, cluster_name=at.cluster_name, trusts=at.trusts)
        Program(
            "trainyard:nodes:Repair",
            "repair",
            sick,
            nodes=at.nodes,
            lends=lends,
            opts=at.in_cluster,
        )
    if plan.gangs:
        half = gangs.program(plan.gangs)
        Program("trainyard:queues:Gangs", "gangs", half, nodes=at.nodes, opts=at.in_cluster)
    if plan.history:
        runs = history.program(plan.history)
        Program("trainyard:jobs:History", "history", runs, nodes=at.nodes, opts=at.in_cluster)
    if plan.logs:
        logs = PodLogs(
            "pod-logs",
            plan.logs,
            identity=me,
            cluster_name=at.cluster_name,
            trusts=at.trusts,
            opts=at.in_cluster,
        )
        outputs["log_group"] = logs.group
    return outputs


def _budget(plan: BudgetPlan, at: Place) -> dict[str, Any]:
    Budget("budget", plan, identity=at.identity, opts=at.on_aws)
    return {}


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


MAKERS: dict[AnyPart, Callable[[Any, Place], dict[str, Any]]] = {BUDGET: _budget}
"""Part → what makes its components, and returns its outputs."""
