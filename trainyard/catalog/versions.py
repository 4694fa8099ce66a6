"""Every pinned version, in one place. An upgrade is a one-line change here plus the golden diff it causes.

Checked 2026-11-21 in the registry named beside each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Literal

from trainyard import __version__
from trainyard.catalog.aws.prices import Price, price

TRAINYARD = __version__
"""The tool and the program; its number is written in trainyard/__init__.py, where the wheel's build reads it."""
KARPENTER, NEWEST_KARPENTER = KARPENTERS = ("1.14.1", "1.15.2")
"""Releases of Karpenter that a stack file may name, the default first.
oci://public.ecr.aws/karpenter/{karpenter-crd,karpenter}; the floor for EFA interfaces on the NodeClass is 1.11."""
NVIDIA_DEVICE_PLUGIN = "0.18.0"
"""https://nvidia.github.io/k8s-device-plugin"""
EFA_DEVICE_PLUGIN_IMAGE = (
    "602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/aws-efa-k8s-device-plugin:v0.5.20"
)
"""Image of the eks-charts release 0.5.30 (2026-08); AWS serves it from us-west-2 to every region."""
PROMETHEUS_IMAGE = "quay.io/prometheus/prometheus:v3.14.0"
"""The release that prometheus-community's chart 29.27.0 had in 2026-08; as a Go module v0.314.0."""
ALERTMANAGER_IMAGE = "quay.io/prometheus/alertmanager:v0.31.0"
"""The newest that can be had as a Go module (2026-11): later ones lack the files of their page."""
PUSHGATEWAY_IMAGE = "quay.io/prometheus/pushgateway:v1.11.3"
"""The newest in 2026-11, as a Go module, too."""
GRAFANA_IMAGE = (
    "docker.io/grafana/grafana:13.2.3"
    "@sha256:b28bae15e219c998fb0e0424ed724930cc61b1f61fb404d47c862f9a23f9e572"
)
"""The newest in 2026-11, of 2026-09-29, with its data source for Prometheus, which the image -slim
lacks. Docker Hub is the only registry that has it."""
BUSYBOX_IMAGE = "public.ecr.aws/docker/library/busybox:1.37.0"
"""2 MB with mkdir, at an address that counts no pulls as Docker Hub does."""
PYTHON_IMAGE = "public.ecr.aws/docker/library/python:3.13.9-alpine3.22"
"""45 MB with nothing but Python, for the program that replaces sick nodes."""
NODE_EXPORTER_IMAGE = "quay.io/prometheus/node-exporter:v1.12.1"
DCGM_EXPORTER_IMAGE = "nvcr.io/nvidia/k8s/dcgm-exporter:4.5.3-4.8.2-distroless"
"""NVIDIA/dcgm-exporter 4.5.3-4.8.2 (2026-08), with its own DCGM 4.5.3."""
FLUENT_BIT_IMAGE = "public.ecr.aws/aws-observability/aws-for-fluent-bit:3.4.17"
"""Fluent Bit 5.0.9 (2026-09). Pod Identity works from 4.0 on (fluent/fluent-bit#10115), which is release
3.0 of the image."""
NOTEBOOK_IMAGE = (
    "nvcr.io/nvidia/pytorch:25.10-py3"
    "@sha256:42263b2424fc237b34c4fc4a91c30d603c57eed36e37d31ff6d9a4f1f801edee"
)
"""NVIDIA's container of PyTorch 2.9 with CUDA 13.0, JupyterLab and TensorBoard, whose user is root: a new store belongs
to root. Four public repositories name this digest for the tag (2026-11-27); the registry was not asked."""
LUSTRE = "2.15"
"""FSx file_system_type_version: the newest that FSx for Lustre creates."""
LUSTRE_TOO_OLD = "2.10"
"""Version of file systems that the client of Amazon Linux 2023, 2.15, cannot mount (FSx for Lustre
user guide, lustre-client-matrix)."""
AMI_RELEASE = "v20261012"
"""Release of the EKS AMIs for AL2023, of GPU nodes and system nodes alike: the newest found on
2026-11-22, https://github.com/awslabs/amazon-eks-ami/releases/tag/v20261012."""
BOTTLEROCKET_RELEASE = "v1.68.1"
"""Release of Bottlerocket for GPU nodes: the newest found on 2026-11-28 (bottlerocket.dev, os/1.68.x; EKS
Anywhere v0.26.5 has it, too)."""
NODE_AMI = f"al2023@{AMI_RELEASE}"
"""Karpenter alias of the AMI of GPU nodes: pinned, because @latest lets AWS drift nodes under a
running gang."""
PANICKING_AMI_RELEASES, PANICKING_KERNEL = ("20260930", "20261003"), "6.12"
"""Their kernel 6.12.110 panics when it reclaims memory; AMIs with another kernel do not
(amazon-eks-ami#2845)."""

Support = Literal["standard", "extended", "no"]


def minor(version: str) -> tuple[int, int]:
    """Major and minor number of a version: (1, 34) of 1.34, (2, 1) of 2.1.0."""
    first, second, *_ = version.split(".")
    return int(first), int(second)


@dataclass(frozen=True, kw_only=True)
class KubernetesRelease:
    """A minor release of Kubernetes on EKS, with everything that is pinned for each of them."""

    standard_ends: date
    """First day of extended support."""
    extended_ends: date
    """First day without support: EKS then upgrades the control plane by itself."""
    ami_patch: str
    """Patch release of the kubelet in the AMIs of AMI_RELEASE."""
    kernel: str
    """Minor release of the kernel of its AMIs for AL2023."""
    add_ons: Mapping[str, str]
    """Add-on → build. EKS refuses a build that it does not offer for the minor release, so each has
    its own."""

    @property
    def system_nodes(self) -> str:
        """release_version of a managed node group, such as 1.35.8-20261012."""
        return f"{self.ami_patch}-{AMI_RELEASE.removeprefix('v')}"

    def support(self, day: date) -> Support:
        """AWS's support of the version on a day: standard, extended or no."""
        if day < self.standard_ends:
            return "standard"
        return "extended" if day < self.extended_ends else "no"


_FSX, _CNI, _S3 = "v1.9.0-eksbuild.1", "v1.22.4-eksbuild.3", "v2.7.0-eksbuild.1"
_SECRETS = "v3.1.3-eksbuild.1"
_AGENT = "v1.7.0-eksbuild.1"
"""Build of the node monitoring agent. Earlier ones pull a second image for DCGM, and call a node broken where the
pull takes long (2026-08)."""
KUBERNETES: dict[str, KubernetesRelease] = {
    "1.34": KubernetesRelease(
        standard_ends=date(2026, 12, 2),
        extended_ends=date(2027, 12, 2),
        ami_patch="1.34.11",
        kernel="6.12",
        add_ons={
            "vpc-cni": _CNI,
            "kube-proxy": "v1.34.6-eksbuild.29",
            "eks-pod-identity-agent": "v1.3.10-eksbuild.2",
            "coredns": "v1.12.4-eksbuild.38",
            "aws-fsx-csi-driver": _FSX,
            "aws-efs-csi-driver": "v3.4.0-eksbuild.1",
            "aws-mountpoint-s3-csi-driver": _S3,
            "aws-secrets-store-csi-driver-provider": _SECRETS,
            "eks-node-monitoring-agent": _AGENT,
        },
    ),
    "1.35": KubernetesRelease(
        standard_ends=date(2027, 3, 27),
        extended_ends=date(2028, 3, 27),
        ami_patch="1.35.8",
        kernel="6.12",
        add_ons={
            "vpc-cni": _CNI,
            "kube-proxy": "v1.35.3-eksbuild.29",
            "eks-pod-identity-agent": "v1.4.0-eksbuild.1",
            "coredns": "v1.13.2-eksbuild.31",
            "aws-fsx-csi-driver": _FSX,
            "aws-efs-csi-driver": "v3.4.1-eksbuild.1",
            "aws-mountpoint-s3-csi-driver": _S3,
            "aws-secrets-store-csi-driver-provider": _SECRETS,
            "eks-node-monitoring-agent": _AGENT,
        },
    ),
    "1.36": KubernetesRelease(
        standard_ends=date(2027, 8, 2),
        extended_ends=date(2028, 8, 2),
        ami_patch="1.36.4",
        kernel="6.18",
        add_ons={
            "vpc-cni": _CNI,
            "kube-proxy": "v1.36.0-eksbuild.25",
            "eks-pod-identity-agent": "v1.3.10-eksbuild.3",
            "coredns": "v1.14.3-eksbuild.23",
            "aws-fsx-csi-driver": _FSX,
            "aws-efs-csi-driver": "v3.4.2-eksbuild.1",
            "aws-mountpoint-s3-csi-driver": _S3,
            "aws-secrets-store-csi-driver-provider": "v3.1.4-eksbuild.1",
            "eks-node-monitoring-agent": _AGENT,
        },
    ),
}
"""Minor release → what goes with it, the oldest first.

Dates: endoflife-date/endoflife.date@a70eca3 (2026-08-22), products/amazon-eks.md. Add-on builds: as public accounts
listed them (aws eks describe-addon-versions) between 2026-09-23 and 2026-10-14; the builds of aws-fsx-csi-driver were
listed without a minor release. Those of aws-secrets-store-csi-driver-provider: as public Terraform pinned them for
1.35 and 1.36 (read 2026-11-23); for 1.34 none was found, and that of 1.35 is taken. Patch releases: the AMI releases
of 2026-09-30 and 2026-10-03; those of AMI_RELEASE itself were not found and are taken to be the same. `trainyard
check --live` reads them in the account.
"""
DEFAULT_KUBERNETES = "1.35"
"""Release that examples and corrections propose: one in KNOWN_GOOD whose kernel has the client of every kind
of store. 1.36 has it, too, by FSx's table; no public record of a mount on its kernel was found (2026-11)."""
LATER_KUBERNETES: dict[str, str] = {
    "1.37": (
        "the builds of its add-ons, the patch release in its AMIs and the dates of its support"
    )
}
"""Minor release that EKS serves and this program cannot install → what this program lacks for it.

EKS has AMIs of 1.37 since October 2026 (awslabs/amazon-eks-ami, page of v20261012). Of Karpenter 1.15
supports it, and 1.14 does not (KARPENTER_KUBERNETES).
"""


def control_plane_prices(
    region: str, support: Support, tier: str = "standard"
) -> list[Price | None]:
    """Prices that add up to an hour of a control plane; EKS adds extended support and the tier to
    the price of the cluster. None where no price of the region is known."""
    return [price("eks", sku, region) for sku in control_plane_skus(support, tier)]


def control_plane_skus(support: Support, tier: str = "standard") -> tuple[str, ...]:
    """SKUs whose prices add up to an hour of a control plane."""
    extra = () if support == "standard" else ("extended-support",)
    return ("cluster", *extra, *(() if tier == "standard" else (tier,)))


TRAINING_OPERATORS: tuple[str, ...] = ("1.8.1",)
"""Releases of the legacy training-operator in components/charts: the last one that the inputs name."""

TRAINING_OPERATOR_IMAGES: dict[str, tuple[str, str]] = {
    "1.8.1": ("docker.io/kubeflow/training-operator:v1-04f9f13", "docker.io/library/alpine:3.10")
}
"""Release → the image of its controller, and that of what waits for a master."""
KUBECTL_DELIVERY = "docker.io/kubeflow/kubectl-delivery:v1-04f9f13"
"""Image that brings kubectl to the launcher of an MPIJob, of the same commit as the controller."""

KUEUE = "0.16.9"
"""The last release that is built against Trainer 2.1. 0.16.2 to 0.16.8 have bugs that stop jobs or show
the queues of others (kueue#10206, #11647, #10678)."""
NEWEST_KUEUE = "0.19.2"
"""The release for Trainer 2.3."""


@dataclass(frozen=True, kw_only=True)
class KnownGood:
    """Versions that go together."""

    karpenter: Mapping[str, tuple[str, ...]]
    """Release → minor releases of Kubernetes on which the others ran with it."""
    trainer: str
    jobset: str
    kueue: str
    ami: str
    sdk: str
    """Version of `kubeflow` on PyPI, with which people submit jobs."""
    proof: str


KNOWN_GOOD: tuple[KnownGood, ...] = (
    KnownGood(
        karpenter={KARPENTER: ("1.34", "1.35", "1.36"), NEWEST_KARPENTER: ("1.35",)},
        trainer="2.1.0",
        jobset="0.10.1",
        kueue=KUEUE,
        ami=NODE_AMI,
        sdk="0.3.1",
        proof=(
            "the controllers run together in this checkout's tests, with Kueue 0.16.2: a later 0.16"
            " cannot be built from public modules; the SDK sees its job Complete there; on 1.36 a"
            " gang of a world goes on through both upgrades, without Kueue and SDK; with Karpenter 1.15.0"
            " in place of 1.15.2 a job of a world to Complete, and a gang that goes on through the"
            " upgrade from 1.14.1; the AMI never"
        ),
    ),
    KnownGood(
        karpenter={KARPENTER: ("1.34", "1.35", "1.36"), NEWEST_KARPENTER: ("1.35",)},
        trainer="2.3.0",
        jobset="0.12.0",
        kueue=NEWEST_KUEUE,
        ami=NODE_AMI,
        sdk="0.5.0",
        proof=(
            "CRDs, webhooks, controllers and SDK with every object of ours, to Complete, and the"
            " upgrade from 2.1.0 in this checkout's tests, and Kueue, which is built against 2.2.1,"
            " with jobs of teams; on 1.36 a job of a world to Complete, without Kueue and SDK; with"
            " Karpenter 1.15.0 in place of 1.15.2, to which a world moves with it, a job to Complete;"
            " the AMI never"
        ),
    ),
)
"""JobSet is the one in the Trainer's chart; Kueue (github.com/kubernetes-sigs/kueue, read at its tags) and the SDK
(pypi.org/project/kubeflow, its requirements) are of the lines that TRAINER_LINES gives."""


def known_good(kubernetes: str, trainer: str, karpenter: str = KARPENTER) -> KnownGood | None:
    """The set with these three; None where they were never tried together."""
    return next(
        (
            known
            for known in KNOWN_GOOD
            if known.trainer == trainer and kubernetes in known.karpenter.get(karpenter, ())
        ),
        None,
    )


@dataclass(frozen=True, kw_only=True)
class TrainerLine:
    """Everything that must fit a minor release of the Trainer: read at the tags of kubeflow/trainer,
    kubernetes-sigs/jobset and kubernetes-sigs/kueue, and in the requirements of `kubeflow` on PyPI."""

    jobset: str
    """In its chart."""
    kueue: tuple[str, ...]
    """Minor releases built against its API. Another one prunes the TrainJob silently (kueue#11931)."""
    sdk: tuple[str, ...]
    """Minor releases of `kubeflow`."""
    time_limit: bool
    """A TrainJob has activeDeadlineSeconds. False: the API server drops the field silently."""


TRAINER_LINES: dict[str, TrainerLine] = {
    "2.1": TrainerLine(jobset="0.10.1", kueue=("0.15", "0.16"), sdk=("0.3",), time_limit=False),
    "2.2": TrainerLine(
        jobset="0.11.0", kueue=("0.17", "0.18", "0.19"), sdk=("0.4",), time_limit=True
    ),
    "2.3": TrainerLine(jobset="0.12.0", kueue=("0.18", "0.19"), sdk=("0.5",), time_limit=True),
}
"""Minor release of the Trainer → what it fits; of Kueue 0.15 from 0.15.2, of SDK 0.3 from 0.3.1."""


@dataclass(frozen=True, kw_only=True)
class TrainerRelease:
    """A release of the Kubeflow Trainer, with everything that is different in another one: what it
    fits, how a TrainJob is spelled, and what the runtimes that it ships contain."""

    version: str
    """Version of the chart; JobSet comes inside it. oci://ghcr.io/kubeflow/charts/kubeflow-trainer"""
    image_tag: str
    """Tag of its controller, and of the images that it ships with its runtimes."""
    line: TrainerLine
    kueue: str
    """Release of Kueue that this program installs beside it. oci://registry.k8s.io/kueue/charts/kueue"""
    pod_changes: Literal["podTemplateOverrides", "runtimePatches"]
    """The field of a TrainJob that changes the pods of its runtime."""
    torch_policy: Mapping[str, str]
    """mlPolicy.torch of a runtime that leaves the number of ranks to the Trainer."""
    torch_image: str
    """Image of its runtime torch-distributed."""
    mpi_launcher_waits: bool
    """The launcher of its MPI runtimes waits until the nodes are ready."""
    own_torchtune_claim: bool
    """JobSet makes the volume of its torchtune runtimes; otherwise a claim must exist."""
    dispatches: bool
    """It leaves a TrainJob alone that Kueue runs in another cluster (trainer#3681)."""
    keeps_runtimes: bool
    """A TrainJob keeps its runtime as it was when it came (pkg/runtime/core/snapshot.go)."""
    more_runtimes: Mapping[str, tuple[str, str]]
    """Name of a runtime that not every release ships → its framework and its image."""


TRAINER_RELEASES: dict[str, TrainerRelease] = {
    release.version: release
    for release in (
        TrainerRelease(
            version="2.1.0",
            image_tag="v2.1.0",
            line=TRAINER_LINES["2.1"],
            kueue=KUEUE,
            pod_changes="podTemplateOverrides",
            torch_policy={"numProcPerNode": "auto"},
            torch_image="pytorch/pytorch:2.7.1-cuda12.8-cudnn9-runtime",
            mpi_launcher_waits=False,
            own_torchtune_claim=False,
            dispatches=False,
            keeps_runtimes=False,
            more_runtimes={},
        ),
        TrainerRelease(
            version="2.3.0",
            image_tag="v2.3.0",
            line=TRAINER_LINES["2.3"],
            kueue=NEWEST_KUEUE,
            pod_changes="runtimePatches",
            torch_policy={},
            torch_image="pytorch/pytorch:2.13.0-cuda13.0-cudnn9-runtime",
            mpi_launcher_waits=True,
            own_torchtune_claim=True,
            dispatches=True,
            keeps_runtimes=True,
            more_runtimes={
                "jax-distributed": ("jax", "nvcr.io/nvidia/jax:25.10-py3"),
                "xgboost-distributed": (
                    "xgboost",
                    "ghcr.io/kubeflow/trainer/xgboost-runtime:v2.3.0",
                ),
            },
        ),
    )
}
"""Version → the releases that a stack file may name."""
LATER_TRAINERS: dict[str, str] = {
    "2.4.0": "CRDs and runtimes, and whose controllers it has never run"
}
"""Release of upstream that this program cannot install → what this program lacks for it.

On 2026-11-27 the Go module proxy refused kubeflow/trainer v2.4.0, jobset v0.13.0, kueue 0.20 and kueue v0.19.3 once
more, and a stored copy of kubeflow/trainer ended at v2.3.0.
"""
TRAINERS: dict[str, str] = {
    version: release.image_tag for version, release in TRAINER_RELEASES.items()
}
"""Version → tag of its images."""

KARPENTER_KUBERNETES: dict[str, tuple[str, str]] = {
    "1.14": ("1.26", "1.36"),
    "1.15": ("1.26", "1.37"),
}
"""Minor release of Karpenter → oldest and newest Kubernetes: its compatibility.yaml at 1.14.1; of 1.15, for which
that file has no row, MinK8sVersion and MaxK8sVersion of its pkg/providers/version."""
