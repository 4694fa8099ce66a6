"""The zones of a network, their ranges, and the range of services."""

from __future__ import annotations

import ipaddress

from hypothesis import given
from hypothesis import strategies as st

from tests.support.stackfile import at, environment_plan, own_network
from trainyard.derive.network import zone_cidrs

RANGES = st.sampled_from(["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"])


@st.composite
def cidrs(draw: st.DrawFn) -> str:
    whole = ipaddress.IPv4Network(draw(RANGES))
    prefix = draw(st.integers(max(16, whole.prefixlen), 20))
    index = draw(st.integers(0, 2 ** (prefix - whole.prefixlen) - 1))
    return f"{whole.network_address + index * 2 ** (32 - prefix)}/{prefix}"


@given(cidr=cidrs(), zones=st.integers(1, 6))
def test_subnets_lie_in_the_vpc_apart_from_each_other_and_are_large_enough(
    cidr: str, zones: int
) -> None:
    vpc, planned = (
        ipaddress.IPv4Network(cidr),
        zone_cidrs(cidr, tuple(f"x{letter}" for letter in "abcdef")[:zones]),
    )
    subnets = [ipaddress.IPv4Network(c) for z in planned for c in (z.private_cidr, z.public_cidr)]
    assert all(subnet.subnet_of(vpc) for subnet in subnets)
    assert not any(a.overlaps(b) for i, a in enumerate(subnets) for b in subnets[i + 1 :])
    assert all(16 <= subnet.prefixlen <= 28 for subnet in subnets)  # what EC2 takes
    assert {vpc.num_addresses // subnet.num_addresses for subnet in subnets} == {8, 256}


@given(cidr=cidrs())
def test_services_never_share_addresses_with_the_vpc(cidr: str) -> None:
    services = own_network(environment_plan(at("network.cidr", cidr))).service_cidr
    assert not ipaddress.ip_network(services).overlaps(ipaddress.ip_network(cidr))


def test_services_have_the_range_of_the_stack_file() -> None:
    wanted = at("cluster.service_cidr", "192.168.0.0/20")
    assert own_network(environment_plan(wanted)).service_cidr == "192.168.0.0/20"


def test_the_training_zone_comes_first_and_two_others_keep_the_controllers_up() -> None:
    zones = environment_plan(at("zone", "ap-northeast-2c")).network.zones
    assert [z.name for z in zones] == ["ap-northeast-2c", "ap-northeast-2a", "ap-northeast-2b"]


def test_a_network_has_the_zones_that_the_stack_file_lists_and_the_training_zone() -> None:
    def zones(*listed: str) -> list[str]:
        names = [f"ap-northeast-2{letter}" for letter in listed]
        return [z.name[-1] for z in environment_plan(at("network.zones", names)).network.zones]

    assert zones("d", "a") == zones("d") == ["a", "d"]
    assert zones("d", "c", "b", "a") == zones("b", "c", "d") == ["a", "b", "c", "d"]
    default = environment_plan()
    assert environment_plan(
        at("network.zones", ["ap-northeast-2c", "ap-northeast-2b"])
    ).network == (default.network), "the same zones, and so the same cluster"
    assert (
        environment_plan(at("network.zones", ["ap-northeast-2d"])).cluster.name
        != default.cluster.name
    ), "EKS never leaves the zones it began in"


def test_another_training_zone_moves_no_subnet_and_keeps_the_cluster():
    here, there = (
        zone_cidrs("10.0.0.0/16", zones)
        for zones in (
            ("ap-northeast-2a", "ap-northeast-2b"),
            ("ap-northeast-2b", "ap-northeast-2a"),
        )
    )
    assert sorted(here, key=lambda zone: zone.name) == sorted(there, key=lambda zone: zone.name)


def test_the_nat_gateway_and_the_file_systems_are_in_the_zone_of_the_stack_file() -> None:
    network = environment_plan(at("zone", "ap-northeast-2c")).network
    assert network.training_zone.name == "ap-northeast-2c"
    assert network.training_zone in network.zones
