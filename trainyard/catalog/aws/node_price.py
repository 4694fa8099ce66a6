"""Price of an hour of a node, by the labels that Karpenter and EKS give it."""

from __future__ import annotations

from collections.abc import Mapping

from trainyard.catalog.aws.own_prices import LIST, OwnPrices
from trainyard.catalog.aws.prices import Price

TYPE, CAPACITY = "node.kubernetes.io/instance-type", "karpenter.sh/capacity-type"
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OF_GROUP = "eks.amazonaws.com/capacityType"
"""Label of a node of a managed node group: ON_DEMAND or SPOT."""
RESERVATION = "karpenter.k8s.aws/capacity-reservation-type"
"""Label of a node of a reservation: default or capacity-block (Karpenter 1.14, labels)."""
SERVICES = {
    ("on-demand", ""): "ec2",
    ("reserved", "default"): "ec2",
    ("reserved", "capacity-block"): "ec2-block",
    ("spot", ""): "ec2-spot",
}
"""(kind of capacity, kind of reservation) → whose prices count."""
Labels = Mapping[str, str]


def node_price(labels: Labels, prices: OwnPrices = LIST) -> Price | None:
    """Price of an hour of a node with these labels; None where no price is known."""
    return prices.price(service_of(labels), labels.get(TYPE, ""), labels.get(REGION, ""))


def service_of(labels: Labels) -> str:
    """Service whose prices count for a node with these labels; empty where none is known."""
    of_group = labels.get(OF_GROUP, "").lower().replace("_", "-")
    return SERVICES.get((labels.get(CAPACITY, of_group), labels.get(RESERVATION, "")), "")
