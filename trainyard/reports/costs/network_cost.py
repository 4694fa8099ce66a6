"""Costs of a network: by the hour, and with use."""

from __future__ import annotations

from collections.abc import Iterator

from trainyard.catalog.aws.latencies import IMAGE_GB
from trainyard.plans.networks import AnyNetworkPlan, OwnNetworkPlan, has_flow_logs
from trainyard.stores.figures import FixedCost, UsageCost


def by_hour(network: AnyNetworkPlan) -> Iterator[FixedCost]:
    """Gateways, their addresses and endpoints. The owner of an existing VPC pays for its gateways."""
    if isinstance(network, OwnNetworkPlan) and network.ways_out:
        gateways = len(network.ways_out)
        one = gateways == 1
        yield FixedCost(
            what="NAT gateway" if one else f"{gateways} NAT gateways",
            service="nat",
            sku="hour",
            units=gateways,
        )
        yield FixedCost(
            what="public address of the NAT gateway"
            if one
            else "public addresses of the NAT gateways",
            service="vpc",
            sku="public-ipv4",
            units=gateways,
        )
    if network.endpoints:
        apis, zones = len(network.endpoints.apis), len(network.zones)
        yield FixedCost(
            what=f"{apis} interface endpoints x {zones} zones",
            service="vpc",
            sku="endpoint-hour",
            units=apis * zones,
        )


def by_use(network: AnyNetworkPlan, nodes: int) -> Iterator[UsageCost]:
    """Data that is paid by the GB. `nodes`: of all pools at most; each pulls an image as it starts."""
    if isinstance(network, OwnNetworkPlan) and network.ways_out:
        yield UsageCost(
            what="NAT gateway data",
            service="nat",
            sku="gb",
            quantity=round(nodes * IMAGE_GB),
            over=f"whenever all {nodes} nodes pull an image",
        )
    yield UsageCost(what="data between zones, each way", service="transfer", sku="between-zones")
    if network.endpoints:
        yield UsageCost(what="data of interface endpoints", service="vpc", sku="endpoint-gb")
    if has_flow_logs(network):
        # Up to 10 TB a month of a service's own logs cost what any logs cost (CloudWatch pricing).
        yield UsageCost(what="flow logs", service="logs", sku="ingested")
