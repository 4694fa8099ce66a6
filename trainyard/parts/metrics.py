"""Prometheus with its exporters, alerts and dashboards: whom it asks, what it keeps, who is told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trainyard.catalog import versions
from trainyard.catalog.aws.endpoints import SAMPLES, TOPICS
from trainyard.catalog.aws.instances import TYPES
from trainyard.command_line import table, wrapped
from trainyard.objects.metrics import alertmanager, grafana
from trainyard.objects.metrics.alertmanager import AlertmanagerPlan
from trainyard.objects.metrics.dashboards import pages
from trainyard.objects.metrics.managed_prometheus import ManagedPrometheusPlan
from trainyard.objects.metrics.metrics import (
    APP,
    GPUS,
    GPUS_BY_DRIVER,
    NAMESPACE,
    DayBudget,
    EfaExporter,
    GpuExporter,
    GrafanaPlan,
    MetricsPlan,
    Target,
)
from trainyard.objects.programs.repair import DCGM_PORT
from trainyard.parts.metrics_rules import metrics_errors, metrics_warnings, node_prices
from trainyard.parts.metrics_size import disk_gib, memory_mib, millicpus, samples_a_month, series_of
from trainyard.parts.part import Around, Part
from trainyard.parts.programs import program_files
from trainyard.parts.topics import topic_types
from trainyard.plans import push_gateway
from trainyard.plans.identity import Identity
from trainyard.plans.push_gateway import PushGatewayPlan
from trainyard.plans.system_nodes import SystemPod
from trainyard.plans.topic import TopicPlan
from trainyard.problems import InputError, InputWarning
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.metrics import AlertsConfig, MetricsConfig
from trainyard.stores.figures import Stage, UsageCost, took

OF_INSTANCE_TYPES = "karpenter_cloudprovider_instance_type_.*"
"""Karpenter serves two series for each instance type of the region, zone and capacity type, whatever its
NodePools ask for, which are tens of thousands (karpenter-provider-aws 1.14.1 and 1.15.0,
pkg/controllers/metrics/controller.go), and two for each instance type (pkg/providers/instancetype/metrics.go)."""
SEVERITIES = ("critical", "warning", "info")
"""Severities of alerts, the worst first."""


class Metrics(Part[MetricsConfig, MetricsPlan]):
    """`environment.metrics`: a Prometheus as large as all pools at their limits need."""

    name = section = "metrics"
    namespace = NAMESPACE

    def plan(self, me: Identity, settings: MetricsConfig, around: Around) -> MetricsPlan:
        wanted, series, remote = around.wanted, series_of(around.wanted), settings.remote_write
        return MetricsPlan(
            stack=me.stack,
            image=versions.PROMETHEUS_IMAGE,
            gpu_image=versions.DCGM_EXPORTER_IMAGE,
            node_image=versions.NODE_EXPORTER_IMAGE,
            gpus=_gpus(wanted),
            efa=_efa(around.efa_instance_types),
            controllers=(*_controllers(wanted), *around.targets),
            retention_days=settings.retention_days,
            remote_write_url=remote.url if remote else None,
            managed=_managed(me, settings),
            ends=tuple(
                (name, int(pool.reservation.ends.timestamp()))
                for name, pool in wanted.pools.items()
                if pool.reservation and pool.reservation.ends
            ),
            budget=_budget(me.region, settings.dollars_a_day, wanted),
            push_gateway=(
                PushGatewayPlan(image=versions.PUSHGATEWAY_IMAGE) if settings.push_gateway else None
            ),
            grafana=_grafana(me.stack, wanted) if settings.grafana else None,
            alerts=_alerts(me, settings.alerts) if settings.alerts else None,
            series=series,
            memory_mib=memory_mib(series),
            millicpus=millicpus(series),
            disk_gib=disk_gib(series, settings.retention_days),
        )

    def system_pods(
        self, settings: MetricsConfig, wanted: EnvironmentConfig
    ) -> tuple[SystemPod, ...]:
        pods = {
            "Prometheus": millicpus(series_of(wanted)),
            "Grafana": grafana.MILLICPUS * settings.grafana,
            "Alertmanager": alertmanager.MILLICPUS * bool(settings.alerts),
            "Pushgateway": push_gateway.MILLICPUS * settings.push_gateway,
        }
        return tuple(SystemPod(name, requested) for name, requested in pods.items() if requested)

    def node_images(self, settings: MetricsConfig, *, efa: bool) -> tuple[str, ...]:
        exporters = (versions.DCGM_EXPORTER_IMAGE, versions.NODE_EXPORTER_IMAGE)
        return (*exporters, versions.PYTHON_IMAGE) if efa else exporters

    def errors(
        self, settings: MetricsConfig, region: str, wanted: EnvironmentConfig
    ) -> Iterator[InputError]:
        yield from metrics_errors(settings, region, wanted)

    def warnings(
        self, settings: MetricsConfig, region: str, wanted: EnvironmentConfig
    ) -> Iterator[InputWarning]:
        yield from metrics_warnings(settings, region, wanted)

    def isolated_warnings(self, settings: MetricsConfig) -> Iterator[InputWarning]:
        if settings.remote_write:
            yield InputWarning(
                path="environment.metrics.remote_write.url",
                text=(
                    "Prometheus reaches it only if it is in the VPC or in a network with a route to it"
                ),
            )

    def apis(self, settings: MetricsConfig) -> tuple[str, ...]:
        sends = [(TOPICS, settings.alerts), (SAMPLES, settings.managed_prometheus)]
        return tuple(api for api, wanted in sends if wanted)

    def for_teams(self, settings: MetricsConfig) -> MetricsConfig | None:
        return MetricsConfig(push_gateway=True) if settings.push_gateway else None

    def job_variables(self, settings: MetricsConfig) -> dict[str, str]:
        """The address of the Pushgateway, where there is one."""
        return {push_gateway.VARIABLE: push_gateway.ADDRESS} if settings.push_gateway else {}

    def resource_types(self, plan: MetricsPlan) -> tuple[str, ...]:
        workspace = ("workspace:Workspace", "workspaceConfiguration:WorkspaceConfiguration")
        return (
            *(f"aws:amp/{kind}" for kind in workspace if plan.managed),
            *(topic_types(plan.alerts.topic) if plan.alerts else ()),
        )

    def encrypts(self, plan: MetricsPlan) -> tuple[str, ...]:
        return (
            *(["the topic of alerts"] if plan.alerts and plan.alerts.topic.own else []),
            *(["the history of metrics"] if plan.managed else []),
        )

    def report(self, plan: MetricsPlan, most_nodes: Mapping[str, int]) -> list[str]:
        """Report about the room that programs take of a system node. It is in the price of the
        system nodes."""
        rows = [
            ("metrics", "series", "vCPUs", "memory", "disk", "history"),
            (
                "Prometheus",
                f"{plan.series:,}",
                f"{plan.millicpus / 1000:g}",
                f"{plan.memory_mib // 1024} GiB",
                f"{plan.disk_gib} GiB",
                f"{plan.retention_days} days",
            ),
        ]
        if shown := plan.grafana:
            of = f"{shown.millicpus / 1000:g}", f"{shown.memory_mib // 1024} GiB"
            rows.append(("Grafana", "", *of, "", ""))
        note = "on a system node, which is paid already; where all pools are full"
        return [*table(rows), *wrapped(note), *_kept_by_aws(plan), *_told(plan)]

    def usage_costs(self, plan: MetricsPlan) -> tuple[UsageCost, ...]:
        cost = UsageCost(
            what="managed Prometheus",
            service="prometheus",
            sku="samples",
            quantity=_samples(plan),
            over="a month, at most",
        )
        return (cost,) if plan.managed else ()

    def stages(self, plan: MetricsPlan, nodes: tuple[str, ...]) -> tuple[Stage, ...]:
        # Nobody has measured it: one Deployment without a webhook.
        return (took("Prometheus", "helm.controller", nodes),)


def _gpus(wanted: EnvironmentConfig) -> tuple[GpuExporter, ...]:
    """With repair each node has the agent's server of DCGM. Two on a node disturb each other, so the exporter asks
    that one, but where that one cannot profile: there it watches no profiling fields, which is what two servers
    cannot share (NVIDIA/dcgm-exporter#7 and #61)."""
    names = sorted({name for pool in wanted.pools.values() for name in pool.instance_types})
    kinds = [TYPES[name] for name in names if TYPES[name].gpus]
    asks = tuple(kind.name for kind in kinds if kind.profiles_itself)
    brings = tuple(kind.name for kind in kinds if not kind.profiles_itself)
    if not wanted.repair or not asks:
        return (GpuExporter(name=GPUS),)
    if not brings:
        return (GpuExporter(name=GPUS, dcgm_port=DCGM_PORT),)
    return (
        GpuExporter(name=GPUS, instance_types=brings),
        GpuExporter(name=GPUS_BY_DRIVER, instance_types=asks, dcgm_port=DCGM_PORT),
    )


def _efa(types: tuple[str, ...]) -> EfaExporter | None:
    if not types:
        return None
    return EfaExporter(
        image=versions.PYTHON_IMAGE, files=program_files("efa"), instance_types=types
    )


def _budget(region: str, dollars: float | None, wanted: EnvironmentConfig) -> DayBudget | None:
    found = node_prices(region, wanted) if dollars else {}
    prices = tuple((name, str(one.usd)) for name, one in found.items() if one)
    return DayBudget(dollars=dollars, prices=prices) if dollars and prices else None


def _managed(me: Identity, wanted: MetricsConfig) -> ManagedPrometheusPlan | None:
    managed = wanted.managed_prometheus
    if managed is None:
        return None
    return ManagedPrometheusPlan(
        role_name=me.name("prometheus"),
        alias=me.name("metrics"),
        region=me.region,
        retention_days=managed.retention_days,
        keep=managed.data == "keep",
    )


def _grafana(stack: str, wanted: EnvironmentConfig) -> GrafanaPlan:
    follows = bool(wanted.history and wanted.history.progress)
    return GrafanaPlan(
        image=versions.GRAFANA_IMAGE,
        files=grafana.files(pages(stack, queues=bool(wanted.queues), follows=follows)),
        millicpus=grafana.MILLICPUS,
        memory_mib=grafana.MEMORY_MIB,
    )


def _alerts(me: Identity, wanted: AlertsConfig) -> AlertmanagerPlan:
    return AlertmanagerPlan(
        image=versions.ALERTMANAGER_IMAGE,
        role_name=me.name("alertmanager"),
        region=me.region,
        topic=TopicPlan(name=me.name("alerts"), arn=wanted.topic_arn, emails=wanted.emails),
        severities=SEVERITIES[: SEVERITIES.index(wanted.severity) + 1],
    )


def _controllers(wanted: EnvironmentConfig) -> tuple[Target, ...]:
    """The controllers of an environment, by the labels that their charts give to their pods."""
    found = [
        Target(
            job="karpenter",
            namespace="kube-system",
            label=f"{APP}=karpenter",
            port=8080,
            unread=OF_INSTANCE_TYPES,
        ),
        *(
            Target(
                job=job,
                namespace="kubeflow-system",
                label=f"{APP}={app}",
                port=8443,
                secure=True,
            )
            for job, app in {"trainer": "kubeflow-trainer", "jobset": "jobset"}.items()
        ),
    ]
    if wanted.training_operator:
        label = "control-plane=kubeflow-training-operator"
        found.append(Target(job="training-operator", namespace="kubeflow", label=label, port=8080))
    if wanted.queues:
        found.append(
            Target(
                job="kueue",
                namespace="kueue-system",
                label=f"{APP}=kueue",
                port=8443,
                secure=True,
            )
        )
    return tuple(found)


def _samples(plan: MetricsPlan) -> int:
    """Most samples of a month, in millions: those of full pools, and of as many figures as jobs can push."""
    pushed = push_gateway.SERIES if plan.push_gateway else 0
    return samples_a_month(plan.series + pushed) // 10**6


def _kept_by_aws(plan: MetricsPlan) -> list[str]:
    """Report about managed Prometheus, which is paid by the sample."""
    if plan.managed is None:
        return []
    return wrapped(
        f"workspace {plan.managed.alias} of managed Prometheus gets up to {_samples(plan):,} million samples a"
        f" month, and keeps them for {plan.managed.retention_days} days"
    )


def _told(plan: MetricsPlan) -> list[str]:
    """Report about the receivers of alerts."""
    if plan.alerts is None:
        return wrapped("nobody is told of alerts: set environment.metrics.alerts")
    sent = " and ".join(plan.alerts.severities)
    return wrapped(f"alerts ({sent}) are sent to {plan.alerts.topic}")
