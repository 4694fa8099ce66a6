"""Errors about ranges that Kubernetes services cannot have (EKS API,
KubernetesNetworkConfigRequest, serviceIpv4Cidr). Only the account knows the ranges of an existing
VPC: trainyard/existing/vpc_faults.py."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from trainyard.plans.networks import SERVICE_CIDRS, service_cidr
from trainyard.problems import REMOVE, At, InputError
from trainyard.rules.network import RFC_1918, is_range, within, without_host_bits
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.network import NetworkConfig

PATH = "environment.cluster.service_cidr"
LARGEST, SMALLEST = 12, 24
"""Bits of the prefix."""


def service_range_errors(wanted: EnvironmentConfig) -> Iterator[InputError]:
    """Whatever EKS would refuse. With `name` the setting is refused as such."""
    cidr = wanted.cluster.service_cidr
    if cidr is None or wanted.cluster.name is not None:
        return
    vpc = wanted.network.cidr if isinstance(wanted.network, NetworkConfig) else ""
    taken = [vpc] if is_range(vpc) else []
    usual = service_cidr(taken) or SERVICE_CIDRS[0]
    if must := _form(cidr):
        near = _nearest(cidr, taken) or usual
        yield At(PATH).must(must, got=cidr, write=near)
    elif service_cidr(taken, cidr) is None:
        yield At(PATH).must(
            f"not overlap with environment.network.cidr, {vpc}",
            got=cidr,
            fix=f"delete it, and services get {usual}; or write a range that is free in your networks",
            write=REMOVE,
        )


def _form(cidr: str) -> str:
    """Form that the range must have, whatever else there is; empty where it is that."""
    if not is_range(cidr):
        return "be an IPv4 range: an address, a slash and the length of its prefix, with no bits behind the prefix"
    if not within(cidr, RFC_1918):
        return f"lie in {', '.join(map(str, RFC_1918))}"
    sized = LARGEST <= ipaddress.IPv4Network(cidr).prefixlen <= SMALLEST
    return "" if sized else f"be /{LARGEST} to /{SMALLEST}"


def _nearest(cidr: str, taken: list[str]) -> str | None:
    """The range nearest to the text that EKS takes; None without one."""
    near = without_host_bits(cidr)
    if near is None:
        return None
    address, _, bits = near.partition("/")
    size = min(max(int(bits), LARGEST), SMALLEST)
    sized = str(ipaddress.IPv4Network((address, size), strict=False))
    return None if _form(sized) else service_cidr(taken, sized)
