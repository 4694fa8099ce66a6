"""Settings of a training run: their types, defaults and units.

Add a setting here; what follows from it belongs in trainyard/derive/jobs.py, what is
refused in trainyard/rules/jobs.py and trainyard/rules/pods.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

import pydantic

from trainyard.catalog.aws.latencies import IMAGE_GB
from trainyard.catalog.aws.storage import CHECKPOINT_BYTES_PER_PARAMETER
from trainyard.catalog.failure_rates import OTHER_STOPS_A_DAY
from trainyard.objects.iam.secrets import ManagedSecret
from trainyard.objects.jobs.pod_template import SecretKey, SecretObject
from trainyard.objects.queues.queues import Urgency
from trainyard.settings.section import AnySecret, Name, Reference, Section
from trainyard.settings.training.files import FilesConfig, HostPathConfig
from trainyard.settings.training.loads import LoadConfig
from trainyard.settings.training.model import TrainedModelConfig
from trainyard.settings.training.schedule import ScheduleConfig
from trainyard.settings.training.sweep import SweepConfig

WAIT_MINUTES = 60
"""Default of `wait_minutes` of a job."""
RUN_NUMBER = "{run}"
"""In a directory of a job it stands for the number of the run."""
SCHEDULED_TIME = "{scheduled_time}"
"""In a text of a job with a schedule it stands for the time of the run."""
Positive = Annotated[int, pydantic.Field(ge=1, strict=True)]
"""Strict, here and below: `true` is not one node."""


PullPolicy = Literal["always", "if_not_present", "never"]
"""Times at which kubelet pulls an image."""


@dataclass(frozen=True, kw_only=True)
class MountConfig:
    """Place at which a job mounts a store."""

    path: Annotated[str, pydantic.Field(pattern=r"^/[^:]+$")]
    """Absolute path in the container."""


@dataclass(frozen=True, kw_only=True)
class CheckpointConfig:
    """Directory for checkpoints, from which the job resumes after a restart. The job finds it in
    the variable CHECKPOINT_DIR: /checkpoints, or a path below `storage` where the job mounts the
    same store."""

    store: Reference
    """Name of a store in `environment.storage`."""
    directory: Annotated[str, pydantic.Field(pattern=r"^[^/].*[^/]$|^[^/]$")]
    """Path from the root of the store. A missing directory is created, but not where `storage`
    mounts the same store: there the job must create it. `{run}` in it stands for the number `run`
    of the job: each run then begins afresh, in a directory of its own. Without it a run resumes
    from the checkpoint of the run before it."""
    interval_minutes: Annotated[float, pydantic.Field(gt=0)] | None = None
    """Time between two checkpoints. By default the plan assumes the best interval for the size of
    the model and prints it."""
    keep: Annotated[int, pydantic.Field(ge=2, le=1000, strict=True)] | None = None
    """Number of checkpoints that stay; the script deletes older ones. The job finds it in the variable
    CHECKPOINT_KEEP, which the script must read: see docs/jobs.md. 2 is the least: the newest, and the
    one before in case the newest cannot be read. By default the script decides, and the plan counts
    with 2."""
    asynchronous: bool = False
    """`true`: the script copies a checkpoint to memory and writes it while training goes on.
    Training then stops for seconds only."""
    when_changed: Literal["resume", "afresh"] | None = None
    """Place where the run of a changed job begins. `resume`: at the checkpoint of the run before it, with
    the new arguments. `afresh`: in a directory of its own below `directory`, which each description of
    the job has. By default it resumes, and preview and `up` refuse to replace a run that is complete:
    the new one could end without a step. The setting itself starts no run."""


@dataclass(frozen=True, kw_only=True)
class DirectoryConfig:
    """A directory of a store."""

    store: Reference
    """Name of a store in `environment.storage`."""
    directory: Annotated[str, pydantic.Field(pattern=r"^[^/].*[^/]$|^[^/]$")]
    """Path from the root of the store. `{run}` in it stands for the number `run` of the job."""


@dataclass(frozen=True, kw_only=True)
class RendezvousConfig:
    """An etcd server at which the ranks meet, instead of the c10d backend on the first node. It is
    meant for many hundreds of nodes."""

    etcd: Annotated[str, pydantic.Field(pattern=r"^[^:/\s]+:\d+$")]
    """host:port of a server that pods can reach. torchrun speaks version 2 of the etcd API."""


@dataclass(frozen=True, kw_only=True)
class TorchrunConfig:
    """Runs a Python script with torchrun. The rendezvous arguments of torchrun are generated."""

    script: str
    """Path of the script in the container."""
    arguments: tuple[str, ...] = ()
    """Arguments of the script."""
    max_restarts: Annotated[int, pydantic.Field(ge=0, le=100, strict=True)] = 0
    """Number of times that torchrun restarts the ranks of a node, before the pod fails and the gang
    restarts. An elastic job has at least `pytorch_job.restarts`."""
    rendezvous: Section[RendezvousConfig] = None
    """By default the ranks meet at the first node (c10d)."""


@dataclass(frozen=True, kw_only=True)
class TorchtuneConfig:
    """A fine-tuning recipe of upstream's torchtune runtimes. It downloads the model and a data set
    (tatsu-lab/alpaca) into a store, and writes its results to the folder `output` beside them."""

    model: str
    """Name of the model, as in the name of the upstream runtime after `torchtune-`. The models of
    Llama need `token`."""
    store: Reference
    """Name of a store in `environment.storage`."""
    directory: Annotated[str, pydantic.Field(pattern=r"^[^/].*[^/]$|^[^/]$")]
    """Path from the root of the store. Pods mount it as /workspace."""
    token: Section[SecretKey] = None
    """Hugging Face token, in a Secret of each job's namespace."""


@dataclass(frozen=True, kw_only=True)
class ElasticConfig:
    """Minimum and maximum number of nodes of an elastic PyTorchJob. Trainer releases up to 2.3 have
    no elastic jobs."""

    min_nodes: Positive
    """Fewest nodes with which the job goes on."""
    max_nodes: Positive
    """Most nodes that the job can use. It has `nodes` pods, until `kubectl scale` changes their number."""


@dataclass(frozen=True, kw_only=True)
class PyTorchJobConfig:
    """Settings that only a PyTorchJob (training-operator v1) has."""

    clean_pods: Literal["none", "running", "all"] = "running"
    """Pods that are deleted when the job ends. With `none` the other pods keep running, and cost
    money, after one failed. With `running` the log of a Worker is lost if it ends shortly after the
    Master."""
    restarts: Annotated[int, pydantic.Field(ge=0, le=100, strict=True)] = 0
    """Number of times that the whole gang can restart. One failed rank restarts every pod, and the
    first pod back usually fails once more, so backoffLimit is set to two restarts of each pod."""
    image_pull_policy: PullPolicy | None = None
    """Pull policy of the image. By default Kubernetes pulls the tag latest for each pod, and
    another tag or a digest once for each node."""
    master_labels: dict[str, str] = field(default_factory=dict)
    """Labels of the Master's pod, in addition to `labels` of the job."""
    worker_labels: dict[str, str] = field(default_factory=dict)
    """Labels of the Workers' pods, in addition to `labels` of the job."""
    coordinator: bool = False
    """`true`: the job has a Master without GPUs in addition to `nodes` Workers. All ranks then run
    in the Workers, and the Master ends when they have ended."""


@dataclass(frozen=True, kw_only=True)
class ManifestConfig:
    """A job in a YAML file of its own: a TrainJob or PyTorchJob, with its ConfigMaps and its
    runtime if the file brings them."""

    manifest: str
    """Path of the file, from the folder of Pulumi.yaml."""
    pool: Reference
    """Name of a pool in `environment.pools`. The selectors and tolerations of the file are checked
    against it."""
    claims: dict[str, Reference] = field(default_factory=dict)
    """Name of a PersistentVolumeClaim in the file → name of a store in `environment.storage`."""
    privileged_pods: bool = False
    """`true`: the job's namespace admits pods that Pod Security's baseline level refuses: with
    folders or the network of the node, privileges, or added capabilities."""
    after: tuple[Reference, ...] = ()
    """Jobs of this stack that must be complete before this one begins."""
    urgency: Urgency | None = None
    """Priority in the team's queue: jobs of a higher one go first. By default `normal`, or the team's
    `max_urgency` where that is lower. Only where the environment has `queues`."""
    expected_hours: Annotated[float, pydantic.Field(gt=0)] | None = None
    """Hours that the job runs. The estimate of its cost needs it, and a Capacity Block must be at
    least as long."""
    run: Positive = 1
    """Increase it to run the same job again."""
    wait: Literal["none", "running", "complete"] = "none"
    """State of the run that `pulumi up` waits for. `none`, the recommended value: until the job is
    accepted. `running`: until all its pods run. `complete`: until the run ends; `pulumi up` fails
    when the run fails."""
    wait_minutes: Annotated[int, pydantic.Field(ge=1, strict=True)] = WAIT_MINUTES
    """Minutes that `pulumi up` waits at most, including the time to launch nodes."""


@dataclass(frozen=True, kw_only=True)
class JobConfig:
    """A training job: a TrainJob with `runtime`, or a PyTorchJob with `pytorch_job`."""

    nodes: Positive
    """Number of nodes. Each node runs one pod; with `gpus_per_node` two pods can share a node."""
    pool: Reference
    """Name of a pool in `environment.pools`."""
    image: str
    """Container image: registry/repository:tag, or registry/repository@sha256:…."""
    image_gb: Annotated[float, pydantic.Field(gt=0, le=200)] = float(IMAGE_GB)
    """Size of the image in the registry, compressed, in GB. The plan's minutes and the data through the
    NAT gateway grow with it. 9.35 is AWS's deep learning container of PyTorch."""
    runtime: str | None = None
    """Name of a runtime of the environment: one of `trainer.runtimes` or `trainer.own_runtimes`.
    Set exactly one of `runtime` and `pytorch_job`."""
    pytorch_job: Section[PyTorchJobConfig] = None
    """Makes the job a PyTorchJob. Write `{}` if you need none of its settings."""
    script: str | None = None
    """Bash script. It runs with `set -euo pipefail`. Set exactly one of `script`, `command`,
    `arguments` and `torchrun`. You can leave all four out on an own runtime with a `command`, and on
    one of kind torchtune, which has a recipe."""
    command: tuple[str, ...] = ()
    """Command and arguments of the container."""
    arguments: tuple[str, ...] | None = None
    """Arguments of the image's own entrypoint, which starts the training. `[]` starts it without
    arguments. `trainyard check` cannot see what the entrypoint does."""
    torchrun: Section[TorchrunConfig] = None
    """Runs a Python script with torchrun."""
    elastic: Section[ElasticConfig] = None
    """Lets the number of nodes change while the job runs; `nodes` is the initial number. Only with
    `pytorch_job`."""
    gpus_per_node: Positive | None = None
    """Number of GPUs of each pod. By default a pod gets all GPUs of its node, which NVLink and EFA
    are made for."""
    processes_per_node: Positive | Literal["auto", "gpu", "cpu"] = "auto"
    """Number of ranks of each pod (`nproc_per_node` of torchrun). `auto` and `gpu` are one rank for
    each GPU; `cpu` is one for each vCPU that the pod requests, for pools without GPUs."""
    cpus_per_node: Positive | None = None
    """Number of vCPUs that each pod requests. By default it is the pod's share of 90 % of the
    node's vCPUs, by its share of the GPUs. A pod can use more while its node has some to spare."""
    memory_gib: Positive | None = None
    """Memory of each pod, in GiB: the request and the limit. By default it is the pod's share of
    90 % of the node's memory. /dev/shm counts against it."""
    after: tuple[Reference, ...] = ()
    """Jobs of this stack that must be complete before this one begins."""
    sweep: Section[SweepConfig] = None
    """Makes the entry several runs, which differ in values of arguments."""
    schedule: Section[ScheduleConfig] = None
    """Starts a run at each time of a schedule, and none by `pulumi up`."""
    storage: dict[Name, MountConfig] = field(default_factory=dict)
    """Stores that the job mounts: name of a store in `environment.storage` → path."""
    checkpoints: Section[CheckpointConfig] = None
    """Required where the gang can restart, unless `allow_no_checkpoint` is true."""
    parameters_billion: Annotated[float, pydantic.Field(gt=0, le=10_000)] | None = None
    """Number of parameters of the model, in billions. With it the plan computes how long a
    checkpoint takes and the goodput of the job."""
    model: Section[TrainedModelConfig] = None
    """The model and the way it is trained, from which the memory that it takes of a GPU follows."""
    bytes_per_parameter: Annotated[float, pydantic.Field(gt=0, le=32)] = (
        CHECKPOINT_BYTES_PER_PARAMETER
    )
    """Size of a checkpoint divided by the number of parameters. 12 bytes are fp32 weights and the
    two moments of Adam."""
    other_stops_per_day: Annotated[float, pydantic.Field(ge=0, le=100)] = OTHER_STOPS_A_DAY
    """Stops of the job in a day that no hardware causes: bugs, hangs, drains, updates, people. Goodput and the
    best interval count them beside the failures of nodes. With 0 they count hardware only."""
    goodput_percent: Annotated[float, pydantic.Field(gt=0, lt=100)] | None = None
    """Smallest goodput to accept. A store that is too slow for it is refused."""
    expected_hours: Annotated[float, pydantic.Field(gt=0)] | None = None
    """Hours that the job runs, with its saves, stops and restarts. The estimate of its cost needs it, and
    a Capacity Block must be at least as long."""
    allow_no_checkpoint: bool = False
    """Accepts that the job begins at step 0 after each restart of the gang."""
    allow_slow_fabric: bool = False
    """Turns off the warning about jobs of several nodes on an instance type without GPUDirect RDMA."""
    shared_memory_gib: Positive | None = None
    """Size of /dev/shm, in GiB. By default 64, or half of the pod's memory if that is less. With the
    container default of 64 MiB the DataLoader of PyTorch fails with a bus error."""
    local_scratch: Annotated[str, pydantic.Field(pattern=r"^/[^:]+$")] | None = None
    """Path in the container of a folder on the node's local NVMe disks, for caches and staged
    checkpoints. Its files are deleted with the pod."""
    files: Section[FilesConfig] = None
    """Scripts of this checkout that the job needs."""
    host_paths: dict[Name, HostPathConfig] = field(default_factory=dict)
    """Folders of the node that the job mounts, each under a name of your choice."""
    tensorboard: Section[DirectoryConfig] = None
    """Directory for TensorBoard event files. The job finds it in the variable TENSORBOARD_DIR:
    /tensorboard, or a path below `storage` where the job mounts the same store."""
    env: dict[str, str] = field(default_factory=dict)
    """Environment variables."""
    secrets: dict[str, AnySecret] = field(default_factory=dict)
    """Environment variables whose values are elsewhere: name of the variable → Secret of Kubernetes
    and key, or secret of AWS Secrets Manager. See docs/jobs.md."""
    data: dict[Name, LoadConfig] = field(default_factory=dict)
    """Data sets that are loaded into stores before the job asks for its nodes, each under a name of your
    choice. See docs/data.md."""
    weights: dict[Name, LoadConfig] = field(default_factory=dict)
    """Models that are loaded into stores before the job asks for its nodes, each under a name of your
    choice. See docs/data.md."""
    pull_secrets: tuple[SecretObject, ...] = ()
    """Names of Secrets for registries other than ECR. Nodes pull from ECR with their own role."""
    labels: dict[str, str] = field(default_factory=dict)
    """Labels of the job and its pods."""
    priority: Reference | None = None
    """A name from `environment.priorities`. Only with `pytorch_job`: a TrainJob has the priority of
    its runtime."""
    urgency: Urgency | None = None
    """Priority in the team's queue: jobs of a higher one go first. By default `normal`, or the team's
    `max_urgency` where that is lower. Only where the environment has `queues`."""
    time_limit_minutes: Annotated[int, pydantic.Field(ge=1, strict=True)] | None = None
    """The run fails after this time. Trainer 2.1 has no time limit."""
    wait: Literal["none", "running", "complete"] = "none"
    """State of the run that `pulumi up` waits for. `none`, the recommended value: until the job is
    accepted. `running`: until all its pods run. `complete`: until the run ends; `pulumi up` fails
    when the run fails."""
    wait_minutes: Annotated[int, pydantic.Field(ge=1, strict=True)] = WAIT_MINUTES
    """Minutes that `pulumi up` waits at most, including the time to launch nodes."""
    run: Positive = 1
    """Increase it to run the same job again. It resumes from the checkpoint of the run before,
    unless `checkpoints.directory` contains `{run}`."""

    def in_run(self, directory: str) -> str:
        """The directory with the number of the run in the place of {run}."""
        return directory.replace(RUN_NUMBER, str(self.run))

    @property
    def kind(self) -> str:
        """Kind of the object that runs the job."""
        return "PyTorchJob" if self.pytorch_job else "TrainJob"

    @property
    def kubernetes_secrets(self) -> dict[str, SecretKey]:
        """Variables whose values are in Secrets of the namespace, by name."""
        every = sorted(self.secrets.items())
        return {name: at for name, at in every if isinstance(at, SecretKey)}

    @property
    def managed_secrets(self) -> dict[str, ManagedSecret]:
        """Variables whose values are in Secrets Manager, by name."""
        every = sorted(self.secrets.items())
        return {name: at for name, at in every if isinstance(at, ManagedSecret)}

    @property
    def loads(self) -> dict[str, LoadConfig]:
        """Everything that is loaded before the job, by its setting: data.<name> or weights.<name>."""
        both = {"data": self.data, "weights": self.weights}
        return {f"{kind}.{name}": at for kind, own in both.items() for name, at in own.items()}

    @property
    def resumes_from(self) -> str | None:
        """Where a run finds the checkpoint of the run before it, as store/directory; None where each
        run has a directory of its own."""
        at = self.checkpoints
        return f"{at.store}/{at.directory}" if at and RUN_NUMBER not in at.directory else None


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
