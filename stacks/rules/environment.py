"""What cannot work, refused before anything is created: the environment as a whole. Each rule says
what to do instead.

Pools: pools.py. Jobs: jobs.py. Stores and checkpoints: stores.py. Sources: AWS service
limits named beside the rules, and the traps in the shared facts (by-hand-and-traps.md §2).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from datetime import datetime

from catalog import versions
from catalog.instances import CPU_TYPES, GPU_TYPES
from catalog.refresh import outdated
from catalog.zones import OFFERS, SNAPSHOT, ZONE_LETTERS, zone_names
from plans.upstream_runtimes import upstream_runtimes
from stacks.derive.capacity import TYPES
from stacks.rules.entries import job_errors, job_warnings, torchtune_errors
from stacks.rules.lustre_efa import efa_errors, efa_warnings
from stacks.rules.network import network_zone_errors
from stacks.rules.pools import pool_errors, pool_warnings
from stacks.rules.stores import mount_target_errors, store_errors
from stacks.settings.environment import EnvironmentConfig, StackConfig, TeamConfig
from stacks.settings.job import JobConfig, typed
from stacks.settings.problems import InputError, InputWarning

RFC_1918 = tuple(
    ipaddress.IPv4Network(c) for c in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")
)
SYSTEM_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system", "kubeflow-system")
"""They exist before us, or a chart makes them."""
TAKEN_TAGS = re.compile(
    r"aws:|trainyard:|karpenter\.(sh|k8s\.aws)/|eks:|kubernetes\.io/cluster|Name$", re.IGNORECASE
)
"""Keys that AWS, Karpenter (its EC2NodeClass refuses them) or this program sets."""
TAGS = 40
"""AWS takes 50 a resource; the rest are ours and Karpenter's."""


def environment_errors(
    region: str,
    wanted: EnvironmentConfig,
    zones: tuple[str, ...],
    set_aside: frozenset[str],
    now: datetime,
) -> Iterator[InputError]:
    """Every error of an environment. `zones`: its network's. `set_aside`: names that were left out,
    so that no second error names them."""
    at = "environment"
    yield from _zone(region, wanted)
    yield from _network(wanted)
    yield from network_zone_errors(region, wanted)
    yield from _cluster(wanted)
    yield from _system_nodes(wanted)
    yield from tag_errors("environment.tags", wanted.tags)
    if wanted.namespace in SYSTEM_NAMESPACES or wanted.namespace.startswith("kube-"):
        yield InputError(
            path=f"{at}.namespace",
            must="be for jobs only",
            got=wanted.namespace,
            fix="training",
        )
    yield from pool_errors(region, wanted, zones, now)
    for name, store in wanted.storage.items():
        yield from store_errors(f"{at}.storage.{name}", store, region, first_types(wanted))
        if store.lustre:  # of pools that were left out nothing is known
            yield from efa_errors(
                f"{at}.storage.{name}.lustre", store.lustre, {} if set_aside else wanted.pools
            )
    yield from mount_target_errors(wanted, zones)
    yield from _trainer(wanted)
    yield from _training_operator(wanted)
    for name, job in typed(wanted.jobs).items():
        yield from job_errors(f"{at}.jobs.{name}", job, wanted, region, set_aside)


def team_errors(
    region: str, team: TeamConfig, base: StackConfig, set_aside: frozenset[str]
) -> Iterator[InputError]:
    """Every error of a team on a sound environment."""
    environment = base.environment
    assert environment is not None  # plan_team has looked
    if region != base.region:
        yield InputError(
            path="aws:region",
            must="be the environment's region",
            got=region,
            fix=f"use {base.region}",
        )
    if team.namespace in (environment.namespace, *SYSTEM_NAMESPACES) or team.namespace.startswith(
        "kube-"
    ):
        yield InputError(
            path="team.namespace",
            must="be the team's own",
            got=team.namespace,
            fix=f"take another, such as team-{team.namespace.removeprefix('kube-')}",
        )
    for name, job in typed(team.jobs).items():
        yield from job_errors(f"team.jobs.{name}", job, environment, region, set_aside)


def share_errors(
    team: TeamConfig, jobs: Mapping[str, JobConfig], environment: EnvironmentConfig
) -> Iterator[InputError]:
    """Jobs larger than the team's share of the GPUs."""
    for name, job in jobs.items():
        if (
            team.max_gpus
            and job.pool in environment.pools
            and (need := _gpus(job, environment)) > team.max_gpus
        ):
            yield InputError(
                path=f"team.jobs.{name}.nodes",
                must="fit the team's max_gpus",
                got=f"{need} GPUs",
                fix=f"raise team.max_gpus from {team.max_gpus} or take fewer nodes",
            )


def environment_warnings(
    region: str, wanted: EnvironmentConfig, now: datetime
) -> Iterator[InputWarning]:
    """What works but should be known."""
    if wanted.cluster.endpoint != "private" and "0.0.0.0/0" in wanted.cluster.public_access_cidrs:
        yield InputWarning(
            path="environment.cluster.public_access_cidrs",
            text=(
                "the API server answers the whole internet (with credentials only); list your own"
                " addresses"
            ),
        )
    if wanted.zone_id is None:
        yield InputWarning(
            path="environment.zone_id",
            text=(
                "unset, so what the zone sells is only checked by region"
                " (make check LIVE=1 prints it)"
            ),
        )
    if late := outdated(SNAPSHOT, now.date()):
        yield InputWarning(path="environment.zone", text=f"the table of what is sold where {late}")
    kubernetes, trainer = wanted.cluster.version, wanted.trainer.version
    if (
        kubernetes in versions.KUBERNETES
        and trainer in versions.TRAINERS
        and not versions.known_good(kubernetes, trainer)
    ):
        tried = ", ".join(
            f"{known.trainer} with {known.kubernetes}" for known in versions.KNOWN_GOOD
        )
        yield InputWarning(
            path="environment.trainer.version",
            text=f"{trainer} was never tried with Kubernetes {kubernetes}; what was: {tried}",
        )
    yield from pool_warnings(wanted, now)
    for name, store in wanted.storage.items():
        yield from efa_warnings(f"environment.storage.{name}.lustre", store.lustre, wanted.pools)
    yield from job_warnings(typed(wanted.jobs), wanted, region, "environment.jobs")


def first_types(wanted: EnvironmentConfig) -> list[str]:
    """The first known type of each pool, those with the most GPUs before the others."""
    found = [
        pool.instance_types[0]
        for pool in wanted.pools.values()
        if pool.instance_types and pool.instance_types[0] in TYPES
    ]
    return sorted(found, key=lambda kind: -TYPES[kind].gpus)


def _zone(region: str, wanted: EnvironmentConfig) -> Iterator[InputError]:
    zone, known = wanted.zone, zone_names(region)
    choices = f"use one of {', '.join(known)}"
    if not known:
        # The network takes its other zones from the table; EKS refuses a cluster with one.
        yield InputError(
            path="aws:region",
            must=f"be a region of the zone table (as of {SNAPSHOT})",
            got=region,
            fix=f"one of {', '.join(ZONE_LETTERS)}, or add a row to catalog/zones.py",
        )
    elif zone == region or zone in ZONE_LETTERS:
        yield InputError(
            path="environment.zone", must="be a zone, not a region", got=zone, fix=choices
        )
    elif not zone.startswith(region):
        yield InputError(
            path="environment.zone",
            must=f"ly in aws:region ({region})",
            got=zone,
            fix=choices,
        )
    elif zone not in known:
        yield InputError(path="environment.zone", must=f"exist in {region}", got=zone, fix=choices)
    ids = sorted({zone_id for sold in OFFERS.values() for zone_id in sold.get(region, "").split()})
    if ids and wanted.zone_id and wanted.zone_id not in ids:
        yield InputError(
            path="environment.zone_id",
            must=f"be a zone id of {region} (as of {SNAPSHOT})",
            got=wanted.zone_id,
            fix=f"one of {', '.join(ids)}; make check LIVE=1 prints it",
        )


def _network(wanted: EnvironmentConfig) -> Iterator[InputError]:
    path, cidr = "environment.network.cidr", wanted.network.cidr
    try:
        vpc = ipaddress.IPv4Network(cidr)
    except ValueError as error:
        yield InputError(
            path=path,
            must="be an IPv4 range",
            got=cidr,
            fix=f"{error}; for example 10.0.0.0/16",
        )
        return
    if not 16 <= vpc.prefixlen <= 20:
        yield InputError(
            path=path,
            must="be /16 to /20 (a VPC's largest is /16; GPU nodes need room)",
            got=cidr,
            fix=f"{vpc.network_address}/16",
        )
    if not any(vpc.subnet_of(private) for private in RFC_1918):
        yield InputError(
            path=path, must="be private (RFC 1918)", got=cidr, fix="for example 10.0.0.0/16"
        )


def _cluster(wanted: EnvironmentConfig) -> Iterator[InputError]:
    cluster = wanted.cluster
    if cluster.version not in versions.KUBERNETES:
        yield InputError(
            path="environment.cluster.version",
            must="be a version with known add-ons",
            got=cluster.version,
            fix=f"use {', '.join(versions.KUBERNETES)}, or add a row to catalog/versions.py",
        )
    path = "environment.cluster.public_access_cidrs"
    if cluster.endpoint == "private" and cluster.public_access_cidrs:
        yield InputError(
            path=path,
            must="belong to a public endpoint",
            got=", ".join(cluster.public_access_cidrs),
            fix="drop it, or set endpoint: public-and-private",
        )
    if cluster.endpoint != "private" and not cluster.public_access_cidrs:
        yield InputError(
            path=path,
            must="say who may reach the public endpoint",
            got="nothing",
            fix="list your addresses, such as [203.0.113.7/32]",
        )
    roles = [admin.role_arn for admin in cluster.admins.values()]
    for twice in sorted({role for role in roles if roles.count(role) > 1}):
        yield InputError(
            path="environment.cluster.admins",
            must="name a role once: EKS has one access entry for each",
            got=twice,
            fix="drop one of the two",
        )
    for cidr in cluster.public_access_cidrs:
        if not _is_network(cidr):
            yield InputError(
                path=path,
                must="contain IPv4 ranges",
                got=cidr,
                fix="for example 203.0.113.7/32",
            )


def _trainer(wanted: EnvironmentConfig) -> Iterator[InputError]:
    trainer = wanted.trainer
    if trainer.version not in versions.TRAINERS:
        yield InputError(
            path="environment.trainer.version",
            must="be a release this program has builders for",
            got=trainer.version,
            fix=f"use {', '.join(versions.TRAINERS)}",
        )
        return
    shipped = upstream_runtimes(trainer.version)
    for name in trainer.runtimes:
        if name not in shipped:
            yield InputError(
                path="environment.trainer.runtimes",
                must=f"be a runtime of Trainer {trainer.version}",
                got=name,
                fix=f"one of {', '.join(shipped)}; your own go under own_runtimes",
            )
    for name, own in trainer.own_runtimes.items():
        path = f"environment.trainer.own_runtimes.{name}"
        if own.priority and own.priority not in wanted.priorities:
            yield InputError(
                path=f"{path}.priority",
                must="be one of environment.priorities",
                got=own.priority,
                fix=f"one of {', '.join(wanted.priorities) or 'none yet'}",
            )
        yield from torchtune_errors(path, own, wanted)
        if name in shipped:
            yield InputError(
                path=path, must="not do take an upstream name", got=name, fix=f"{name}-own"
            )


def _training_operator(wanted: EnvironmentConfig) -> Iterator[InputError]:
    if (
        wanted.training_operator
        and wanted.training_operator.version not in versions.TRAINING_OPERATORS
    ):
        yield InputError(
            path="environment.training_operator.version",
            must="be a release this program has a chart for",
            got=wanted.training_operator.version,
            fix=f"use {', '.join(versions.TRAINING_OPERATORS)}",
        )


def _system_nodes(wanted: EnvironmentConfig) -> Iterator[InputError]:
    path, kind = "environment.system_nodes.instance_type", wanted.system_nodes.instance_type
    family, _, size = kind.partition(".")
    if kind in GPU_TYPES:
        yield InputError(
            path=path,
            must="pay for no GPUs: controllers run there",
            got=kind,
            fix="m7i.xlarge",
        )
    elif re.search(r"\dg", family):
        yield InputError(
            path=path, must="be x86: the charts' images are", got=kind, fix="m7i.xlarge"
        )
    elif size in ("", "nano", "micro", "small", "medium"):
        yield InputError(
            path=path,
            must="contain the controllers: 2 vCPU and 8 GiB at least",
            got=kind,
            fix=f"m7i.xlarge, or one of {', '.join(list(CPU_TYPES)[:3])}",
        )


def tag_errors(at: str, tags: Mapping[str, str]) -> Iterator[InputError]:
    """Tags that AWS or Karpenter would refuse, or that would be another's. `at`: their setting."""
    for key, value in tags.items():
        if TAKEN_TAGS.match(key):
            yield InputError(
                path=f"{at}.{key}",
                must="not be a key that AWS, Karpenter or this program sets",
                got=key,
                fix="take a name of your own, such as team or cost-center",
            )
        if not 1 <= len(key) <= 128 or len(value) > 256:
            yield InputError(
                path=f"{at}.{key[:20]}",
                must="be at most 128 characters, its value 256",
                got=f"{len(key)} and {len(value)}",
                fix="shorten it",
            )
    if len(tags) > TAGS:
        yield InputError(
            path=at,
            must=f"be at most {TAGS}; AWS takes 50 with ours",
            got=str(len(tags)),
            fix="drop some",
        )


def _gpus(job: JobConfig, environment: EnvironmentConfig) -> int:
    return job.nodes * (
        job.gpus_per_node or TYPES[environment.pools[job.pool].instance_types[0]].gpus
    )


def _is_network(text: str) -> bool:
    try:
        ipaddress.IPv4Network(text)
    except ValueError:
        return False
    return True
