"""Pods request their share of a node, and a node takes as many as the plan says."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainyard.catalog.aws.instances import CPU_TYPES, GPU_TYPES, InstanceType
from trainyard.derive.pod_resources import (
    cpu_node_cpus,
    cpus,
    devices,
    memory_gib,
    node_cpus,
    node_memory_gib,
    pods_per_node,
    shared_memory_gib,
)
from trainyard.derive.pools import TYPES
from trainyard.objects.jobs.pod_template import EFA, GPU
from trainyard.settings.job import JobConfig

G6E = GPU_TYPES["g6e.48xlarge"]
JOB = JobConfig(nodes=2, pool="g6e", image="image:1", runtime="torch-distributed")


def _job(**settings: object) -> JobConfig:
    return dataclasses.replace(JOB, **settings)


def _karpenters_millicpus(vcpus: int) -> int:
    """kubeReservedResources of Karpenter 1.14.1 (pkg/providers/instancetype/types.go), as it is
    written there."""
    total, kept = vcpus * 1000, 0
    for start, end, percentage in (
        (0, 1000, 0.06),
        (1000, 2000, 0.01),
        (2000, 4000, 0.005),
        (4000, 1 << 31, 0.0025),
    ):
        if total >= start:
            kept += int((min(total, end) - start) * percentage)
    return total - kept


@pytest.mark.parametrize("kind", TYPES.values(), ids=TYPES)
def test_vcpus_that_pods_may_request_are_those_of_karpenter(kind: InstanceType) -> None:
    assert math.isclose(kind.allocatable_millicpus, _karpenters_millicpus(kind.vcpus), abs_tol=1)


def test_a_whole_node_pod_requests_90_percent_of_what_the_node_has_for_pods() -> None:
    assert devices(JOB, G6E) == {GPU: 8, EFA: 4}
    assert (cpus(JOB, [G6E]), memory_gib(JOB, [G6E])) == (171, 1272)


def test_a_pod_with_half_the_gpus_requests_half_the_vcpus_and_memory() -> None:
    half = _job(gpus_per_node=4)
    assert (cpus(half, [G6E]), memory_gib(half, [G6E])) == (85, 636)


def test_a_pod_of_a_pool_of_several_types_fits_the_smallest() -> None:
    several = [G6E, GPU_TYPES["g6.48xlarge"]]
    assert cpus(JOB, several) == 171
    assert memory_gib(JOB, several) == memory_gib(JOB, several[1:]) < memory_gib(JOB, [G6E])


def test_what_the_job_says_is_requested() -> None:
    own = _job(cpus_per_node=12, memory_gib=100)
    assert (cpus(own, [G6E]), memory_gib(own, [G6E])) == (12, 100)


def test_shared_memory_is_64_gib_or_half_of_a_small_pod() -> None:
    assert shared_memory_gib(JOB, [G6E]) == 64
    assert shared_memory_gib(_job(memory_gib=60), [G6E]) == 30
    assert shared_memory_gib(_job(shared_memory_gib=9), [G6E]) == 9


def test_vcpus_memory_and_efa_devices_limit_how_many_pods_a_node_takes() -> None:
    one = _job(nodes=1, gpus_per_node=1)
    assert pods_per_node(one, G6E) == 8
    assert pods_per_node(dataclasses.replace(one, cpus_per_node=60), G6E) == 3
    assert pods_per_node(dataclasses.replace(one, memory_gib=700), G6E) == 2
    assert pods_per_node(dataclasses.replace(one, nodes=2), G6E) == 1, (
        "a gang takes all EFA devices"
    )


def test_a_cpu_node_gives_one_pod_all_but_a_vcpu() -> None:
    kind = CPU_TYPES["m7i.4xlarge"]
    assert (devices(JOB, kind), cpus(JOB, [kind]), memory_gib(JOB, [kind])) == (
        {"cpu": 15},
        None,
        49,
    )


@pytest.mark.parametrize("kind", CPU_TYPES.values(), ids=CPU_TYPES)
def test_what_a_cpu_node_gives_one_pod_by_default_is_left_by_kubelet(kind: InstanceType) -> None:
    requested = devices(JOB, kind)["cpu"]
    assert requested * 1000 < _karpenters_millicpus(kind.vcpus)
    assert requested == kind.vcpus - (2 if kind.vcpus == 384 else 1), "runs would begin again"
    assert pods_per_node(JOB, kind) == 1


@given(
    st.sampled_from(list(TYPES.values())),
    st.integers(1, 8),
    st.integers(1, 4),
    st.none() | st.integers(1, 400),
    st.none() | st.integers(1, 3000),
)
def test_as_many_pods_as_the_plan_says_fit_what_the_node_has(
    kind: InstanceType, gpus: int, nodes: int, wanted_cpus: int | None, wanted_gib: int | None
) -> None:
    job = _job(
        nodes=nodes,
        gpus_per_node=min(gpus, kind.gpus) or None,
        cpus_per_node=wanted_cpus,
        memory_gib=wanted_gib,
    )
    pods, asked = pods_per_node(job, kind), devices(job, kind)
    requested = asked.get("cpu") or cpus(job, [kind]) or 0
    assert pods * requested <= (node_cpus(kind) if kind.gpus else cpu_node_cpus(kind))
    assert pods * memory_gib(job, [kind]) <= node_memory_gib(kind)
    assert pods * asked.get(GPU, 0) <= kind.gpus and pods * asked.get(EFA, 0) <= kind.efa
    if wanted_cpus is None and wanted_gib is None:
        assert pods >= 1, "by default a pod fits its node"
