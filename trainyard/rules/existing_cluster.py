"""Errors about an existing cluster that follow from the stack file alone: a cluster in a VPC of the stack,
settings of its owner, add-ons that the stack must make itself. Requirements for the cluster in the account:
trainyard/existing/cluster_faults.py."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from trainyard.catalog import versions
from trainyard.derive.cluster import all_add_ons
from trainyard.plans.clusters import ALWAYS_THERE, AddOnPlan
from trainyard.plans.identity import Identity
from trainyard.problems import REMOVE, At, InputError
from trainyard.settings.cluster import ClusterConfig
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.network import ExistingNetworkConfig
from trainyard.settings.reading.yaml_file import as_yaml
from trainyard.stores.kinds import kinds_of

AT = "environment.cluster"
OF_THE_OWNER = (
    "service_cidr",
    "upgrade_policy",
    "logs",
    "log_retention_days",
    "deletion_protection",
    "scaling_tier",
    "public_access_cidrs",
)
"""Settings of a control plane, which only its owner changes."""


def existing_cluster_errors(wanted: EnvironmentConfig) -> Iterator[InputError]:
    cluster = wanted.cluster
    if cluster.name is None:
        if cluster.existing_add_ons:
            yield At(f"{AT}.existing_add_ons").not_set(
                "without name: the stack creates the cluster and all its add-ons",
                got=as_yaml(cluster.existing_add_ons),
                instead="write name: <cluster> for a cluster that exists",
            )
        return
    if not isinstance(wanted.network, ExistingNetworkConfig):
        yield At(f"{AT}.name").must(
            "stand beside network.vpc_id: it names a cluster that exists, which has a VPC",
            got=cluster.name,
            fix="delete it, and the stack makes a cluster; or put vpc_id: vpc-… and private_subnets:"
            " {<zone>: subnet-…} in the place of network.cidr, those of the VPC that this prints in aws:region: aws eks"
            " describe-cluster --query"
            f" cluster.resourcesVpcConfig.vpcId --name {cluster.name}",
        )
    yield from _of_the_owner(cluster)
    if cluster.tunnel_port is not None:
        yield At(f"{AT}.tunnel_port").must(
            "not be set with cluster.name: the first `pulumi up` must reach the cluster that exists before it makes the"
            " node through which the tunnel goes",
            got=cluster.tunnel_port,
            fix="delete it; for a private endpoint write proxy_url: http://<host>:<port> or"
            " inside_vpc: true",
            write=REMOVE,
        )
    yield from _add_ons(wanted, cluster)


def _of_the_owner(cluster: ClusterConfig) -> Iterator[InputError]:
    for field in fields(ClusterConfig):
        given: Any = getattr(cluster, field.name)
        if field.name in OF_THE_OWNER and given != field.default:
            yield At(f"{AT}.{field.name}").must(
                "not be set with name: this program changes no cluster that it did not make",
                got=as_yaml(given),
                fix="delete it; the owner of the cluster decides it",
                write=REMOVE,
            )


def _add_ons(wanted: EnvironmentConfig, cluster: ClusterConfig) -> Iterator[InputError]:
    """Names of `existing_add_ons`."""
    path, row = f"{AT}.existing_add_ons", versions.KUBERNETES.get(cluster.version)
    if row is None:
        return
    known = [name for name in row.add_ons if name not in ALWAYS_THERE]
    ours = _by_name(wanted)
    for name in cluster.existing_add_ons:
        sound = [
            one for one in cluster.existing_add_ons if one in known and not _is_ours(ours, one)
        ]
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            yield At(path).must(
                f"list add-ons that an environment uses: {', '.join(known)}",
                got=name,
                fix=(
                    f"write {near[0]}" if near else f"delete it, or write one of {', '.join(known)}"
                ),
                write=[*sound, *near],
            )
        elif _is_ours(ours, name):
            users = ", ".join(_stores_with(wanted, name))
            yield At(path).must(
                f"not list {name}, which {users or 'this environment'} needs with a role or a configuration"
                " of its own, so this stack installs it",
                got=name,
                fix=f"delete it here, and have the owner of the cluster {cluster.name} delete the add-on, if nothing"
                f" else there needs it; or delete what uses it{users and f': {users}'}",
                write=sound,
            )


def _stores_with(wanted: EnvironmentConfig, add_on: str) -> list[str]:
    """The stores that pods mount by an add-on."""
    return [
        f"environment.storage.{name}"
        for name, store in wanted.storage.items()
        if add_on in [kind.driver.add_on for kind, _ in kinds_of(store)]
    ]


def _by_name(wanted: EnvironmentConfig) -> dict[str, AddOnPlan]:
    me = Identity(project="", stack="", region="")
    return {one.name: one for one in all_add_ons(me, wanted).every}


def _is_ours(ours: dict[str, AddOnPlan], name: str) -> bool:
    """True where an add-on that the environment uses works only as the stack makes it."""
    add_on = ours.get(name)
    return add_on is not None and bool(add_on.service_account or add_on.configuration)
