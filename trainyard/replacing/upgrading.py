"""A newer Kubernetes, and other system nodes: what their update does to what runs. docs/upgrades.md has the steps of
an upgrade, and the source of its minutes."""

from __future__ import annotations

from collections.abc import Iterator

from trainyard.catalog.aws.latencies import LATENCIES
from trainyard.catalog.versions import minor
from trainyard.plan import EnvironmentPlan
from trainyard.plans.networks import ExistingNetworkPlan
from trainyard.plans.upgrades import refusal
from trainyard.problems import At, InputError, InputWarning, few
from trainyard.replacing.deployed import SHOWN, Deployed, Show
from trainyard.replacing.replacing import CLUSTER, NODES
from trainyard.stores.efs import Efs

BUDGETS = "poddisruptionbudgets.policy"
ADD_ON, EFS = "aws:eks/addon:Addon", Efs.driver.add_on
TYPES = frozenset({ADD_ON})
"""Types of resources that rules look at."""


def version_errors(plan: EnvironmentPlan, deployed: Deployed) -> Iterator[InputError]:
    """A control plane that the update would take back, or by more than one version further. Somebody may have upgraded
    it elsewhere, or EKS did it (cluster.upgrade_policy): then the state knows after `pulumi refresh`, and the node
    group, whose hook asks the same (components/nodes/system_nodes.py), has the version of before."""
    was = deployed.output(*CLUSTER, "version")
    if was is not None and plan.own_cluster and (problem := refusal(was, plan.cluster.version)):
        yield problem


def upgrade_warnings(plan: EnvironmentPlan, deployed: Deployed) -> Iterator[InputWarning]:
    """A control plane of the stack that gets the next version. Any other one is refused (version_errors)."""
    if not (was := _moves_from(plan, deployed)):
        return
    to = plan.cluster.version
    yield At("environment.cluster.version").warning(
        f"this update moves Kubernetes from {was} to {to}, and this program cannot take it back (docs/upgrades.md)."
        f" The API server is away for seconds; then the {plan.system_nodes.nodes} system nodes are replaced one by one,"
        " with Karpenter, the Trainer and CoreDNS on them. Gangs go on: GPU nodes stay as they are until they have been"
        " empty for 15 minutes, which Karpenter counts anew when it has moved"
    )


def stalling_warnings(plan: EnvironmentPlan, deployed: Deployed) -> Iterator[InputWarning]:
    """Another build of the driver of EFS. Its pods start anew on one node after the other, with the proxies through
    which each mount of the node goes (aws-efs-csi-driver, docs/design.md): at best a mount stalls for 10 seconds
    (#462), at worst for good (#1898, #1909)."""
    was = deployed.output(ADD_ON, EFS, "addonVersion")
    to = next((each.version for each in plan.add_ons.every if each.name == EFS), was)
    if was not in (None, to):
        yield At("environment.cluster.version").warning(
            f"this update moves the driver of EFS from {was} to {to}, whose pods start anew on each node in turn:"
            " what writes to EFS there stalls, for seconds or for good. Let jobs with checkpoints on EFS end first"
        )


def node_warnings(plan: EnvironmentPlan, deployed: Deployed) -> Iterator[InputWarning]:
    """System nodes of another type, or in other subnets, which make another node group (ForceNew in
    terraform-provider-aws, internal/service/eks/node_group.go). Pulumi deletes the old one first, because the program
    names it, also where the next one has another name (pulumi-terraform-bridge, nameRequiresDeleteBeforeReplace)."""
    types, subnets = (deployed.output(*NODES, key) for key in ("instanceTypes", "subnetIds"))
    network = plan.network
    if types and [*types] != [plan.system_nodes.instance_type]:
        path, change = "system_nodes.instance_type", f"to {plan.system_nodes.instance_type}"
    elif (
        subnets
        and isinstance(network, ExistingNetworkPlan)
        and {*subnets} != {zone.subnet_id for zone in network.zones}
    ):
        path, change = "network.private_subnets", "to other subnets"
    else:
        return
    rows = [LATENCIES[row] for row in ("eks.nodegroup.delete", "eks.nodegroup")]
    usual, slow = (sum(getattr(row, kind) for row in rows) / 60 for kind in ("typical", "slow"))
    yield At(f"environment.{path}").warning(
        f"this update moves the system nodes {change}: it deletes all {plan.system_nodes.nodes} system nodes before it"
        f" creates others, and for {usual:.0f} to {slow:.0f} minutes there is no CoreDNS, Karpenter, Trainer, JobSet or"
        " Kueue, nor any other program of these nodes. Meanwhile pods resolve no names, and no job gets a node, starts"
        " or restarts. Let jobs end first"
    )


def held_warnings(plan: EnvironmentPlan, deployed: Deployed, show: Show) -> Iterator[InputWarning]:
    """PodDisruptionBudgets that let no pod go. EKS waits 15 minutes for the pods of a system node and then ends the
    update (EKS user guide, managed-node-update-behavior), after the control plane has moved. `show`: what is in the
    cluster."""
    if not deployed.kubeconfig or not _moves_from(plan, deployed):
        return
    held = sorted(
        f"{each['metadata']['namespace']}/{each['metadata']['name']}"
        for each in show(deployed.kubeconfig, BUDGETS, None)
        if (status := each.get("status") or {}).get("expectedPods")
        and not status.get("disruptionsAllowed")
    )
    if held:
        yield At("environment.cluster.version").warning(
            f"PodDisruptionBudget {few(held, SHOWN)} allows no pod to leave. Where one of its pods is on a system node,"
            " the update of the nodes fails after the control plane has moved: let it allow one pod before this update"
        )


def _moves_from(plan: EnvironmentPlan, deployed: Deployed) -> str | None:
    """Version of the control plane that gets the next one; None where none does."""
    was = deployed.output(*CLUSTER, "version")
    moves = was and plan.own_cluster and minor(plan.cluster.version)[1] == minor(was)[1] + 1
    return was if moves else None
