"""Settings of a stack file: their types, defaults and units. Reader: reading/reader.py. Jobs:
job.py. The account: aws.py.

Add a setting here; what follows from it belongs in trainyard/derive/. The JSON schema for editors is made
from these types (`make schema`).
"""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

import pydantic

from trainyard.catalog.aws.own_prices import LIST, OwnPrices
from trainyard.catalog.logs.missing_secrets import creation
from trainyard.catalog.versions import KARPENTER
from trainyard.settings.aws import AwsConfig, PolicyArn
from trainyard.settings.budget import BudgetConfig, PricesConfig
from trainyard.settings.cluster import ClusterConfig
from trainyard.settings.history import HistoryConfig
from trainyard.settings.job import (
    AnyJob,
    JobConfig,
    Name,
    Positive,
    PullPolicy,
    Reference,
    TorchtuneConfig,
)
from trainyard.settings.logs import LogsConfig
from trainyard.settings.metrics import MetricsConfig
from trainyard.settings.network import NETWORK_HINTS, AnyNetwork, NetworkConfig
from trainyard.settings.other_tools import OTHER_TOOLS
from trainyard.settings.pools import PoolConfig
from trainyard.settings.queues import QueuesConfig
from trainyard.settings.repair import RepairConfig
from trainyard.settings.section import Section
from trainyard.settings.stores import StoreConfig
from trainyard.settings.system_nodes import SystemNodesConfig
from trainyard.settings.team_entry import KeyArn, TeamEntryConfig
from trainyard.settings.told import ToldConfig


@dataclass(frozen=True, kw_only=True)
class KarpenterConfig:
    """Karpenter, the controller that launches the nodes of pools."""

    version: str = KARPENTER
    """Release of Karpenter: 1.14.1 or 1.15.2, as in trainyard/catalog/versions.py."""
    dry_run: Annotated[bool, pydantic.Field(strict=True)] = True
    """`true`: Karpenter asks EC2 by a dry run if it may launch a node, before it uses a pool. Set
    `false` where a service control policy of your organisation allows only some instance types:
    Karpenter may ask for another type first, and asks again only after 30 minutes. The EC2NodeClass
    then shows RunInstancesAuthCheckFailed."""


@dataclass(frozen=True, kw_only=True)
class RegistryConfig:
    """An ECR repository for images of jobs. Its name is `<stack>/<name>`. Its tags cannot be moved
    to another image."""

    data: Literal["keep", "delete"] = "keep"
    """`keep`: the repository is protected, and `pulumi destroy` leaves it and prints its name.
    `delete`: the repository and its images are deleted with the stack, once a `pulumi up` has taken the
    protection away."""
    keep_images: Annotated[int, pydantic.Field(ge=1, le=10000, strict=True)] | None = None
    """Number of images that stay: ECR deletes the oldest others within a day, also one that a job
    names. By default all stay."""


@dataclass(frozen=True, kw_only=True)
class OwnRuntimeConfig:
    """A ClusterTrainingRuntime that this program writes. In contrast to the upstream runtimes it
    restarts the whole gang when one rank fails."""

    image: str
    """Container image of the runtime."""
    kind: Literal["torch", "mpi", "cpu", "torchtune"] = "torch"
    """`torch`: for torchrun. `mpi`: for mpirun and the launcher of DeepSpeed; the image must have
    sshd, as upstream's deepspeed-runtime has. `cpu`: a failed pod restarts alone, and the others
    wait for it. `torchtune`: runs the recipe in `torchtune`."""
    torchtune: Section[TorchtuneConfig] = None
    """Required with `kind: torchtune`."""
    command: tuple[str, ...] = ()
    """Command of jobs that set none, also of TrainJobs that people create by hand."""
    env: dict[str, str] = field(default_factory=dict)
    """Environment variables of the pods that train. A variable of the job replaces one of the same
    name."""
    image_pull_policy: PullPolicy | None = None
    """Pull policy of the image, which a TrainJob cannot state. By default Kubernetes pulls the tag
    latest for each pod, and another tag or a digest once for each node."""
    max_restarts: Annotated[int, pydantic.Field(ge=0, le=100, strict=True)] = 5
    """Number of times that JobSet recreates the whole gang before the job fails."""
    priority: Reference | None = None
    """A name from `environment.priorities`. The Trainer takes the priority of pods from the
    runtime, never from a TrainJob."""
    pool: Reference | None = None
    """Name of a pool. A TrainJob on this runtime that names no resources then gets whole nodes of the pool:
    node selector, tolerations, GPUs, EFA devices, vCPUs, memory and /dev/shm. So a person who sends a
    TrainJob writes the runtime, the image and the number of nodes."""


@dataclass(frozen=True, kw_only=True)
class TrainerConfig:
    """Kubeflow Trainer v2 and the runtimes that jobs refer to."""

    version: str
    """Release of the Trainer: 2.1.0 or 2.3.0, as in trainyard/catalog/versions.py."""
    runtimes: tuple[str, ...]
    """Upstream runtimes to install: torch-distributed, deepspeed-distributed, mlx-distributed,
    torchtune-…."""
    own_runtimes: dict[Name, OwnRuntimeConfig] = field(default_factory=dict)
    """Runtimes that this program writes, each under a name of your choice. While TrainJobs of queues name
    one, change it under a new name: docs/upgrades.md."""


@dataclass(frozen=True, kw_only=True)
class TrainingOperatorConfig:
    """The legacy training-operator (v1). It runs PyTorchJobs beside the Trainer."""

    version: str
    """Release of the training-operator: 1.8.1."""
    more_kinds: tuple[Literal["MPIJob", "MXJob", "PaddleJob", "TFJob", "XGBoostJob"], ...] = ()
    """Other kinds of jobs that it runs, for jobs of the environment that are files. With MPIJob it may make
    roles, and run commands in pods."""


MIRROR = r"^\d{12}\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com(/[a-z0-9]+([._-][a-z0-9]+)*)+$"
"""A registry of ECR and the beginning of its repositories."""
CHARTS = r"^(oci://\S+|[^:]+)$"
"""A folder, or the beginning of charts in a registry."""
ChartsPlace = Annotated[str, pydantic.Field(pattern=CHARTS)]
MirrorPrefix = Annotated[str, pydantic.Field(pattern=MIRROR)]


@dataclass(frozen=True, kw_only=True)
class ArtifactsConfig:
    """Where charts and images come from when the public registries cannot be reached, as in an
    isolated VPC."""

    charts: ChartsPlace | None = None
    """A folder with one unpacked chart for each name (kubeflow-trainer-<version> for the Trainer,
    kueue-<version> for Kueue), or an oci:// prefix. `trainyard mirror --charts` fills either. Pulumi
    reads charts, nodes do not; from a registry with the login of Helm on its machine, which ECR takes for
    12 hours. By default charts come from the public registries of their projects."""
    images: MirrorPrefix | None = None
    """A registry of ECR and the beginning of its repositories:
    111122223333.dkr.ecr.ap-northeast-2.amazonaws.com/mirror. Nodes pull every image of the stack
    from there, as <images>/<registry>/<name>, except images that are in ECR of the region already.
    `trainyard mirror` lists the images and copies those that are missing. By default nodes pull from the
    registries that images name."""


REPLACEABLE = r"^(metrics\.managed_prometheus|(storage|pools|runtimes)\.[a-z][-.a-z0-9]*)$"
Replaceable = Annotated[str, pydantic.Field(pattern=REPLACEABLE)]


@dataclass(frozen=True, kw_only=True)
class EnvironmentConfig:
    """A training environment: network, cluster, pools of nodes, stores, Trainer and jobs."""

    zone: str
    """The availability zone of all GPU nodes, Lustre stores and jobs. They must share one zone
    because EFA does not cross zones."""
    zone_id: str | None = None
    """ID of the zone, such as apne2-az1. It is the same for every account, while the name is not.
    With it `trainyard check` knows which instance types the zone sells."""
    network: AnyNetwork = field(default_factory=NetworkConfig)
    cluster: ClusterConfig
    system_nodes: SystemNodesConfig = field(default_factory=SystemNodesConfig)
    karpenter: KarpenterConfig = field(default_factory=KarpenterConfig)
    pools: dict[Name, PoolConfig]
    """Groups of nodes, by name. A job names the pool it runs on."""
    storage: dict[Name, StoreConfig] = field(default_factory=dict)
    """Shared file systems, by name. A job names the stores it mounts."""
    registries: dict[Name, RegistryConfig] = field(default_factory=dict)
    """ECR repositories, by name."""
    trainer: TrainerConfig
    training_operator: Section[TrainingOperatorConfig] = None
    """Required for jobs with `pytorch_job`. By default the training-operator is not installed."""
    namespace: Name = "training"
    """Kubernetes namespace of the environment's own jobs. Each team has its own namespace."""
    priorities: dict[
        Name, Annotated[int, pydantic.Field(ge=-1_000_000, le=1_000_000, strict=True)]
    ] = field(default_factory=dict)
    """PriorityClasses: name and value. A pending pod with a higher value evicts pods with lower
    values. A gang that loses a pod stops as a whole."""
    queues: Section[QueuesConfig] = None
    """Queues for the jobs of `teams`. By default a job starts at once, and its pods wait for nodes."""
    metrics: Section[MetricsConfig] = None
    """Metrics, alerts and dashboards. By default nothing in the cluster collects them."""
    repair: Section[RepairConfig] = None
    """Replacement of broken nodes. By default nothing replaces them."""
    history: Section[HistoryConfig] = None
    """Record of runs. By default a run is forgotten as soon as its job is deleted."""
    logs: Section[LogsConfig] = None
    """Store for the logs of pods. By default a log goes with its pod."""
    budget: Section[BudgetConfig] = None
    """By default AWS tells nobody what the environment costs."""
    prices: Section[PricesConfig] = None
    """Prices that your company pays. By default dollars are counted at the prices of AWS's list."""
    told: Section[ToldConfig] = None
    """By default nobody is told what becomes of a run."""
    teams: dict[Name, TeamEntryConfig] = field(default_factory=dict)
    """Teams that the environment admits, by name. By default a team's stack creates its namespace
    itself, with the rights of an admin of the cluster."""
    jobs: dict[Name, AnyJob] = field(default_factory=dict)
    """Training jobs, by name."""
    production: bool = False
    """`true`: jobs that can change while this file stays the same are refused: an image tagged
    `latest`, a git clone without a commit, packages installed at start."""
    allow_replace: tuple[Replaceable, ...] = ()
    """Resources that the next `pulumi up` can replace: `metrics.managed_prometheus`,
    `storage.<name>`, `pools.<name>`, `runtimes.<name>`. A preview refuses to replace anything else
    of these kinds, and the cluster always, and says which setting would. Delete the entries
    afterwards."""
    artifacts: Section[ArtifactsConfig] = None
    """By default charts and images come from the public registries of their projects."""
    tags: dict[str, str] = field(default_factory=dict)
    """Tags for every AWS resource, in addition to the tags that this program sets."""
    permissions_boundary: PolicyArn | None = None
    """ARN of an IAM policy that limits every role of the stack. Set it before the first
    `pulumi up`: the control plane then gets another role, and EKS replaces a cluster whose role
    changes. It must allow what the roles do (docs/deployer-policy.md)."""
    kms_key_arn: KeyArn | None = None
    """ARN of a KMS key of yours, in the region and the account of the stack, that encrypts what the
    stack stores: Kubernetes secrets, disks of nodes, stores, logs, queue and topic. This program never
    changes the key, whose policy must allow that (docs/encryption.md). By default AWS encrypts with keys
    of its own. EKS can neither change the key of a cluster nor take it away. A key that is set later
    replaces EFS and Lustre stores."""

    @property
    def own_prices(self) -> OwnPrices:
        """Prices that its dollars are counted at."""
        return self.prices.own() if self.prices else LIST

    @property
    def has_workers(self) -> bool:
        """True where jobs of its teams can run in other environments."""
        return self.queues is not None and bool(self.queues.workers)

    def own_runtime(self, job: JobConfig) -> OwnRuntimeConfig | None:
        """The own runtime that a job names; None where it names a runtime of upstream."""
        return self.trainer.own_runtimes.get(job.runtime or "")


@dataclass(frozen=True, kw_only=True)
class TeamConfig:
    """A team on an existing environment: its jobs and, where the environment does not list the
    team, its namespace."""

    environment: Name
    """Stack name of the environment. The team's plan is computed from the environment's stack file
    in this checkout, or from `contract`."""
    contract: str | None = None
    """File with the contract of the environment, in the folder of this file, such as contract.yaml:
    whoever runs the environment writes it with `trainyard contract`. By default the environment's stack
    file must be in this checkout."""
    name: Name | None = None
    """Name of the team in `environment.teams`. Namespace, stores and limits then follow from that
    entry. Without it the stack creates the namespace itself."""
    namespace: Name | None = None
    """Kubernetes namespace of the team. Required without `name`, and refused with it."""
    max_gpus: Positive | None = None
    """Maximum number of GPUs that the team's pods can request together (a ResourceQuota). By
    default there is no limit. Refused with `name`."""
    jobs: dict[Name, AnyJob] = field(default_factory=dict)
    """Training jobs, by name."""


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


_FROM_POOL = "delete it; it follows from the pool's instance_types"
_OF_JOBS = (
    "delete it, and write it in each job that names the runtime, as in secrets: {HF_TOKEN:"
    " {secrets_manager: vision/hf-token, key: token}}: a runtime is one for all namespaces, and pods"
    " read secrets of their own namespace and with its identity"
)
SETTING_HINTS = {
    **OTHER_TOOLS,
    **{("network", key): hint for key, hint in NETWORK_HINTS.items()},
    ("reservation", "instancetype"): _FROM_POOL,
    ("reservation", "instancetypes"): _FROM_POOL,
    ("environment", "allowedregistries"): (
        "delete it; write image_prefixes in the entries of environment.teams, or turn on the policy"
        " images-from-allowed-registries (docs/policies.md)"
    ),
    ("environment", "networkpolicies"): (
        "delete it; each team under environment.teams gets a NetworkPolicy by itself: docs/teams.md"
    ),
    ("own_runtimes", "secrets"): _OF_JOBS,
    ("token", "secretsmanager"): (
        "delete it; put the token into a Kubernetes Secret of each namespace with such jobs"
        f" ({creation('hf-token', ['token'])}), and write {{secret: hf-token, key:"
        " token}: what fetches the model belongs to the runtime, which is one for all namespaces"
    ),
}
"""Settings that people look for outside of jobs, as (the map or the map of entries that it stands
in, its name in small letters without dashes) → what to do instead."""
