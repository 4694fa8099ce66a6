"""Mount targets of EFS that an update takes away from jobs in their zone, or whose names of before it would take for
those of other zones.

The provider deletes a mount target before it makes another one (pulumi-aws, provider/resources.go,
DeleteBeforeReplace), and EFS breaks all mounts by it, with writes that are not committed (EFS API, DeleteMountTarget).
Nodes stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trainyard.catalog.aws.node_price import ZONE
from trainyard.plan import EnvironmentPlan
from trainyard.plans.jobs import maps_in
from trainyard.plans.networks import ExistingNetworkPlan
from trainyard.plans.stores import EfsPlan
from trainyard.problems import At, InputError, few
from trainyard.replacing.deployed import SHOWN, Deployed, Object, Show, ends_one
from trainyard.replacing.jobs.mounted import going_jobs, mounts
from trainyard.replacing.replacing import RUNTIME, SUBNET, private_letters

MOUNT_TARGET = "aws:efs/mountTarget:MountTarget"
TYPES = frozenset({MOUNT_TARGET, SUBNET, RUNTIME})
"""Types of resources that the rules look at."""


def name_errors(plan: EnvironmentPlan, deployed: Deployed) -> Iterator[InputError]:
    """Another training zone in the update that gives mount targets the names of their zones. Until then that of the
    training zone has the name of its store, and the engine would take it for that of the new zone."""
    zones = _zones(plan, deployed)
    for name in _stores(plan):
        was = deployed.output(MOUNT_TARGET, name, "subnetId")
        before = zones.get(was, "")
        why = (
            "in this update, which gives mount targets the names of their zones: EFS would refuse a second one of store"
            f" {name} in a zone"
        )
        if was is not None and before and before != plan.zone:
            yield At("environment.zone").must(
                f"stay {before} {why}",
                got=plan.zone,
                fix=f"write {before} again, run `pulumi up`, and change it in the next update",
            )
        elif was is not None and not before and isinstance(plan.network, ExistingNetworkPlan):
            yield At("environment.network.private_subnets").must(
                f"have {was} {why}",
                got=", ".join(sorted(zones)),
                fix=f"write {was} again for its zone, with environment.zone as it was, run `pulumi up`, and change them"
                " in the next update",
            )


def target_errors(plan: EnvironmentPlan, deployed: Deployed, show: Show) -> Iterator[InputError]:
    """Mount targets that go while jobs mount their store that have not ended, unless these select other zones.
    `show`: what is in the cluster."""
    lost = [(name, zone) for name in _stores(plan) for zone in sorted(_lost(name, plan, deployed))]
    jobs = going_jobs(plan, deployed, show) if lost else []
    for name, zone in lost:
        mounting = [
            job
            for job, space, specs in jobs
            if mounts(name, plan, space, specs) and _may_be_in(zone, specs)
        ]
        if mounting:
            yield At(f"environment.storage.{name}").must(
                f"keep its mount target in {zone} while jobs that have not ended mount it there: its deletion breaks"
                " their mounts, and what they have not written is lost",
                got=f"another one or none, beside {few(sorted(mounting), SHOWN)}",
                fix=f"keep {zone} as environment.zone or in fallback_zones of a pool, with its subnet, until they have"
                f" ended; {ends_one()}",
            )


def _stores(plan: EnvironmentPlan) -> Mapping[str, EfsPlan]:
    return {name: store for name, store in plan.stores.items() if isinstance(store, EfsPlan)}


def _lost(name: str, plan: EnvironmentPlan, deployed: Deployed) -> set[str]:
    """Zones of a store's mount targets that go; the id of the subnet where nobody knows its zone."""
    zones, lost = _zones(plan, deployed), set[str]()
    kept = {subnet for subnet, zone in zones.items() if zone in _stores(plan)[name].zones}
    for logical in deployed.names(MOUNT_TARGET):
        subnet = deployed.output(MOUNT_TARGET, logical, "subnetId")
        if (logical == name or logical[:-2] == name) and subnet not in (None, *kept):
            letter = logical[-1] if logical.startswith(f"{name}.") else ""
            lost.add(zones.get(subnet) or (f"{plan.identity.region}{letter}" if letter else subnet))
    return lost


def _zones(plan: EnvironmentPlan, deployed: Deployed) -> dict[str, str]:
    """Private subnet → its zone, as far as anybody knows it."""
    if isinstance(plan.network, ExistingNetworkPlan):
        return {zone.subnet_id: zone.name for zone in plan.network.zones}
    letters = private_letters(deployed)
    return {subnet: f"{plan.identity.region}{letter}" for subnet, letter in letters.items()}


def _may_be_in(zone: str, specs: list[Object]) -> bool:
    """True of a job that selects no zone, or this one."""
    selected = {each.get(ZONE) for each in maps_in(specs)} - {None}
    return not selected or zone in selected or zone.startswith("subnet-")
