"""What reads metrics on the nodes of pools: NVIDIA's exporter of its GPUs, and Prometheus's of the node
and its mounts.

Fields and collectors: plans/metrics.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_kubernetes as k8s

from components.unprivileged import container_security
from plans.metrics import (
    APP,
    EXPORTERS,
    GPU_COUNTERS,
    GPU_PORT,
    GPUS,
    NODE_COLLECTORS,
    NODE_PORT,
    NODES,
    MetricsPlan,
    exporter,
)
from plans.pod_template import GPU, NODES_FOR, POOL

COUNTERS = "/etc/trainyard"
POD_RESOURCES = "/var/lib/kubelet/pod-resources"
"""Where kubelet says which pod has which GPU."""


class Exporters(pulumi.ComponentResource):
    """A DaemonSet for GPUs and one for nodes. They request less than stacks/derive/pod_resources.py
    keeps for DaemonSets, so a job that takes a whole node fits as before."""

    def __init__(
        self, name: str, plan: MetricsPlan, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("trainyard:metrics:Exporters", name, None, opts)
        self._child = pulumi.ResourceOptions(parent=self)
        counters = k8s.core.v1.ConfigMap(
            f"{name}-counters",
            metadata=k8s.meta.v1.ObjectMetaArgs(name=exporter(GPUS), namespace=EXPORTERS),
            data={"counters.csv": GPU_COUNTERS},
            opts=self._child,
        )
        self._daemon_set(
            GPUS,
            _gpus(plan),
            on={"karpenter.k8s.aws/instance-gpu-manufacturer": "nvidia"},
            volumes=[
                k8s.core.v1.VolumeArgs(
                    name="counters",
                    config_map=k8s.core.v1.ConfigMapVolumeSourceArgs(name=counters.metadata.name),
                ),
                _host("pod-resources", POD_RESOURCES),
            ],
        )
        self._daemon_set(
            NODES,
            _nodes(plan),
            on={NODES_FOR: "training"},
            volumes=[_host("proc", "/proc"), _host("sys", "/sys"), _host("root", "/")],
        )
        self.register_outputs({})

    def _daemon_set(
        self,
        name: str,
        container: k8s.core.v1.ContainerArgs,
        *,
        on: dict[str, str],
        volumes: Sequence[k8s.core.v1.VolumeArgs],
    ) -> None:
        labels = {APP: exporter(name)}
        k8s.apps.v1.DaemonSet(
            exporter(name),
            metadata=k8s.meta.v1.ObjectMetaArgs(
                name=exporter(name),
                namespace=EXPORTERS,
                # A node without metrics is an alert, and no error of `up`.
                annotations={"pulumi.com/skipAwait": "true"},
            ),
            spec=k8s.apps.v1.DaemonSetSpecArgs(
                selector=k8s.meta.v1.LabelSelectorArgs(match_labels=labels),
                template=k8s.core.v1.PodTemplateSpecArgs(
                    metadata=k8s.meta.v1.ObjectMetaArgs(labels=labels),
                    spec=k8s.core.v1.PodSpecArgs(
                        containers=[container],
                        volumes=list(volumes),
                        node_selector=on,
                        priority_class_name="system-node-critical",
                        automount_service_account_token=False,
                        enable_service_links=False,
                        tolerations=[
                            k8s.core.v1.TolerationArgs(
                                key=key, operator="Exists", effect="NoSchedule"
                            )
                            for key in (GPU, POOL)
                        ],
                    ),
                ),
                update_strategy=k8s.apps.v1.DaemonSetUpdateStrategyArgs(
                    rolling_update=k8s.apps.v1.RollingUpdateDaemonSetArgs(max_unavailable="100%")
                ),
            ),
            opts=self._child,
        )


def _gpus(plan: MetricsPlan) -> k8s.core.v1.ContainerArgs:
    """It requests no GPU: the runtime of EKS's AMI gives it all of the node, beside the job's."""
    return k8s.core.v1.ContainerArgs(
        name=GPUS,
        image=plan.gpu_image,
        args=["-f", f"{COUNTERS}/counters.csv"],
        env=[
            k8s.core.v1.EnvVarArgs(name="DCGM_EXPORTER_KUBERNETES", value="true"),
            k8s.core.v1.EnvVarArgs(name="DCGM_EXPORTER_LISTEN", value=f":{GPU_PORT}"),
            k8s.core.v1.EnvVarArgs(
                name="NODE_NAME",
                value_from=k8s.core.v1.EnvVarSourceArgs(
                    field_ref=k8s.core.v1.ObjectFieldSelectorArgs(field_path="spec.nodeName")
                ),
            ),
            *(_server(plan.dcgm_port) if plan.dcgm_port else ()),
        ],
        ports=[k8s.core.v1.ContainerPortArgs(name="metrics", container_port=GPU_PORT)],
        resources=k8s.core.v1.ResourceRequirementsArgs(
            requests={"cpu": "50m", "memory": "256Mi"}, limits={"memory": "1Gi"}
        ),
        security_context=k8s.core.v1.SecurityContextArgs(
            run_as_user=0,
            # DCGM's profiling fields want it (values.yaml of the exporter's chart).
            capabilities=k8s.core.v1.CapabilitiesArgs(add=["SYS_ADMIN"]),
        ),
        volume_mounts=[
            k8s.core.v1.VolumeMountArgs(name="counters", mount_path=COUNTERS),
            k8s.core.v1.VolumeMountArgs(
                name="pod-resources", mount_path=POD_RESOURCES, read_only=True
            ),
        ],
    )


def _server(port: int) -> list[k8s.core.v1.EnvVarArgs]:
    """Where DCGM runs already, on the exporter's own node."""
    return [
        k8s.core.v1.EnvVarArgs(
            name="HOST_IP",
            value_from=k8s.core.v1.EnvVarSourceArgs(
                field_ref=k8s.core.v1.ObjectFieldSelectorArgs(field_path="status.hostIP")
            ),
        ),
        k8s.core.v1.EnvVarArgs(name="DCGM_REMOTE_HOSTENGINE_INFO", value=f"$(HOST_IP):{port}"),
    ]


def _nodes(plan: MetricsPlan) -> k8s.core.v1.ContainerArgs:
    """Root, because kubelet lets nobody else into the folders in which it mounts Lustre; without
    capabilities."""
    return k8s.core.v1.ContainerArgs(
        name=NODES,
        image=plan.node_image,
        args=[
            "--path.procfs=/host/proc",
            "--path.sysfs=/host/sys",
            "--path.rootfs=/host/root",
            f"--web.listen-address=:{NODE_PORT}",
            "--collector.disable-defaults",
            *(f"--collector.{each}" for each in NODE_COLLECTORS),
            # Of EFS and S3 no figure says how full they are.
            "--collector.filesystem.fs-types-include=^(lustre|ext4|xfs)$",
        ],
        ports=[k8s.core.v1.ContainerPortArgs(name="metrics", container_port=NODE_PORT)],
        resources=k8s.core.v1.ResourceRequirementsArgs(
            requests={"cpu": "10m", "memory": "32Mi"}, limits={"memory": "128Mi"}
        ),
        security_context=container_security(user=0),
        volume_mounts=[
            k8s.core.v1.VolumeMountArgs(name="proc", mount_path="/host/proc", read_only=True),
            k8s.core.v1.VolumeMountArgs(name="sys", mount_path="/host/sys", read_only=True),
            k8s.core.v1.VolumeMountArgs(
                name="root",
                mount_path="/host/root",
                read_only=True,
                mount_propagation="HostToContainer",  # of file systems that come later
            ),
        ],
    )


def _host(name: str, path: str) -> k8s.core.v1.VolumeArgs:
    return k8s.core.v1.VolumeArgs(
        name=name, host_path=k8s.core.v1.HostPathVolumeSourceArgs(path=path)
    )
