"""A Deployment of one pod, and its Service: a program of which two at a time would share its data, or both
act."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
import pulumi_kubernetes as k8s


def one_pod(
    labels: Mapping[str, str],
    pod: k8s.core.v1.PodSpecArgs,
    annotations: Mapping[str, pulumi.Input[str]] | None = None,
) -> k8s.apps.v1.DeploymentSpecArgs:
    """The spec of its Deployment: the old pod ends before the new one starts. `annotations`: of the
    pod; another value is another pod."""
    return k8s.apps.v1.DeploymentSpecArgs(
        replicas=1,
        strategy=k8s.apps.v1.DeploymentStrategyArgs(type="Recreate"),
        selector=k8s.meta.v1.LabelSelectorArgs(match_labels=labels),
        template=k8s.core.v1.PodTemplateSpecArgs(
            metadata=k8s.meta.v1.ObjectMetaArgs(labels=labels, annotations=annotations), spec=pod
        ),
    )


def one_pod_service(
    name: str,
    called: str,
    namespace: pulumi.Output[str],
    labels: Mapping[str, str],
    port: int,
    opts: pulumi.ResourceOptions,
) -> k8s.core.v1.Service:
    """Its Service. `called`: its name in the cluster."""
    return k8s.core.v1.Service(
        name,
        metadata=k8s.meta.v1.ObjectMetaArgs(
            name=called,
            namespace=namespace,
            annotations={"pulumi.com/skipAwait": "true"},  # of its pod, which has no nodes yet
        ),
        spec=k8s.core.v1.ServiceSpecArgs(
            selector=labels, ports=[k8s.core.v1.ServicePortArgs(name="http", port=port)]
        ),
        opts=opts,
    )
