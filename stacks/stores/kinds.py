"""The table of kinds, and what the rest of the program asks about a store of any kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from catalog.storage import Driver
from plans.parts import ClaimPlan, Identity, digest
from plans.stores import StorePlan
from stacks.settings.stores import StoreConfig
from stacks.stores.efs import Efs
from stacks.stores.kind import StoreKind
from stacks.stores.lustre import Lustre

AnyKind = StoreKind[Any, Any]
Stores = Mapping[str, StoreConfig]

KINDS: dict[str, AnyKind] = {kind.name: kind for kind in (Lustre(), Efs())}
"""By their field of `StoreConfig`, in the order in which stores are made."""


def kinds_of(store: StoreConfig) -> list[tuple[AnyKind, Any]]:
    """The kinds that a store names, each with its settings: one, unless the store is refused."""
    found = [(kind, getattr(store, name)) for name, kind in KINDS.items()]
    return [(kind, settings) for kind, settings in found if settings is not None]


def kind_of(store: StoreConfig) -> tuple[AnyKind, Any] | None:
    """The kind of a store and its settings; None where it names none or several."""
    found = kinds_of(store)
    return found[0] if len(found) == 1 else None


def of_kind(stores: Stores, kind: AnyKind) -> dict[str, Any]:
    """The stores of one kind: name → settings."""
    found = {name: getattr(store, kind.name) for name, store in stores.items()}
    return {name: settings for name, settings in found.items() if settings is not None}


def plan_kind(plan: StorePlan) -> AnyKind:
    """The kind of a store that is planned."""
    return KINDS[plan.kind]


def sized(store: StoreConfig, region: str, instance_types: list[str]) -> StoreConfig:
    """The store with size and speed decided."""
    changed = {
        kind.name: kind.sized(settings, region, instance_types)
        for kind, settings in kinds_of(store)
    }
    return replace(store, **changed)


def store_plans(me: Identity, stores: Stores, zones: tuple[str, ...]) -> dict[str, StorePlan]:
    """What the stores are made from, once their size is decided. `zones`: those in which a pool may
    launch nodes, the training zone first."""
    return {
        name: kind.plan(me, name, settings, keep=stores[name].data == "keep", zones=zones)
        for kind in KINDS.values()
        for name, settings in of_kind(stores, kind).items()
    }


def claim_name(name: str, store: StoreConfig, zone: str) -> str:
    """Another where AWS would make another store: jobs move to a new claim and nothing waits for the
    old one."""
    found = kind_of(store)
    made = found[0].made_from(found[1], zone) if found else []
    return f"{name}-{digest(made)[:8]}"


def claim_plan(namespace: str, name: str, store: StoreConfig, zone: str) -> ClaimPlan:
    """A store as a namespace sees it."""
    [(kind, settings)] = kinds_of(store)
    claim = claim_name(name, store, zone)
    return ClaimPlan(
        store=name,
        driver=kind.driver,
        options=kind.mount_options(settings),
        access_mode=kind.access_mode(settings),
        name=claim,
        volume_name=f"{namespace}-{claim}",
        capacity=kind.capacity(settings),
    )


def drivers(stores: Stores) -> Iterator[Driver]:
    """The driver of each kind of which there is a store."""
    return (kind.driver for kind in KINDS.values() if of_kind(stores, kind))


def made_for_efa(store: StoreConfig) -> bool:
    """Whether nodes can mount the store over EFA."""
    return any(kind.made_for_efa(settings) for kind, settings in kinds_of(store))
