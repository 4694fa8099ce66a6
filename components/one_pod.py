"""A Deployment of one pod: a program of which two at a time would share its data, or both act."""

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
