"""The images that nodes of a pool pull while they start, beside their device plugins and not after
them.

Which images: `prefetch` of a pool in the stack file, or the image of its jobs:
trainyard/derive/pools.py.
"""

from __future__ import annotations

import pulumi
import pulumi_kubernetes as k8s

from components.base.unprivileged import NOBODY, container_security
from trainyard.objects.jobs.pod_template import GPU, POOL
from trainyard.plans.pools import GpuPoolPlan

NAMESPACE = "kube-system"


class Prefetch(pulumi.ComponentResource):
    """A DaemonSet whose pods sleep in the images. Its pod starts when the node has its network; a
    job's when Karpenter has seen the GPUs, too. The kubelet and containerd pull an image once for
    both (EKS's AMI lets the kubelet pull side by side: amazon-eks-ami, nodeadm)."""

    def __init__(
        self, name: str, plan: GpuPoolPlan, *, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("trainyard:nodes:Prefetch", name, None, opts)
        labels = {"app.kubernetes.io/name": f"{plan.name}-images"}
        pod = k8s.core.v1.PodSpecArgs(
            containers=[_sleeping(number, image) for number, image in enumerate(plan.images)],
            node_selector={POOL: plan.name},
            tolerations=[
                k8s.core.v1.TolerationArgs(key=key, operator="Exists", effect="NoSchedule")
                for key in (GPU, POOL)
            ],
            automount_service_account_token=False,
            enable_service_links=False,
            termination_grace_period_seconds=1,  # `sleep` does not listen
        )
        k8s.apps.v1.DaemonSet(
            f"{name}-images",
            metadata=k8s.meta.v1.ObjectMetaArgs(
                name=f"{plan.name}-images",
                namespace=NAMESPACE,
                # An image that nobody can pull is the job's error, which says so.
                annotations={"pulumi.com/skipAwait": "true"},
            ),
            spec=k8s.apps.v1.DaemonSetSpecArgs(
                selector=k8s.meta.v1.LabelSelectorArgs(match_labels=labels),
                template=k8s.core.v1.PodTemplateSpecArgs(
                    metadata=k8s.meta.v1.ObjectMetaArgs(labels=labels), spec=pod
                ),
                update_strategy=k8s.apps.v1.DaemonSetUpdateStrategyArgs(
                    rolling_update=k8s.apps.v1.RollingUpdateDaemonSetArgs(max_unavailable="100%")
                ),
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})


def _sleeping(number: int, image: str) -> k8s.core.v1.ContainerArgs:
    """A container that holds an image and may do nothing. It requests nothing, so that whatever
    fitted on the node still does."""
    return k8s.core.v1.ContainerArgs(
        name=f"image-{number}",
        image=image,
        command=["sleep", "infinity"],
        # Images for CUDA ask for all GPUs of their node.
        env=[k8s.core.v1.EnvVarArgs(name="NVIDIA_VISIBLE_DEVICES", value="void")],
        security_context=container_security(user=NOBODY, group=NOBODY),
    )
