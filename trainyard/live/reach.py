"""`trainyard check --live`: whether this machine will reach the Kubernetes API of the stack."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence

from trainyard.plan import EnvironmentPlan
from trainyard.plans.clusters import OwnClusterPlan
from trainyard.problems import InputError
from trainyard.rules.endpoint import CIDRS
from trainyard.rules.network import is_range


def asks_address(plan: EnvironmentPlan) -> bool:
    """Whether it matters which address this machine has: a proxy has another one, and a range for
    everybody contains all."""
    cluster = plan.cluster
    return (
        isinstance(cluster, OwnClusterPlan)
        and cluster.public
        and not plan.access.proxy_url
        and "0.0.0.0/0" not in cluster.public_access_cidrs
    )


def address_errors(plan: EnvironmentPlan, address: str) -> Iterator[InputError]:
    """An address that the public endpoint will not answer."""
    cluster = plan.cluster
    listed = cluster.public_access_cidrs if isinstance(cluster, OwnClusterPlan) else ()
    if not answers(listed, address):
        yield InputError(
            path=CIDRS,
            must="contain the public address of this machine, if `pulumi up` runs here",
            got=f"{', '.join(listed)}; this machine has {address}",
            fix=f"add {address}/32",
            write=[f"{address}/32"],
        )


def answers(listed: Sequence[str], address: str) -> bool:
    """Whether a public endpoint with these ranges answers the address."""
    mine = ipaddress.IPv4Address(address)
    return any(is_range(cidr) and mine in ipaddress.IPv4Network(cidr) for cidr in listed)


def first_update_errors(plan: EnvironmentPlan, cluster_exists: bool) -> Iterator[InputError]:
    """An error about a private endpoint of a cluster that does not exist yet. An existing VPC has ways in
    already. A tunnel still needs a node of the cluster."""
    way_in = not plan.own_network and plan.cluster.tunnel_port is None
    if not plan.cluster.public and not cluster_exists and not way_in:
        yield InputError(
            path="environment.cluster.endpoint",
            must=(
                "be public-and-private until the cluster exists: the first `pulumi up` makes "
                + ("its VPC" if plan.own_network else "the node that the tunnel goes through")
            ),
            got="private, and no cluster",
            fix=(
                "write endpoint: public-and-private and public_access_cidrs: [<your address>/32] for"
                " the first `pulumi up`"
            ),
            write="public-and-private",
        )
