"""What follows from the settings of the cluster: control plane, add-ons, system nodes, and the
identity that GPU nodes share."""

from __future__ import annotations

import json

from catalog import versions
from catalog.storage import DRIVERS
from plans.access import AccessPlan
from plans.parts import (
    AddOnPlan,
    AddOnsPlan,
    ClusterPlan,
    GpuNodesPlan,
    Identity,
    SystemNodesPlan,
)
from stacks.derive.capacity import CNI
from stacks.derive.network import service_cidr
from stacks.settings.environment import ClusterConfig, EnvironmentConfig, SystemNodesConfig

SYSTEM_DISK_GIB = 50
"""Size of a system node's root volume."""


def cluster_name(me: Identity, cidr: str, zones: tuple[str, ...]) -> str:
    """Another network or other zones are another cluster: EKS never leaves the zones it began
    in."""
    return me.name("cluster", cidr, *sorted(zones))


def cluster_plan(
    me: Identity, name: str, wanted: EnvironmentConfig, access: AccessPlan
) -> ClusterPlan:
    """The control plane. `name`: of `cluster_name`."""
    return ClusterPlan(
        identity=me,
        name=name,
        version=wanted.cluster.version,
        service_cidr=service_cidr(wanted.network.cidr),
        public=wanted.cluster.endpoint != "private",
        public_access_cidrs=wanted.cluster.public_access_cidrs,
        tunnel_port=wanted.cluster.tunnel_port,
        admins=tuple((name, admin.role_arn) for name, admin in wanted.cluster.admins.items()),
        access=access,
    )


def add_ons_plan(me: Identity, wanted: EnvironmentConfig) -> AddOnsPlan:
    """The add-ons of the Kubernetes version, with a driver for each kind of store that there is."""
    published = versions.KUBERNETES[wanted.cluster.version]
    drivers = [
        driver.add_on
        for kind, driver in DRIVERS.items()
        if any(getattr(store, kind) for store in wanted.storage.values())
    ]
    network = AddOnPlan(
        name="vpc-cni",
        version=published["vpc-cni"],
        configuration=json.dumps(
            {"env": {name: str(value) for name, value in CNI.items()}}, sort_keys=True
        ),
    )
    before = ("kube-proxy", "eks-pod-identity-agent")
    after = ("coredns", *drivers)
    return AddOnsPlan(
        identity=me,
        before_nodes=(
            network,
            *(AddOnPlan(name=name, version=published[name]) for name in before),
        ),
        after_nodes=tuple(AddOnPlan(name=name, version=published[name]) for name in after),
    )


def system_nodes_plan(
    me: Identity, wanted: SystemNodesConfig, cluster: ClusterConfig
) -> SystemNodesPlan:
    """Another instance type is another node group, made before the old one goes."""
    return SystemNodesPlan(
        identity=me,
        name=me.name("system", wanted.instance_type),
        role_name=me.name("system-nodes"),
        instance_type=wanted.instance_type,
        nodes=wanted.nodes,
        disk_gib=SYSTEM_DISK_GIB,
        tunnel=cluster.tunnel_port is not None,
    )


def gpu_nodes_plan(me: Identity) -> GpuNodesPlan:
    """The role and the instance profile that all GPU nodes share."""
    return GpuNodesPlan(
        identity=me, role_name=me.name("gpu-nodes"), profile_name=me.name("gpu-nodes")
    )
