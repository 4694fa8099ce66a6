"""Settings of stores: one class for each kind, and a field of `StoreConfig` for it.

Their plans, kind by kind: trainyard/stores/.
"""

import re
from dataclasses import dataclass, field
from typing import Annotated, Literal

import pydantic

from trainyard.catalog.aws.storage import (
    BACKUP_DAYS_AT_MOST,
    CHECKPOINT_BYTES_PER_PARAMETER,
    EFS_MIBPS_AT_MOST,
)
from trainyard.plans.repository import Repository
from trainyard.settings.job import Name, Positive
from trainyard.settings.section import Section

TeamsSee = Literal["together", "apart", "read_only"]
EfsDays = Literal[1, 7, 14, 30, 60, 90, 180, 270, 365]
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
"""As FSx counts them, from 1."""
WINDOW = rf"^({'|'.join(DAYS)}) ([01]\d|2[0-3]):[0-5]\d$"
FILE_SYSTEM = r"^fs-[0-9a-f]{8,17}$"
BACKUP = r"^backup-[0-9a-f]{8,17}$"
VAULT_DAYS_AT_MOST = 36_500
"""The longest that AWS Backup keeps a backup for a number of days (AWS Backup API,
PutBackupVaultLockConfiguration, MaxRetentionDays)."""
BackupId = Annotated[str, pydantic.Field(pattern=BACKUP)]
MaintenanceWindow = Annotated[str, pydantic.Field(pattern=WINDOW)]
FileSystemId = Annotated[str, pydantic.Field(pattern=FILE_SYSTEM)]


def nearest_window(text: str) -> str:
    """The window that a text means, such as `Sun 16:30`, AWS's 7:16:30 or sunday 24:00; empty where none is."""
    found = re.fullmatch(r"([a-z]{2,}|[1-7])[:, ]+(\d{1,2}):([0-5]\d)", text.strip().lower())
    hour = int(found[2]) if found else 25
    days = [
        number
        for number, name in enumerate(DAYS)
        if found and (found[1] == str(number + 1) or name.startswith(found[1]))
    ]
    if not found or not days or hour > 24 or (hour == 24 and found[3] != "00"):
        return ""
    return f"{DAYS[(days[0] + hour // 24) % 7]} {hour % 24:02}:{found[3]}"


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """A model and the number of nodes that train it. The size of a checkpoint and the store's size
    and speed follow from them."""

    parameters_billion: Annotated[float, pydantic.Field(gt=0, le=10_000)]
    """Number of parameters of the model, in billions."""
    nodes: Positive
    """Number of nodes that train the model."""
    bytes_per_parameter: Annotated[float, pydantic.Field(gt=0, le=32)] = (
        CHECKPOINT_BYTES_PER_PARAMETER
    )
    """Size of a checkpoint divided by the number of parameters. 12 bytes are fp32 weights and the
    two moments of Adam."""
    goodput_percent: Annotated[float, pydantic.Field(gt=0, lt=100)] = 95
    """Share of the time that must be left for training, after checkpoints, failures and
    restarts."""


@dataclass(frozen=True, kw_only=True)
class LustreConfig:
    """FSx for Lustre, in `environment.zone`. Set either `capacity_gib` and
    `throughput_mbps_per_tib`, or `for_model`, or `file_system_id` alone."""

    file_system_id: FileSystemId | None = None
    """ID of a file system that exists already: fs-0123456789abcdef0. This program never creates,
    changes or deletes it. It must be in the VPC of `network.vpc_id` and in `environment.zone`, and
    its security groups must let the nodes in: see docs/storage.md. Set no other setting of
    `lustre` with it."""
    capacity_gib: Positive | None = None
    """Size of the file system: 1200 or a multiple of 2400. A larger number grows the file system in
    place, and its speed with it; FSx takes one such change in six hours. It cannot become
    smaller."""
    deployment: Literal["SCRATCH_2", "PERSISTENT_2"] = "PERSISTENT_2"
    """Deployment type of FSx. PERSISTENT_2 replicates data within the zone. SCRATCH_2 loses data
    when a server fails."""
    throughput_mbps_per_tib: Positive | None = None
    """Speed of PERSISTENT_2: 125, 250, 500 or 1000. The write speed decides how long a checkpoint
    takes. Leave it out with SCRATCH_2."""
    for_model: Section[ModelConfig] = None
    """Chooses the cheapest size and speed that keep a model of this size at its goodput."""
    backup_days: (
        Annotated[int, pydantic.Field(ge=0, le=BACKUP_DAYS_AT_MOST, strict=True)] | None
    ) = None
    """Number of days that daily backups are kept. FSx backs up only PERSISTENT_2 without
    `repositories`. By default there are none; with `restore_from`, FSx goes on with those of the file
    system that was backed up, and 0 ends them in the update after the first."""
    restore_from: BackupId | None = None
    """ID of a backup of FSx from which the file system is created: backup-0123456789abcdef0.
    `capacity_gib`, `throughput_mbps_per_tib` and `efa` must be those of the file system that was backed
    up. Leave the setting in the file afterwards: without it, or with another backup, the stack
    creates another file system."""
    maintenance_window: MaintenanceWindow | None = None
    """When FSx may take the file system away for some minutes to patch it, once a week, in UTC:
    sunday 16:30. Jobs wait meanwhile. By default FSx chooses day and hour."""
    efa: bool = False
    """`true`: the file system can be mounted over EFA, which p5, p5e, p5en and p6 nodes do: several
    times faster for each node. A change replaces the file system, and so does a change of
    `throughput_mbps_per_tib` while it is true."""
    repositories: dict[Name, Repository] = field(default_factory=dict)
    """Links of directories to S3, at most eight. A link cannot be renamed: FSx refuses a second
    link to the same directory."""


@dataclass(frozen=True, kw_only=True)
class LifecycleConfig:
    """Moves of files that nobody reads to cheaper storage of EFS. Reading from there is slower, and
    each GB costs money."""

    infrequent_after_days: EfsDays | None = None
    """Days without access after which a file moves to Infrequent Access: 1, 7, 14, 30, 60, 90, 180,
    270 or 365. By default it stays."""
    archive_after_days: EfsDays | None = None
    """Days without access after which a file moves to Archive, the cheapest storage: the same numbers,
    and more than `infrequent_after_days`. EFS has it with elastic throughput only. By default files
    are not archived."""
    back_on_access: Annotated[bool, pydantic.Field(strict=True)] = False
    """`true`: a file moves back when it is read. By default it stays where it is."""


@dataclass(frozen=True, kw_only=True)
class EfsConfig:
    """EFS: for code, data sets and home directories, not for checkpoints of
    large models. It has a mount target in `environment.zone` and in every fallback zone of a pool.
    No setting is required: write `efs: {}`."""

    file_system_id: FileSystemId | None = None
    """ID of a file system that exists already: fs-0123456789abcdef0. This program never creates,
    changes or deletes it. It must have a mount target in the VPC of `network.vpc_id` in
    `environment.zone` and in every fallback zone of a pool, whose security groups let the nodes in:
    see docs/storage.md. Set no other setting of `efs` with it."""
    throughput: Literal["elastic", "provisioned", "bursting"] = "elastic"
    """Throughput mode. `elastic`, the recommended value: as much as is asked for, paid by the GB.
    `provisioned`: `throughput_mibps`, paid by the month, used or not. `bursting`: 50 MiB/s for each
    TiB stored, which costs nothing more. EFS changes the mode in place, at most once in 24 hours."""
    throughput_mibps: (
        Annotated[int, pydantic.Field(ge=1, le=EFS_MIBPS_AT_MOST, strict=True)] | None
    ) = None
    """MiB/s of `throughput: provisioned`, at most 3414, and outside of us-east-1, us-east-2, us-west-2
    and eu-west-1 at most 1024 until AWS Support raises it: so much is written, or three times as much
    read. EFS lowers it at most once in 24 hours."""
    lifecycle: Section[LifecycleConfig] = None
    """Moves of files to cheaper storage. By default all of them stay in the standard class."""
    only_this_cluster: Annotated[bool, pydantic.Field(strict=True)] = False
    """`true`: EFS refuses whoever mounts the file system without TLS, or without the IAM role of
    this cluster's CSI driver. By default whoever reaches a mount target can mount it. A change
    gives the store another claim: set it when the store is new, or while no job mounts it."""
    backup_days: Annotated[int, pydantic.Field(ge=0, le=VAULT_DAYS_AT_MOST, strict=True)] = 0
    """Number of days that daily backups are kept. AWS Backup makes them, in a vault of the store. With
    `data: keep` the vault is kept, too. With `data: delete` it is deleted with the stack, and every
    backup with it. By default there are no backups."""


@dataclass(frozen=True, kw_only=True)
class S3Config:
    """An S3 bucket, mounted with Mountpoint for Amazon S3: for data sets that jobs read. Mountpoint
    cannot rename a file, change it or append to it, so checkpoints and logs need a Lustre or EFS
    store."""

    bucket: str | None = None
    """Name of an existing bucket. This program never changes or deletes it. By default the stack
    creates a bucket: private, encrypted and reachable over TLS only."""
    writable: Annotated[bool, pydantic.Field(strict=True)] = False
    """`true`: jobs may create files, each written once from beginning to end. By default the bucket
    is mounted read-only, which is the recommended value."""
    kms_key_arn: str | None = None
    """ARN of the KMS key of the objects. By default S3 encrypts them with its own key."""
    delete_after_days: dict[str, Positive] = field(default_factory=dict)
    """Prefix of objects, such as checkpoints/, and the days after which S3 deletes them. By default
    objects stay. Of a bucket that the stack creates."""
    versioning: Annotated[bool, pydantic.Field(strict=True)] = False
    """`true`: S3 keeps an object that is deleted or overwritten as an old version, which is paid
    for. By default what is deleted is gone. Of a bucket that the stack creates."""
    old_versions_days: Positive | None = None
    """Days after which S3 deletes an old version, 30 by default. Needs `versioning`."""


@dataclass(frozen=True, kw_only=True)
class StoreConfig:
    """Shared storage that jobs mount by its name. Set exactly one of `lustre`, `efs` and `s3`."""

    lustre: Section[LustreConfig] = None
    efs: Section[EfsConfig] = None
    s3: Section[S3Config] = None
    teams: TeamsSee = "together"
    """Access of the teams of `environment.teams` to the store. `together`: every team reads and
    writes the whole store. `apart`: each team has a directory of its own, `teams/<team>`, and
    cannot reach the directories of other teams. `read_only`: every team reads the whole store and
    cannot write to it. A change gives the store another claim: jobs of the stack that mount it start
    again, and it is refused while a job of a team mounts it."""
    data: Literal["keep", "delete"] = "keep"
    """`keep`: the store is protected, and `pulumi destroy` leaves it and prints its name. `delete`:
    the store and its data are deleted with the stack, once a `pulumi up` has taken the protection away.
    A bucket or file system that existed before always stays."""
