"""Requirements for an existing file system, and errors about one that does not meet them.

The component asks in every preview, `trainyard check --live` before it; both judge by this file. Sources:
FSx for Lustre user guide, limit-access-security-groups (ports, both directions) and
lustre-client-matrix (a client of 2.15 mounts no 2.10); EFS user guide, network-access (port) and
mounting-fs-mount-cmd-dns-name (names resolve only in a zone with a mount target).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from trainyard.catalog import versions
from trainyard.plans.stores import ExistingEfsPlan, ExistingLustrePlan, ExistingStorePlan
from trainyard.problems import At, InputError

Ports = tuple[int, int]
LUSTRE_PORTS: tuple[Ports, ...] = ((988, 988), (1018, 1023))
"""TCP ports between Lustre clients and servers, in both directions."""
NFS_PORTS: tuple[Ports, ...] = ((2049, 2049),)
TCP, UDP, EVERYTHING = ("tcp", "6"), ("udp", "17"), "-1"
WAY = {False: "ingress", True: "egress"}


@dataclass(frozen=True, kw_only=True)
class RuleFound:
    """A rule of a security group, as EC2 describes it."""

    egress: bool
    protocol: str
    ports: Ports
    """From and to."""
    cidr: str
    """IPv4 range that it names; empty where it names something else."""
    group_id: str
    """Security group that it names; empty where it names something else."""

    def lets(self, ports: Ports, client: Client, protocol: Sequence[str] = TCP) -> bool:
        """True where the rule is about all of the ports and about the client. `protocol`: its names."""
        of_ports = self.protocol == EVERYTHING or (
            self.protocol in protocol and self.ports[0] <= ports[0] and ports[1] <= self.ports[1]
        )
        by_range = bool(self.cidr) and ipaddress.IPv4Network(client.cidr).subnet_of(
            ipaddress.IPv4Network(self.cidr)
        )
        return of_ports and (by_range or bool(self.group_id and self.group_id in client.groups))


@dataclass(frozen=True, kw_only=True)
class Client:
    """Nodes that mount a file system."""

    zone: str
    cidr: str
    """Range of their subnet."""
    groups: tuple[str, ...] = ()
    """Their security groups, as far as they exist."""


@dataclass(frozen=True, kw_only=True)
class ServersFound:
    """The network interfaces of a file system in one zone, as EC2 describes them."""

    vpc_id: str
    groups: tuple[str, ...]
    rules: tuple[RuleFound, ...]
    """Rules of all the groups."""


@dataclass(frozen=True, kw_only=True)
class StoreFound:
    """A file system as AWS describes it."""

    servers: Mapping[str, ServersFound]
    """By zone."""
    lifecycle: str = "AVAILABLE"
    """In capitals; taken for AVAILABLE where nobody tells."""
    version: str = ""
    """Version of Lustre."""
    deployment: str = ""
    """Deployment type of Lustre; empty where nobody tells."""
    capacity_gib: int = 0
    """Size of Lustre; 0 where it grows by itself, or where nobody tells."""
    root_becomes: str = ""
    """User and group that root of a client becomes on Lustre, such as 65534:65534; empty where it stays root."""
    root_stays: tuple[str, ...] = ()
    """Clients of Lustre whose root stays root all the same, as NIDs."""


def lustre_faults(
    plan: ExistingLustrePlan, vpc_id: str, clients: Sequence[Client], found: StoreFound | None
) -> Iterator[InputError]:
    """Everything that is wrong. `clients`: the training zone's first. `found`: None where there is no
    such file system."""
    if found is None:
        yield _absent(plan, "an FSx for Lustre file system", "fsx")
        return
    yield from _state(plan, found, "fsx")
    if found.version == versions.LUSTRE_TOO_OLD:
        yield At(plan.path).must(
            "have Lustre 2.12 or later: the client of the nodes is 2.15",
            got=f"{plan.file_system_id} with {found.version}",
            fix="run `aws fsx update-file-system --file-system-id"
            f" {plan.file_system_id} --file-system-type-version {versions.LUSTRE}`",
        )
    here = found.servers.get(plan.zones[0])
    if here is None:
        yield At(plan.path).must(
            f"be a file system in {plan.zones[0]}, where the GPU nodes are",
            got=f"{plan.file_system_id} in {', '.join(found.servers) or 'no zone'}",
            fix="write that zone as environment.zone, or name a file system in this one",
        )
        return
    yield from _vpc(plan, vpc_id, here)
    yield from _closed(plan, here, clients, LUSTRE_PORTS, egress=False)
    yield from _closed(plan, here, clients, LUSTRE_PORTS, egress=True)


def efs_faults(
    plan: ExistingEfsPlan, vpc_id: str, clients: Sequence[Client], found: StoreFound | None
) -> Iterator[InputError]:
    """Everything that is wrong. `clients`: of each zone that a pool may launch nodes in. `found`: None
    where there is no such file system."""
    if found is None:
        yield _absent(plan, "an EFS file system with a mount target", "efs")
        return
    yield from _state(plan, found, "efs")
    for client in clients:
        servers = found.servers.get(client.zone)
        if servers is None:
            yield At(plan.path).must(
                f"have a mount target in {client.zone}, where nodes of a pool may be",
                got=f"{plan.file_system_id} with mount targets in {', '.join(sorted(found.servers))}",
                fix="run `aws efs create-mount-target --file-system-id"
                f" {plan.file_system_id} --subnet-id <subnet in {client.zone}> --security-groups"
                " <security group>`, or take the zone out of fallback_zones",
            )
            continue
        yield from _vpc(plan, vpc_id, servers)
        yield from _closed(plan, servers, [client], NFS_PORTS, egress=False)


def _absent(plan: ExistingStorePlan, what: str, service: str) -> InputError:
    return At(plan.path).must(
        f"be {what} of this account and region",
        got=f"{plan.file_system_id}, which is none",
        fix=f"write the id that `aws {service} describe-file-systems` prints, or log in to its account",
    )


def _state(plan: ExistingStorePlan, found: StoreFound, service: str) -> Iterator[InputError]:
    if found.lifecycle not in ("AVAILABLE", "UPDATING"):
        yield At(plan.path).must(
            "be AVAILABLE",
            got=f"{plan.file_system_id}, which is {found.lifecycle}",
            fix=f"wait until `aws {service} describe-file-systems --file-system-id"
            f"{'s' if service == 'fsx' else ''} {plan.file_system_id}` says AVAILABLE, or write"
            " another one",
        )


def _vpc(plan: ExistingStorePlan, vpc_id: str, servers: ServersFound) -> Iterator[InputError]:
    if servers.vpc_id != vpc_id:
        yield At(plan.path).must(
            f"be in {vpc_id}, the VPC of the environment",
            got=f"{plan.file_system_id} in {servers.vpc_id}",
            fix=f"write vpc_id: {servers.vpc_id} and its subnets under environment.network, or"
            " another file system",
        )


def _closed(
    plan: ExistingStorePlan,
    servers: ServersFound,
    clients: Sequence[Client],
    needed: Sequence[Ports],
    *,
    egress: bool,
) -> Iterator[InputError]:
    """Ports on which no rule of the servers' groups lets nodes in, or servers out to them."""
    rules = [rule for rule in servers.rules if rule.egress == egress]
    for client in clients:
        shut = [ports for ports in needed if not any(rule.lets(ports, client) for rule in rules)]
        if not shut:
            continue
        group = next(iter(servers.groups), "<security group>")
        where = f"{client.cidr}, the nodes' subnet in {client.zone}"
        yield At(plan.path).must(
            f"let TCP {_named(shut)} {'out to' if egress else 'in from'} {where}",
            got=f"{', '.join(servers.groups) or 'no security group'}, whose rules do not",
            fix=f"run `aws ec2 authorize-security-group-{WAY[egress]} --group-id {group}"
            f" --ip-permissions {' '.join(_permission(ports, client.cidr) for ports in shut)}`",
        )


def _named(ports: Sequence[Ports]) -> str:
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in ports)


def _permission(ports: Ports, cidr: str) -> str:
    return f"IpProtocol=tcp,FromPort={ports[0]},ToPort={ports[1]},IpRanges=[{{CidrIp={cidr}}}]"
