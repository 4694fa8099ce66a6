"""Plugins that turn devices into resources which pods can request: nvidia.com/gpu and
vpc.amazonaws.com/efa."""

from __future__ import annotations

import pulumi
import pulumi_kubernetes as k8s

from components.base.chart import release
from components.base.pool_daemon import of_types, tolerated
from trainyard.catalog.upstream.bottlerocket import FAMILY, LABEL
from trainyard.plans.controllers import EFA_PLUGIN, DevicePluginsPlan

NAMESPACE = "kube-system"
EFA_LABELS = {"app.kubernetes.io/name": EFA_PLUGIN}
_ELSEWHERE = ({"key": LABEL, "operator": "NotIn", "values": [FAMILY]},)
"""Requirement on nodes: the kubelet keeps the plugin of a resource that came last (Kubernetes, device-plugins). By
node and not by pool: nodes of before stay when a pool changes."""


AT_ONCE = "10%"
"""Pods of a plugin that an update starts anew at the same time. Containers keep their devices meanwhile."""


class DevicePlugins(pulumi.ComponentResource):
    """Two DaemonSets on nodes of pools; without them a node with such a device never counts as initialized."""

    def __init__(
        self, name: str, plan: DevicePluginsPlan, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("trainyard:nodes:DevicePlugins", name, None, opts)
        release(
            self,
            "nvidia-device-plugin",
            plan.nvidia,
            namespace=NAMESPACE,
            # A node without it is no error of `up`, and one that is not ready would hold up all others.
            waits=False,
            values={
                "updateStrategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"maxUnavailable": AT_ONCE},
                },
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
            tolerations=tolerated(),
            volumes=[
                _host_path("device-plugins", device_plugins),
                _host_path("infiniband", "/dev/infiniband"),
            ],
        )
        return k8s.apps.v1.DaemonSet(
            name,
            metadata=k8s.meta.v1.ObjectMetaArgs(
                name=EFA_PLUGIN,
                namespace=NAMESPACE,
                annotations={"pulumi.com/skipAwait": "true"},
            ),
            spec=k8s.apps.v1.DaemonSetSpecArgs(
                update_strategy=k8s.apps.v1.DaemonSetUpdateStrategyArgs(
                    rolling_update=k8s.apps.v1.RollingUpdateDaemonSetArgs(max_unavailable=AT_ONCE)
                ),
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
