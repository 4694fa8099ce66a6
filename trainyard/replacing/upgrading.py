"""A newer Kubernetes: what its update does to what runs. docs/upgrades.md has the steps and the source of the
minutes."""

from __future__ import annotations

from collections.abc import Iterator

from trainyard.catalog.versions import minor
from trainyard.plan import EnvironmentPlan
from trainyard.problems import At, InputWarning
from trainyard.replacing.deployed import Deployed
from trainyard.replacing.replacing import CLUSTER


def upgrade_warnings(plan: EnvironmentPlan, deployed: Deployed) -> Iterator[InputWarning]:
    """A control plane of the stack that gets the next version. Any other one is refused (components/cluster)."""
    was, to = deployed.output(*CLUSTER, "version"), plan.cluster.version
    if was is None or not plan.own_cluster or minor(to)[1] != minor(was)[1] + 1:
        return
    yield At("environment.cluster.version").warning(
        f"this update moves Kubernetes from {was} to {to}, and this program cannot take it back (docs/upgrades.md)."
        f" The API server is away for seconds; then the {plan.system_nodes.nodes} system nodes are replaced one by one,"
        " with Karpenter, the Trainer and CoreDNS on them. Gangs go on: GPU nodes stay as they are until they have been"
        " empty for 15 minutes, which Karpenter counts anew when it has moved"
    )
