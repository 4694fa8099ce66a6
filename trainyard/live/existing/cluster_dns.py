"""`trainyard check --live`: whether the nodes of this stack reach the DNS of an existing cluster, and its nodes reach
it on those of the stack.

All nodes of this stack carry the security group that EKS made for the cluster. CoreDNS runs on nodes of the owner,
whose groups can be others and let only each other in: terraform-aws-eks makes such a group, with port 53 open to
itself alone, and does not give its nodes the cluster's (v21.19.0, node_groups.tf, ingress_self_coredns_udp;
variables.tf, attach_cluster_primary_security_group). Then no pod of this stack resolves a name, and gangs wait for each
other on paid GPUs. EKS user guide, sec-group-reqs: nodes need TCP and UDP 53 to each other for CoreDNS.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainyard.existing.cluster_faults import AT
from trainyard.existing.store_faults import TCP, UDP, Client, Ports, RuleFound
from trainyard.live.existing.cni import settings
from trainyard.live.questions.account import Account
from trainyard.live.questions.caller import NotAnswered
from trainyard.live.questions.network_questions import InterfaceFound
from trainyard.plans.clusters import ExistingClusterPlan
from trainyard.plans.networks import ExistingNetworkPlan
from trainyard.problems import At, InputError, InputWarning

DNS: Ports = (53, 53)
PROTOCOLS = {"UDP": UDP, "TCP": TCP}


def dns_findings(
    account: Account, cluster: ExistingClusterPlan, network: ExistingNetworkPlan
) -> Iterator[InputError | InputWarning]:
    """Pods of CoreDNS that do not let nodes of the stack in."""
    if (cni := settings(account, cluster.name)) and cni.custom:
        return  # pods have the security groups and subnets of an ENIConfig, which nothing here reads
    try:
        pods = {pod.address: pod.node for pod in account.dns_pods(cluster.name)}
    except NotAnswered as reason:
        text = f"whether nodes reach the DNS of {cluster.name} is not checked: {reason}"
        yield InputWarning(path=f"{AT}.name", text=text)
        return
    if not pods:
        return
    subnets = [zone.subnet_id for zone in network.zones]
    vpc, groups = account.vpc(network.vpc_id, subnets), account.cluster_groups(cluster.name)
    nodes = [
        Client(zone=zone.name, cidr=found.cidr, groups=groups)
        for zone in network.zones
        if vpc and (found := vpc.subnets.get(zone.subnet_id))
    ]
    by_groups: dict[tuple[str, ...], list[InterfaceFound]] = {}
    for interface in account.interfaces_of(network.vpc_id, pods):
        if interface.groups:
            by_groups.setdefault(interface.groups, []).append(interface)
    ours = account.group_rules(groups)
    for alike in by_groups.values():
        yield from _judged(cluster, groups, nodes, alike)
        yield from _other_way(cluster, groups, ours, alike)


def _other_way(
    cluster: ExistingClusterPlan,
    carried: tuple[str, ...],
    rules: Sequence[RuleFound],
    alike: Sequence[InterfaceFound],
) -> Iterator[InputWarning]:
    """System nodes have no taint (docs/decisions/0003), so CoreDNS can come to them, and then nodes of the owner must
    reach it there. They have the groups of the nodes that it runs on today. `rules`: of the groups that nodes of the
    stack carry."""
    ways = [rule for rule in rules if not rule.egress]
    clients = [
        Client(zone="", cidr=f"{one.address}/32", groups=one.groups)
        for one in alike
        if not {*carried} & {*one.groups}
    ]
    shut = [
        name
        for name, protocol in PROTOCOLS.items()
        if not all(any(rule.lets(DNS, one, protocol) for rule in ways) for one in clients)
    ]
    if not shut or not carried:
        return
    source = f"UserIdGroupPairs=[{{GroupId={alike[0].groups[0]}}}]"
    opens = " ".join(f"IpProtocol={one.lower()},FromPort=53,ToPort=53,{source}" for one in shut)
    yield At(f"{AT}.name").warning(
        f"pods of {cluster.name} can be placed on the system nodes of this stack, which have no taint. Where those are"
        f" CoreDNS, nodes with {', '.join(alike[0].groups)} resolve no name: {', '.join(carried)}, which nodes of the"
        f" stack carry, does not let {' and '.join(shut)} 53 in from them. Have its owner run `aws ec2"
        f" authorize-security-group-ingress --group-id {carried[0]} --ip-permissions {opens}`"
    )


def _judged(
    cluster: ExistingClusterPlan,
    carried: tuple[str, ...],
    nodes: Sequence[Client],
    alike: Sequence[InterfaceFound],
) -> Iterator[InputError | InputWarning]:
    """An error where UDP is shut, by which names are asked for; a warning where only TCP is, by which long answers
    come. `alike`: interfaces with the same groups."""
    ways = [rule for rule in alike[0].rules if not rule.egress]
    shut = [
        name
        for name, protocol in PROTOCOLS.items()
        if not all(any(rule.lets(DNS, node, protocol) for rule in ways) for node in nodes)
    ]
    if not shut:
        return
    group, where = alike[0].groups[0], ", ".join(one.address for one in alike)
    held = ", ".join(alike[0].groups)
    source = f"UserIdGroupPairs=[{{GroupId={','.join(carried)}}}]"
    opens = " ".join(f"IpProtocol={one.lower()},FromPort=53,ToPort=53,{source}" for one in shut)
    command = (
        f"aws ec2 authorize-security-group-ingress --group-id {group} --ip-permissions {opens}"
    )
    if shut == ["TCP"]:
        yield At(f"{AT}.name").warning(
            f"CoreDNS of {cluster.name} at {where} lets nodes of this stack ask by UDP and not by TCP ({held}): long"
            f" answers do not come. Have its owner run `{command}`"
        )
        return
    yield At(f"{AT}.name").must(
        f"be a cluster whose CoreDNS lets {' and '.join(shut)} 53 in from nodes of this stack, which carry"
        f" {', '.join(carried)}: else their pods resolve no name",
        got=f"CoreDNS of {cluster.name} at {where}, whose security groups ({held}) have no rule for them",
        fix=f"have its owner run `{command}`",
    )
