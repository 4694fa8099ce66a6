"""What a stack file may say of a training run: its settings, their types, defaults and units.

Add a setting here; what follows from it belongs in stacks/derive/jobs.py, what is
refused in stacks/rules/jobs.py and stacks/rules/pods.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

import pydantic

from catalog.storage import CHECKPOINT_BYTES_PER_PARAMETER

Name = Annotated[str, pydantic.Field(pattern=r"^[a-z]([-a-z0-9]{0,30}[a-z0-9])?$")]
"""Lower-case letters, digits and dashes, at most 32: it becomes part of Kubernetes and AWS
names."""
Positive = Annotated[int, pydantic.Field(ge=1, strict=True)]
"""Strict, here and below: `true` is not one node."""


@dataclass(frozen=True, kw_only=True)
class MountConfig:
    """Where a job sees a store."""

    path: Annotated[str, pydantic.Field(pattern=r"^/[^:]+$")]
    """Absolute path in the container."""


@dataclass(frozen=True, kw_only=True)
class CheckpointConfig:
    """Where a job keeps what a restart resumes from, found by CHECKPOINT_DIR: /checkpoints, or
    below the path where the job mounts the whole store anyway."""

    store: Name
    directory: Annotated[str, pydantic.Field(pattern=r"^[^/].*[^/]$|^[^/]$")]
    """Relative to the store's root; made where it is missing, but by the job itself below a mount
    of its own."""
    interval_minutes: Annotated[float, pydantic.Field(gt=0)] | None = None
    """How often the script saves. None: the optimum for `model` is assumed, and named."""
    asynchronous: bool = False
    """The script copies to memory and writes behind training: a save stalls it for seconds only."""


@dataclass(frozen=True, kw_only=True)
class DirectoryConfig:
    """A directory of a store, found by a variable of the job's environment."""

    store: Name
    directory: Annotated[str, pydantic.Field(pattern=r"^[^/].*[^/]$|^[^/]$")]
    """Relative to the store's root."""


@dataclass(frozen=True, kw_only=True)
class RendezvousConfig:
    """An etcd that ranks meet at, in the place of c10d on the first node; for many hundreds of
    nodes."""

    etcd: Annotated[str, pydantic.Field(pattern=r"^[^:/\s]+:\d+$")]
    """host:port of a server that pods reach; torchrun speaks version 2 of its API."""


@dataclass(frozen=True, kw_only=True)
class TorchrunConfig:
    """A Python script under torchrun, with everything that decides where ranks meet generated."""

    script: str
    """Path in the container."""
    arguments: tuple[str, ...] = ()
    max_restarts: Annotated[int, pydantic.Field(ge=0, le=100, strict=True)] = 0
    """Of a node's ranks by torchrun itself, before the pod fails and the gang restarts."""
    rendezvous: RendezvousConfig | None = None
    """c10d on the first node, unless set."""


@dataclass(frozen=True, kw_only=True)
class FilesConfig:
    """Scripts of this checkout, brought into the container by a ConfigMap: at most 1 MiB of text
    together."""

    sources: Annotated[tuple[str, ...], pydantic.Field(min_length=1)]
    """Relative to the project's folder; each appears by its own name, without folders."""
    path: Annotated[str, pydantic.Field(pattern=r"^/[^:]+$")] = "/workspace"


@dataclass(frozen=True, kw_only=True)
class HostPathConfig:
    """A folder of the node, read-only. Its namespace then admits pods that Pod Security's baseline
    refuses."""

    host: Annotated[str, pydantic.Field(pattern=r"^/[^:]+$")]
    path: Annotated[str, pydantic.Field(pattern=r"^/[^:]+$")]
    """Where the container sees it."""


@dataclass(frozen=True, kw_only=True)
class SecretConfig:
    """A key of a Kubernetes Secret that exists in the job's namespace. Its value never passes
    through this program."""

    secret: Annotated[str, pydantic.Field(pattern=r"^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$")]
    key: Annotated[str, pydantic.Field(pattern=r"^[-._a-zA-Z0-9]+$")]


@dataclass(frozen=True, kw_only=True)
class TorchtuneConfig:
    """Upstream's fine-tuning recipe for a model: it and a data set (tatsu-lab/alpaca) are fetched
    into a store of the stack, and what comes out lies beside them, in output."""

    model: str
    """As the name of upstream's runtime for it ends, after torchtune-; Llama's are gated."""
    store: Name
    directory: Annotated[str, pydantic.Field(pattern=r"^[^/].*[^/]$|^[^/]$")]
    """Relative to the store's root; pods see it as /workspace."""
    token: SecretConfig | None = None
    """Of Hugging Face, in the namespace of each job."""


@dataclass(frozen=True, kw_only=True)
class ElasticConfig:
    """As many nodes as there are, within bounds; Trainer up to 2.3 cannot, a PyTorchJob can."""

    min_nodes: Positive
    max_nodes: Positive


@dataclass(frozen=True, kw_only=True)
class PyTorchJobConfig:
    """What only a PyTorchJob (training-operator v1) has."""

    clean_pods: Literal["none", "running", "all"] = "running"
    """Which pods go when the job ends. With none the peers of a failed pod go on, and are paid for;
    with running a Worker that ends a moment after the Master loses its log."""
    keep_finished_minutes: Annotated[int, pydantic.Field(ge=0, strict=True)] | None = None
    """The finished job is deleted after this long; None: with its entry. `up` after a refresh would
    start it again."""
    restarts: Annotated[int, pydantic.Field(ge=0, le=100, strict=True)] = 0
    """How often the whole gang may start again, in place; backoffLimit counts two restarts of each
    pod for it."""
    coordinator: bool = False
    """A Master without GPUs beside `nodes` Workers: all ranks run in the Workers, and it ends when
    they have."""


@dataclass(frozen=True, kw_only=True)
class ManifestConfig:
    """A YAML file as people have it: a TrainJob or PyTorchJob, with its runtime and ConfigMaps if
    they are its own."""

    manifest: str
    """The file, relative to the project's folder."""
    pool: Name
    """Where it runs: its selectors and tolerations are checked against this pool."""
    claims: dict[str, Name] = field(default_factory=dict)
    """Claim as the file calls it → store of the environment."""
    expected_hours: Annotated[float, pydantic.Field(gt=0)] | None = None
    run: Positive = 1
    """Count it up to run the same job again."""
    wait: Literal["none", "running", "complete"] = "none"
    wait_minutes: Annotated[int, pydantic.Field(ge=1, strict=True)] = 60


@dataclass(frozen=True, kw_only=True)
class JobConfig:
    """One training run: a TrainJob on a `runtime`, or a PyTorchJob with `pytorch_job`."""

    nodes: Positive
    pool: Name
    image: str
    runtime: str | None = None
    """Of the environment; either this or `pytorch_job`."""
    pytorch_job: PyTorchJobConfig | None = None
    """`{}` makes a PyTorchJob of the same description."""
    script: str | None = None
    """Bash text, run with `set -euo pipefail`; one of script, command and torchrun. None of them on
    a runtime of kind torchtune, which has a recipe."""
    command: tuple[str, ...] = ()
    torchrun: TorchrunConfig | None = None
    elastic: ElasticConfig | None = None
    """In the place of exactly `nodes`; of a PyTorchJob only."""
    gpus_per_node: Positive | None = None
    """All of the type's when left out: a pod a node is what NVLink and EFA are made for."""
    processes_per_node: Positive | Literal["auto"] = "auto"
    """torchrun's nproc_per_node; auto is one a GPU."""
    storage: dict[Name, MountConfig] = field(default_factory=dict)
    """store → mount path."""
    checkpoints: CheckpointConfig | None = None
    parameters_billion: Annotated[float, pydantic.Field(gt=0, le=10_000)] | None = None
    """Size of the model; with it the plan says what a checkpoint takes and what share of the time
    is left to train."""
    bytes_per_parameter: Annotated[float, pydantic.Field(gt=0, le=32)] = (
        CHECKPOINT_BYTES_PER_PARAMETER
    )
    """Of a checkpoint: 12 is fp32 weights and Adam's two moments."""
    goodput_percent: Annotated[float, pydantic.Field(gt=0, lt=100)] | None = None
    """Refuse a store that cannot keep this share of the time for training."""
    expected_hours: Annotated[float, pydantic.Field(gt=0)] | None = None
    """How long it runs: makes $ a job, and must fit a Capacity Block."""
    allow_no_checkpoint: bool = False
    """Accept that a restart of the gang begins at step 0."""
    allow_slow_fabric: bool = False
    """Accept several nodes of a type whose GPUs cannot reach the network by themselves; says no
    more about it."""
    shared_memory_gib: Positive = 64
    """/dev/shm; the 64 MiB default of a container is a bus error in the first DataLoader."""
    local_scratch: Annotated[str, pydantic.Field(pattern=r"^/[^:]+$")] | None = None
    """Folder on the node's own NVMe, for caches and staged checkpoints; it is gone with the pod."""
    files: FilesConfig | None = None
    host_paths: dict[Name, HostPathConfig] = field(default_factory=dict)
    tensorboard: DirectoryConfig | None = None
    """Where event files go, found by TENSORBOARD_DIR: /tensorboard, or below the store where the
    job mounts it."""
    env: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, SecretConfig] = field(default_factory=dict)
    """Variable → where its value stays."""
    pull_secrets: tuple[Name, ...] = ()
    """Secrets for registries that are not ECR; nodes pull from ECR with their role."""
    labels: dict[str, str] = field(default_factory=dict)
    """Of the job and its pods."""
    priority: Name | None = None
    """Of `environment.priorities`; of a PyTorchJob only: a TrainJob's comes with its runtime."""
    time_limit_minutes: Annotated[int, pydantic.Field(ge=1, strict=True)] | None = None
    """The run fails after this long. Trainer 2.1 has no such field."""
    wait: Literal["none", "running", "complete"] = "none"
    """none is the safe choice: `up` ends when the job is accepted. complete: `up` fails when the
    run fails."""
    wait_minutes: Annotated[int, pydantic.Field(ge=1, strict=True)] = 60
    """How long `up` waits, the time that nodes take to come included."""
    run: Positive = 1
    """Count it up to run the same job again."""


TO_S3 = (
    "a Lustre store whose lustre.repositories export to S3: what a node copies itself is lost with"
    " the node, and pods have no AWS identity"
)
_ONE_POD = (
    "drop it: pods ask for whole nodes, so each has its own; with gpus_per_node they may share one"
)
_BY_POOL = "drop it: the pool decides where pods run, and what they tolerate"
NO_SETTINGS = {
    **dict.fromkeys(
        ("spread", "antiaffinity", "podantiaffinity", "topologyspreadconstraints"), _ONE_POD
    ),
    **dict.fromkeys(
        ("affinity", "nodeselector", "nodeaffinity", "tolerations", "zone", "instancetype"),
        _BY_POOL,
    ),
    **dict.fromkeys(
        ("copyto", "copytos3", "s3", "bucket", "upload", "uploadto", "sync", "syncto"), TO_S3
    ),
}
"""What people look for in a job, in small letters → what serves instead."""


def _which_job(value: object) -> str:
    return (
        "manifest"
        if isinstance(value, ManifestConfig) or isinstance(value, dict) and "manifest" in value
        else "job"
    )


AnyJob = Annotated[
    Annotated[JobConfig, pydantic.Tag("job")] | Annotated[ManifestConfig, pydantic.Tag("manifest")],
    pydantic.Discriminator(_which_job),
]
"""A run described here, or in a file of its own."""


def typed(jobs: Mapping[str, AnyJob]) -> dict[str, JobConfig]:
    """The jobs that are described in the stack file."""
    return {name: job for name, job in jobs.items() if isinstance(job, JobConfig)}


def manifests(jobs: Mapping[str, AnyJob]) -> dict[str, ManifestConfig]:
    """The jobs that are files."""
    return {name: job for name, job in jobs.items() if isinstance(job, ManifestConfig)}
