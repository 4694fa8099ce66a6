"""What follows from `environment.metrics`: whom Prometheus asks, and what it takes of its node."""

from __future__ import annotations

import math
from dataclasses import dataclass

from trainyard.catalog import versions
from trainyard.catalog.aws.prices import Price, price
from trainyard.derive.capacity import STANDARD, first_type
from trainyard.derive.cluster import SYSTEM_DISK_GIB
from trainyard.derive.programs import program_files
from trainyard.objects.metrics import grafana
from trainyard.objects.metrics.alertmanager import AlertmanagerPlan
from trainyard.objects.metrics.dashboards import pages
from trainyard.objects.metrics.managed_prometheus import ManagedPrometheusPlan
from trainyard.objects.metrics.metrics import (
    APP,
    INTERVAL_SECONDS,
    DayBudget,
    EfaExporter,
    GrafanaPlan,
    MetricsPlan,
    Target,
)
from trainyard.objects.programs.history import APP as HISTORY
from trainyard.objects.programs.repair import APP as REPAIR
from trainyard.objects.programs.repair import DCGM_PORT
from trainyard.plans.parts import Identity
from trainyard.plans.program import PORT as PROGRAM_PORT
from trainyard.plans.push_gateway import PushGatewayPlan
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.metrics import AlertsConfig, MetricsConfig

SERIES_BASE, SERIES_A_NODE, SERIES_A_GPU, SERIES_AN_EFA = 20_000, 450, 30, 10
"""Estimates: controllers, which were 14,578 with Kueue and the training-operator in a world (2026-11-22),
and API server; of a node its exporter, its containers and its network; of a GPU the fields of
trainyard/objects/metrics/metrics.py, and what names them; of an EFA device the counters of trainyard/in_cluster/efa."""
SEVERITIES = ("critical", "warning", "info")
"""Severities of alerts, the worst first."""
BYTES_A_SAMPLE = 2
"""On the disk: 1.3 are usual, and the newest hours are not compressed."""
BYTES_A_SERIES, MEMORY_BASE_MIB = 2560, 300
"""In memory (robustperception.io: 1 million series take 2 GiB)."""
ROOM_FOR_QUERIES = 1.5
MILLICPUS, SERIES_A_MILLICPU = 200, 300
"""0.2 vCPU for 37,000 series, 1 vCPU for 300,000."""
SMALLEST_DISK_GIB, LARGEST_DISK_GIB = 2, SYSTEM_DISK_GIB // 2
"""Images and the AMI take less than the other half of a system node's disk."""
GIB_A_VCPU = {"c": 2, "m": 4, "r": 8}
"""First letter of an instance type → its memory."""
NODE_PERCENT = 50
"""Part of a system node that Prometheus may take beside a replica of Karpenter and the other
controllers."""


@dataclass(frozen=True, kw_only=True)
class Room:
    """A part of a system node."""

    millicpus: int
    memory_mib: int


def metrics_plan(
    me: Identity, wanted: EnvironmentConfig, efa_types: tuple[str, ...]
) -> MetricsPlan | None:
    """Prometheus as large as all pools at their limits need; None where the stack file wants no
    metrics. `efa_types`: instance types of pools that have EFA devices."""
    if wanted.metrics is None:
        return None
    series, remote = series_of(wanted), wanted.metrics.remote_write
    return MetricsPlan(
        stack=me.stack,
        image=versions.PROMETHEUS_IMAGE,
        gpu_image=versions.DCGM_EXPORTER_IMAGE,
        node_image=versions.NODE_EXPORTER_IMAGE,
        efa=_efa(efa_types),
        controllers=_controllers(wanted),
        retention_days=wanted.metrics.retention_days,
        remote_write_url=remote.url if remote else None,
        managed=_managed(me, wanted.metrics),
        ends=tuple(
            (name, int(pool.reservation.ends.timestamp()))
            for name, pool in wanted.pools.items()
            if pool.reservation and pool.reservation.ends
        ),
        budget=_budget(me.region, wanted),
        dcgm_port=DCGM_PORT if wanted.repair else None,
        push_gateway=(
            PushGatewayPlan(image=versions.PUSHGATEWAY_IMAGE)
            if wanted.metrics.push_gateway
            else None
        ),
        grafana=_grafana(me.stack, wanted) if wanted.metrics.grafana else None,
        alerts=_alerts(me, wanted.metrics.alerts) if wanted.metrics.alerts else None,
        series=series,
        memory_mib=memory_mib(series),
        millicpus=millicpus(series),
        disk_gib=disk_gib(series, wanted.metrics.retention_days),
    )


def _efa(types: tuple[str, ...]) -> EfaExporter | None:
    if not types:
        return None
    return EfaExporter(
        image=versions.PYTHON_IMAGE, files=program_files("efa"), instance_types=types
    )


def node_prices(region: str, wanted: EnvironmentConfig) -> dict[str, Price | None]:
    """Pool → an hour of one of its nodes, as `trainyard plan` has it; None where no price of the region is
    known. Capacity Blocks are paid in advance, and not among them."""
    return {
        name: price(
            "ec2-spot" if pool.capacity == "spot" else "ec2", pool.instance_types[0], region
        )
        for name, pool in wanted.pools.items()
        if pool.capacity != "block" and pool.instance_types
    }


def _budget(region: str, wanted: EnvironmentConfig) -> DayBudget | None:
    dollars = wanted.metrics.dollars_a_day if wanted.metrics else None
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
        topic_name=me.name("alerts"),
        topic_arn=wanted.topic_arn,
        emails=wanted.emails,
        severities=SEVERITIES[: SEVERITIES.index(wanted.severity) + 1],
    )


def _controllers(wanted: EnvironmentConfig) -> tuple[Target, ...]:
    """The controllers of an environment, by the labels that their charts give to their pods."""
    found = [
        Target(job="karpenter", namespace="kube-system", label=f"{APP}=karpenter", port=8080),
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
    if wanted.repair:
        label = f"{APP}={REPAIR}"
        found.append(Target(job=REPAIR, namespace=REPAIR, label=label, port=PROGRAM_PORT))
    if wanted.history and wanted.history.progress:
        label = f"{APP}={HISTORY}"
        found.append(Target(job=HISTORY, namespace=HISTORY, label=label, port=PROGRAM_PORT))
    return tuple(found)


def series_of(wanted: EnvironmentConfig) -> int:
    """Series of an environment whose pools are full, to the next thousand."""
    nodes = wanted.system_nodes.nodes
    gpus = efas = 0
    for pool in wanted.pools.values():
        most = (pool.max_nodes + pool.warm_spares) * len(pool.instance_types)
        nodes += most
        kind = first_type(pool)
        gpus += most * (kind.gpus if kind else 0)
        efas += most * (kind.efa if kind else 0)
    of_nodes = nodes * SERIES_A_NODE + gpus * SERIES_A_GPU + efas * SERIES_AN_EFA
    return math.ceil((SERIES_BASE + of_nodes) / 1000) * 1000


def samples_a_month(series: int) -> int:
    """Samples that so many series give in 730 hours."""
    return series * 730 * 3600 // INTERVAL_SECONDS


def memory_mib(series: int) -> int:
    """Memory, in powers of two: each other figure is another pod, which begins with an empty history."""
    need = (MEMORY_BASE_MIB + series * BYTES_A_SERIES / 2**20) * ROOM_FOR_QUERIES
    return max(1024, 2 ** math.ceil(math.log2(need)))


def millicpus(series: int) -> int:
    """CPU, in thousandths of a vCPU, in steps for the same reason."""
    return math.ceil((MILLICPUS + series / SERIES_A_MILLICPU) / 500) * 500


def disk_gib(series: int, days: int) -> int:
    """History of so many series and days."""
    samples = series * days * 24 * 3600 / INTERVAL_SECONDS
    return max(SMALLEST_DISK_GIB, math.ceil(samples * BYTES_A_SAMPLE / 2**30))


def days_on_disk(series: int) -> int:
    """Days whose history fits on the disk of a system node; 0 where no day does."""
    return int(LARGEST_DISK_GIB * 2**30 * INTERVAL_SECONDS / (series * BYTES_A_SAMPLE * 86400))


def taken(metrics: MetricsConfig, series: int) -> Room:
    """What Prometheus takes of a system node, and Grafana beside it."""
    shown = metrics.grafana
    return Room(
        millicpus=millicpus(series) + grafana.MILLICPUS * shown,
        memory_mib=memory_mib(series) + grafana.MEMORY_MIB * shown,
    )


def room(instance_type: str) -> Room | None:
    """What Prometheus may take of a system node of a type; None for a type whose name does not say
    how large it is."""
    known = STANDARD.fullmatch(instance_type)
    if known is None or instance_type[0] not in GIB_A_VCPU:
        return None
    vcpus = 2 if known[1] is None else 4 * int(known[1] or 1)
    return Room(
        millicpus=vcpus * 1000 * NODE_PERCENT // 100,
        memory_mib=vcpus * GIB_A_VCPU[instance_type[0]] * 1024 * NODE_PERCENT // 100,
    )
