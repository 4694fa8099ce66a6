"""An environment: what it is made of, in the order it comes to life. No decision is taken here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pulumi

from components.base.account import aws_provider
from components.cluster import entrants
from components.cluster.add_ons import AddOns, CniIdentity, Statements
from components.cluster.cluster import Cluster
from components.cluster.cluster_access import ClusterAccess
from components.cluster.existing_cluster import ExistingCluster
from components.cluster.own_cluster import OwnCluster
from components.cluster.viewers import Viewers
from components.jobs.namespace import JobNamespace, Volume
from components.network.existing_network import ExistingNetwork
from components.network.network import Network
from components.network.own_network import OwnNetwork
from components.nodes.device_plugins import DevicePlugins
from components.nodes.gpu_nodes import GpuNodes
from components.nodes.gpu_pool import GpuPool
from components.nodes.karpenter import Karpenter
from components.nodes.prefetch import Prefetch
from components.nodes.registry import Registry
from components.nodes.system_nodes import SystemNodes
from stacks.outputs import job_outputs, schedule_outputs
from stacks.sharing import share
from stacks.stores import STORES
from stacks.training import job_identity, run_jobs, take_jobs
from stacks.watching import watch
from trainyard.objects.iam.policies import Document
from trainyard.plan import EnvironmentPlan
from trainyard.plans.clusters import ExistingClusterPlan, OwnClusterPlan, protected
from trainyard.plans.networks import ExistingNetworkPlan, OwnNetworkPlan
from trainyard.plans.tunnel import tunnel_command

NETWORKS: dict[type, Callable[..., Network]] = {
    OwnNetworkPlan: OwnNetwork,
    ExistingNetworkPlan: ExistingNetwork,
}
"""Plan of a network → its component."""
CLUSTERS: dict[type, Callable[..., Cluster]] = {
    OwnClusterPlan: OwnCluster,
    ExistingClusterPlan: ExistingCluster,
}
"""Plan of a cluster → its component."""


@dataclass(frozen=True, kw_only=True)
class Environment:
    """An environment that is made."""

    outputs: dict[str, Any]
    """Outputs of its stack."""
    network: Network
    cluster: Cluster
    workspace: JobNamespace
    """Namespace of the environment's own jobs."""
    access: dict[str, Any]
    """Ways of a team to the cluster and the file systems: the parts of its contract that AWS adds."""
    ready: list[pulumi.Resource]
    """Everything that a job of a team needs as long as it is there."""


async def build(plan: EnvironmentPlan) -> Environment:
    """Make everything."""
    account = aws_provider("aws", plan.access)
    on_aws = pulumi.ResourceOptions(providers=[account])
    entrants.require(plan.entrants, plan.cluster.name, account)

    network = NETWORKS[type(plan.network)]("network", plan.network, opts=on_aws)
    cluster = CLUSTERS[type(plan.cluster)]("cluster", plan.cluster, network=network, opts=on_aws)
    place = network.for_stores(cluster.known_groups)
    stores = {
        key: STORES[type(store)](key, store, place=place, opts=on_aws)
        for key, store in plan.stores.items()
    }
    volumes = {key: store.volume for key, store in stores.items()}
    registries = {
        key: Registry(key, registry, opts=on_aws) for key, registry in plan.registries.items()
    }

    name = cluster.coordinates.name
    gpu_nodes = GpuNodes("gpu-nodes", plan.gpu_nodes, cluster_name=name, opts=on_aws)
    in_cluster = pulumi.ResourceOptions(providers=[account, cluster.kubernetes])
    access = ClusterAccess(
        identity=plan.identity,
        coordinates=cluster.coordinates,
        trusts=gpu_nodes.pod_identity_trust,
        opts=in_cluster,
    )
    if plan.cluster.viewers:
        Viewers("viewers", plan.cluster.viewers, cluster=access, opts=in_cluster)
    cni = (
        [CniIdentity("cni", cluster=access, opts=on_aws).ready] if plan.add_ons.cni_identity else []
    )
    first = AddOns("before-nodes", plan.add_ons.before_nodes, cluster=access, opts=on_aws)
    system = SystemNodes(
        "system",
        plan.system_nodes,
        cluster_name=name,
        subnet_ids=network.private_subnet_ids,
        needs=[*network.egress, *cni],
        opts=on_aws,
    )
    # Nodes turn Ready with the first add-ons and need not wait for them: EKS makes the DaemonSets in
    # half a minute, and a node takes longer to boot. Whatever runs on the nodes needs both.
    access = replace(access, nodes=[system.ready, *first.ready.values()])
    then = AddOns(
        "after-nodes",
        plan.add_ons.after_nodes,
        cluster=access,
        statements=_statements(plan, volumes),
        opts=on_aws,
    )

    add_ons = {**cluster.add_ons, **first.ready, **then.ready}

    karpenter = Karpenter(
        "karpenter",
        plan.karpenter,
        cluster=access,
        node_role_arn=gpu_nodes.role_arn,
        opts=in_cluster,
    )
    pools = {
        key: GpuPool(
            key,
            pool,
            subnet_ids=[network.subnet_in[zone] for zone in pool.zones],
            profile_name=gpu_nodes.profile_name,
            security_group_ids=[cluster.security_group_id, network.node_security_group_id],
            needs=[*karpenter.ready, *gpu_nodes.ready, *network.node_rules],
            opts=in_cluster,
        )
        for key, pool in plan.pools.items()
    }
    DevicePlugins("device-plugins", plan.device_plugins, opts=in_cluster)
    for key, pool in plan.pools.items():
        if pool.images:
            Prefetch(key, pool, opts=in_cluster)

    watched = watch(plan, access, on_aws=on_aws)

    workspace = JobNamespace(
        "workspace",
        plan.workspace,
        volumes=volumes,
        drivers=add_ons,
        at_once=False,
        opts=in_cluster,
    )
    secrets = job_identity(plan, access, add_ons)
    training = take_jobs(plan, access)
    kubeconfig = cluster.coordinates.kubeconfig()
    run_jobs(
        plan,
        training,
        pools=pools,
        workspace=workspace,
        add_ons=add_ons,
        secrets=secrets,
        kubeconfig=kubeconfig,
        opts=in_cluster,
    )
    entered = await share(
        plan,
        access,
        training,
        network=network,
        cluster=cluster,
        reached=pulumi.Output.all(**_reached(cluster)),
        stores=stores,
        volumes=volumes,
        add_ons=add_ons,
    )
    reached = _access(plan, cluster, volumes)
    outputs = {
        "kubeconfig": kubeconfig,
        "contract": {**plan.contract, **reached},
        "jobs": job_outputs(plan.identity.stack, plan.jobs),
        **schedule_outputs(plan.jobs),
        "registries": {key: registry.url for key, registry in registries.items()},
        **watched,
        **({"queues_role": training.dispatch.role_arn} if training.dispatch else {}),
        **_tunnel(plan, cluster),
        **({"deletion_protection": True} if protected(plan.cluster) else {}),
    }
    return Environment(
        outputs=outputs,
        network=network,
        cluster=cluster,
        workspace=workspace,
        access=reached,
        ready=[
            *(one for admits in training.admits.values() for one in admits),
            add_ons["coredns"],
            *(one for pool in pools.values() for one in pool.ready),
            *entered,
        ],
    )


def _statements(plan: EnvironmentPlan, volumes: Mapping[str, Volume]) -> Statements:
    """Add-on → what IAM must allow it, so that it can mount the stores."""
    found: dict[str, list[pulumi.Output[list[Document]]]] = {}
    for claim in plan.workspace.claims:
        if needed := volumes[claim.store].statements:
            found.setdefault(claim.driver.add_on, []).append(needed)
    return found


def _tunnel(plan: EnvironmentPlan, cluster: Cluster) -> dict[str, Any]:
    """The command that opens a tunnel to the endpoint, where the stack file names its port."""
    port, group = plan.cluster.tunnel_port, plan.system_nodes.name
    if port is None:
        return {}
    endpoint = pulumi.Output.from_input(cluster.coordinates.endpoint)
    return {"tunnel": endpoint.apply(lambda url: tunnel_command(plan.access, group, url, port))}


def _reached(cluster: Cluster) -> dict[str, pulumi.Input[Any]]:
    """Values by which a team's stack finds the cluster."""
    at = cluster.coordinates
    return {
        "name": at.name,
        "arn": at.arn,
        "endpoint": at.endpoint,
        "certificate_authority": at.certificate_authority,
    }


def _access(
    plan: EnvironmentPlan, cluster: Cluster, volumes: Mapping[str, Volume]
) -> dict[str, Any]:
    """The parts that AWS adds to the plan's promise: how to find the cluster and mount the file
    systems."""
    return {
        "cluster": {
            **_reached(cluster),
            "deployer_role_arn": cluster.coordinates.access.role_arn,
        },
        "volumes": {
            claim.store: {
                "driver": claim.driver.name,
                "handle": volumes[claim.store].handle,
                "attributes": dict(volumes[claim.store].attributes),
                "options": list(claim.options),
            }
            for claim in plan.workspace.claims
        },
    }
