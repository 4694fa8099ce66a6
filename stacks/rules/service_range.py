"""Which ranges Kubernetes services cannot have (EKS API, KubernetesNetworkConfigRequest,
serviceIpv4Cidr). What ranges a brought VPC has, only the account knows: plans/vpc_faults.py."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from plans.networks import SERVICE_CIDRS, service_cidr
from stacks.rules.network import RFC_1918, is_range, within, without_host_bits
from stacks.settings.environment import EnvironmentConfig
from stacks.settings.network import NetworkConfig
from stacks.settings.problems import REMOVE, InputError

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
    if not is_range(cidr):
        yield _error("be an IPv4 range, without bits behind its prefix", cidr, _near(cidr) or usual)
    elif not within(cidr, RFC_1918):
        yield _error(f"lie in {', '.join(map(str, RFC_1918))}", cidr, usual)
    elif not LARGEST <= (bits := ipaddress.IPv4Network(cidr).prefixlen) <= SMALLEST:
        size = min(max(bits, LARGEST), SMALLEST)
        address = cidr.partition("/")[0]
        near = str(ipaddress.IPv4Network((address, size), strict=False))
        sound = within(near, RFC_1918) and service_cidr(taken, near)
        yield _error(f"be /{LARGEST} to /{SMALLEST}", cidr, near if sound else usual)
    elif service_cidr(taken, cidr) is None:
        yield InputError(
            path=PATH,
            must=f"not overlap with environment.network.cidr, {vpc}",
            got=cidr,
            fix=f"delete it, and services get {usual}; or write a range that is free in your networks",
            write=REMOVE,
        )


def _near(cidr: str) -> str | None:
    """The range that the text means, where EKS would take that."""
    near = without_host_bits(cidr)
    sound = near and within(near, RFC_1918)
    return near if sound and LARGEST <= ipaddress.IPv4Network(near).prefixlen <= SMALLEST else None


def _error(must: str, cidr: str, near: str) -> InputError:
    return InputError(path=PATH, must=must, got=cidr, fix=f"write {near}", write=near)
