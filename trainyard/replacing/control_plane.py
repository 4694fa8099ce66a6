"""A tier of the control plane that no stack file names any more: EKS keeps it, and it is paid.

The provider takes a configuration that is gone for one that may stay (terraform-provider-aws,
internal/service/eks/cluster.go: control_plane_scaling_config is optional and computed).
"""

from __future__ import annotations

from collections.abc import Iterator

from trainyard.catalog.aws.quotes import Quote
from trainyard.catalog.versions import control_plane_skus
from trainyard.plan import EnvironmentPlan
from trainyard.plans.clusters import OwnClusterPlan
from trainyard.problems import At, InputWarning
from trainyard.replacing.deployed import Deployed
from trainyard.replacing.replacing import CLUSTER


def tier_warnings(plan: EnvironmentPlan, deployed: Deployed) -> Iterator[InputWarning]:
    """A tier that costs something, that is deployed, and that the stack file does not name."""
    tier = deployed.output(*CLUSTER, "controlPlaneScalingConfig.tier") or "standard"
    own = isinstance(plan.cluster, OwnClusterPlan) and plan.cluster.scaling_tier is None
    extra = set(control_plane_skus("standard", tier)) - set(control_plane_skus("standard"))
    if not own or not extra:
        return
    costs = "".join(_costs(plan.prices.quote("eks", sku, plan.identity.region)) for sku in extra)
    yield At("environment.cluster.scaling_tier").warning(
        f"it is not set, so the control plane stays {tier}{costs}, and `trainyard plan` counts standard. Write"
        f" scaling_tier: standard, which ends that, or scaling_tier: {tier}"
    )


def _costs(quote: Quote) -> str:
    """Words about the price of an hour; empty where no region has one."""
    if quote.price:
        return f", which costs ${quote.price.usd:.2f} an hour more"
    if quote.guess:
        return f", which costs about ${quote.guess.usd:.2f} to ${quote.guess.most_usd:.2f} an hour more"
    return ""
