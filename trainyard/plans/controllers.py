"""Plans of controllers, Karpenter, Trainer and training-operator, of device plugins, and of their charts.

A component turns its plan into resources. trainyard/decide.py says which plans there are.
"""

from __future__ import annotations

from dataclasses import dataclass

from trainyard.plans.identity import Identity
from trainyard.plans.images import ChartImage

RELEASE = "kubernetes:helm.sh/v3:Release"
"""Type of a Helm release, as the engine calls it."""
OPERATOR = "training-operator"
"""Name of the release of the training-operator."""


@dataclass(frozen=True, kw_only=True)
class ChartPlan:
    """Where a chart comes from, and its images."""

    chart: str
    version: str | None = None
    repository: str | None = None
    images: tuple[ChartImage, ...] = ()
    """Images that its pods pull; empty for a chart of CRDs alone."""
    named: bool = False
    """It is told to pull `images`: they are copies, or others than its own values name."""


KARPENTER_VCPUS, KARPENTER_REPLICAS = 1, 2
"""vCPUs that a replica of Karpenter requests, and the number of them in values.yaml of its chart, 1.14 and
1.15. No two of them are on one node (podAntiAffinity there)."""


@dataclass(frozen=True, kw_only=True)
class KarpenterPlan:
    identity: Identity
    cluster_name: str
    role_name: str
    queue_name: str
    version: str
    static_capacity: bool
    """Some pool is static, which is an alpha gate of Karpenter 1.14 and 1.15."""
    dry_run: bool
    """An EC2NodeClass is Ready only after EC2 has answered a dry run of a launch."""
    isolated: bool
    """It asks no API that has no endpoint in the VPC: neither Pricing nor IAM."""
    crds: ChartPlan
    controller: ChartPlan


EFA_PLUGIN = "aws-efa-k8s-device-plugin"
"""Name of its DaemonSet, which is that of AWS's own chart, too."""


@dataclass(frozen=True, kw_only=True)
class DevicePluginsPlan:
    nvidia: ChartPlan
    efa_image: str
    efa_instance_types: tuple[str, ...]
    bottlerocket: bool
    """Some nodes have Bottlerocket, with a plugin of GPUs in their system."""


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
    """Number of times that a Worker looks up its Master before its pod fails."""
    more_kinds: tuple[str, ...] = ()
    """Kinds of jobs that it runs beside PyTorchJob."""
