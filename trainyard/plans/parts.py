"""What each component is told: plain values that the plan has decided. No Pulumi here, so plans can
be made without it.

A component turns its part into resources; what the parts follow from is trainyard/decide.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainyard.catalog.aws.storage import Driver
from trainyard.plans.identity import Identity
from trainyard.plans.images import ChartImage

Spec = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class RegistryPlan:
    identity: Identity
    name: str
    """In ECR: people type it."""
    keep: bool
    keep_images: int | None
    """Images that stay, the newest; None: all."""


@dataclass(frozen=True, kw_only=True)
class ChartPlan:
    """Where a chart comes from, and its images."""

    chart: str
    version: str | None = None
    repository: str | None = None
    images: tuple[ChartImage, ...] = ()
    """What its pods pull; empty of a chart of CRDs alone."""
    named: bool = False
    """It is told to pull `images`: they are copies, or others than its own values name."""


@dataclass(frozen=True, kw_only=True)
class KarpenterPlan:
    identity: Identity
    cluster_name: str
    role_name: str
    queue_name: str
    static_capacity: bool
    """Some pool is static, which is an alpha gate of Karpenter 1.14."""
    dry_run: bool
    """An EC2NodeClass is Ready only after EC2 has answered a dry run of a launch."""
    isolated: bool
    """It asks no API that has no endpoint in the VPC: neither Pricing nor IAM."""
    crds: ChartPlan
    controller: ChartPlan


@dataclass(frozen=True, kw_only=True)
class NetworkInterface:
    """One entry of EC2NodeClass.spec.networkInterfaces."""

    card: int
    device: int
    kind: str
    """"interface" takes an IP address; "efa-only" does not."""


@dataclass(frozen=True, kw_only=True)
class NodeTypePlan:
    """What a node of one type is; each has an EC2NodeClass and a NodePool."""

    name: str
    instance_type: str
    gpus: int
    """0: a CPU type."""
    efa: int
    interfaces: tuple[NetworkInterface, ...]
    lnet_efa: int
    """EFA devices that Lustre's network takes; 0: it goes over TCP."""
    max_pods: int
    weight: int | None
    """Karpenter tries the heavier NodePool first; None where there is no choice."""


@dataclass(frozen=True, kw_only=True)
class GpuPoolPlan:
    identity: Identity
    name: str
    types: tuple[NodeTypePlan, ...]
    """In order of preference; one, unless the pool serves jobs of one node only."""
    zones: tuple[str, ...]
    """One, unless the pool serves jobs of one node only."""
    capacity_type: str
    """Karpenter's: on-demand, spot or reserved."""
    reservation_id: str | None
    placement_group: str | None
    """Name of the group that nodes are placed in."""
    own_placement_group: bool
    """Whether the stack creates the placement group. False: it exists already, because the
    reservation was created in it."""
    max_nodes: int
    replicas: int | None
    """Nodes of a static pool, its warm spares among them."""
    drain_minutes: int | None
    """Minutes after which Karpenter deletes the pods of a node that drains. None: it waits until they
    end."""
    ami: str
    root_volume_gib: int
    root_volume_iops: int
    root_volume_mbps: int
    """The root volume is gp3."""
    awaited: bool
    """`up` waits until its NodePools are Ready: a job of the stack runs on it, or it keeps
    nodes."""
    images: tuple[str, ...]
    """What its nodes pull while they start."""


EFA_PLUGIN = "aws-efa-k8s-device-plugin"
"""Name of its DaemonSet, which is that of AWS's own chart, too."""


@dataclass(frozen=True, kw_only=True)
class DevicePluginsPlan:
    nvidia: ChartPlan
    efa_image: str
    efa_instance_types: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ClaimPlan:
    """One store as a namespace sees it: a static PersistentVolume bound to its own claim."""

    store: str
    driver: Driver
    options: tuple[str, ...]
    """Options of the mount."""
    access_mode: str
    name: str
    """Name of the claim. Another file system has another claim, so that both can exist until jobs
    have moved."""
    volume_name: str
    capacity: str


@dataclass(frozen=True, kw_only=True)
class JobNamespacePlan:
    """A namespace in which jobs run."""

    namespace: str
    claims: tuple[ClaimPlan, ...]
    max_gpus: int | None = None
    host_paths: bool = False
    """Its pods may mount folders of their node."""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Annotations of the namespace, in addition to its Pod Security level."""


@dataclass(frozen=True, kw_only=True)
class TrainerPlan:
    version: str
    image_tag: str
    chart: ChartPlan
    crds: ChartPlan
    """Ours: changed in place with the version, and never deleted."""


@dataclass(frozen=True, kw_only=True)
class TrainingOperatorPlan:
    version: str
    chart: ChartPlan
    init_tries: int
    """How often a Worker looks up its Master before its pod fails."""


@dataclass(frozen=True, kw_only=True)
class RuntimePlan:
    name: str
    framework: str
    spec: Spec
    stores: tuple[str, ...] = ()
    """Stores that its pods mount beside those of a job."""


@dataclass(frozen=True, kw_only=True)
class ConfigMapPlan:
    """Text files, as one object called by its content."""

    name: str
    data: Mapping[str, str]


TEAM = "trainyard.io/team"
"""Label of a team's namespace, whose value is the team's name. The admission policies hold where it
exists."""
RUN = "trainyard.io/run"
"""Annotation of a job with the identity of its run."""
INTERVAL, GOODPUT = "trainyard.io/checkpoint-seconds", "trainyard.io/goodput"
"""Annotations of a job: seconds between two checkpoints, and goodput from 0 to 1, by the plan. Only where
the environment follows its runs: history.progress."""
SHELL = "trainyard.io/shell"
"""Label of a job, and of its pod, in which somebody has a terminal or runs one command."""


@dataclass(frozen=True, kw_only=True)
class JobPlan:
    """One run: its object, and what comes and goes with it."""

    name: str
    namespace: str
    kind: str
    """TrainJob or PyTorchJob."""
    runtime: str | None
    """Runtime of the environment; None for a PyTorchJob, and for a job whose own file brings its
    runtime."""
    pool: str
    stores: tuple[str, ...]
    nodes: int
    checkpoints: str | None
    """What a restart resumes from, as store/directory; of a job that names no store the directory in the
    container."""
    resumes_from: str | None = None
    """Where a run finds the checkpoint of the run before it, as store/directory; None where it
    begins afresh, or where nobody knows."""
    labels: Mapping[str, str]
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Annotations of the job, in addition to its identity: INTERVAL and GOODPUT."""
    spec: Spec
    files: ConfigMapPlan | None
    objects: tuple[Spec, ...] = ()
    """Other objects of the job's own file, ConfigMaps and runtimes; the SecretProviderClass of its
    secrets."""
    secrets: tuple[str, ...] = ()
    """Names or ARNs of the secrets of Secrets Manager that its pods read."""
    secret_keys: tuple[str, ...] = ()
    """ARNs of the KMS keys of those secrets."""
    priorities: tuple[str, ...]
    """PriorityClasses that its pods need: its own, or its runtime's."""
    expected_hours: float | None
    """How long its owner thinks it runs."""
    wait: str
    """none, running or complete: what `up` waits for."""
    wait_minutes: int
    run: str
    """Identity of the run: digest of what it asks for and the `run` counter. Only a change of it
    starts a paid run."""
