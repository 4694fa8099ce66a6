"""Contract: what an environment promises its teams, in the words of its stack file.

A contract holds the environment's stack file, reduced to what the plan of a team reads. So the same reader
and the same rules judge a team beside the whole stack file and beside the contract alone. What is published
is a list of settings below, and never the rest of a section: a new setting is private until somebody adds
it here. Reader: trainyard/settings/reading/contracts.py. Why so:
docs/decisions/0025-a-contract-is-a-reduced-stack-file.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from datetime import datetime
from operator import attrgetter
from typing import Any

from trainyard.catalog.versions import TRAINER_RELEASES, TRAINYARD
from trainyard.derive.pools import largest_gang
from trainyard.derive.queues import team_queue_plan
from trainyard.derive.team_stores import stores_of
from trainyard.parts.parts import parts_for_teams
from trainyard.plans.directories import path_of
from trainyard.plans.identity import digest
from trainyard.plans.jobs import RuntimePlan
from trainyard.settings.cluster import ClusterConfig
from trainyard.settings.environment import ArtifactsConfig, EnvironmentConfig, RegistryConfig
from trainyard.settings.network import AnyNetwork, ExistingNetworkConfig, NetworkConfig
from trainyard.settings.pools import PoolConfig
from trainyard.settings.reading.contracts import VERSION, signature, whole_numbers
from trainyard.settings.stores import StoreConfig
from trainyard.settings.team_entry import TeamEntryConfig

SHORT = 12
"""Characters of the digest of a part."""
BY_NAME = ("pools", "storage", "teams")
"""Settings each of whose entries has a digest of its own."""


def contract(stack: str, region: str, wanted: EnvironmentConfig) -> dict[str, Any]:
    """The contract of every team that the environment does not list: plain data in a stable order, with a
    digest of its own."""
    teams = {
        name: TeamEntryConfig(deployer=entry.deployer, namespace=entry.namespace)
        for name, entry in wanted.teams.items()
    }
    reduced = replace(
        _environment(wanted, wanted.storage),
        teams=teams,  # their namespaces are taken
        cluster=replace(
            _cluster(wanted.cluster), deployer_role_arn=wanted.cluster.deployer_role_arn
        ),
    )
    return _signed(stack, region, {}, reduced)


def team_contract(
    stack: str, region: str, name: str, wanted: EnvironmentConfig, kept: Mapping[str, int]
) -> dict[str, Any]:
    """The contract of one team that the environment lists. `kept`: of kept_nodes, which whoever writes
    many contracts sums up once."""
    entry = wanted.teams[name]
    pools = _possible(name, wanted, kept)
    team = {
        "name": name,
        "namespace": entry.namespace_of(name),
        **({"queue": name} if wanted.queues is not None else {}),
        **_seen(name, entry, wanted),
    }
    reduced = replace(
        _environment(wanted, _stores(entry, wanted)),
        teams={name: _entry(entry, pools)},
        pools={pool: _pool(wanted.pools[pool]) for pool in pools},
    )
    return _signed(stack, region, {"team": team}, reduced)


def explained(promised: Mapping[str, Any], runtimes: Sequence[RuntimePlan]) -> dict[str, Any]:
    """A contract with what follows from it, for people and programs that read it: images of runtimes,
    releases, and a digest for each part. `runtimes`: of the environment."""
    environment = promised["environment"]
    trainer = environment["trainer"]["version"]
    known = TRAINER_RELEASES.get(trainer) if "queues" in environment else None
    return {
        **{key: value for key, value in promised.items() if key != "digest"},
        "releases": {
            "kubernetes": environment["cluster"]["version"],
            "trainer": trainer,
            **({"kueue": known.kueue} if known else {}),
        },
        "runtimes": {
            each.name: _images(each.spec) for each in sorted(runtimes, key=attrgetter("name"))
        },
        "digests": {
            key: {name: digest(each)[:SHORT] for name, each in value.items()}
            if key in BY_NAME
            else digest(value)[:SHORT]
            for key, value in environment.items()
        },
        "digest": promised["digest"],
    }


def _signed(
    stack: str, region: str, team: Mapping[str, Any], reduced: EnvironmentConfig
) -> dict[str, Any]:
    promised = {
        "version": VERSION,
        "release": TRAINYARD,
        "stack": stack,
        "region": region,
        **team,
        "environment": _written(reduced),
    }
    return {**promised, "digest": signature(promised)}


def _environment(wanted: EnvironmentConfig, stores: Mapping[str, StoreConfig]) -> EnvironmentConfig:
    """The environment as far as the plan of a team reads it. `stores`: those that the team sees."""
    images = wanted.artifacts and wanted.artifacts.images
    return EnvironmentConfig(
        zone=wanted.zone,
        network=_network(wanted.network),
        cluster=_cluster(wanted.cluster),
        pools={name: _pool(pool) for name, pool in wanted.pools.items()},
        storage={name: replace(store, data=StoreConfig.data) for name, store in stores.items()},
        registries=dict.fromkeys(wanted.registries, RegistryConfig()),
        trainer=replace(wanted.trainer, runtimes=tuple(sorted(wanted.trainer.runtimes))),
        training_operator=wanted.training_operator,
        namespace=wanted.namespace,
        priorities=wanted.priorities,
        queues=replace(wanted.queues, manager=None) if wanted.queues else None,
        production=wanted.production,
        artifacts=ArtifactsConfig(images=images) if images else None,
        kms_key_arn=wanted.kms_key_arn,
        prices=wanted.prices,
        **parts_for_teams(wanted),
    )


def _network(network: AnyNetwork) -> AnyNetwork:
    """The network with its way to the internet, and whose it is."""
    if isinstance(network, ExistingNetworkConfig):
        return ExistingNetworkConfig(
            vpc_id=network.vpc_id,
            private_subnets=network.private_subnets,
            internet=network.internet,
        )
    return NetworkConfig(zones=network.zones, internet=network.internet)


def _cluster(cluster: ClusterConfig) -> ClusterConfig:
    """The release of Kubernetes, and how a team's stack reaches its API."""
    return ClusterConfig(
        version=cluster.version,
        endpoint=cluster.endpoint,
        tunnel_port=cluster.tunnel_port,
        proxy_url=cluster.proxy_url,
        inside_vpc=cluster.inside_vpc,
    )


def _pool(pool: PoolConfig) -> PoolConfig:
    """A pool without what concerns its nodes alone."""
    return replace(
        pool,
        prefetch=None,
        root_volume_gib=PoolConfig.root_volume_gib,
        placement=PoolConfig.placement,
    )


def _stores(entry: TeamEntryConfig, wanted: EnvironmentConfig) -> dict[str, StoreConfig]:
    """The stores that the team can mount, and those that own runtimes mount beside them."""
    own = [each.torchtune for each in wanted.trainer.own_runtimes.values() if each.torchtune]
    names = {*stores_of(entry, wanted), *(recipe.store for recipe in own)}
    return {name: store for name, store in wanted.storage.items() if name in names}


def _entry(entry: TeamEntryConfig, pools: Mapping[str, int | None]) -> TeamEntryConfig:
    """The entry of a team without its people, its tags, and rights that only its pods use. `pools`: of
    _possible."""
    guaranteed = entry.guaranteed_nodes.items()
    return replace(
        entry,
        members=(),
        viewers=(),
        s3_reads=(),
        s3_writes=(),
        kms_key_arns=(),
        tags={},
        guaranteed_nodes={pool: nodes for pool, nodes in guaranteed if pool in pools},
        max_nodes={pool: nodes for pool, nodes in pools.items() if nodes is not None},
    )


def _possible(
    name: str, wanted: EnvironmentConfig, kept: Mapping[str, int]
) -> dict[str, int | None]:
    """Pool that the team can use → nodes of it at most; None: all of them. What other teams keep for
    themselves counts as a limit of this one, whose contract does not name them."""
    queue = team_queue_plan(name, wanted, kept)
    shares = {share.pool: share for share in queue.shares} if queue else {}
    found: dict[str, int | None] = {}
    for pool, settings in wanted.pools.items():
        share = shares.get(pool)
        if share is None:
            found[pool] = wanted.teams[name].max_nodes.get(pool)
        elif share.possible > 0:
            limited = share.ceiling is not None or share.possible < largest_gang(settings)
            found[pool] = share.possible if limited else None
    return found


def _seen(name: str, entry: TeamEntryConfig, wanted: EnvironmentConfig) -> dict[str, Any]:
    """Stores that the team does not see as a whole, or cannot write to."""
    stores = stores_of(entry, wanted)
    apart = sorted(store for store, settings in stores.items() if settings.teams == "apart")
    reads = sorted(store for store, settings in stores.items() if settings.teams == "read_only")
    return {
        **({"directories": dict.fromkeys(apart, path_of(name))} if apart else {}),
        **({"read_only": reads} if reads else {}),
    }


def _written(value: Any) -> Any:
    """Settings as a stack file has them: without defaults, settings in the order of their types, and
    entries by name."""
    if is_dataclass(value) and not isinstance(value, type):
        own = ((each.name, getattr(value, each.name), _default(each)) for each in fields(value))
        return {name: _written(it) for name, it, default in own if it != default}
    if isinstance(value, Mapping):
        return {key: _written(value[key]) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [_written(each) for each in value]
    return value.isoformat() if isinstance(value, datetime) else whole_numbers(value)


def _default(setting: Field[Any]) -> Any:
    return setting.default_factory() if setting.default_factory is not MISSING else setting.default


def _images(spec: Any) -> list[str]:
    """Images of a runtime's containers."""
    inside = [*spec.values()] if isinstance(spec, Mapping) else spec
    if not isinstance(inside, list | tuple):
        return []
    own = spec.get("image") if isinstance(spec, Mapping) else None
    found = {image for each in inside for image in _images(each)}
    return sorted(found | ({own} if isinstance(own, str) else set()))
