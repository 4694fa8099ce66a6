"""Warnings of `trainyard check --live` about DHCP options and network ACLs of an existing VPC that can keep
nodes from names or from each other. They are no errors, because what stands behind them is not asked.

Sources: VPC user guide, DHCPOptionSetConcepts (AmazonProvidedDNS is the second address of the VPC, and
169.254.169.253) and network-acl-rules (the lowest number decides; the last rule denies); EFS user guide,
mounting-fs-mount-cmd-dns-name; Linux, ip_local_port_range.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from trainyard.existing.store_faults import EVERYTHING, TCP, Ports
from trainyard.existing.vpc_faults import AT, EVERYWHERE, VpcFound
from trainyard.live.questions.network_questions import AclRule
from trainyard.plans.networks import ExistingNetworkPlan
from trainyard.problems import InputWarning

AMAZON = ("AmazonProvidedDNS", "169.254.169.253")
ALL, HTTPS, REPLIES = (1, 65535), (443, 443), (32768, 60999)
"""TCP ports: every one; those of AWS APIs and registries; those that their answers come back to."""
LAST = 32767
"""Number of the rule that denies what no other one is about; AWS shows it as *."""


def dns_findings(
    network: ExistingNetworkPlan, found: VpcFound | None, servers: Sequence[str]
) -> Iterator[InputWarning]:
    """DNS servers that know the names of AWS only if they ask AWS's own."""
    second = [str(ipaddress.ip_network(cidr)[2]) for cidr in (found.cidrs if found else ())]
    others = [server for server in servers if server not in (*AMAZON, *second)]
    if others:
        yield InputWarning(
            path=f"{AT}.vpc_id",
            text=(
                f"the DHCP options of {network.vpc_id} name the DNS servers {', '.join(others)}; unless"
                " they forward to AmazonProvidedDNS, nodes do not resolve the names of EFS and FSx, of"
                " private endpoints, and of the cluster inside the VPC"
            ),
        )


@dataclass(frozen=True, kw_only=True)
class _Need:
    """Connections that nodes need."""

    what: str
    egress: bool
    ports: Ports
    peer: str


def acl_findings(
    network: ExistingNetworkPlan, found: VpcFound | None, acls: Mapping[str, Sequence[AclRule]]
) -> Iterator[InputWarning]:
    """Rules of network ACLs that deny what nodes need. `acls`: by subnet."""
    if found is None:
        return
    peers = {
        zone.name: it.cidr for zone in network.zones if (it := found.subnets.get(zone.subnet_id))
    }
    needs = [*_with_aws(network, found), *_among_nodes(peers)]
    for zone in network.zones:
        denied: dict[str, list[str]] = {}
        for need in needs:
            if rule := _wall(need, acls.get(zone.subnet_id, ())):
                name = "*" if rule.number == LAST else str(rule.number)
                where = f"{'outbound' if rule.egress else 'inbound'} rule {name} of {rule.acl_id}"
                denied.setdefault(where, []).append(need.what)
        for where, what in denied.items():
            yield InputWarning(
                path=f"{AT}.private_subnets.{zone.name}",
                text=f"{where} denies {', '.join(what)}, which nodes in {zone.subnet_id} need",
            )


def _with_aws(network: ExistingNetworkPlan, found: VpcFound) -> Iterator[_Need]:
    """AWS APIs and registries: of the internet, or of endpoints in the VPC. Where endpoints in another
    VPC are, nothing tells."""
    if network.endpoints_elsewhere:
        return
    for peer in found.cidrs if network.isolated else (EVERYWHERE,):
        yield _Need(what=f"TCP 443 to {peer}", egress=True, ports=HTTPS, peer=peer)
        replies = f"TCP {REPLIES[0]}-{REPLIES[1]} from {peer}"
        yield _Need(what=replies, egress=False, ports=REPLIES, peer=peer)


def _among_nodes(peers: Mapping[str, str]) -> Iterator[_Need]:
    for zone, cidr in peers.items():
        for egress in (True, False):
            what = f"TCP {'to' if egress else 'from'} {cidr}, the subnet in {zone}"
            yield _Need(what=what, egress=egress, ports=ALL, peer=cidr)


def _wall(need: _Need, rules: Sequence[AclRule]) -> AclRule | None:
    """The rule that denies some of the connections; None where all are allowed. A rule that denies
    some ranges of the internet is no wall."""
    left, peer = [need.ports], ipaddress.IPv4Network(need.peer)
    for rule in filter(partial(_is_about, need), rules):
        cidr = ipaddress.IPv4Network(rule.cidr)
        ports = ALL if rule.protocol == EVERYTHING else rule.ports
        if not any(_overlap(ports, one) for one in left):
            continue
        whole = peer.subnet_of(cidr)
        if rule.allows and whole:
            left = [part for one in left for part in _without(one, ports)]
        elif not rule.allows and (whole or need.peer != EVERYWHERE):
            return rule
    return None


def _is_about(need: _Need, rule: AclRule) -> bool:
    """Whether a rule judges connections of that direction and with some of those peers."""
    same = rule.egress == need.egress and rule.protocol in (*TCP, EVERYTHING)
    return same and ipaddress.IPv4Network(rule.cidr).overlaps(ipaddress.IPv4Network(need.peer))


def _overlap(a: Ports, b: Ports) -> bool:
    return a[0] <= b[1] and b[0] <= a[1]


def _without(ports: Ports, away: Ports) -> Iterator[Ports]:
    """What is left of a range of ports."""
    for part in ((ports[0], min(ports[1], away[0] - 1)), (max(ports[0], away[1] + 1), ports[1])):
        if part[0] <= part[1]:
            yield part
