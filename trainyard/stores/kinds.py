"""The table of kinds, and what the rest of the program asks about a store of any kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from trainyard.catalog.aws.storage import Driver
from trainyard.plans.directories import path_of
from trainyard.plans.identity import Identity, digest
from trainyard.plans.jobs import ClaimPlan
from trainyard.plans.stores import StorePlan
from trainyard.settings.stores import StoreConfig
from trainyard.stores.efs import Efs
from trainyard.stores.existing import ExistingEfs, ExistingLustre
from trainyard.stores.kind import Shown, StoreKind
from trainyard.stores.lustre import Lustre
from trainyard.stores.s3 import S3

AnyKind = StoreKind[Any, Any]
Stores = Mapping[str, StoreConfig]

KINDS: dict[str, AnyKind] = {kind.name: kind for kind in (Lustre(), Efs(), S3())}
"""By their field of `StoreConfig`, in the order in which stores are made."""
EXISTING: dict[str, AnyKind] = {kind.name: kind for kind in (ExistingLustre(), ExistingEfs())}
"""Kinds of existing file systems, by the same fields."""
OF_PLANS: dict[type, AnyKind] = {kind.plans: kind for kind in (*KINDS.values(), *EXISTING.values())}
"""By the class of their plans."""
SERVICES = tuple(service for kind in KINDS.values() for service in kind.services)
"""Services of AWS that only some stores use."""


def whose(kind: AnyKind, settings: Any) -> AnyKind:
    """The kind that settings in that field mean: a file system of the stack, or an existing one."""
    return EXISTING[kind.name] if getattr(settings, "file_system_id", None) else kind


def kinds_of(store: StoreConfig) -> list[tuple[AnyKind, Any]]:
    """The kinds that a store names, each with its settings: one, unless the store is refused."""
    found = [(kind, getattr(store, name)) for name, kind in KINDS.items()]
    return [(whose(kind, settings), settings) for kind, settings in found if settings is not None]


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
    return OF_PLANS[type(plan)]


def sized(store: StoreConfig, region: str, instance_types: list[str]) -> StoreConfig:
    """The store with size and speed decided."""
    changed = {
        kind.name: kind.sized(settings, region, instance_types)
        for kind, settings in kinds_of(store)
    }
    return replace(store, **changed)


def store_plans(me: Identity, stores: Stores, zones: tuple[str, ...]) -> dict[str, StorePlan]:
    """Plans of the stores, once their size is decided. `zones`: those in which a pool may launch
    nodes, the training zone first."""
    return {
        name: replace(
            whose(kind, settings).plan(
                me, name, settings, keep=stores[name].data == "keep", zones=zones
            ),
            apart=stores[name].teams == "apart",
        )
        for kind in KINDS.values()
        for name, settings in of_kind(stores, kind).items()
    }


def claim_name(name: str, store: StoreConfig, zone: str, key: str | None) -> str:
    """Name of the store's claim. It changes where AWS would replace the store or teams would see
    another part of it; jobs then move to the new claim. It is the same in every namespace, because a
    ClusterTrainingRuntime mounts a claim of its job's namespace. `key`: `environment.kms_key_arn`."""
    found = kind_of(store)
    made = found[0].made_from(found[1], zone) if found else []
    made += ["key", key] if key and found and found[0].keeps_its_key else []
    made += [] if store.teams == "together" else ["teams", store.teams]
    return f"{name}-{digest(made)[:8]}"


def claim_plan(
    namespace: str,
    name: str,
    store: StoreConfig,
    zone: str,
    key: str | None,
    team: str | None = None,
) -> ClaimPlan:
    """A store as a namespace sees it. `key`: of `claim_name`. `team`: whose namespace it is; None: the
    environment's own, which sees all of every store."""
    [(kind, settings)] = kinds_of(store)
    claim, options = claim_name(name, store, zone, key), kind.mount_options(settings)
    if team and store.teams == "apart":
        options = kind.directory_options(settings, path_of(team))
    elif team and store.teams == "read_only":
        options = kind.read_only_options(settings)
    return ClaimPlan(
        store=name,
        driver=kind.driver,
        options=options,
        access_mode=kind.access_mode(settings),
        name=claim,
        volume_name=f"{namespace}-{claim}",
        capacity=kind.capacity(settings),
    )


def directories_by_pod(stores: Stores) -> dict[str, StoreConfig]:
    """The stores in which a pod must make the directories of teams."""
    return {
        name: store
        for name, store in stores.items()
        if store.teams == "apart" and any(kind.directories_by_pod for kind, _ in kinds_of(store))
    }


def mounted_by_pods(stores: Stores) -> bool:
    """True where a directory of a team is mounted with the AWS identity of the pod."""
    return any(
        kind.mounted_by_pods
        for store in stores.values()
        if store.teams == "apart"
        for kind, _ in kinds_of(store)
    )


def drivers(stores: Stores) -> Iterator[Driver]:
    """The driver of each kind of which there is a store."""
    return (kind.driver for kind in KINDS.values() if of_kind(stores, kind))


def service_account(driver: Driver, stores: Stores) -> str:
    """ServiceAccount of the driver's pods that need a role for one of the stores; empty where they
    need none."""
    wanted = (
        whose(kind, settings).service_account(settings)
        for kind in KINDS.values()
        if kind.driver == driver
        for settings in of_kind(stores, kind).values()
    )
    return next(filter(None, wanted), "")


def needs_client(store: StoreConfig) -> bool:
    """True where nodes that mount the store need programs of its client."""
    return any(kind.needs_client for kind, _ in kinds_of(store))


def made_for_efa(store: StoreConfig) -> bool:
    """True where nodes can mount the store over EFA."""
    return any(kind.made_for_efa(settings) for kind, settings in kinds_of(store))


def shown_parts(me: Identity, name: str, store: StoreConfig) -> tuple[Shown, ...]:
    """Parts of S3 in which a new object is a file of the store."""
    return tuple(
        each for kind, settings in kinds_of(store) for each in kind.shown(me, name, settings)
    )
