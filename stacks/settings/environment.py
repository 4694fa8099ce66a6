"""What a stack file may say: its settings, their types, defaults and units. How it is read:
reader.py. Jobs: job.py. The account: aws.py.

Add a setting here; what follows from it belongs in plan.py. The JSON schema for editors is made
from these types (`make schema`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

import pydantic

from stacks.settings.aws import AwsConfig, RoleArn
from stacks.settings.job import AnyJob, JobConfig, Name, Positive, TorchtuneConfig


@dataclass(frozen=True, kw_only=True)
class NetworkConfig:
    """The VPC of the environment."""

    cidr: str = "10.0.0.0/16"
    """/16 to /20 inside RFC 1918; private subnets take an eighth of it each."""
    zones: tuple[str, ...] = ()
    """The zones with subnets, by name, two or more; `environment.zone` is always one of them. Left
    out: that zone and the region's first two others. Another list is another cluster: EKS never
    leaves the zones it began in."""


@dataclass(frozen=True, kw_only=True)
class AdminConfig:
    """A role that may do everything in the cluster. The principal that runs `pulumi up` is one
    already."""

    role_arn: RoleArn


@dataclass(frozen=True, kw_only=True)
class ClusterConfig:
    """The EKS control plane."""

    version: str
    """Kubernetes minor version, quoted: "1.34"."""
    endpoint: Literal["public-and-private", "private"] = "private"
    """Private is the safe choice; whoever runs Pulumi must then sit inside the VPC."""
    public_access_cidrs: tuple[str, ...] = ()
    """Who may reach the public endpoint; needed with public-and-private."""
    admins: dict[Name, AdminConfig] = field(default_factory=dict)
    deployer_role_arn: RoleArn | None = None
    """Role that makes everything: Pulumi's AWS provider assumes it, and so does the kubeconfig, of
    team stacks too. It is the same as one role in aws:assumeRoles. Leave it out where the caller
    has that role already, as a CI job often does: a role may not assume itself unless it trusts
    itself. None means the caller's own credentials."""


@dataclass(frozen=True, kw_only=True)
class SystemNodesConfig:
    """The managed node group that controllers run on."""

    instance_type: str = "m7i.xlarge"
    """4 vCPU and 16 GiB: two hold Karpenter (1 CPU each), Trainer, JobSet and CoreDNS with room to
    spare."""
    nodes: Annotated[int, pydantic.Field(ge=2, le=10, strict=True)] = 2
    """At least two: Karpenter's two replicas refuse to share a node
    (karpenter-provider-aws#2707)."""


@dataclass(frozen=True, kw_only=True)
class KarpenterConfig:
    """The controller that launches the nodes of pools."""

    dry_run: Annotated[bool, pydantic.Field(strict=True)] = True
    """Before Karpenter uses a pool it asks EC2, by a dry run, whether it may launch a node. Set it
    to false where a service control policy of your organisation allows only some instance types:
    Karpenter may ask for another one first, and an EC2NodeClass whose condition says
    RunInstancesAuthCheckFailed is asked about again after 30 minutes only."""


@dataclass(frozen=True, kw_only=True)
class ReservationConfig:
    """Capacity that somebody has reserved or bought; this program uses it, and never buys, changes
    or gives it back."""

    id: Annotated[str, pydantic.Field(pattern=r"^cr-[0-9a-f]{8,17}$")]
    instances: Positive
    """How many it holds."""
    starts: pydantic.AwareDatetime | None = None
    """With a time zone (2026-12-01T11:30:00Z). A Capacity Block has both ends; a reservation may
    have none."""
    ends: pydantic.AwareDatetime | None = None
    placement_group: str | None = None
    """The group it was made in. With another group, or none, EC2 gives fewer instances than it
    holds, or none."""


@dataclass(frozen=True, kw_only=True)
class PoolConfig:
    """Nodes launched by Karpenter when a job needs them; an idle pool without `replicas` costs
    nothing."""

    instance_types: tuple[str, ...]
    """One type. Several, in order of preference, serve jobs of one node only: ranks must not mix
    types."""
    max_nodes: Positive
    """What the pool may grow to (of each type, where there are several); the largest gang must
    fit."""
    capacity: Literal["on_demand", "spot", "reservation", "block"] = "on_demand"
    """on_demand is the safe choice; spot goes away at two minutes' warning; `reservation` (ODCR) and
    `block` (Capacity Block for ML) need `reservation` below."""
    reservation: ReservationConfig | None = None
    replicas: Positive | None = None
    """Nodes kept running whether a job needs them or not (a static pool); jobs on it cannot be
    larger."""
    warm_spares: Annotated[int, pydantic.Field(ge=0, le=16, strict=True)] = 0
    """More nodes kept beside `replicas`, so that a broken one is replaced without waiting for
    capacity."""
    placement: Literal["anywhere", "cluster"] = "anywhere"
    """cluster: a placement group of the pool's own; lower latency, and more often no capacity."""
    fallback_zones: tuple[str, ...] = ()
    """Other zones to take when there is no capacity in the environment's; for jobs of one node
    only."""
    root_volume_gib: Annotated[int, pydantic.Field(ge=100, le=16384, strict=True)] = 200
    """Root EBS volume: the accelerated AMI alone takes most of 50 GiB; containers live on the NVMe
    RAID0."""


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """A model and the fleet it is trained on: what a checkpoint weighs, and how often it is
    needed."""

    parameters_billion: Annotated[float, pydantic.Field(gt=0, le=10_000)]
    nodes: Positive
    bytes_per_parameter: Annotated[float, pydantic.Field(gt=0, le=32)] = 12
    """Of a checkpoint: 12 is fp32 weights and Adam's two moments."""
    goodput_percent: Annotated[float, pydantic.Field(gt=0, lt=100)] = 95
    """Share of the time that must remain for training, after saves, failures and restarts."""


S3Event = Literal["NEW", "CHANGED", "DELETED"]


@dataclass(frozen=True, kw_only=True)
class RepositoryConfig:
    """A bucket, or a prefix of one, that a directory of the file system shows: an S3 data
    repository association."""

    s3: str
    """s3://bucket/prefix/; the prefix may be left out. The bucket exists, and FSx reads it by a
    role of its own."""
    path: str
    """The directory in the file system, from its root: /data. A job finds it below where it mounts
    the store."""
    auto_import: tuple[S3Event, ...] = ("NEW", "CHANGED", "DELETED")
    """Which changes in the bucket show in the directory; only from a bucket of aws:region."""
    auto_export: tuple[S3Event, ...] = ()
    """Which changes in the directory are written to the bucket. None is the safe choice."""
    import_at_creation: bool = True
    """Show what lies in the bucket already; contents come when a file is first read."""
    delete_data_in_filesystem: bool = False
    """When the repository goes, its files leave the file system; the bucket keeps its own."""


@dataclass(frozen=True, kw_only=True)
class LustreConfig:
    """FSx for Lustre, in the environment's zone: size and speed given, or chosen `for_model`."""

    capacity_gib: Positive | None = None
    deployment: Literal["SCRATCH_2", "PERSISTENT_2"] = "PERSISTENT_2"
    """PERSISTENT_2 replicates within the zone; SCRATCH_2 loses data with a server."""
    throughput_mbps_per_tib: Positive | None = None
    """MB/s per TiB of PERSISTENT_2: 125, 250, 500 or 1000. Write speed decides what a checkpoint
    costs."""
    for_model: ModelConfig | None = None
    """Instead of size and speed: the cheapest that keeps a model of this size at its goodput."""
    backup_days: Annotated[int, pydantic.Field(ge=0, le=90, strict=True)] = 0
    """Daily backups, kept this many days; only PERSISTENT_2 without repositories has them."""
    efa: bool = False
    """Made for clients that mount over EFA, as p5, p5e, p5en and p6 do: several times faster a
    node. Another value, or another speed with it, is another file system."""
    repositories: dict[Name, RepositoryConfig] = field(default_factory=dict)
    """Directories that show S3, up to eight. A name stays: FSx refuses a second link beside the
    first."""


@dataclass(frozen=True, kw_only=True)
class EfsConfig:
    """EFS, elastic throughput: code, data sets and home directories, not checkpoints of large
    models. It has a mount target in `environment.zone` and in every fallback zone of a pool."""


@dataclass(frozen=True, kw_only=True)
class StoreConfig:
    """A shared file system, mounted by name from jobs: exactly one of `lustre` and `efs`."""

    lustre: LustreConfig | None = None
    efs: EfsConfig | None = None
    data: Literal["keep", "delete"] = "keep"
    """keep: protected, `pulumi destroy` leaves it and names it. delete: goes with the stack."""


@dataclass(frozen=True, kw_only=True)
class RegistryConfig:
    """An ECR repository for images of jobs, called `<stack>/<name>`; tags cannot be moved."""

    data: Literal["keep", "delete"] = "keep"
    """keep: protected, `pulumi destroy` leaves it and names it. delete: goes with the stack, images
    and all."""


@dataclass(frozen=True, kw_only=True)
class OwnRuntimeConfig:
    """A ClusterTrainingRuntime of ours, with what no shipped one has: a restart of the whole gang
    on any failure."""

    image: str
    kind: Literal["torch", "mpi", "cpu", "torchtune"] = "torch"
    """torch: for torchrun. mpi: mpirun and DeepSpeed's launcher, on an image with sshd as
    upstream's deepspeed-runtime. cpu: a pod that fails starts again by itself, the others wait for
    it. torchtune: as `torchtune` says."""
    torchtune: TorchtuneConfig | None = None
    command: tuple[str, ...] = ()
    """Of jobs that bring none: those that people write by hand."""
    max_restarts: Annotated[int, pydantic.Field(ge=0, le=100, strict=True)] = 5
    """How often JobSet recreates the whole gang before the job fails."""
    priority: Name | None = None
    """Of `environment.priorities`. The Trainer takes a pod's priority from its runtime, never from
    a TrainJob."""


@dataclass(frozen=True, kw_only=True)
class TrainerConfig:
    """Kubeflow Trainer v2 and the runtimes that jobs refer to."""

    version: str
    runtimes: tuple[str, ...]
    """Of the upstream ones: torch-distributed, deepspeed-distributed, mlx-distributed,
    torchtune-…"""
    own_runtimes: dict[Name, OwnRuntimeConfig] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class TrainingOperatorConfig:
    """The legacy training-operator, beside the Trainer, for jobs that stay PyTorchJobs."""

    version: str


@dataclass(frozen=True, kw_only=True)
class ArtifactsConfig:
    """Where charts come from when the public registries cannot be reached, as in an isolated
    VPC."""

    charts: str
    """A folder with one unpacked chart a name (kubeflow-trainer-<version> of the Trainer), or an
    oci:// prefix."""


@dataclass(frozen=True, kw_only=True)
class EnvironmentConfig:
    """Everything a training environment is made of."""

    zone: str
    """The one zone of GPU nodes, file systems and jobs: EFA does not cross zones."""
    zone_id: str | None = None
    """The zone's id (apne2-az1), which is the same for every account; enables the check of what is
    sold there."""
    network: NetworkConfig = field(default_factory=NetworkConfig)
    cluster: ClusterConfig
    system_nodes: SystemNodesConfig = field(default_factory=SystemNodesConfig)
    karpenter: KarpenterConfig = field(default_factory=KarpenterConfig)
    pools: dict[Name, PoolConfig]
    storage: dict[Name, StoreConfig] = field(default_factory=dict)
    registries: dict[Name, RegistryConfig] = field(default_factory=dict)
    trainer: TrainerConfig
    training_operator: TrainingOperatorConfig | None = None
    namespace: Name = "training"
    """Where the environment's own jobs run; teams bring their own."""
    priorities: dict[
        Name, Annotated[int, pydantic.Field(ge=-1_000_000, le=1_000_000, strict=True)]
    ] = field(default_factory=dict)
    """PriorityClasses: a pending pod of a higher one evicts pods of lower ones, and with them their
    whole gang."""
    jobs: dict[Name, AnyJob] = field(default_factory=dict)
    production: bool = False
    """Refuse what changes without a change of this file: latest, an unpinned clone, pip install at
    start."""
    artifacts: ArtifactsConfig | None = None
    tags: dict[str, str] = field(default_factory=dict)

    def own_runtime(self, job: JobConfig) -> OwnRuntimeConfig | None:
        """What a job runs on, where that is no runtime of upstream's."""
        return self.trainer.own_runtimes.get(job.runtime or "")


@dataclass(frozen=True, kw_only=True)
class TeamConfig:
    """What one team runs on an environment that exists."""

    environment: Name
    """The environment's stack name; its stack file in this checkout is what the plan is made
    from."""
    namespace: Name
    max_gpus: Positive | None = None
    """ResourceQuota on requests.nvidia.com/gpu."""
    jobs: dict[Name, AnyJob] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class StackConfig:
    """A stack file: an environment or a team."""

    __pydantic_config__: ClassVar = pydantic.ConfigDict(extra="forbid")  # at every depth below

    stack: Name
    """It begins the name of every resource in AWS."""
    project: str
    region: str
    aws: AwsConfig = field(default_factory=AwsConfig)
    environment: EnvironmentConfig | None = None
    team: TeamConfig | None = None


_ONE_VPC = "delete it; an existing VPC cannot be used: this program creates one, whose range is network.cidr"
_FROM_POOL = "delete it; it follows from the pool's instance_types"
SETTING_HINTS = {
    **{
        ("network", key): _ONE_VPC
        for key in ("vpc", "vpcid", "subnet", "subnets", "subnetid", "subnetids")
    },
    ("reservation", "instancetype"): _FROM_POOL,
    ("reservation", "instancetypes"): _FROM_POOL,
    ("environment", "allowedregistries"): (
        "delete it; images may come from every registry that the nodes reach"
    ),
    ("environment", "networkpolicies"): "delete it; this program creates no NetworkPolicy",
}
"""What people look for outside of jobs, as (the map it stands in, its name in small letters without
dashes) → what to do instead."""
