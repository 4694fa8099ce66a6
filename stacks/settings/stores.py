"""What a stack file may say about stores: one class of settings for each kind, and a field of
`StoreConfig` for it.

What follows from them, kind by kind: stacks/stores/.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

import pydantic

from catalog.storage import BACKUP_DAYS_AT_MOST, CHECKPOINT_BYTES_PER_PARAMETER
from stacks.settings.job import Name, Positive


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


S3Event = Literal["NEW", "CHANGED", "DELETED"]


@dataclass(frozen=True, kw_only=True)
class RepositoryConfig:
    """Links a directory of the file system to an S3 prefix (a data repository association of
    FSx)."""

    s3: str
    """The bucket and, optionally, a prefix: s3://bucket/prefix/. The bucket must exist. FSx reads
    it with a role of its own."""
    path: str
    """The directory, from the root of the file system: /data. A job finds it below the path where
    it mounts the store."""
    auto_import: tuple[S3Event, ...] = ("NEW", "CHANGED", "DELETED")
    """Changes in the bucket that appear in the directory. The bucket must be in `aws:region`."""
    auto_export: tuple[S3Event, ...] = ()
    """Changes in the directory that are written to the bucket. By default nothing is written, which
    is the recommended value."""
    import_at_creation: bool = True
    """Whether files that are in the bucket already appear in the directory. Their contents are
    loaded when a file is first read."""
    delete_data_in_filesystem: bool = False
    """Whether the directory's files are deleted from the file system when the link is removed. The
    bucket keeps its files."""


@dataclass(frozen=True, kw_only=True)
class LustreConfig:
    """FSx for Lustre, in `environment.zone`. Set either `capacity_gib` and
    `throughput_mbps_per_tib`, or `for_model`."""

    capacity_gib: Positive | None = None
    """Size of the file system: 1200 or a multiple of 2400."""
    deployment: Literal["SCRATCH_2", "PERSISTENT_2"] = "PERSISTENT_2"
    """Deployment type of FSx. PERSISTENT_2 replicates data within the zone. SCRATCH_2 loses data
    when a server fails."""
    throughput_mbps_per_tib: Positive | None = None
    """Speed of PERSISTENT_2: 125, 250, 500 or 1000. The write speed decides how long a checkpoint
    takes. Leave it out with SCRATCH_2."""
    for_model: ModelConfig | None = None
    """Chooses the cheapest size and speed that keep a model of this size at its goodput."""
    backup_days: Annotated[int, pydantic.Field(ge=0, le=BACKUP_DAYS_AT_MOST, strict=True)] = 0
    """Number of days that daily backups are kept. FSx backs up only PERSISTENT_2 without
    `repositories`."""
    efa: bool = False
    """Whether the file system can be mounted over EFA, which p5, p5e, p5en and p6 nodes do: several
    times faster for each node. A change replaces the file system, and so does a change of
    `throughput_mbps_per_tib` while it is true."""
    repositories: dict[Name, RepositoryConfig] = field(default_factory=dict)
    """Links of directories to S3, at most eight. A link cannot be renamed: FSx refuses a second
    link to the same directory."""


@dataclass(frozen=True, kw_only=True)
class EfsConfig:
    """EFS with elastic throughput: for code, data sets and home directories, not for checkpoints of
    large models. It has a mount target in `environment.zone` and in every fallback zone of a pool.
    It has no settings: write `efs: {}`."""


@dataclass(frozen=True, kw_only=True)
class StoreConfig:
    """A shared file system that jobs mount by its name. Set exactly one of `lustre` and `efs`."""

    lustre: LustreConfig | None = None
    efs: EfsConfig | None = None
    data: Literal["keep", "delete"] = "keep"
    """`keep`: the file system is protected, and `pulumi destroy` leaves it and prints its name.
    `delete`: the file system is deleted with the stack."""
