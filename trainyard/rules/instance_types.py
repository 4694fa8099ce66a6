"""Errors about instance types that a pool cannot have: unknown ones, those that are not sold there,
mixtures."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from trainyard.catalog.aws.instances import REFUSED
from trainyard.catalog.aws.zones import SNAPSHOT, ZONE_LETTERS, regions_with, zone_ids_with
from trainyard.derive.pools import TYPES
from trainyard.problems import InputError, one_of
from trainyard.rules.network import zone_ids
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.pools import PoolConfig
from trainyard.settings.reading.yaml_file import as_yaml


def instance_type_errors(
    path: str, region: str, wanted: EnvironmentConfig, pool: PoolConfig
) -> Iterator[InputError]:
    if not pool.instance_types:
        yield InputError(
            path=path,
            must="list an instance type",
            got="an empty list",
            fix="write [g6e.48xlarge]",
            write=["g6e.48xlarge"],
        )
    near = {kind: _meant(kind) for kind in pool.instance_types if kind not in TYPES}
    meant = [near[kind][0] if near.get(kind) else kind for kind in pool.instance_types]
    for kind in dict.fromkeys(pool.instance_types):
        yield from (
            _unsupported(path, kind, near[kind], meant)
            if kind not in TYPES
            else _unsold(path, kind, region, wanted.zone_id)
        )
        if kind in TYPES and pool.capacity == "block" and not TYPES[kind].capacity_block:
            sold = [name for name, facts in TYPES.items() if facts.capacity_block]
            yield InputError(
                path=path,
                must="list types that AWS sells as Capacity Blocks",
                got=kind,
                fix=f"write one of {', '.join(sold)}; or name capacity: reservation without starts and ends,"
                " if it is no Capacity Block",
                write=[sold[0]],
            )


def _unsupported(path: str, kind: str, near: list[str], meant: list[str]) -> Iterator[InputError]:
    """A type that this program does not train on, or does not know. `near`: types with names like it.
    `meant`: the list of the pool, each such type replaced."""
    if not near:
        yield InputError(
            path=path,
            must="list types on which this program trains: CUDA GPUs, or no accelerator",
            got=kind,
            fix=f"write another type; {_why_refused(kind)}",
        )
    elif must := _slip(kind, near):
        yield InputError(path=path, must=must, got=kind, fix=f"write {near[0]}", write=meant)
    else:
        of_gpu = kind.lower() in {each.gpu for each in TYPES.values()}
        yield InputError(
            path=path,
            must="list instance types of EC2 that this program knows",
            got=f"{kind}, which is a GPU" if of_gpu else kind,
            fix=f"write {' or '.join(near)}"
            + ", or add a row to trainyard/catalog/aws/instances.py" * (not of_gpu),
            write=meant,
        )


def _slip(kind: str, near: list[str]) -> str | None:
    """The rule that a name of one type breaks, which is known otherwise; None for other names."""
    if kind == f"ml.{near[0]}":
        return "list types of EC2: names with ml. are of SageMaker HyperPod"
    return "list types in small letters, as EC2 has them" if near == [kind.lower()] else None


def _why_refused(kind: str) -> str | None:
    return next((why for prefix, why in REFUSED.items() if kind.startswith(prefix)), None)


def _meant(kind: str) -> list[str]:
    """Types that may be meant by one that is not in the catalogue; none where it is refused."""
    if _why_refused(kind):
        return []
    of_sagemaker = kind.removeprefix("ml.")
    with_gpu = [name for name, each in TYPES.items() if each.gpu and each.gpu == kind.lower()]
    if with_gpu:  # whole nodes first, which are sold in most regions
        return sorted(with_gpu, key=lambda name: -TYPES[name].gpus)[:3]
    return [of_sagemaker] if of_sagemaker in TYPES else _nearest(kind.lower().strip(), [*TYPES])


def _nearest(kind: str, names: list[str]) -> list[str]:
    """The type itself, or up to three with names like it, of the same family letter where possible."""
    if kind in names:
        return [kind]
    alike = [name for name in names if name[:1] == kind[:1]] or names
    return difflib.get_close_matches(kind, alike, n=3, cutoff=0.5) or alike[:3]


def _unsold(path: str, kind: str, region: str, zone_id: str | None) -> Iterator[InputError]:
    """A type that the region or the zone does not have."""
    if region not in ZONE_LETTERS:
        return
    regions, ids = regions_with(kind), zone_ids_with(kind, region)
    if region not in regions:
        alike = [name for name in TYPES if bool(TYPES[name].gpus) == bool(TYPES[kind].gpus)]
        here = _nearest(kind, [name for name in alike if region in regions_with(name)])
        other = f"take a region with it: {', '.join(regions)}"
        yield InputError(
            path=path,
            must=f"list types that {region} has (as of {SNAPSHOT})",
            got=kind,
            fix=f"write {' or '.join(here)}, or {other}" if here else other,
            write=here[:1] or None,
        )
    elif zone_id in zone_ids(region) and zone_id not in ids:
        yield InputError(
            path=path,
            must=f"list types that {zone_id} has (as of {SNAPSHOT})",
            got=kind,
            fix=f"take {one_of(ids, '')} as zone_id, and as zone its name in your account, which this prints: aws ec2"
            f" describe-availability-zones --region {region} --zone-ids {' '.join(ids)} --query"
            " 'AvailabilityZones[].[ZoneId,ZoneName]'",
        )


def mixed_type_errors(path: str, pool: PoolConfig) -> Iterator[InputError]:
    """A list of types is for jobs of one node, which any of the types must serve alike."""
    listed = pool.instance_types
    if len(set(listed)) < len(listed):
        once = list(dict.fromkeys(listed))
        yield InputError(
            path=path,
            must="list each type once",
            got=as_yaml(listed),
            fix=f"write {as_yaml(once)}",
            write=once,
        )
    gpus = {kind: TYPES[kind].gpus for kind in listed if kind in TYPES}
    if len(set(gpus.values())) > 1:
        yield InputError(
            path=path,
            must="list types with the same number of GPUs",
            got=", ".join(f"{kind} with {count}" for kind, count in gpus.items()),
            fix=f"write [{listed[0]}], and another pool for the other types",
            write=[listed[0]],
        )
    static = pool.replicas is not None
    if len(listed) > 1 and (static or pool.capacity in ("reservation", "block")):
        yield InputError(
            path=path,
            must=f"list one type, as the pool has {'replicas' if static else 'a reservation, which is of one'}",
            got=as_yaml(listed),
            fix=f"write that of the reservation, such as [{listed[0]}], and another pool for the other types"
            if pool.reservation
            else f"write [{listed[0]}], and another pool for the other types",
            write=[listed[0]],
        )
