"""A DaemonSet on the nodes of pools: it tolerates their taints, and no update waits for its pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi
import pulumi_kubernetes as k8s

from trainyard.objects.jobs.pod_template import GPU, POOL
from trainyard.objects.metrics.metrics import APP, INSTANCE_TYPE


def pool_daemon(
    name: str,
    container: k8s.core.v1.ContainerArgs,
    *,
    namespace: str,
    on: Mapping[str, str],
    volumes: Sequence[k8s.core.v1.VolumeArgs],
    opts: pulumi.ResourceOptions,
    types: Sequence[str] = (),
    account: pulumi.Input[str] | None = None,
    annotations: Mapping[str, pulumi.Input[str]] | None = None,
) -> None:
    """One pod on each node with the labels `on`. `types`: which instance types they have, if not any.
    `account`: its service account, if it has one of its own; `annotations`: of its pods. It
    requests less than trainyard/derive/pod_resources.py keeps for DaemonSets, so a job that takes a whole
    node fits as before."""
    labels = {APP: name}
    k8s.apps.v1.DaemonSet(
        name,
        metadata=k8s.meta.v1.ObjectMetaArgs(
            name=name,
            namespace=namespace,
            # A node without it is no error of `up`.
            annotations={"pulumi.com/skipAwait": "true"},
        ),
        spec=k8s.apps.v1.DaemonSetSpecArgs(
            selector=k8s.meta.v1.LabelSelectorArgs(match_labels=labels),
            template=k8s.core.v1.PodTemplateSpecArgs(
                metadata=k8s.meta.v1.ObjectMetaArgs(labels=labels, annotations=annotations),
                spec=k8s.core.v1.PodSpecArgs(
                    containers=[container],
                    volumes=list(volumes),
                    node_selector=on,
                    affinity=of_types(types) if types else None,
                    priority_class_name="system-node-critical",
                    service_account_name=account,
                    automount_service_account_token=False,
                    enable_service_links=False,
                    tolerations=tolerated(),
                ),
            ),
            update_strategy=k8s.apps.v1.DaemonSetUpdateStrategyArgs(
                rolling_update=k8s.apps.v1.RollingUpdateDaemonSetArgs(max_unavailable="100%")
            ),
        ),
        opts=opts,
    )


def tolerated() -> list[k8s.core.v1.TolerationArgs]:
    """Tolerations of the taints of pools: that of GPU nodes, and that of CPU nodes."""
    return [
        k8s.core.v1.TolerationArgs(key=key, operator="Exists", effect="NoSchedule")
        for key in (GPU, POOL)
    ]


def of_types(types: Sequence[str]) -> k8s.core.v1.AffinityArgs:
    """Affinity to nodes of these instance types."""
    term = k8s.core.v1.NodeSelectorTermArgs(
        match_expressions=[
            k8s.core.v1.NodeSelectorRequirementArgs(
                key=INSTANCE_TYPE, operator="In", values=[*types]
            )
        ]
    )
    return k8s.core.v1.AffinityArgs(
        node_affinity=k8s.core.v1.NodeAffinityArgs(
            required_during_scheduling_ignored_during_execution=k8s.core.v1.NodeSelectorArgs(
                node_selector_terms=[term]
            )
        )
    )


def on_node(name: str, path: str, *, made: bool = False) -> k8s.core.v1.VolumeArgs:
    """A folder of the node as a volume. `made`: kubelet makes it where it is not there."""
    kind = "DirectoryOrCreate" if made else None
    return k8s.core.v1.VolumeArgs(
        name=name, host_path=k8s.core.v1.HostPathVolumeSourceArgs(path=path, type=kind)
    )
