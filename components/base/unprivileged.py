"""Pods and containers that need no rights on their node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi
import pulumi_kubernetes as k8s

from trainyard.objects.jobs.pod_template import NODES_FOR

NOBODY = 65534
"""User and group without any right, on every Linux; those of the images of Prometheus and
Alertmanager."""
HTTP = "http"
"""Name of the port of a server."""


def container_security(
    user: int | None = None, group: int | None = None
) -> k8s.core.v1.SecurityContextArgs:
    """No capability, and its image is for reading only. `user` and `group`: in a pod other than
    system_pod; user 0 is for what only root can read."""
    alone = user is not None
    return k8s.core.v1.SecurityContextArgs(
        run_as_user=user,
        run_as_group=group,
        allow_privilege_escalation=False,
        read_only_root_filesystem=True,
        capabilities=k8s.core.v1.CapabilitiesArgs(drop=["ALL"]),
        seccomp_profile=k8s.core.v1.SeccompProfileArgs(type="RuntimeDefault") if alone else None,
    )


def server(
    name: str,
    image: str,
    *,
    port: int,
    size: Mapping[str, str],
    healthy: str,
    ready: str | None = None,
    command: Sequence[str] | None = None,
    args: Sequence[str] | None = None,
    mounts: Sequence[k8s.core.v1.VolumeMountArgs] | None = None,
) -> k8s.core.v1.ContainerArgs:
    """A container that serves HTTP at `port`. `size`: what it requests; its memory is the limit, too.
    `healthy` and `ready`: the paths of its probes."""
    return k8s.core.v1.ContainerArgs(
        name=name,
        image=image,
        command=command and [*command],
        args=args and [*args],
        ports=[k8s.core.v1.ContainerPortArgs(name=HTTP, container_port=port)],
        resources=k8s.core.v1.ResourceRequirementsArgs(
            requests=size, limits={"memory": size["memory"]}
        ),
        readiness_probe=_probe(ready) if ready else None,
        liveness_probe=_probe(healthy),
        security_context=container_security(),
        volume_mounts=mounts and [*mounts],
    )


def _probe(path: str) -> k8s.core.v1.ProbeArgs:
    return k8s.core.v1.ProbeArgs(
        http_get=k8s.core.v1.HTTPGetActionArgs(path=path, port=HTTP),
        timeout_seconds=5,
        failure_threshold=6,
    )


def system_pod(
    container: k8s.core.v1.ContainerArgs,
    *,
    volumes: Sequence[k8s.core.v1.VolumeArgs] | None = None,
    account: pulumi.Output[str] | None = None,
    asks_api_server: bool = False,
    priority_class: str | None = None,
    tolerations: Sequence[k8s.core.v1.TolerationArgs] | None = None,
) -> k8s.core.v1.PodSpecArgs:
    """A pod on a system node. `asks_api_server`: it gets a token of its service account."""
    return k8s.core.v1.PodSpecArgs(
        service_account_name=account,
        automount_service_account_token=None if asks_api_server else False,
        node_selector={NODES_FOR: "system"},
        priority_class_name=priority_class,
        enable_service_links=False,
        security_context=k8s.core.v1.PodSecurityContextArgs(
            run_as_non_root=True,
            run_as_user=NOBODY,
            run_as_group=NOBODY,
            fs_group=NOBODY,
            seccomp_profile=k8s.core.v1.SeccompProfileArgs(type="RuntimeDefault"),
        ),
        tolerations=tolerations and [*tolerations],
        containers=[container],
        volumes=volumes and [*volumes],
    )


def files_of(
    name: str,
    config_map: pulumi.Input[str],
    items: Sequence[k8s.core.v1.KeyToPathArgs] | None = None,
) -> k8s.core.v1.VolumeArgs:
    """The files of a ConfigMap as a volume. `items`: the path of each, if that is not its key."""
    return k8s.core.v1.VolumeArgs(
        name=name,
        config_map=k8s.core.v1.ConfigMapVolumeSourceArgs(name=config_map, items=items and [*items]),
    )


def scratch(name: str, size: str) -> k8s.core.v1.VolumeArgs:
    """A folder on the disk of the node, which ends with the pod."""
    return k8s.core.v1.VolumeArgs(
        name=name, empty_dir=k8s.core.v1.EmptyDirVolumeSourceArgs(size_limit=size)
    )
