"""What a pool cannot be: types nobody sells there, capacity that contradicts itself, nodes that fit
no subnet.

Sources: Karpenter 1.14 and the issues named in shared facts karpenter.md §2; EC2 Capacity Blocks
and placement groups.
"""

from __future__ import annotations

import difflib
import ipaddress
from collections.abc import Iterator, Mapping
from datetime import datetime

from catalog.instances import REFUSED
from catalog.service_roles import SPOT
from catalog.zones import SNAPSHOT, ZONE_LETTERS, regions_with, zone_ids_with
from stacks.derive.capacity import TYPES, addresses, node_type_names
from stacks.settings.environment import EnvironmentConfig, PoolConfig, ReservationConfig
from stacks.settings.problems import Fault, Notice

AWS_KEEPS = 5
"""Addresses of every subnet that AWS keeps for itself."""


def pool_faults(
    region: str, wanted: EnvironmentConfig, zones: tuple[str, ...], now: datetime
) -> Iterator[Fault]:
    """Every fault of the environment's pools. `zones`: those of its network, the training zone
    first."""
    for name, pool in wanted.pools.items():
        path = f"environment.pools.{name}"
        yield from _types(path, region, wanted, pool)
        yield from _several(path, pool)
        yield from _reservation(path, pool, now)
        yield from _kept(path, pool)
        yield from _places(path, pool, zones)
    yield from _shared(wanted.pools)
    yield from _room(wanted)


def pool_notices(wanted: EnvironmentConfig, now: datetime) -> Iterator[Notice]:
    """What works but should be known about pools."""
    for name, pool in wanted.pools.items():
        path = f"environment.pools.{name}"
        held = pool.reservation
        if held and held.starts and held.starts > now:
            late = (
                "; its replicas wait until something touches the pool (karpenter-provider-aws#9001)"
            )
            yield Notice(
                path=f"{path}.reservation.starts",
                text=(
                    f"until {held.starts:%Y-%m-%d %H:%M} its jobs"
                    f" wait{late if pool.replicas else ''}"
                ),
            )
        if pool.placement == "cluster":
            yield Notice(
                path=f"{path}.placement",
                text="a placement group finds no capacity more often than none",
            )
        if pool.capacity == "spot":
            yield Notice(
                path=f"{path}.capacity", text="spot goes away at two minutes' notice: save often"
            )
    if spot := [name for name, pool in wanted.pools.items() if pool.capacity == "spot"]:
        yield Notice(
            path="account",
            text=(
                f"must have the role {SPOT.name} for spot pools ({', '.join(spot)}): make check"
                f" LIVE=1 looks for it, and `{SPOT.command}` makes it"
            ),
        )


def _types(path: str, region: str, wanted: EnvironmentConfig, pool: PoolConfig) -> Iterator[Fault]:
    path = f"{path}.instance_types"
    if not pool.instance_types:
        yield Fault(
            path=path, rule="names a type", value="none", way_out="for example [g6e.48xlarge]"
        )
    for kind in dict.fromkeys(pool.instance_types):
        other = next((why for prefix, why in REFUSED.items() if kind.startswith(prefix)), None)
        if other:
            yield Fault(
                path=path, rule="is a type this program trains on", value=kind, way_out=other
            )
        elif kind not in TYPES:
            near = difflib.get_close_matches(kind, TYPES, n=3, cutoff=0.5) or list(TYPES)[:3]
            yield Fault(
                path=path,
                rule="is a type of the catalogue",
                value=kind,
                way_out=f"nearest: {', '.join(near)}; a new one is a row in catalog/instances.py",
            )
        elif region in ZONE_LETTERS and region not in regions_with(kind):
            yield Fault(
                path=path,
                rule=f"is sold in {region} (as of {SNAPSHOT})",
                value=kind,
                way_out=f"sold in {', '.join(regions_with(kind))}",
            )
        elif (
            wanted.zone_id
            and region in ZONE_LETTERS
            and wanted.zone_id not in zone_ids_with(kind, region)
        ):
            yield Fault(
                path=path,
                rule=f"is sold in {wanted.zone_id} (as of {SNAPSHOT})",
                value=kind,
                way_out=f"in {region}: {', '.join(zone_ids_with(kind, region))}",
            )
        elif pool.capacity == "block" and not TYPES[kind].capacity_block:
            yield Fault(
                path=path,
                rule="is sold as Capacity Block",
                value=kind,
                way_out=(
                    f"one of {', '.join(name for name, t in TYPES.items() if t.capacity_block)}"
                ),
            )


def _several(path: str, pool: PoolConfig) -> Iterator[Fault]:
    """A list of types is for jobs of one node, and each of its nodes must serve them alike."""
    listed = pool.instance_types
    if len(set(listed)) < len(listed):
        yield Fault(
            path=f"{path}.instance_types",
            rule="names a type once",
            value=", ".join(listed),
            way_out=f"[{', '.join(dict.fromkeys(listed))}]",
        )
    gpus = {kind: TYPES[kind].gpus for kind in listed if kind in TYPES}
    if len(set(gpus.values())) > 1:
        shown = ", ".join(f"{kind} {count}" for kind, count in gpus.items())
        yield Fault(
            path=f"{path}.instance_types",
            rule="lists types with the same number of GPUs",
            value=shown,
            way_out="make a pool for each",
        )
    if len(listed) > 1 and (pool.replicas or pool.capacity in ("reservation", "block")):
        yield Fault(
            path=f"{path}.instance_types",
            rule="is one type where nodes are reserved or kept",
            value=", ".join(listed),
            way_out="make a pool for each type",
        )


def _reservation(path: str, pool: PoolConfig, now: datetime) -> Iterator[Fault]:
    held, reserved = pool.reservation, pool.capacity in ("reservation", "block")
    if reserved and held is None:
        yield Fault(
            path=f"{path}.reservation",
            rule=f"says which, for capacity: {pool.capacity}",
            value="nothing",
            way_out="reservation: {id: cr-…, instances: …}; this program never buys one",
        )
    if held and not reserved:
        yield Fault(
            path=f"{path}.capacity",
            rule="uses the reservation that is given (Karpenter takes none by itself)",
            value=pool.capacity,
            way_out="capacity: reservation, or block; or drop reservation",
        )
    if held is None or not reserved:
        return
    if pool.max_nodes > held.instances:
        yield Fault(
            path=f"{path}.max_nodes",
            rule=f"is at most the {held.instances} instances that {held.id} holds",
            value=str(pool.max_nodes),
            way_out=str(held.instances),
        )
    if pool.placement == "cluster":
        yield Fault(
            path=f"{path}.placement",
            rule=(
                "is not a new group: a reservation gives its instances only in the"
                " group it was made in (eksctl#7949)"
            ),
            value="cluster",
            way_out="drop it; name that group under reservation.placement_group, if there is one",
        )
    yield from _window(f"{path}.reservation", pool.capacity, held, now)


def _window(path: str, capacity: str, held: ReservationConfig, now: datetime) -> Iterator[Fault]:
    if capacity == "block" and (held.starts is None or held.ends is None):
        yield Fault(
            path=path,
            rule="has both ends, for a Capacity Block",
            value="no starts or no ends",
            way_out="copy them from `aws ec2 describe-capacity-reservations`",
        )
    if held.starts and held.ends and held.starts >= held.ends:
        yield Fault(
            path=f"{path}.ends",
            rule="comes after starts",
            value=str(held.ends),
            way_out=f"later than {held.starts}",
        )
    elif held.ends and held.ends <= now:
        yield Fault(
            path=f"{path}.ends",
            rule="lies in the future: there is no capacity any more",
            value=str(held.ends),
            way_out="take the pool out, or give the id of a new one",
        )


def _kept(path: str, pool: PoolConfig) -> Iterator[Fault]:
    if pool.warm_spares and not pool.replicas:
        yield Fault(
            path=f"{path}.warm_spares",
            rule="stand beside nodes that are kept",
            value=str(pool.warm_spares),
            way_out="set replicas too",
        )
    if pool.replicas and pool.replicas + pool.warm_spares > pool.max_nodes:
        yield Fault(
            path=f"{path}.max_nodes",
            rule=f"holds {pool.replicas} replicas and {pool.warm_spares} spares",
            value=str(pool.max_nodes),
            way_out=str(pool.replicas + pool.warm_spares),
        )
    if pool.replicas and pool.capacity == "spot":
        yield Fault(
            path=f"{path}.replicas",
            rule="are kept, which spot is not",
            value=str(pool.replicas),
            way_out="capacity: on_demand",
        )


def _places(path: str, pool: PoolConfig, zones: tuple[str, ...]) -> Iterator[Fault]:
    path = f"{path}.fallback_zones"
    for zone in pool.fallback_zones:
        if zone == zones[0]:
            yield Fault(
                path=path,
                rule="are other zones than the environment's",
                value=zone,
                way_out="drop it",
            )
        elif zone not in zones:
            yield Fault(
                path=path,
                rule="have a subnet in this network",
                value=zone,
                way_out=f"one of {', '.join(zones[1:])}",
            )
    if len(set(pool.fallback_zones)) < len(pool.fallback_zones):
        yield Fault(
            path=path,
            rule="names a zone once",
            value=", ".join(pool.fallback_zones),
            way_out="drop one",
        )
    if pool.fallback_zones and (
        pool.capacity in ("reservation", "block") or pool.placement == "cluster"
    ):
        yield Fault(
            path=path,
            rule=(
                "go with capacity that may stand anywhere: a reservation or placement group is in"
                " one zone"
            ),
            value=", ".join(pool.fallback_zones),
            way_out="drop them, or make another pool",
        )
    if pool.fallback_zones and pool.replicas:
        yield Fault(
            path=path,
            rule="are for nodes that jobs bring up; kept ones would be spread over the zones",
            value=", ".join(pool.fallback_zones),
            way_out="drop them, or replicas",
        )


def _shared(pools: Mapping[str, PoolConfig]) -> Iterator[Fault]:
    """What two pools cannot both have: a name, a reservation."""
    owners: dict[str, str] = {}
    for name, pool in pools.items():
        for called in node_type_names(name, pool):
            if owners.setdefault(called, name) != name or (called != name and called in pools):
                yield Fault(
                    path=f"environment.pools.{name}",
                    rule="leaves other pools their NodePool's name",
                    value=called,
                    way_out="rename one of the two",
                )
    held: dict[str, str] = {}
    for name, pool in pools.items():
        if pool.reservation and (first := held.setdefault(pool.reservation.id, name)) != name:
            yield Fault(
                path=f"environment.pools.{name}.reservation.id",
                rule=f"is not used by pool {first} already",
                value=pool.reservation.id,
                way_out="one pool for each reservation",
            )


def _room(wanted: EnvironmentConfig) -> Iterator[Fault]:
    """A full pool fits its subnet: an eighth of the VPC."""
    try:
        vpc = ipaddress.IPv4Network(wanted.network.cidr)
    except ValueError:
        return
    room = vpc.num_addresses // 8 - AWS_KEEPS
    sold = {
        name: pool for name, pool in wanted.pools.items() if set(pool.instance_types) <= set(TYPES)
    }
    needed = sum(addresses(pool) for pool in sold.values())
    if 16 <= vpc.prefixlen <= 20 and needed > room:
        yield Fault(
            path="environment.network.cidr",
            rule=(
                "has room for all nodes: a private subnet is an eighth,"
                f" {room} addresses, and full pools take {needed}"
            ),
            value=wanted.network.cidr,
            way_out="take a larger range (/16 at most) or lower max_nodes",
        )
