"""Size of Prometheus: series, memory, CPU and disk, and the room that it takes of its node."""

from __future__ import annotations

import math
from dataclasses import dataclass

from trainyard.catalog.aws.instances import first_type, standard_vcpus
from trainyard.objects.metrics import grafana
from trainyard.objects.metrics.metrics import INTERVAL_SECONDS
from trainyard.plans.system_nodes import SYSTEM_DISK_GIB
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.metrics import MetricsConfig

SERIES_BASE, SERIES_A_NODE, SERIES_A_GPU, SERIES_AN_EFA = 20_000, 450, 30, 10
"""Estimates: controllers, which were 14,578 with Kueue and the training-operator in a world (2026-11-22), with
Karpenter's series of instance types, which Prometheus drops since then, and API server; of a node its exporter,
its containers and its network; of a GPU the fields of trainyard/objects/metrics/metrics.py, and what names
them; of an EFA device the counters of trainyard/in_cluster/efa."""
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


def series_of(wanted: EnvironmentConfig) -> int:
    """Series of an environment whose pools are full, to the next thousand."""
    nodes = wanted.system_nodes.nodes
    gpus = efas = 0
    for pool in wanted.pools.values():
        most = (pool.max_nodes + pool.warm_spares) * len(pool.instance_types)
        nodes += most
        kind = first_type(pool.instance_types)
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
    """Room that Prometheus, and Grafana beside it, take of a system node."""
    shown = metrics.grafana
    return Room(
        millicpus=millicpus(series) + grafana.MILLICPUS * shown,
        memory_mib=memory_mib(series) + grafana.MEMORY_MIB * shown,
    )


def room(instance_type: str) -> Room | None:
    """Room that Prometheus may take of a system node of a type; None for a type whose name does not
    say its size."""
    vcpus = standard_vcpus(instance_type)
    if vcpus is None or instance_type[0] not in GIB_A_VCPU:
        return None
    return Room(
        millicpus=vcpus * 1000 * NODE_PERCENT // 100,
        memory_mib=vcpus * GIB_A_VCPU[instance_type[0]] * 1024 * NODE_PERCENT // 100,
    )
