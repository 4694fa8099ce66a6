"""Plans of the controllers in the cluster, and the places of their charts: Karpenter, device
plugins, Trainer, training-operator, Kueue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from trainyard.catalog import versions
from trainyard.catalog.limits import INIT_TRIES
from trainyard.catalog.upstream.bottlerocket import is_bottlerocket
from trainyard.plans.controllers import (
    ChartPlan,
    DevicePluginsPlan,
    KarpenterPlan,
    TrainerPlan,
    TrainingOperatorPlan,
)
from trainyard.plans.identity import Identity
from trainyard.plans.images import ChartImage
from trainyard.plans.pools import GpuPoolPlan
from trainyard.settings.environment import (
    ArtifactsConfig,
    EnvironmentConfig,
    TrainingOperatorConfig,
)

_PARTS: Literal["repository-and-tag"] = "repository-and-tag"
CHARTS: dict[str, ChartPlan] = {
    "karpenter-crd": ChartPlan(
        chart="oci://public.ecr.aws/karpenter/karpenter-crd", version=versions.KARPENTER
    ),
    "karpenter": ChartPlan(
        chart="oci://public.ecr.aws/karpenter/karpenter", version=versions.KARPENTER
    ),
    "nvidia-device-plugin": ChartPlan(
        chart="nvidia-device-plugin",
        version=versions.NVIDIA_DEVICE_PLUGIN,
        repository="https://nvidia.github.io/k8s-device-plugin",
        images=(
            ChartImage(
                image=f"nvcr.io/nvidia/k8s-device-plugin:v{versions.NVIDIA_DEVICE_PLUGIN}",
                at=("image",),
                form=_PARTS,
            ),
        ),
    ),
    "kubeflow-trainer": ChartPlan(chart="oci://ghcr.io/kubeflow/charts/kubeflow-trainer"),
    "kueue": ChartPlan(chart="oci://registry.k8s.io/kueue/charts/kueue"),
    "training-operator": ChartPlan(chart="./components/charts/training-operator"),
}
TRAINER_CRDS = "./components/charts/kubeflow-trainer-crds-{version}"
"""A chart of ours, as upstream publishes none."""


def _trainer_images(version: str) -> tuple[ChartImage, ...]:
    """The Trainer's chart has that of JobSet in it."""
    release = versions.TRAINER_RELEASES[version]
    return (
        ChartImage(
            image=f"ghcr.io/kubeflow/trainer/trainer-controller-manager:{release.image_tag}",
            at=("image",),
            form="registry-too",
        ),
        ChartImage(
            image=f"registry.k8s.io/jobset/jobset:v{release.line.jobset}",
            at=("jobset", "image"),
            form=_PARTS,
        ),
    )


def _operator_images(wanted: TrainingOperatorConfig) -> tuple[ChartImage, ...]:
    controller, waiting = versions.TRAINING_OPERATOR_IMAGES[wanted.version]
    of_mpi = ChartImage(image=versions.KUBECTL_DELIVERY, at=("kubectlImage",), form="whole")
    return (
        ChartImage(image=controller, at=("image",), form="repository"),
        ChartImage(image=waiting, at=("initImage",), form="whole"),
        *([of_mpi] if "MPIJob" in wanted.more_kinds else []),
    )


def kueue_chart(version: str, artifacts: ArtifactsConfig | None) -> ChartPlan:
    """The chart in Kueue's repository names an image of its staging registry, so it is always told
    another one."""
    image = ChartImage(
        image=f"registry.k8s.io/kueue/kueue:v{version}",
        at=("controllerManager", "manager", "image"),
        form=_PARTS,
    )
    return replace(chart("kueue", artifacts, version, (image,)), named=True)


def karpenter_charts(
    version: str, artifacts: ArtifactsConfig | None
) -> tuple[ChartPlan, ChartPlan]:
    """The chart of its CRDs, and that of its controller. In a folder of charts those of the default release
    have no version in their names."""
    image = ChartImage(
        image=f"public.ecr.aws/karpenter/controller:{version}",
        at=("controller", "image"),
        form=_PARTS,
    )
    other = None if version == versions.KARPENTER else version
    return (
        chart("karpenter-crd", artifacts, other),
        chart("karpenter", artifacts, other, (image,)),
    )


def karpenter_plan(me: Identity, cluster_name: str, wanted: EnvironmentConfig) -> KarpenterPlan:
    """Karpenter, as the pools and `karpenter` want it."""
    crds, controller = karpenter_charts(wanted.karpenter.version, wanted.artifacts)
    return KarpenterPlan(
        identity=me,
        cluster_name=cluster_name,
        role_name=me.name("karpenter"),
        queue_name=me.name("interruptions"),
        version=wanted.karpenter.version,
        static_capacity=any(pool.replicas is not None for pool in wanted.pools.values()),
        dry_run=wanted.karpenter.dry_run,
        isolated=wanted.network.internet == "none",
        crds=crds,
        controller=controller,
    )


def device_plugins_plan(
    pools: Mapping[str, GpuPoolPlan], artifacts: ArtifactsConfig | None
) -> DevicePluginsPlan:
    """The plugins of GPUs and of EFA, the latter on the types that have EFA devices."""
    types = {node_type for pool in pools.values() for node_type in pool.types}
    return DevicePluginsPlan(
        nvidia=chart("nvidia-device-plugin", artifacts),
        efa_image=versions.EFA_DEVICE_PLUGIN_IMAGE,
        efa_instance_types=tuple(
            sorted({node_type.instance_type for node_type in types if node_type.efa})
        ),
        bottlerocket=any(is_bottlerocket(pool.ami) for pool in pools.values()),
    )


def trainer_plan(version: str, artifacts: ArtifactsConfig | None) -> TrainerPlan:
    """The Trainer of a release, and its CRDs."""
    return TrainerPlan(
        version=version,
        image_tag=versions.TRAINER_RELEASES[version].image_tag,
        chart=chart("kubeflow-trainer", artifacts, version, _trainer_images(version)),
        crds=ChartPlan(chart=TRAINER_CRDS.format(version=version)),
    )


def training_operator_plans(
    wanted: TrainingOperatorConfig | None, artifacts: ArtifactsConfig | None
) -> dict[str, TrainingOperatorPlan]:
    """Kind of job → its legacy controller; empty where the stack file wants none."""
    if wanted is None:
        return {}
    return {
        "PyTorchJob": TrainingOperatorPlan(
            version=wanted.version,
            chart=replace(
                CHARTS["training-operator"],
                images=_operator_images(wanted),
                named=_mirrored(artifacts),
            ),
            init_tries=INIT_TRIES,
            more_kinds=tuple(sorted(wanted.more_kinds)),
        )
    }


def job_kinds(wanted: EnvironmentConfig) -> tuple[str, ...]:
    """Kinds of jobs whose controllers the environment has."""
    return ("TrainJob", *training_operator_plans(wanted.training_operator, wanted.artifacts))


def chart(
    name: str,
    artifacts: ArtifactsConfig | None,
    version: str | None = None,
    images: tuple[ChartImage, ...] | None = None,
) -> ChartPlan:
    """A chart of CHARTS, from its public registry or from `artifacts`. `version` and `images`: of a
    chart whose version the stack file chooses; without them the pinned ones."""
    public = CHARTS[name]
    whole = replace(
        public,
        version=version or public.version,
        images=public.images if images is None else images,
        named=_mirrored(artifacts),
    )
    folder = artifacts.charts.rstrip("/") if artifacts and artifacts.charts else None
    if folder is None:
        return whole
    if folder.startswith("oci://"):
        return replace(whole, chart=f"{folder}/{name}", repository=None)
    # A folder holds one version of a chart, but of charts whose version a stack chooses.
    called = f"{folder}/{name}{f'-{version}' if version else ''}"
    return replace(whole, chart=called, version=None, repository=None)


def _mirrored(artifacts: ArtifactsConfig | None) -> bool:
    return artifacts is not None and artifacts.images is not None
