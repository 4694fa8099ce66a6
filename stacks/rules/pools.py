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
from stacks.settings.problems import InputError, InputWarning

AWS_KEEPS = 5
"""Addresses of every subnet that AWS keeps for itself."""


def pool_errors(
    region: str, wanted: EnvironmentConfig, zones: tuple[str, ...], now: datetime
) -> Iterator[InputError]:
    """Every error of the environment's pools. `zones`: those of its network, the training zone
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


def pool_warnings(wanted: EnvironmentConfig, now: datetime) -> Iterator[InputWarning]:
    """What works but should be known about pools."""
    for name, pool in wanted.pools.items():
        path = f"environment.pools.{name}"
        held = pool.reservation
        if held and held.starts and held.starts > now:
            late = (
                "; its replicas wait until something touches the pool (karpenter-provider-aws#9001)"
            )
            yield InputWarning(
                path=f"{path}.reservation.starts",
                text=(
                    f"until {held.starts:%Y-%m-%d %H:%M} its jobs"
                    f" wait{late if pool.replicas else ''}"
                ),
            )
        if pool.placement == "cluster":
            yield InputWarning(
                path=f"{path}.placement",
                text="a placement group finds no capacity more often than none",
            )
        if pool.capacity == "spot":
            yield InputWarning(
                path=f"{path}.capacity", text="spot goes away at two minutes' warning: save often"
            )
    if spot := [name for name, pool in wanted.pools.items() if pool.capacity == "spot"]:
        yield InputWarning(
            path="account",
            text=(
                f"must have the role {SPOT.name} for spot pools ({', '.join(spot)}): make check"
                f" LIVE=1 looks for it, and `{SPOT.command}` makes it"
            ),
        )


def _types(
    path: str, region: str, wanted: EnvironmentConfig, pool: PoolConfig
) -> Iterator[InputError]:
    path = f"{path}.instance_types"
    if not pool.instance_types:
        yield InputError(
            path=path, must="name a type", got="none", fix="for example [g6e.48xlarge]"
        )
    for kind in dict.fromkeys(pool.instance_types):
        other = next((why for prefix, why in REFUSED.items() if kind.startswith(prefix)), None)
        if other:
            yield InputError(
                path=path, must="be a type this program trains on", got=kind, fix=other
            )
        elif kind not in TYPES:
            near = difflib.get_close_matches(kind, TYPES, n=3, cutoff=0.5) or list(TYPES)[:3]
            yield InputError(
                path=path,
                must="be a type of the catalogue",
                got=kind,
                fix=f"nearest: {', '.join(near)}; a new one is a row in catalog/instances.py",
            )
        elif region in ZONE_LETTERS and region not in regions_with(kind):
            yield InputError(
                path=path,
                must=f"be sold in {region} (as of {SNAPSHOT})",
                got=kind,
                fix=f"sold in {', '.join(regions_with(kind))}",
            )
        elif (
            wanted.zone_id
            and region in ZONE_LETTERS
            and wanted.zone_id not in zone_ids_with(kind, region)
        ):
            yield InputError(
                path=path,
                must=f"be sold in {wanted.zone_id} (as of {SNAPSHOT})",
                got=kind,
                fix=f"in {region}: {', '.join(zone_ids_with(kind, region))}",
            )
        elif pool.capacity == "block" and not TYPES[kind].capacity_block:
            yield InputError(
                path=path,
                must="be sold as Capacity Block",
                got=kind,
                fix=(f"one of {', '.join(name for name, t in TYPES.items() if t.capacity_block)}"),
            )


def _several(path: str, pool: PoolConfig) -> Iterator[InputError]:
    """A list of types is for jobs of one node, and each of its nodes must serve them alike."""
    listed = pool.instance_types
    if len(set(listed)) < len(listed):
        yield InputError(
            path=f"{path}.instance_types",
            must="name a type once",
            got=", ".join(listed),
            fix=f"[{', '.join(dict.fromkeys(listed))}]",
        )
    gpus = {kind: TYPES[kind].gpus for kind in listed if kind in TYPES}
    if len(set(gpus.values())) > 1:
        shown = ", ".join(f"{kind} {count}" for kind, count in gpus.items())
        yield InputError(
            path=f"{path}.instance_types",
            must="list types with the same number of GPUs",
            got=shown,
            fix="make a pool for each",
        )
    if len(listed) > 1 and (pool.replicas or pool.capacity in ("reservation", "block")):
        yield InputError(
            path=f"{path}.instance_types",
            must="be one type where nodes are reserved or kept",
            got=", ".join(listed),
            fix="make a pool for each type",
        )


def _reservation(path: str, pool: PoolConfig, now: datetime) -> Iterator[InputError]:
    held, reserved = pool.reservation, pool.capacity in ("reservation", "block")
    if reserved and held is None:
        yield InputError(
            path=f"{path}.reservation",
            must=f"say which, for capacity: {pool.capacity}",
            got="nothing",
            fix="reservation: {id: cr-…, instances: …}; this program never buys one",
        )
    if held and not reserved:
        yield InputError(
            path=f"{path}.capacity",
            must="use the reservation that is given (Karpenter takes none by itself)",
            got=pool.capacity,
            fix="capacity: reservation, or block; or drop reservation",
        )
    if held is None or not reserved:
        return
    if pool.max_nodes > held.instances:
        yield InputError(
            path=f"{path}.max_nodes",
            must=f"be at most the {held.instances} instances that {held.id} holds",
            got=str(pool.max_nodes),
            fix=str(held.instances),
        )
    if pool.placement == "cluster":
        yield InputError(
            path=f"{path}.placement",
            must=(
                "not be a new group: a reservation gives its instances only in the"
                " group it was made in (eksctl#7949)"
            ),
            got="cluster",
            fix="drop it; name that group under reservation.placement_group, if there is one",
        )
    yield from _window(f"{path}.reservation", pool.capacity, held, now)


def _window(
    path: str, capacity: str, held: ReservationConfig, now: datetime
) -> Iterator[InputError]:
    if capacity == "block" and (held.starts is None or held.ends is None):
        yield InputError(
            path=path,
            must="have both ends, for a Capacity Block",
            got="no starts or no ends",
            fix="copy them from `aws ec2 describe-capacity-reservations`",
        )
    if held.starts and held.ends and held.starts >= held.ends:
        yield InputError(
            path=f"{path}.ends",
            must="come after starts",
            got=str(held.ends),
            fix=f"later than {held.starts}",
        )
    elif held.ends and held.ends <= now:
        yield InputError(
            path=f"{path}.ends",
            must="lie in the future: there is no capacity any more",
            got=str(held.ends),
            fix="take the pool out, or give the id of a new one",
        )


def _kept(path: str, pool: PoolConfig) -> Iterator[InputError]:
    if pool.warm_spares and not pool.replicas:
        yield InputError(
            path=f"{path}.warm_spares",
            must="stand beside nodes that are kept",
            got=str(pool.warm_spares),
            fix="set replicas too",
        )
    if pool.replicas and pool.replicas + pool.warm_spares > pool.max_nodes:
        yield InputError(
            path=f"{path}.max_nodes",
            must=f"contain {pool.replicas} replicas and {pool.warm_spares} spares",
            got=str(pool.max_nodes),
            fix=str(pool.replicas + pool.warm_spares),
        )
    if pool.replicas and pool.capacity == "spot":
        yield InputError(
            path=f"{path}.replicas",
            must="be kept, which spot is not",
            got=str(pool.replicas),
            fix="capacity: on_demand",
        )


def _places(path: str, pool: PoolConfig, zones: tuple[str, ...]) -> Iterator[InputError]:
    path = f"{path}.fallback_zones"
    for zone in pool.fallback_zones:
        if zone == zones[0]:
            yield InputError(
                path=path,
                must="be other zones than the environment's",
                got=zone,
                fix="drop it",
            )
        elif zone not in zones:
            yield InputError(
                path=path,
                must="have a subnet in this network",
                got=zone,
                fix=f"one of {', '.join(zones[1:])}",
            )
    if len(set(pool.fallback_zones)) < len(pool.fallback_zones):
        yield InputError(
            path=path,
            must="name a zone once",
            got=", ".join(pool.fallback_zones),
            fix="drop one",
        )
    if pool.fallback_zones and (
        pool.capacity in ("reservation", "block") or pool.placement == "cluster"
    ):
        yield InputError(
            path=path,
            must=(
                "go with capacity that may stand anywhere: a reservation or placement group is in"
                " one zone"
            ),
            got=", ".join(pool.fallback_zones),
            fix="drop them, or make another pool",
        )
    if pool.fallback_zones and pool.replicas:
        yield InputError(
            path=path,
            must="be for nodes that jobs bring up; kept ones would be spread over the zones",
            got=", ".join(pool.fallback_zones),
            fix="drop them, or replicas",
        )


def _shared(pools: Mapping[str, PoolConfig]) -> Iterator[InputError]:
    """What two pools cannot both have: a name, a reservation."""
    owners: dict[str, str] = {}
    for name, pool in pools.items():
        for called in node_type_names(name, pool):
            if owners.setdefault(called, name) != name or (called != name and called in pools):
                yield InputError(
                    path=f"environment.pools.{name}",
                    must="leave other pools their NodePool's name",
                    got=called,
                    fix="rename one of the two",
                )
    held: dict[str, str] = {}
    for name, pool in pools.items():
        if pool.reservation and (first := held.setdefault(pool.reservation.id, name)) != name:
            yield InputError(
                path=f"environment.pools.{name}.reservation.id",
                must=f"not be used by pool {first} already",
                got=pool.reservation.id,
                fix="one pool for each reservation",
            )


def _room(wanted: EnvironmentConfig) -> Iterator[InputError]:
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
        yield InputError(
            path="environment.network.cidr",
            must=(
                "have room for all nodes: a private subnet is an eighth,"
                f" {room} addresses, and full pools take {needed}"
            ),
            got=wanted.network.cidr,
            fix="take a larger range (/16 at most) or lower max_nodes",
        )
