"""`trainyard check --live`: whether an existing cluster has a GPU Operator, or a device plugin of GPUs or EFA
under a name that this stack does not use.

A plugin that tolerates the taint of GPU nodes comes to the nodes of this stack, too. Two plugins then
register one resource, and the kubelet keeps the one that came last (Kubernetes, device-plugins). The
operator leaves alone the nodes that pools launch, by their label; nodes that stood before pools had it do not get it
from Karpenter. The operator makes its plugin only once there is a GPU node, so it is found by its CRD. GPUs that nodes
of the owner have say nothing of it: a plugin of their image (Bottlerocket) never comes to the nodes of this stack.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainyard.catalog.chart_objects import ObjectName
from trainyard.catalog.upstream.gpu_operator import CRD, LABEL, OFF, SELECTED
from trainyard.live.own_names import CLUSTER, own_names
from trainyard.live.questions.account import Account
from trainyard.live.questions.caller import NotAnswered
from trainyard.live.questions.cluster_questions import PluginFound
from trainyard.objects.jobs.pod_template import GPU, NODES_FOR
from trainyard.plan import EnvironmentPlan
from trainyard.problems import InputWarning

OPERATOR = ObjectName("CustomResourceDefinition", CRD)
KEEP_OFF = f"{LABEL}={OFF[LABEL]}"
STANDING = f"{NODES_FOR}=training,karpenter.k8s.aws/instance-gpu-count,{LABEL}!={OFF[LABEL]}"
"""Selector of nodes of pools with GPUs that the operator does not leave alone."""
MAKERS = ("nvidia", "efa")
"""Words in the image or the name of a plugin that serves what the plugins of this stack serve."""


def plugin_findings(
    account: Account, plan: EnvironmentPlan, cluster: str
) -> Iterator[InputWarning]:
    """Warnings about nodes that the operator does not leave alone, and about each plugin that can come to the nodes
    of this stack."""
    try:
        operator = OPERATOR in account.cluster_objects(cluster, [OPERATOR])
        standing = account.cluster_nodes(cluster, STANDING) if operator else []
        found = account.device_plugins(cluster)
    except NotAnswered as reason:
        text = f"whether {cluster} has a device plugin of others is not checked: {reason}"
        yield InputWarning(path=CLUSTER, text=text)
        return
    if standing:
        yield InputWarning(
            path=CLUSTER,
            text=(
                f"{cluster} has NVIDIA's GPU Operator, whose device plugin comes beside the stack's own to nodes that"
                " the stack launched before its pools had the label that keeps the operator off, and a pod can then"
                f" get a GPU that another one has. Run `kubectl label node {' '.join(standing)} {KEEP_OFF}`"
            ),
        )
    ours = {name for part in own_names(plan) for name in part.names}
    for plugin in found:
        if ObjectName("DaemonSet", plugin.name, plugin.namespace) not in ours and _comes(plugin):
            yield InputWarning(
                path=CLUSTER,
                text=(
                    f"DaemonSet {plugin.name} in {plugin.namespace} of {cluster} is a device plugin"
                    f" ({', '.join(plugin.images)}) that tolerates the taint {GPU}, so it would come to"
                    " the nodes of this stack beside the stack's own plugin. Have its owner keep it off"
                    " nodes with the label karpenter.sh/nodepool, or write the name of another cluster"
                ),
            )


def _comes(plugin: PluginFound) -> bool:
    """True where the plugin serves GPUs or EFA and tolerates the taint of GPU nodes, and is not the operator's."""
    if any(label.startswith(SELECTED) for label in plugin.selected):
        return False
    named = " ".join([plugin.name, *plugin.images]).lower()
    return any(word in named for word in MAKERS) and bool({GPU, ""} & {*plugin.tolerated})
