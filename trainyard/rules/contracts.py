"""The environment that a team's stack is judged by, and errors of one that comes as a contract: instance
types, stores and releases of the Trainer that this release does not know.

Whoever wrote the contract has judged the whole stack file. So the time is no matter here, and neither is
what a contract leaves out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from trainyard.derive.network import network_zones
from trainyard.problems import InputError
from trainyard.rules.cluster import trainer_errors, training_operator_errors
from trainyard.rules.environment import errors_of_stores, first_types
from trainyard.rules.network import zone_errors
from trainyard.rules.pools import pool_errors
from trainyard.settings.environment import EnvironmentConfig, StackConfig
from trainyard.settings.network import NetworkConfig
from trainyard.settings.reading.contracts import ContractReading, unknown_to_this_release
from trainyard.settings.reading.reader import any_environment
from trainyard.stores.kinds import sized

ALWAYS = datetime.min.replace(tzinfo=UTC)
"""A time at which no reservation is over."""


@dataclass(frozen=True)
class Promise:
    """Facts about the environment that its settings alone do not tell."""

    contract: Mapping[str, Any]
    leads_out: bool


@dataclass(frozen=True)
class Base:
    """The environment that a team runs on."""

    config: StackConfig
    environment: EnvironmentConfig
    """With the size of every store decided, where nothing is wrong with it."""
    promise: Promise | None
    """None where something is wrong with it."""
    errors: tuple[InputError, ...] = ()


def base_of_contract(found: ContractReading, region: str, number: int = 0) -> Base:
    """The environment of a contract. `region`: of the team. `number`: of the stand-in for what is wrong
    with the contract."""
    configs = found.reading.configs or any_environment(region).configs
    base = configs[min(number, len(configs) - 1)]
    wanted = base.environment
    assert wanted is not None  # an environment without settings has stand-ins for each of them
    if found.errors:
        return Base(base, wanted, None, found.errors)
    wrong = promise_errors(base.region, wanted, network_zones(base.region, wanted))
    if errors := unknown_to_this_release(found.release, wrong):
        return Base(base, wanted, None, tuple(map(found.reading.lines.locate, errors)))
    own = isinstance(wanted.network, NetworkConfig)
    promise = Promise(found.promised, own and wanted.network.internet == "outbound")
    return Base(base, sized_stores(base.region, wanted), promise)


def sized_stores(region: str, wanted: EnvironmentConfig) -> EnvironmentConfig:
    """The environment with every store's size decided."""
    types = first_types(wanted)
    return replace(
        wanted,
        storage={name: sized(store, region, types) for name, store in wanted.storage.items()},
    )


def promise_errors(
    region: str, wanted: EnvironmentConfig, zones: tuple[str, ...]
) -> Iterator[InputError]:
    """Every error of the environment of a contract. `zones`: its network's."""
    yield from zone_errors(region, wanted)
    yield from pool_errors(region, wanted, zones, ALWAYS)
    yield from errors_of_stores(region, wanted)
    yield from trainer_errors(wanted)
    yield from training_operator_errors(wanted)
