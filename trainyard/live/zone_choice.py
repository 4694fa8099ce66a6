"""Zones of an account that a network can be in: those in which EKS places control planes, and EC2 sells the type
of the system nodes.

A zone's name means another zone in another account, so only the account can say; `zones` is its
answer: name → id.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from trainyard.catalog.aws.zones import WITHOUT_EKS, every_zone_name, zone_ids_with
from trainyard.plan import EnvironmentPlan
from trainyard.problems import InputError


def eks_zone_errors(plan: EnvironmentPlan, zones: Mapping[str, str]) -> Iterator[InputError]:
    """The network's zones with whose subnets CreateCluster fails."""
    for zone in [zone.name for zone in plan.network.zones if zones.get(zone.name) in WITHOUT_EKS]:
        yield InputError(
            path=f"environment.{'zone' if zone == plan.zone else 'network.zones'}",
            must="be a zone in which EKS places control planes"
            if zone == plan.zone
            else "list zones in which EKS places control planes",
            got=f"{zone}, which is {zones[zone]} in this account",
            fix=instead(plan, zones),
        )


def system_type_errors(plan: EnvironmentPlan, sold: Collection[str]) -> Iterator[InputError]:
    """Zones of the network without the type of the system nodes. EKS refuses a node group with a subnet in one of
    them, also where others have it (eksctl-io/eksctl#6461, awslabs/ec2-spot-workshops#154). `sold`: zones that
    have it."""
    zones, kind = [zone.name for zone in plan.network.zones], plan.system_nodes.instance_type
    with_it = [zone for zone in zones if zone in sold]
    if with_it == zones:
        return
    fix = "take another type"
    if not sold:
        fix = f"take another type: no zone of {plan.identity.region} has it"
    elif plan.own_network and plan.zone in with_it and len(with_it) > 1:
        fix = f"write network: {{zones: [{', '.join(sorted(with_it))}]}}, or take another type"
    yield InputError(
        path="environment.system_nodes.instance_type",
        must="be on offer to this account in each zone of the network: EKS refuses the node group otherwise",
        got=f"{kind}, without an offer in {', '.join(sorted({*zones} - {*sold}))}",
        fix=fix,
    )


def instead(plan: EnvironmentPlan, zones: Mapping[str, str]) -> str:
    """Fix: what to write into the stack file. Another training zone: the one that has most of the
    pools' types. Other zones of the network: those of today that can stay, then by id, so that
    every account gets the same ones."""
    region, today = plan.identity.region, [zone.name for zone in plan.network.zones]
    known = every_zone_name(region)
    usable = [zone for zone in known if zones.get(zone, "") not in ("", *WITHOUT_EKS)]
    if len(usable) < 2:
        return "take another region: EKS needs two zones"
    if plan.zone not in usable:
        types = {kind.instance_type for pool in plan.pools.values() for kind in pool.types}

        def lacking(zone: str) -> int:
            return sum(zones[zone] not in zone_ids_with(kind, region) for kind in types)

        best = min(usable, key=lambda zone: (lacking(zone), zones[zone]))
        return f"write zone: {best}, and zone_id: {zones[best]}"
    best = sorted(usable, key=lambda zone: (zone not in today, zones[zone]))
    return f"write network: {{zones: [{', '.join(sorted(best[: len(today)]))}]}}"
