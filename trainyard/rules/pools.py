"""Errors about pools that cannot work: capacity settings that contradict each other, more nodes
than a subnet has addresses for. Their instance types: instance_types.py.

Sources: Karpenter 1.14; EC2 Capacity Blocks and placement groups. Examples of each rule:
tests/support/cases/environment.py.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import PurePosixPath

from trainyard.catalog.aws.service_roles import SPOT
from trainyard.catalog.upstream import bottlerocket
from trainyard.derive.pools import NODE_ADDRESSES, TYPES
from trainyard.derive.subnets import subnet_uses
from trainyard.plans.networks import AWS_KEEPS
from trainyard.problems import REMOVE, At, InputError, InputWarning, write_one_of
from trainyard.rules.blocks import block_errors, block_warnings
from trainyard.rules.images import image_errors, is_untagged
from trainyard.rules.instance_types import instance_type_errors, mixed_type_errors
from trainyard.rules.network import is_range
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.job import typed
from trainyard.settings.network import ExistingNetworkConfig
from trainyard.settings.pools import PoolConfig, ReservationConfig, node_type_names
from trainyard.settings.reading.yaml_file import as_yaml
from trainyard.stores.kinds import made_for_efa, needs_client
from trainyard.stores.lustre_efa import lnet_devices

NODEADM_DISKS = "/mnt/k8s-disks"
"""Where AL2023 mounts the NVMe disks of a node (amazon-eks-ami, nodeadm)."""


def pool_errors(
    region: str, wanted: EnvironmentConfig, zones: tuple[str, ...], now: datetime
) -> Iterator[InputError]:
    """Every error of the environment's pools. `zones`: those of its network, the training zone
    first."""
    for name, pool in wanted.pools.items():
        path = f"environment.pools.{name}"
        yield from instance_type_errors(f"{path}.instance_types", region, wanted, pool)
        yield from mixed_type_errors(f"{path}.instance_types", pool)
        yield from _reservation(path, pool, now)
        yield from _static_nodes(path, pool)
        yield from _fallback_zones(f"{path}.fallback_zones", pool, zones)
        yield from _prefetch(f"{path}.prefetch", pool)
        if pool.ami_family == "Bottlerocket":
            yield from _bottlerocket(path, name, pool, wanted)
    yield from _name_clashes(wanted.pools)
    yield from _shared_reservations(wanted.pools)
    yield from _subnet_room(wanted, zones)


def unknown_pool(path: str, name: str, wanted: EnvironmentConfig) -> InputError:
    """Error about a job, an entry or a file, on a pool that does not exist. `path`: the job's."""
    return At(f"{path}.pool").must(
        "be a pool of the environment",
        got=name[:60],
        fix=write_one_of(
            wanted.pools,
            f"write {name}: {{instance_types: [g6e.48xlarge], max_nodes: 4}} under environment.pools",
            name,
        ),
    )


def _prefetch(path: str, pool: PoolConfig) -> Iterator[InputError]:
    for image in pool.prefetch or ():
        yield from image_errors(image, At(path))
        if is_untagged(image):
            yield At(path).must(
                "name images with a tag or a digest",
                got=image,
                fix="write registry/name:tag, better registry/name@sha256:…",
            )


def _bottlerocket(
    path: str, name: str, pool: PoolConfig, wanted: EnvironmentConfig
) -> Iterator[InputError]:
    """Errors about what nodes with Bottlerocket lack. Nothing can be installed or run on them at boot."""
    for only in _where_bottlerocket(pool, wanted):
        yield At(f"{path}.ami_family").must(
            f"be Bottlerocket only {only}",
            got="Bottlerocket",
            fix="write AL2023, or delete it",
            write="AL2023",
        )
    for job, entry in typed(wanted.jobs).items():
        for folder, given in entry.host_paths.items() if entry.pool == name else ():
            if PurePosixPath(given.host).is_relative_to(NODEADM_DISKS):
                yield At(f"environment.jobs.{job}.host_paths.{folder}").must(
                    f"not be in {NODEADM_DISKS} on pool {name}: Bottlerocket mounts its NVMe disks elsewhere,"
                    " and the pod would wait for the folder for ever",
                    got=given.host,
                    fix="delete it, and use /tmp of the container, which is on these disks",
                    write=REMOVE,
                )


def _where_bottlerocket(pool: PoolConfig, wanted: EnvironmentConfig) -> Iterator[str]:
    """Where it works, in words, of each condition that is not met."""
    kinds = pool.instance_types
    if wanted.cluster.version not in bottlerocket.KUBERNETES:
        yield (
            f"on Kubernetes {', '.join(bottlerocket.KUBERNETES)}, the releases for which this program knows its GPU"
            " variant"
        )
    if any(kind in TYPES and not TYPES[kind].gpus for kind in kinds):
        yield "in a pool with GPUs: Bottlerocket without GPUs refuses the settings of GPUs in its user data"
    for family, why in bottlerocket.REFUSED.items():
        yield from [
            f"without {kind}, which {why}" for kind in kinds if kind.startswith(f"{family}.")
        ]
    over_efa = [store for store, each in wanted.storage.items() if made_for_efa(each)]
    if over_efa and any(lnet_devices(pool, kind) for kind in kinds):
        yield (
            f"without Lustre over EFA ({', '.join(over_efa)}): a script at boot sets it up, with programs that dnf"
            " installs, and Bottlerocket runs no script and has no package manager (bottlerocket.dev, FAQ)"
        )


def _untuned_lustre(at: At, pool: PoolConfig, wanted: EnvironmentConfig) -> Iterator[InputWarning]:
    stores = [store for store, each in wanted.storage.items() if needs_client(each)]
    if pool.ami_family == "Bottlerocket" and stores:
        yield at.warning(
            f"Bottlerocket mounts Lustre ({', '.join(stores)}) without its tuning and without lctl and lfs,"
            " which nodes with AL2023 get at boot: settings that the servers push are dropped"
            " (aws-fsx-csi-driver#460)"
        )


def pool_warnings(wanted: EnvironmentConfig, now: datetime) -> Iterator[InputWarning]:
    """Warnings about pools that work."""
    for name, pool in wanted.pools.items():
        path = f"environment.pools.{name}"
        reservation = pool.reservation
        yield from _untuned_lustre(At(f"{path}.ami_family"), pool, wanted)
        if reservation and reservation.starts and reservation.starts > now:
            late = (
                "; after that its replicas start only when something changes the pool"
                " (karpenter-provider-aws#9001)"
            )
            yield At(f"{path}.reservation.starts").warning(
                f"jobs of this pool wait until {reservation.starts.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
                f"{late if pool.replicas else ''}"
            )
        if reservation:
            yield At(f"{path}.reservation.id").warning(
                f"no preview and no update asks EC2 about {reservation.id}: trainyard check --live does, and says"
                " whether the account has it with this type, zone and number"
            )
        if reservation and pool.capacity == "block":
            yield from block_warnings(f"{path}.reservation", reservation)
        if pool.placement == "cluster":
            yield At(f"{path}.placement").warning(
                "launches in a placement group fail for lack of capacity more often"
            )
        if pool.capacity == "spot":
            yield At(f"{path}.capacity").warning(
                "AWS takes spot nodes back at two minutes' warning: save checkpoints often"
            )
    if spot := [name for name, pool in wanted.pools.items() if pool.capacity == "spot"]:
        yield At("account").warning(
            f"the account must have the role {SPOT.name} for spot pools ({', '.join(spot)}):"
            f" trainyard check --live looks for it, and `{SPOT.command}` creates it"
        )


def _reservation(path: str, pool: PoolConfig, now: datetime) -> Iterator[InputError]:
    reservation, reserved = pool.reservation, pool.capacity in ("reservation", "block")
    times = ", starts: …, ends: …" if pool.capacity == "block" else ""
    if reserved and reservation is None:
        yield At(f"{path}.reservation").must(
            f"be set with capacity: {pool.capacity}",
            got="nothing",
            fix=f"add reservation: {{id: cr-0123456789abcdef0, instances: 1{times}}} with the values of yours;"
            " this program never buys one",
        )
    if reservation and not reserved:
        meant = "block" if reservation.starts and reservation.ends else "reservation"
        yield At(f"{path}.capacity").must(
            "be reservation, or block for a Capacity Block, as the pool has the setting reservation",
            got=pool.capacity,
            fix=f"write {meant}, or delete the setting reservation",
            write=meant,
        )
    if reservation is None or not reserved:
        return
    if pool.max_nodes > reservation.instances:
        yield At(f"{path}.max_nodes").must(
            f"be at most {reservation.instances}, the instances of {reservation.id}",
            got=pool.max_nodes,
            fix=f"write {reservation.instances}, which is then the most nodes of its jobs; or raise"
            f" reservation.instances to {pool.max_nodes}, if the reservation has so many",
            write=reservation.instances,
        )
    if pool.placement == "cluster":
        yield At(f"{path}.placement").must(
            "not be cluster, a new placement group: a reservation has instances only in the"
            " group it was created in (eksctl#7949)",
            got="cluster",
            fix="delete it; if the reservation has a group, name it in reservation.placement_group",
            write=REMOVE,
        )
    yield from _window(f"{path}.reservation", pool.capacity, reservation, now)


def _window(
    path: str, capacity: str, reservation: ReservationConfig, now: datetime
) -> Iterator[InputError]:
    starts, ends = reservation.starts, reservation.ends
    if capacity == "block":
        yield from block_errors(path, reservation)
    if capacity == "block" and (starts is None or ends is None):
        yield At(path).must(
            "have starts and ends, for a Capacity Block",
            got="neither" if starts is ends else f"no {'starts' if starts is None else 'ends'}",
            fix="copy StartDate as starts, and EndDate as ends, from what this prints in the region of the stack:"
            " aws ec2 describe-capacity-reservations"
            f" --capacity-reservation-ids {reservation.id}",
        )
    if starts and ends and starts >= ends:
        yield At(f"{path}.ends").must(
            f"be later than starts, {starts:%Y-%m-%dT%H:%M:%SZ}",
            got=ends,
            fix="copy starts and ends from `aws ec2 describe-capacity-reservations`",
        )
    elif ends and ends <= now:
        yield At(f"{path}.ends").must(
            "be in the future: the reservation is over",
            got=ends,
            fix="delete the pool, or write id, starts and ends of another reservation",
        )


def _static_nodes(path: str, pool: PoolConfig) -> Iterator[InputError]:
    needed = (pool.replicas or 0) + pool.warm_spares
    if pool.warm_spares and pool.replicas is None:
        yield At(f"{path}.warm_spares").not_set(
            "without replicas: spares stand beside them",
            got=pool.warm_spares,
            instead="set replicas too",
        )
    if pool.replicas and needed > pool.max_nodes:
        yield At(f"{path}.max_nodes").must(
            f"be at least {needed}: {pool.replicas} replicas and {pool.warm_spares} warm spares",
            got=pool.max_nodes,
            write=needed,
        )
    if pool.replicas is not None and pool.capacity == "spot":
        yield At(f"{path}.replicas").not_set(
            "with capacity: spot, whose nodes AWS takes back",
            got=pool.replicas,
            instead="write capacity: on_demand",
        )


def _other_zones(sound: Sequence[str], others: Sequence[str]) -> str:
    """Fix: the zones that are right, or where there are none, what can be written. `others`: with a subnet."""
    if sound:
        return f"write {as_yaml(sound)}"
    return "delete it" + (
        f", or write another zone of the network: {', '.join(others)}" if others else ""
    )


def _fallback_zones(path: str, pool: PoolConfig, zones: tuple[str, ...]) -> Iterator[InputError]:
    listed = pool.fallback_zones
    sound = [zone for zone in dict.fromkeys(listed) if zone in zones[1:]]
    for zone in listed:
        if zone == zones[0]:
            yield At(path).must(
                "list other zones than environment.zone",
                got=zone,
                fix=_other_zones(sound, zones[1:]),
                write=sound or REMOVE,
            )
        elif zone not in zones:
            yield At(path).must(
                "list zones that have a subnet in this network",
                got=zone,
                fix=f"{write_one_of(zones[1:], 'delete it')}, or take {zone} into the zones of environment.network",
                write=[*sound, *(other for other in zones[1:2] if other not in sound)],
            )
    if len(set(listed)) < len(listed):
        once = list(dict.fromkeys(listed))
        yield At(path).must(
            "list each zone once", got=as_yaml(listed), fix=f"write {as_yaml(once)}", write=once
        )
    if listed:
        yield from _one_zone_only(path, pool)


def _one_zone_only(path: str, pool: PoolConfig) -> Iterator[InputError]:
    """Capacity that cannot use its fallback zones."""
    listed = as_yaml(pool.fallback_zones)
    if pool.capacity in ("reservation", "block") or pool.placement == "cluster":
        one = "placement: cluster" if pool.placement == "cluster" else f"capacity: {pool.capacity}"
        yield At(path).not_set(
            f"with {one}, which is in one zone",
            got=listed,
            instead="make another pool for these zones",
        )
    if pool.replicas is not None:
        yield At(path).not_set(
            "with replicas, which would be spread over the zones",
            got=listed,
            instead="delete replicas",
        )


def _name_clashes(pools: Mapping[str, PoolConfig]) -> Iterator[InputError]:
    """Pools whose NodePools would have the same name."""
    owners: dict[str, str] = {}
    for name, pool in pools.items():
        for node_pool in node_type_names(name, pool):
            owner = owners.setdefault(node_pool, name)
            if owner != name or (node_pool != name and node_pool in pools):
                other = owner if owner != name else node_pool
                yield At(f"environment.pools.{name}").must(
                    f"not create NodePool {node_pool}, which pool {other} also creates: a pool with several types has a"
                    " NodePool for each, numbered from the second on",
                    got=name,
                    fix="rename one of the two pools",
                )


def _shared_reservations(pools: Mapping[str, PoolConfig]) -> Iterator[InputError]:
    owners: dict[str, str] = {}
    for name, pool in pools.items():
        if pool.reservation and (first := owners.setdefault(pool.reservation.id, name)) != name:
            yield At(f"environment.pools.{name}.reservation.id").must(
                f"not be the reservation of pool {first}, too: each of the two counts all its instances",
                got=pool.reservation.id,
                fix=f"write the id of another reservation; or delete the pool, and name pool {first} in its jobs",
            )


def _subnet_room(wanted: EnvironmentConfig, zones: tuple[str, ...]) -> Iterator[InputError]:
    """Whatever has addresses in a zone must fit its private subnet: an eighth of the VPC. The size of an
    existing subnet is known to AWS only: trainyard/existing/vpc_faults.py."""
    if isinstance(wanted.network, ExistingNetworkConfig) or not is_range(wanted.network.cidr):
        return
    vpc = ipaddress.IPv4Network(wanted.network.cidr)
    sizes = {bits: 2 ** (32 - bits) // 8 - AWS_KEEPS for bits in range(16, 21)}
    known = {n: one for n, one in wanted.pools.items() if set(one.instance_types) <= set(TYPES)}
    uses = subnet_uses(replace(wanted, pools=known), zones)
    zone, use = max(uses.items(), key=lambda one: one[1].total)
    room = sizes.get(vpc.prefixlen)
    if room is None or use.total <= room:
        return
    enough = [bits for bits in sorted(sizes, reverse=True) if sizes[bits] >= use.total]
    larger = str(vpc.supernet(new_prefix=enough[0])) if enough else None
    pool, taken = max(use.pools.items(), key=lambda one: one[1], default=("", 0))
    most = (room - use.total + taken) // NODE_ADDRESSES
    fewer = f"write max_nodes: {most} under environment.pools.{pool}"
    if most < 1:
        fewer = "lower max_nodes of several pools"
    yield At("environment.network.cidr").must(
        f"have room for all nodes, each with {NODE_ADDRESSES} addresses: its private subnet in {zone} has {room}, an"
        f" eighth of the range, and {use.total} are needed: {use.told}",
        got=wanted.network.cidr,
        fix=f"write {larger}, or {fewer}" if larger else fewer,
        write=larger,
    )
