"""Mount targets of EFS, whose names of before an update would take for those of other zones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trainyard.plan import EnvironmentPlan
from trainyard.plans.networks import ExistingNetworkPlan
from trainyard.plans.stores import EfsPlan
from trainyard.problems import At, InputError
from trainyard.replacing.deployed import Deployed
from trainyard.replacing.replacing import PRIVATE, SUBNET

MOUNT_TARGET = "aws:efs/mountTarget:MountTarget"
TYPES = frozenset({MOUNT_TARGET, SUBNET})
"""Types of resources that the rule looks at."""


def name_errors(plan: EnvironmentPlan, deployed: Deployed) -> Iterator[InputError]:
    """Another training zone in the update that gives mount targets the names of their zones. Until then that of the
    training zone has the name of its store, and the engine would take it for that of the new zone."""
    zones = _zones(plan, deployed)
    for name in _stores(plan):
        was = deployed.output(MOUNT_TARGET, name, "subnetId")
        before = zones.get(was, "")
        unknown = "" if isinstance(plan.network, ExistingNetworkPlan) else plan.zone
        if was is not None and (before or unknown) != plan.zone:
            yield At("environment.zone").must(
                f"stay {before or f'the zone of {was}'} in this update, which gives mount targets the names of their"
                f" zones: EFS would refuse a second one of store {name} in a zone",
                got=plan.zone,
                fix=f"write {before or 'the zone of before'} again, run `pulumi up`, and change it in the next update",
            )


def _stores(plan: EnvironmentPlan) -> Mapping[str, EfsPlan]:
    return {name: store for name, store in plan.stores.items() if isinstance(store, EfsPlan)}


def _zones(plan: EnvironmentPlan, deployed: Deployed) -> dict[str, str]:
    """Private subnet → its zone, as far as anybody knows it."""
    if isinstance(plan.network, ExistingNetworkPlan):
        return {zone.subnet_id: zone.name for zone in plan.network.zones}
    return {
        deployed.output(SUBNET, name, "subnetId"): plan.identity.region + name.removeprefix(PRIVATE)
        for name in deployed.names(SUBNET)
        if name.startswith(PRIVATE)
    }
