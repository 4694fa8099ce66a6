"""Plugins that turn devices into resources which pods can request: nvidia.com/gpu and
vpc.amazonaws.com/efa."""

from __future__ import annotations

import pulumi
import pulumi_kubernetes as k8s

from components.base.chart import release
from components.base.pool_daemon import of_types
from trainyard.catalog.upstream.bottlerocket import FAMILY, LABEL
from trainyard.objects.jobs.pod_template import GPU
from trainyard.plans.controllers import EFA_PLUGIN, DevicePluginsPlan

NAMESPACE = "kube-system"
EFA_LABELS = {"app.kubernetes.io/name": EFA_PLUGIN}
_ELSEWHERE = ({"key": LABEL, "operator": "NotIn", "values": [FAMILY]},)
"""Requirement on nodes: the kubelet keeps the plugin of a resource that came last (Kubernetes, device-plugins). By
node and not by pool: nodes of before stay when a pool changes."""


class DevicePlugins(pulumi.ComponentResource):
    """Two DaemonSets on GPU nodes; without them a node never counts as initialized."""

    def __init__(
        self, name: str, plan: DevicePluginsPlan, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("trainyard:nodes:DevicePlugins", name, None, opts)
        release(
            self,
            "nvidia-device-plugin",
            plan.nvidia,
            namespace=NAMESPACE,
            values={
                # The chart looks for labels of node-feature-discovery; Karpenter's own label says
                # the same.
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {
                                    "matchExpressions": [
                                        {
                                            "key": "karpenter.k8s.aws/instance-gpu-manufacturer",
                                            "operator": "In",
                                            "values": ["nvidia"],
                                        },
                                        *(_ELSEWHERE if plan.bottlerocket else ()),
                                    ]
                                }
                            ]
                        }
                    }
                },
            },
        )
        if plan.efa_instance_types:
            self._efa("efa-device-plugin", plan)
        self.register_outputs({})

    def _efa(self, name: str, plan: DevicePluginsPlan) -> k8s.apps.v1.DaemonSet:
        """Typed here and not by chart: the chart has a list of its own of the types with EFA, and from
        0.5.9 its container is privileged (aws/eks-charts#1245, for Neuron). Both can be overridden,
        which is as long as this."""
        device_plugins = "/var/lib/kubelet/device-plugins"
        container = k8s.core.v1.ContainerArgs(
            name="efa",
            image=plan.efa_image,
            security_context=k8s.core.v1.SecurityContextArgs(
                allow_privilege_escalation=False,
                capabilities=k8s.core.v1.CapabilitiesArgs(drop=["ALL"]),
            ),
            resources=k8s.core.v1.ResourceRequirementsArgs(
                requests={"cpu": "10m", "memory": "20Mi"}
            ),
            volume_mounts=[
                k8s.core.v1.VolumeMountArgs(name="device-plugins", mount_path=device_plugins),
                k8s.core.v1.VolumeMountArgs(name="infiniband", mount_path="/dev/infiniband"),
            ],
        )
        pod = k8s.core.v1.PodSpecArgs(
            host_network=True,
            priority_class_name="system-node-critical",
            containers=[container],
            affinity=of_types(plan.efa_instance_types),
            tolerations=[
                k8s.core.v1.TolerationArgs(key=GPU, operator="Exists", effect="NoSchedule")
            ],
            volumes=[
                _host_path("device-plugins", device_plugins),
                _host_path("infiniband", "/dev/infiniband"),
            ],
        )
        return k8s.apps.v1.DaemonSet(
            name,
            metadata=k8s.meta.v1.ObjectMetaArgs(name=EFA_PLUGIN, namespace=NAMESPACE),
            spec=k8s.apps.v1.DaemonSetSpecArgs(
                selector=k8s.meta.v1.LabelSelectorArgs(match_labels=EFA_LABELS),
                template=k8s.core.v1.PodTemplateSpecArgs(
                    metadata=k8s.meta.v1.ObjectMetaArgs(labels=EFA_LABELS), spec=pod
                ),
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )


def _host_path(name: str, path: str) -> k8s.core.v1.VolumeArgs:
    return k8s.core.v1.VolumeArgs(
        name=name, host_path=k8s.core.v1.HostPathVolumeSourceArgs(path=path)
    )
