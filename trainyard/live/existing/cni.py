"""Questions of `trainyard check --live` about the VPC CNI of an existing cluster. What its settings mean:
trainyard/existing/cni.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from trainyard.catalog.aws.instances import TYPES
from trainyard.derive.pools import NODE_ADDRESSES
from trainyard.existing.cluster_faults import AT, ClusterFound, enforces
from trainyard.existing.cni import (
    CniFound,
    cni_of,
    env_of,
    node_addresses,
    strict,
    without_config,
    without_room,
)
from trainyard.live.questions.account import Account
from trainyard.live.questions.caller import NotAnswered
from trainyard.plan import EnvironmentPlan
from trainyard.plans.clusters import ExistingClusterPlan
from trainyard.plans.networks import SubnetUse
from trainyard.problems import At, InputError, InputWarning


def cni_findings(
    account: Account, cluster: ExistingClusterPlan, found: ClusterFound | None, zones: Sequence[str]
) -> Iterator[InputError | InputWarning]:
    """Custom networking and the strict mode that only the DaemonSet shows, because its owner did not set them by the
    add-on, and ENIConfigs that nodes in `zones` do not find. Where the cluster does not answer, other questions say
    so."""
    add_on = found.add_ons.get("vpc-cni") if found else None
    said = env_of(add_on.configuration) if add_on else {}
    env = variables(account, cluster.name)
    if env and not cni_of(said).custom:
        yield from without_room(cluster, cni_of(env))
    if cni_of(env).custom:
        yield from without_config(cluster.name, env, zones, _configs(account, cluster.name, zones))
    unsaid = add_on and enforces(add_on.configuration) and not strict(cluster.name, said)
    if unsaid and (text := strict(cluster.name, env)):
        yield At(f"{AT}.name").warning(text)


def _configs(account: Account, cluster: str, zones: Sequence[str]) -> list[str]:
    """Names of the cluster's ENIConfigs; all that nodes could look for where it does not list them."""
    try:
        return account.eni_configs(cluster)
    except NotAnswered:
        return ["default", *zones]


def variables(account: Account, cluster: str) -> dict[str, str]:
    """The variables of the DaemonSet; empty where the cluster does not answer, or has no VPC CNI."""
    try:
        return account.cni_env(cluster)
    except NotAnswered:
        return {}


def settings(account: Account, cluster: str) -> CniFound | None:
    """The settings of the DaemonSet; None where the cluster does not answer, or has no VPC CNI."""
    env = variables(account, cluster)
    return cni_of(env) if env else None


def uses_with(
    plan: EnvironmentPlan, cni: CniFound, elsewhere: set[str]
) -> tuple[Mapping[str, SubnetUse], int, int]:
    """Zone → what is taken of its subnet; addresses of a node of the pools, of whichever takes most; those of a system
    node. `elsewhere`: zones with subnets for further interfaces."""
    types = {
        name: [TYPES[one.instance_type] for one in pool.types] for name, pool in plan.pools.items()
    }
    # With interfaces in reserve the type decides, and that of system nodes can be any of EC2's.
    typed = not (cni.custom or cni.prefixes or cni.targets)
    system = NODE_ADDRESSES if typed else node_addresses(next(iter(TYPES.values())), cni)
    found = {
        zone: replace(
            use,
            pools={
                name: nodes
                * sum(
                    node_addresses(kind, cni, elsewhere=zone in elsewhere) for kind in types[name]
                )
                // len(types[name])
                for name, nodes in use.pools.items()
            },
            system_nodes=use.system_nodes * system,
        )
        for zone, use in plan.network.addresses.items()
    }
    most = [node_addresses(kind, cni) for kinds in types.values() for kind in kinds]
    return found, max(most, default=1), system
