"""Plans that follow from the settings of the cluster: control plane, add-ons, system nodes, and the
identity that GPU nodes share."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

from trainyard.catalog import versions
from trainyard.catalog.aws.instances import TYPES
from trainyard.catalog.versions import Support
from trainyard.derive.network import made_from
from trainyard.derive.pools import CNI
from trainyard.derive.secrets import secrets_add_on
from trainyard.parts.parts import wanted_parts
from trainyard.plans.access import AccessPlan, NamedRole
from trainyard.plans.clusters import (
    ALWAYS_THERE,
    AddOnPlan,
    AddOnsPlan,
    AnyClusterPlan,
    ExistingClusterPlan,
    OwnClusterPlan,
)
from trainyard.plans.identity import Identity
from trainyard.plans.pools import GpuNodesPlan
from trainyard.plans.system_nodes import SYSTEM_DISK_GIB, SystemNodesPlan
from trainyard.settings.cluster import ClusterConfig
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.network import ExistingNetworkConfig
from trainyard.stores.kinds import drivers, service_account

MONTH = timedelta(days=30)
"""The sums of a plan are by the month, from its day on."""
POLICY_ENGINE = {"enableNetworkPolicy": "true"}
"""Configuration of the VPC CNI that makes it enforce NetworkPolicies, for those of teams. Its agent is
in aws-node anyway and its controller in the control plane, so nothing is added and nothing costs
more. It stays in its standard mode: a pod can send before its policies are known, for about a second.
The strict mode would also refuse CoreDNS and all controllers, which have no policy (README of
amazon-vpc-cni-k8s, NETWORK_POLICY_ENFORCING_MODE)."""


def cluster_name(me: Identity, wanted: EnvironmentConfig, zones: tuple[str, ...]) -> str:
    """Name of the cluster: that of the stack file, or one that follows: another network or other
    zones are another cluster, as EKS never leaves the zones it began in."""
    return wanted.cluster.name or me.name("cluster", made_from(wanted.network), *sorted(zones))


def named_roles(cluster: ClusterConfig) -> Iterator[NamedRole]:
    """Roles that `cluster` lets in, each with its setting."""
    for name, admin in cluster.admins.items():
        yield NamedRole(setting="admins", name=name, arn=admin.role_arn)
    for name, viewer in cluster.viewers.items():
        yield NamedRole(setting="viewers", name=name, arn=viewer.role_arn)


def _support(cluster: ClusterConfig, day: date) -> tuple[Support, date | None]:
    """Support in the month from a day on, and when it begins if that is later than the day. With upgrade_policy:
    standard EKS upgrades the control plane instead."""
    release = versions.KUBERNETES[cluster.version]
    now, then = release.support(day), release.support(day + MONTH)
    if then == now or cluster.upgrade_policy == "standard":
        return now, None
    return then, release.standard_ends if now == "standard" else release.extended_ends


def cluster_plan(
    me: Identity, name: str, wanted: EnvironmentConfig, access: AccessPlan, day: date
) -> AnyClusterPlan:
    """The control plane. `name`: of `cluster_name`. `day`: on which it is priced."""
    cluster = wanted.cluster
    support, since = _support(cluster, day)
    both: dict[str, Any] = {
        "identity": me,
        "name": name,
        "version": cluster.version,
        "support": support,
        "support_from": since,
        "public": cluster.endpoint != "private",
        "tunnel_port": cluster.tunnel_port,
        "roles": tuple(named_roles(cluster)),
        "access": access,
    }
    if isinstance(wanted.network, ExistingNetworkConfig) and cluster.name:
        made = add_ons_plan(me, wanted)
        return ExistingClusterPlan(
            **both,
            vpc_id=wanted.network.vpc_id,
            add_ons=(*ALWAYS_THERE, *sorted(cluster.existing_add_ons)),
            made_add_ons=tuple(one.name for one in (*made.before_nodes, *made.after_nodes)),
            network_policies=bool(wanted.teams),
            efa=any(
                TYPES[kind].efa for pool in wanted.pools.values() for kind in pool.instance_types
            ),
            full_types={
                name: full[0]
                for name, pool in wanted.pools.items()
                if (full := [t for t in pool.instance_types if TYPES[t].pod_interfaces < 2])
            },
        )
    return OwnClusterPlan(
        **both,
        upgrade_policy=cluster.upgrade_policy,
        logs=tuple(sorted(set(cluster.logs))),
        log_days=cluster.log_retention_days,
        deletion_protection=cluster.deletion_protection,
        scaling_tier=cluster.scaling_tier,
        public_access_cidrs=cluster.public_access_cidrs,
        role_name=me.name("control-plane") if me.permissions_boundary else None,
    )


def add_ons_plan(me: Identity, wanted: EnvironmentConfig) -> AddOnsPlan:
    """Add-ons that the stack makes. In an existing cluster it makes only those that are not there."""
    whole = all_add_ons(me, wanted)
    if wanted.cluster.name is None:
        return whole
    theirs = {*ALWAYS_THERE, *wanted.cluster.existing_add_ons}
    before, after = (
        tuple(replace(one, overwrites=False) for one in group if one.name not in theirs)
        for group in (whole.before_nodes, whole.after_nodes)
    )
    return replace(whole, before_nodes=before, after_nodes=after, cni_identity=False)


def all_add_ons(me: Identity, wanted: EnvironmentConfig) -> AddOnsPlan:
    """The add-ons of the Kubernetes version, with a driver for each kind of store that there is, and
    for secrets."""
    published = versions.KUBERNETES[wanted.cluster.version].add_ons
    network = AddOnPlan(
        name="vpc-cni",
        version=published["vpc-cni"],
        configuration=json.dumps(
            {
                "env": {name: str(value) for name, value in CNI.items()},
                **(POLICY_ENGINE if wanted.teams else {}),
            },
            sort_keys=True,
        ),
    )
    before = ("kube-proxy", "eks-pod-identity-agent")
    return AddOnsPlan(
        identity=me,
        before_nodes=(
            network,
            *(AddOnPlan(name=name, version=published[name]) for name in before),
        ),
        after_nodes=(
            AddOnPlan(name="coredns", version=published["coredns"]),
            *(
                AddOnPlan(
                    name=driver.add_on,
                    version=published[driver.add_on],
                    configuration=driver.configuration,
                    service_account=service_account(driver, wanted.storage),
                )
                for driver in drivers(wanted.storage)
            ),
            *secrets_add_on(wanted.cluster.version, wanted.jobs, wanted.teams),
            *(
                add_on
                for part, settings in wanted_parts(wanted)
                for add_on in part.add_ons(settings, published)
            ),
        ),
    )


def system_nodes_plan(
    me: Identity, wanted: EnvironmentConfig, access: AccessPlan, zones: int
) -> SystemNodesPlan:
    """`zones`: how many the private subnets are in.

    Another instance type is another node group, made before the old one goes. So is a group with
    a launch template, after one that had none."""
    nodes, kubernetes = wanted.system_nodes, wanted.cluster.version
    return SystemNodesPlan(
        identity=me,
        name=me.name("system", nodes.instance_type, "launch-template"),
        role_name=me.name("system-nodes"),
        template_name=me.name("system-nodes"),
        instance_type=nodes.instance_type,
        nodes=nodes.nodes,
        zones=zones,
        version=kubernetes,
        release=nodes.release or versions.KUBERNETES[kubernetes].system_nodes,
        disk_gib=SYSTEM_DISK_GIB,
        node_tags=access.default_tags,
        tunnel=wanted.cluster.tunnel_port is not None,
        cni=wanted.cluster.name is not None,
        entry=wanted.cluster.name is not None,
    )


def gpu_nodes_plan(me: Identity, cluster_name: str, wanted: EnvironmentConfig) -> GpuNodesPlan:
    """The role and the instance profile that all GPU nodes share."""
    return GpuNodesPlan(
        identity=me,
        cluster_name=cluster_name,
        role_name=me.name("gpu-nodes"),
        profile_name=me.name("gpu-nodes"),
        sessions=wanted.cluster.node_sessions,
        cni=wanted.cluster.name is not None,
    )
