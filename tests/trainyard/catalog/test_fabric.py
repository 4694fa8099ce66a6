"""The network between nodes: what it carries, and variables that help or harm."""

from __future__ import annotations

import pytest

from trainyard.catalog import fabric, failure_rates
from trainyard.catalog.aws.instances import CPU_TYPES, GPU_TYPES


def test_without_efa_a_node_reaches_what_one_interface_carries() -> None:
    assert fabric.tcp_bound(GPU_TYPES["p5.48xlarge"]) == 100 / 8


def test_types_without_rdma_are_said_to_be_slow() -> None:
    assert "no GPUDirect RDMA" in (fabric.slow(GPU_TYPES["g6e.48xlarge"]) or "")
    assert "no EFA: at most 0.31 GB/s" in (fabric.slow(GPU_TYPES["g5.xlarge"]) or "")
    assert fabric.slow(GPU_TYPES["p5.48xlarge"]) is fabric.slow(CPU_TYPES["c7i.48xlarge"]) is None


def test_g7_is_told_the_protocol_without_which_efa_is_slower_than_tcp() -> None:
    wanted = {"OFI_NCCL_PROTOCOL": "RDMA"}
    assert fabric.environment(GPU_TYPES["g7.48xlarge"], 2) == wanted
    assert fabric.environment(GPU_TYPES["g7.48xlarge"], 1) == {}
    assert fabric.environment(GPU_TYPES["g7.4xlarge"], 2) == {}, "it has no EFA"
    assert "expect about 40 GB/s" in (fabric.slow(GPU_TYPES["g7.48xlarge"]) or "")
    assert "expect about 20 GB/s" in (fabric.slow(GPU_TYPES["g7.24xlarge"]) or "")
    assert "no EFA: at most 5 GB/s" in (fabric.slow(GPU_TYPES["g7.2xlarge"]) or "")


def test_a_job_gets_only_what_the_plugin_does_not_set_by_itself() -> None:
    assert fabric.environment(GPU_TYPES["g6.12xlarge"], 2) == {"NCCL_SHM_USE_CUDA_MEMCPY": "1"}
    assert not any(
        fabric.environment(GPU_TYPES[name], 16)
        for name in ("g6e.48xlarge", "p5.48xlarge", "g5.xlarge")
    )


@pytest.mark.parametrize(
    ("variable", "value", "harmed", "fine"),
    [
        ("NCCL_P2P_LEVEL", "NVL", "g6e.48xlarge", "p5.48xlarge"),
        ("NCCL_P2P_DISABLE", "1", "p5.48xlarge", "g6e.48xlarge"),
        ("NCCL_NET", "Socket", "p5.48xlarge", "g5.xlarge"),
        ("FI_PROVIDER", "tcp", "p4d.24xlarge", "g5.xlarge"),
        ("FI_EFA_USE_DEVICE_RDMA", "1", "g5.48xlarge", "g6e.48xlarge"),
        ("FI_EFA_USE_DEVICE_RDMA", "true", "g5.8xlarge", "p5.4xlarge"),
        ("FI_EFA_USE_DEVICE_RDMA", "1", "g5.12xlarge", "g5.4xlarge"),
        ("NCCL_IB_HCA", "mlx5_0", "p5.48xlarge", None),
        ("NCCL_NETWORK_TIMEOUT", "30", "g5.xlarge", None),
    ],
)
def test_a_variable_that_harms_or_does_nothing_is_named(
    variable: str, value: str, harmed: str, fine: str | None
) -> None:
    assert fabric.harm(variable, value, GPU_TYPES[harmed])
    assert fine is None or fabric.harm(variable, value, GPU_TYPES[fine]) is None


@pytest.mark.parametrize(
    "value", ["rdmap113s0:1", "efa_0:1", "rdmap79s0:1,eth0", "rdmap79s0:1,rdmap80s0:1"]
)
def test_ucx_may_be_told_the_efa_devices_of_the_pod(value: str) -> None:
    """UCX has a transport for EFA since 1.19, srd; another device is of InfiniBand, or of the node."""
    p5, without = GPU_TYPES["p5.48xlarge"], GPU_TYPES["g6e.4xlarge"]
    assert fabric.harm("UCX_NET_DEVICES", value, p5) is None
    alone = "eth0" not in value
    assert bool(fabric.harm("UCX_NET_DEVICES", value, p5, has_devices=False)) == alone
    assert bool(fabric.harm("UCX_NET_DEVICES", value, without)) == alone
    assert all(fabric.harm("UCX_NET_DEVICES", other, p5) for other in ("mlx5_0:1", "ens5"))


def test_rdma_read_is_no_matter_where_a_pod_has_no_efa_device() -> None:
    g5 = GPU_TYPES["g5.48xlarge"]
    assert fabric.harm("FI_EFA_USE_DEVICE_RDMA", "1", g5, has_devices=False) is None


@pytest.mark.parametrize(
    "setting",
    [
        "NCCL_DEBUG=INFO",
        "FI_PROVIDER=efa",
        "NCCL_P2P_LEVEL=PHB",
        "OMP_NUM_THREADS=8",
        "NCCL_SHM_USE_CUDA_MEMCPY=1",
        "FI_EFA_USE_HUGE_PAGE=0",
    ],
)
def test_what_is_commonly_set_is_left_alone(setting: str) -> None:
    variable, _, value = setting.partition("=")
    assert not any(
        fabric.harm(variable, value, kind) for kind in (*GPU_TYPES.values(), *CPU_TYPES.values())
    )


def test_each_variable_that_does_harm_has_a_rule_for_scripts() -> None:
    harmful = [harm for harm in fabric.HARMS if not harm.has_no_effect]
    assert len(harmful) > 10
    assert all("NAME" in harm.rule_in_script("NAME", None) for harm in harmful)


def test_plans_count_with_the_worst_rate_of_a_fleet() -> None:
    rates = [fleet.per_1000_node_days for fleet in failure_rates.FLEETS if fleet.per_1000_node_days]
    assert max(rates) == failure_rates.FAILURES_PER_1000_NODE_DAYS == 6.5
