"""Exporters of metrics on the nodes of pools: NVIDIA's exporter of its GPUs, Prometheus's of the
node and its mounts, and one of ours of EFA.

Fields and collectors: trainyard/objects/metrics/metrics.py. Counters of EFA: trainyard/in_cluster/efa.
"""

from __future__ import annotations

import pulumi
import pulumi_kubernetes as k8s

from components.base.pool_daemon import on_node, pool_daemon
from components.base.unprivileged import NOBODY, container_security, files_of
from trainyard.objects.jobs.pod_template import NODES_FOR
from trainyard.objects.metrics.metrics import (
    EFA,
    EFA_PORT,
    EXPORTERS,
    GPU_COUNTERS,
    GPU_MAKER,
    GPU_PORT,
    GPUS,
    NODE_COLLECTORS,
    NODE_PORT,
    NODES,
    EfaExporter,
    MetricsPlan,
    exporter,
)
from trainyard.plans.identity import digest

FOLDER = "/etc/trainyard"
"""Folder of an exporter's own files."""
POD_RESOURCES = "/var/lib/kubelet/pod-resources"
"""Socket on which kubelet says which pod has which GPU."""


class Exporters(pulumi.ComponentResource):
    """DaemonSets for GPUs, one for nodes and one for EFA. A node without metrics is an alert."""

    def __init__(
        self, name: str, plan: MetricsPlan, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("trainyard:metrics:Exporters", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        counters = k8s.core.v1.ConfigMap(
            f"{name}-counters",
            metadata=k8s.meta.v1.ObjectMetaArgs(name=exporter(GPUS), namespace=EXPORTERS),
            data={"counters.csv": GPU_COUNTERS},
            opts=child,
        )
        for each in plan.gpus:
            pool_daemon(
                exporter(each.name),
                _gpus(plan.gpu_image, each.dcgm_port),
                namespace=EXPORTERS,
                on={GPU_MAKER: "nvidia"},
                types=each.instance_types,
                volumes=[
                    files_of("counters", counters.metadata.name),
                    on_node("pod-resources", POD_RESOURCES),
                ],
                opts=child,
            )
        pool_daemon(
            exporter(NODES),
            _nodes(plan),
            namespace=EXPORTERS,
            on={NODES_FOR: "training"},
            volumes=[on_node("proc", "/proc"), on_node("sys", "/sys"), on_node("root", "/")],
            opts=child,
        )
        if plan.efa:
            self._efa(f"{name}-efa", plan.efa)
        self.register_outputs({})

    def _efa(self, name: str, plan: EfaExporter) -> None:
        child = pulumi.ResourceOptions(parent=self)
        program = k8s.core.v1.ConfigMap(
            name,
            metadata=k8s.meta.v1.ObjectMetaArgs(name=exporter(EFA), namespace=EXPORTERS),
            data=plan.files,
            opts=child,
        )
        pool_daemon(
            exporter(EFA),
            _efa(plan),
            namespace=EXPORTERS,
            on={NODES_FOR: "training"},
            types=plan.instance_types,
            volumes=[files_of("program", program.metadata.name), on_node("sys", "/sys")],
            # It reads its files once: other files are other pods.
            annotations={"trainyard/file": digest(sorted(plan.files.values()))},
            opts=child,
        )


def _gpus(image: str, dcgm_port: int | None) -> k8s.core.v1.ContainerArgs:
    """It requests no GPU: the runtime of EKS's AMI gives it all of the node, beside the job's. `dcgm_port`: of a
    DCGM server that the node has already."""
    return k8s.core.v1.ContainerArgs(
        name=GPUS,
        image=image,
        args=["-f", f"{FOLDER}/counters.csv"],
        env=[
            k8s.core.v1.EnvVarArgs(name="DCGM_EXPORTER_KUBERNETES", value="true"),
            k8s.core.v1.EnvVarArgs(name="DCGM_EXPORTER_LISTEN", value=f":{GPU_PORT}"),
            k8s.core.v1.EnvVarArgs(
                name="NODE_NAME",
                value_from=k8s.core.v1.EnvVarSourceArgs(
                    field_ref=k8s.core.v1.ObjectFieldSelectorArgs(field_path="spec.nodeName")
                ),
            ),
            *(_server(dcgm_port) if dcgm_port else ()),
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
            k8s.core.v1.VolumeMountArgs(name="counters", mount_path=FOLDER),
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


def _efa(plan: EfaExporter) -> k8s.core.v1.ContainerArgs:
    """It runs as a user without rights, who may read counters, in the node's /sys: the container's own has
    the devices without them (is_full_dev in drivers/infiniband/core/sysfs.c of Linux)."""
    return k8s.core.v1.ContainerArgs(
        name=EFA,
        image=plan.image,
        command=["python3", "-B", f"{FOLDER}/efa.py", "/host/sys", str(EFA_PORT)],
        ports=[k8s.core.v1.ContainerPortArgs(name="metrics", container_port=EFA_PORT)],
        resources=k8s.core.v1.ResourceRequirementsArgs(
            requests={"cpu": "10m", "memory": "32Mi"}, limits={"memory": "128Mi"}
        ),
        security_context=container_security(user=NOBODY, group=NOBODY),
        volume_mounts=[
            k8s.core.v1.VolumeMountArgs(name="program", mount_path=FOLDER),
            k8s.core.v1.VolumeMountArgs(name="sys", mount_path="/host/sys", read_only=True),
        ],
    )
