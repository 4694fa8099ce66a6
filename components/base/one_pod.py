"""A Deployment of one pod, and its Service: a program of which two at a time would share its data, or both
act."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi
import pulumi_kubernetes as k8s


def one_pod(
    name: str,
    called: k8s.meta.v1.ObjectMetaArgs,
    labels: Mapping[str, str],
    pod: k8s.core.v1.PodSpecArgs,
    *,
    parent: pulumi.Resource,
    needs: Sequence[pulumi.Resource],
    annotations: Mapping[str, pulumi.Input[str]] | None = None,
) -> None:
    """The old pod ends before the new one starts. `called`: its name in the cluster. `needs`: the nodes
    that it runs on, and what it needs before it starts. `annotations`: of the pod; another value is
    another pod."""
    k8s.apps.v1.Deployment(
        name,
        metadata=called,
        spec=k8s.apps.v1.DeploymentSpecArgs(
            replicas=1,
            strategy=k8s.apps.v1.DeploymentStrategyArgs(type="Recreate"),
            selector=k8s.meta.v1.LabelSelectorArgs(match_labels=labels),
            template=k8s.core.v1.PodTemplateSpecArgs(
                metadata=k8s.meta.v1.ObjectMetaArgs(labels=labels, annotations=annotations),
                spec=pod,
            ),
        ),
        # Edges that no input shows: without nodes the wait for its pod gives up after 10 minutes, and a
        # pod that starts before its AWS identity has none.
        opts=pulumi.ResourceOptions(parent=parent, depends_on=[*needs]),
    )


def one_pod_service(
    name: str,
    called: k8s.meta.v1.ObjectMetaArgs,
    labels: Mapping[str, str],
    port: int,
    *,
    parent: pulumi.Resource,
) -> None:
    """Its Service."""
    called = k8s.meta.v1.ObjectMetaArgs(
        name=called.name,
        namespace=called.namespace,
        annotations={"pulumi.com/skipAwait": "true"},  # of its pod, which has no nodes yet
    )
    k8s.core.v1.Service(
        name,
        metadata=called,
        spec=k8s.core.v1.ServiceSpecArgs(
            selector=labels, ports=[k8s.core.v1.ServicePortArgs(name="http", port=port)]
        ),
        opts=pulumi.ResourceOptions(parent=parent),
    )
