"""What follows for the controllers in the cluster, and where their charts come from: Karpenter,
device plugins, Trainer, training-operator, Kueue."""

from __future__ import annotations

from collections.abc import Mapping

from catalog import versions
from plans.parts import (
    ChartPlan,
    DevicePluginsPlan,
    GpuPoolPlan,
    Identity,
    KarpenterPlan,
    TrainerPlan,
    TrainingOperatorPlan,
)
from stacks.settings.environment import (
    ArtifactsConfig,
    EnvironmentConfig,
    TrainingOperatorConfig,
)

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
    ),
    "kubeflow-trainer": ChartPlan(chart="oci://ghcr.io/kubeflow/charts/kubeflow-trainer"),
    "kueue": ChartPlan(chart="oci://registry.k8s.io/kueue/charts/kueue"),
    "training-operator": ChartPlan(chart="./components/charts/training-operator"),
}
TRAINER_CRDS = "./components/charts/kubeflow-trainer-crds-{version}"
"""A chart of ours, as upstream publishes none."""


def karpenter_plan(me: Identity, cluster_name: str, wanted: EnvironmentConfig) -> KarpenterPlan:
    """Karpenter, as the pools and `karpenter` want it."""
    return KarpenterPlan(
        identity=me,
        cluster_name=cluster_name,
        role_name=me.name("karpenter"),
        queue_name=me.name("interruptions"),
        static_capacity=any(pool.replicas for pool in wanted.pools.values()),
        dry_run=wanted.karpenter.dry_run,
        crds=chart("karpenter-crd", wanted.artifacts),
        controller=chart("karpenter", wanted.artifacts),
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
    )


def trainer_plan(version: str, artifacts: ArtifactsConfig | None) -> TrainerPlan:
    """The Trainer of a release, and its CRDs."""
    return TrainerPlan(
        version=version,
        image_tag=versions.TRAINER_RELEASES[version].image_tag,
        chart=chart("kubeflow-trainer", artifacts, version),
        crds=ChartPlan(chart=TRAINER_CRDS.format(version=version)),
    )


def training_operator_plans(
    wanted: TrainingOperatorConfig | None,
) -> dict[str, TrainingOperatorPlan]:
    """Kind of job → its legacy controller; empty where the stack file wants none."""
    if wanted is None:
        return {}
    return {
        "PyTorchJob": TrainingOperatorPlan(
            version=wanted.version, chart=CHARTS["training-operator"]
        )
    }


def job_kinds(wanted: EnvironmentConfig) -> tuple[str, ...]:
    """Kinds of jobs whose controllers the environment has."""
    return ("TrainJob", *training_operator_plans(wanted.training_operator))


def chart(name: str, artifacts: ArtifactsConfig | None, version: str | None = None) -> ChartPlan:
    """A chart of CHARTS, from its public registry or from `artifacts`. `version`: of a chart whose
    version the stack file chooses."""
    public = CHARTS[name]
    if artifacts is None:
        return ChartPlan(
            chart=public.chart, version=version or public.version, repository=public.repository
        )
    if artifacts.charts.startswith("oci://"):
        return ChartPlan(
            chart=f"{artifacts.charts.rstrip('/')}/{name}", version=version or public.version
        )
    # A folder holds one version of a chart, but of charts whose version a stack chooses.
    return ChartPlan(
        chart=f"{artifacts.charts.rstrip('/')}/{name}{f'-{version}' if version else ''}"
    )
