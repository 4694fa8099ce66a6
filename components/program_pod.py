"""The pod of a program of ours: Python and its files, on a system node, without rights on the node."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_kubernetes as k8s

from components.unprivileged import container_security, pod_security
from plans.pod_template import NODES_FOR

SIZE = {"cpu": "50m", "memory": "128Mi"}
AWAY_SECONDS = 30
"""How long its pod stays on a system node that died. The default of Kubernetes is 300."""


def program_pod(
    name: str,
    image: str,
    command: Sequence[str],
    *,
    port: int,
    folder: str,
    account: pulumi.Output[str],
    file: pulumi.Output[str],
) -> k8s.core.v1.PodSpecArgs:
    """`port`: where /healthz is. `folder`: of the ConfigMap `file`."""
    container = k8s.core.v1.ContainerArgs(
        name=name,
        image=image,
        command=list(command),
        ports=[k8s.core.v1.ContainerPortArgs(name="http", container_port=port)],
        resources=k8s.core.v1.ResourceRequirementsArgs(
            requests=SIZE, limits={"memory": SIZE["memory"]}
        ),
        liveness_probe=k8s.core.v1.ProbeArgs(
            http_get=k8s.core.v1.HTTPGetActionArgs(path="/healthz", port="http"),
            timeout_seconds=5,
            failure_threshold=6,
        ),
        security_context=container_security(),
        volume_mounts=[k8s.core.v1.VolumeMountArgs(name="files", mount_path=folder)],
    )
    return k8s.core.v1.PodSpecArgs(
        service_account_name=account,
        node_selector={NODES_FOR: "system"},
        priority_class_name="system-cluster-critical",
        enable_service_links=False,
        security_context=pod_security(),
        tolerations=[
            k8s.core.v1.TolerationArgs(
                key=f"node.kubernetes.io/{key}",
                operator="Exists",
                effect="NoExecute",
                toleration_seconds=AWAY_SECONDS,
            )
            for key in ("unreachable", "not-ready")
        ],
        containers=[container],
        volumes=[
            k8s.core.v1.VolumeArgs(
                name="files", config_map=k8s.core.v1.ConfigMapVolumeSourceArgs(name=file)
            )
        ],
    )
