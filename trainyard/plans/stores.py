"""Plans of stores: one class for each kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trainyard.plans.identity import Identity
from trainyard.plans.repository import Repository

KEPT = "kept"
"""Output of a component that makes what users' data is in: True where a destroy keeps it."""


@dataclass(frozen=True, kw_only=True)
class StorePlan:
    """Fields of the plan of every kind of store."""

    identity: Identity
    kind: str
    """Its field of `StoreConfig`."""
    keep: bool
    """The data stays when the stack is destroyed."""
    apart: bool = False
    """Each team has a directory of its own."""


@dataclass(frozen=True, kw_only=True)
class LustrePlan(StorePlan):
    capacity_gib: int
    deployment: str
    version: str
    throughput_mbps_per_tib: int | None
    backup_days: int | None
    """Days that daily backups are kept. None: FSx goes on with what it has, or makes none of a SCRATCH_2."""
    restore_from: str | None
    """Id of the backup that it is created from; None: it is empty at first."""
    maintenance: str | None
    """Start of the weekly maintenance in FSx's words, such as 7:16:30; None: FSx chooses."""
    efa: bool
    compression: str
    metadata: str | None
    """Mode of the metadata configuration; None: FSx's default."""
    repositories: Mapping[str, Repository]
    """By the name of the store and of the link: scratch.data."""


@dataclass(frozen=True, kw_only=True)
class EfsBackups:
    """Daily backups of an EFS file system by AWS Backup."""

    days: int
    """Number of days that a backup is kept."""
    name: str
    """Name of the vault, of the plan and of its selection, at most 50 characters."""
    role: str
    """Name of the role that AWS Backup assumes."""


@dataclass(frozen=True, kw_only=True)
class EfsPlan(StorePlan):
    creation_token: str
    """At most 64 characters."""
    zones: tuple[str, ...]
    """Names of the zones that get a mount target, the training zone first: every zone that a pool
    may launch nodes in."""
    throughput: str
    """elastic, provisioned or bursting."""
    throughput_mibps: int | None
    """MiB/s of provisioned throughput."""
    lifecycle: tuple[tuple[str, str], ...]
    """Transitions between storage classes, in EFS's words: (transition_to_ia, AFTER_30_DAYS)."""
    only_this_cluster: bool = False
    """Its policy refuses whoever has not the role of the cluster's CSI driver."""
    backups: EfsBackups | None = None


@dataclass(frozen=True, kw_only=True)
class ExistingStorePlan(StorePlan):
    """An existing file system, which the stack uses and does not change."""

    path: str
    """The setting that names it."""
    file_system_id: str
    zones: tuple[str, ...]
    """Names of the zones that a pool may launch nodes in, the training zone first."""


@dataclass(frozen=True, kw_only=True)
class ExistingLustrePlan(ExistingStorePlan):
    """An existing FSx for Lustre file system."""


@dataclass(frozen=True, kw_only=True)
class ExistingEfsPlan(ExistingStorePlan):
    """EFS."""
