"""Instance types: every field as EC2 says it, what follows from them as Karpenter says it."""

from __future__ import annotations

import gzip
import json
import re
from math import prod
from pathlib import Path
from typing import Any

import moto.ec2
import pytest

from trainyard.catalog.aws.instances import (
    CPU_TYPES,
    GENERAL_SIZES,
    GPU_TYPES,
    QUOTAS,
    REFUSED,
    SPOT_QUOTAS,
    InstanceType,
)
from trainyard.catalog.versions import AMI_RELEASE

EC2: dict[str, dict[str, Any]] = json.loads(
    gzip.decompress(
        (Path(moto.ec2.__file__).parent / "resources/instance_types.json.gz").read_bytes()
    )
)
ALL = {**GPU_TYPES, **CPU_TYPES}


def _gbps(network: dict[str, Any]) -> float:
    """All cards together: what AWS calls the performance, or the baseline of what goes "up to"
    it."""
    said = network["NetworkPerformance"]
    if said.startswith("Up to"):
        return network["NetworkCards"][0]["BaselineBandwidthInGbps"]
    return prod(float(number) for number in re.findall(r"[\d.]+", said))


@pytest.mark.parametrize("kind", ALL.values(), ids=list(ALL))
def test_a_row_says_what_ec2_says(kind: InstanceType) -> None:
    facts = EC2[kind.name]
    network, [gpu] = facts["NetworkInfo"], facts.get("GpuInfo", {}).get("Gpus", [{}])
    card = network["NetworkCards"][network["DefaultNetworkCardIndex"]]
    assert (
        facts["ProcessorInfo"]["SupportedArchitectures"] == ["x86_64"]
        and kind.architecture == "amd64"
    )
    assert kind.amx <= (facts["ProcessorInfo"]["Manufacturer"] == "Intel")
    assert {
        "gpu": gpu.get("Name", "").lower().replace(" ", "-"),
        "gpus": gpu.get("Count", 0),
        "gpu_memory_mib": gpu.get("MemoryInfo", {}).get("SizeInMiB", 0),
        "efa": network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0),
        "cards": network["MaximumNetworkCards"],
        "network_gbps": _gbps(network),
        "card_gbps": card["BaselineBandwidthInGbps"],
        "interfaces": card["MaximumNetworkInterfaces"],
        "addresses_per_interface": network["Ipv4AddressesPerInterface"],
        "vcpus": facts["VCpuInfo"]["DefaultVCpus"],
        "memory_mib": facts["MemoryInfo"]["SizeInMiB"],
        "nvme_gb": facts.get("InstanceStorageInfo", {}).get("TotalSizeInGB", 0),
        "capacity_block": "capacity-block" in facts["SupportedUsageClasses"],
        "spot": "spot" in facts["SupportedUsageClasses"],
    }.items() <= vars(kind).items()


@pytest.mark.parametrize("kind", ALL.values(), ids=list(ALL))
def test_efa_devices_sit_on_the_cards_that_take_them(kind: InstanceType) -> None:
    cards = EC2[kind.name]["NetworkInfo"]["NetworkCards"]
    takes = ["efa-only" in card["InterfaceTypes"] for card in cards]
    assert sum(takes) == kind.efa and (kind.efa == 0 or takes[0] == (kind.efa == kind.cards))


@pytest.mark.parametrize(
    ("name", "allocatable_mib", "max_pods"),
    [
        ("g5.48xlarge", 723299, 296),
        ("g6e.12xlarge", 360157, 263),
        ("g6e.48xlarge", 1449132, 443),
        ("p4d.24xlarge", 1082712, 688),
        ("p5.4xlarge", 240830, 89),
        ("p5.48xlarge", 1938410, 51),
        ("p6-b300.48xlarge", 3877198, 198),
        ("c7i.8xlarge", 57691, 234),
        ("m8i.96xlarge", 1437890, 1451),
    ],
)
def test_memory_and_pods_are_karpenters_less_what_the_efa_interface_on_card_0_takes(
    name: str, allocatable_mib: int, max_pods: int
) -> None:
    """Its reference page has 345, 292, 492, 737, 118, 100, 198, 234 and 1514 pods, without EFA
    interfaces."""
    assert (ALL[name].allocatable_mib, ALL[name].max_pods) == (allocatable_mib, max_pods)


def test_the_pinned_ami_has_the_driver_of_g7() -> None:
    """amazon-eks-ami#2768: earlier releases have driver 580 alone, for which these cards do not exist."""
    assert AMI_RELEASE >= "v20260917" and GPU_TYPES["g7.48xlarge"].gpu == "rtx-pro-4500"


def test_a_type_has_gpus_or_is_for_cpus() -> None:
    assert all(kind.gpus for kind in GPU_TYPES.values()) and not any(
        kind.gpus for kind in CPU_TYPES.values()
    )
    assert not set(GPU_TYPES) & set(CPU_TYPES)


def test_cpu_types_have_amx_and_no_gpu() -> None:
    assert {kind.family for kind in CPU_TYPES.values()} == {"c7i", "m7i", "r7i", "c8i", "m8i"}
    assert all(
        kind.amx and not (kind.gpus or kind.gpu or kind.nvlink or kind.gpudirect)
        for kind in CPU_TYPES.values()
    )


def test_vcpus_count_against_the_quota_of_their_family() -> None:
    wanted = {
        "p5.48xlarge": ("P", "L-C4BD4855"),
        "p4de.24xlarge": ("P", "L-7212CCBC"),
        "p6-b200.48xlarge": ("P", None),
        "g6e.48xlarge": ("G", "L-3819A6DF"),
        "c7i.48xlarge": ("standard", "L-34B43A08"),
    }
    assert {name: (ALL[name].quota, ALL[name].spot_quota) for name in wanted} == wanted
    assert set(QUOTAS) <= set(SPOT_QUOTAS) and all(kind.quota in QUOTAS for kind in ALL.values())


@pytest.mark.parametrize(
    "name",
    [
        "trn1.32xlarge",
        "trn2.48xlarge",
        "inf2.48xlarge",
        "dl1.24xlarge",
        "p6e-gb200.36xlarge",
        "g5g.16xlarge",
        "g4dn.12xlarge",
        "g6f.xlarge",
        "gr6.8xlarge",
        "p3dn.24xlarge",
        "p2.16xlarge",
        "g3s.xlarge",
    ],
)
def test_other_accelerators_are_refused_with_a_way_out(name: str) -> None:
    [why] = [why for start, why in REFUSED.items() if name.startswith(start)]
    assert any(known in why for known in (*ALL, *(kind.family for kind in ALL.values())))
    assert not [ours for ours in ALL if ours.startswith(tuple(REFUSED))]


def test_controllers_can_run_on_every_x86_type_with_room_and_without_accelerators() -> None:
    """Families of the last ten years: m1, m2, m3 and c1 are no longer sold to new accounts."""
    others = re.compile(r"(?:mac|m[123]$|c1$|u-|u7|hpc|(?:trn|inf|dl|f|vt|p|g|gr)\d)")
    expected = {
        name
        for name, facts in EC2.items()
        if "x86_64" in facts["ProcessorInfo"]["SupportedArchitectures"]
        and facts["VCpuInfo"]["DefaultVCpus"] >= 2
        and facts["MemoryInfo"]["SizeInMiB"] >= 8 << 10
        and not others.match(name.partition(".")[0])
    }
    assert {
        f"{family}.{size}" for family, sizes in GENERAL_SIZES.items() for size in sizes
    } == expected
