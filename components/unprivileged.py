"""What pods and containers have alike that need no rights on their node."""

from __future__ import annotations

import pulumi_kubernetes as k8s

NOBODY = 65534
"""User and group without any right, on every Linux; those of the images of Prometheus and
Alertmanager."""


def pod_security() -> k8s.core.v1.PodSecurityContextArgs:
    return k8s.core.v1.PodSecurityContextArgs(
        run_as_non_root=True,
        run_as_user=NOBODY,
        run_as_group=NOBODY,
        fs_group=NOBODY,
        seccomp_profile=k8s.core.v1.SeccompProfileArgs(type="RuntimeDefault"),
    )


def container_security(
    user: int | None = None, group: int | None = None
) -> k8s.core.v1.SecurityContextArgs:
    """No capability, and its image is for reading only. `user` and `group`: in a pod without
    pod_security; user 0 is for what only root can read."""
    alone = user is not None
    return k8s.core.v1.SecurityContextArgs(
        run_as_user=user,
        run_as_group=group,
        allow_privilege_escalation=False,
        read_only_root_filesystem=True,
        capabilities=k8s.core.v1.CapabilitiesArgs(drop=["ALL"]),
        seccomp_profile=k8s.core.v1.SeccompProfileArgs(type="RuntimeDefault") if alone else None,
    )


def probe(path: str) -> k8s.core.v1.ProbeArgs:
    """Ask a program at a path of HTTP whether it is ready, or healthy."""
    return k8s.core.v1.ProbeArgs(
        http_get=k8s.core.v1.HTTPGetActionArgs(path=path, port="http"),
        timeout_seconds=5,
        failure_threshold=6,
    )
