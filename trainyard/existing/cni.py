"""Settings of the VPC CNI of an existing cluster, which decide how many addresses a node takes, and of which subnet.

Sources: amazon-vpc-cni-k8s v1.20.4, README.md (names and defaults), docs/eni-and-ip-target.md (addresses that a node
holds) and pkg/ipamd/ipamd.go, nodeInit: with custom networking the CNI needs an interface beside the node's own, and
without one the node never becomes Ready. pkg/vpc/vpc_ip_resource_limit.go: card 0 of p5.48xlarge takes two.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainyard.catalog.aws.instances import TYPES, InstanceType
from trainyard.plans.clusters import ExistingClusterPlan
from trainyard.problems import At, InputError

CUSTOM = "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG"
LABEL, UNLABELLED = "ENI_CONFIG_LABEL_DEF", "k8s.amazonaws.com/eniConfig"
"""Variable that names the label whose value is the name of a node's ENIConfig, and that label without it."""
OF_ZONES = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
"""Labels of each node with its zone."""
MODE = "NETWORK_POLICY_ENFORCING_MODE"
PREFIX = 16
"""Addresses of a prefix, which an interface holds in place of an address each."""


@dataclass(frozen=True, kw_only=True)
class CniFound:
    """Settings of a VPC CNI."""

    custom: bool = False
    """Custom networking: pods have addresses of other subnets, which an ENIConfig names."""
    prefixes: bool = False
    """Interfaces hold prefixes of 16 addresses."""
    targets: tuple[int, int] | None = None
    """MINIMUM_IP_TARGET and WARM_IP_TARGET; None without both: then interfaces are held in reserve."""
    reserve: int = 1
    """Interfaces or prefixes in reserve."""


def cni_of(env: Mapping[str, str]) -> CniFound:
    """The settings of these variables of aws-node."""
    targets = [_number(env.get(name)) for name in ("MINIMUM_IP_TARGET", "WARM_IP_TARGET")]
    prefixes = env.get("ENABLE_PREFIX_DELEGATION", "").lower() == "true"
    reserve = _number(env.get("WARM_PREFIX_TARGET" if prefixes else "WARM_ENI_TARGET"))
    return CniFound(
        custom=env.get(CUSTOM, "").lower() == "true",
        prefixes=prefixes,
        targets=(targets[0] or 0, targets[1] or 0) if any(targets) else None,
        reserve=1 if reserve is None else reserve,
    )


def env_of(configuration: str) -> dict[str, str]:
    """The variables that the configuration of an EKS add-on sets, which is JSON or YAML; empty where it sets none."""
    import yaml

    try:
        values: Any = yaml.safe_load(configuration)
    except yaml.YAMLError:
        return {}
    env: Any = values.get("env") if isinstance(values, dict) else None
    return {str(k): str(v) for k, v in env.items()} if isinstance(env, dict) else {}


def strict(cluster: str, env: Mapping[str, str]) -> str:
    """A sentence about a VPC CNI in strict mode; empty in another one. It is no error, because the owner can have made
    policies (README.md, NETWORK_POLICY_ENFORCING_MODE: every pod that is not in its node's network needs one)."""
    if env.get(MODE, "").lower() != "strict":
        return ""
    return (
        f"the VPC CNI of {cluster} is in strict mode ({MODE}): a pod without a NetworkPolicy reaches nothing, and this"
        " stack makes none for its controllers, so `pulumi up` waits for them in vain. Have its owner write standard,"
        " or make policies for every pod in the namespaces of the stack, beginning with kube-system"
    )


def node_addresses(kind: InstanceType, cni: CniFound, *, elsewhere: bool = False) -> int:
    """Addresses of its subnet that a node takes at least once it has pods. `elsewhere`: the zone has subnets for
    further interfaces."""
    if cni.custom:
        return 1
    held = sum(cni.targets) if cni.targets else 0
    if cni.prefixes:
        prefixes = -(-held // PREFIX) if cni.targets else 1 + cni.reserve
        return 1 + PREFIX * prefixes
    if cni.targets:
        return 1 + held
    interfaces = 1 if elsewhere else min(1 + cni.reserve, kind.pod_interfaces)
    return interfaces * kind.addresses_per_interface


def without_room(plan: ExistingClusterPlan, cni: CniFound) -> Iterator[InputError]:
    """Pools whose nodes have no room for the interface that custom networking needs."""
    if not cni.custom:
        return
    for pool, name in plan.full_types.items():
        kind = TYPES[name]
        fits = [
            each.name
            for each in TYPES.values()
            if each.gpus == kind.gpus and each.nvlink == kind.nvlink and each.pod_interfaces > 1
        ]
        near = next((each for each in fits if each[:2] == name[:2]), fits[-1])
        yield At(f"environment.pools.{pool}.instance_types").must(
            f"be types with a free interface on card 0: the VPC CNI of {plan.name} has custom networking"
            f" ({CUSTOM}), and gives pods an interface beside the node's own and that of EFA",
            got=f"{name}, whose card 0 takes {kind.interfaces}: its nodes never become Ready",
            fix=f"write another type, such as {near}, or let the stack make the cluster: delete name and"
            " existing_add_ons",
        )


def without_config(
    cluster: str, env: Mapping[str, str], zones: Collection[str], there: Collection[str]
) -> Iterator[InputError]:
    """Custom networking whose ENIConfig the nodes of the stack do not find: they never become Ready. `zones`: of the
    stack. `there`: names of the cluster's ENIConfigs. Nodes of the stack have neither the annotation nor the label of
    the CNI's own, and without it the name is default; of labels other than that and the zone nothing is known
    (pkg/eniconfig/eniconfig.go, GetNodeSpecificENIConfigName; pkg/ipamd/ipamd.go, handlePreScaling)."""
    label = env.get(LABEL) or UNLABELLED
    needed = zones if label in OF_ZONES else ["default"] if label == UNLABELLED else []
    lacking = [name for name in needed if name not in there]
    if not cni_of(env).custom or not lacking:
        return
    yield At("environment.cluster.name").must(
        f"be a cluster with an ENIConfig for the nodes of this stack: its VPC CNI has custom networking ({CUSTOM})",
        got=f"{cluster}, where {label} names a node's ENIConfig, and none is called {', '.join(lacking)}: nodes never"
        " become Ready",
        fix=f"have its owner make {' and '.join(lacking)} as ENIConfig, with a subnet of the nodes' zone, or let the"
        " stack make the cluster: delete name and existing_add_ons",
    )


def _number(value: str | None) -> int | None:
    return int(value) if value and value.isdecimal() else None
