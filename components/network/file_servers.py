"""Look-ups of the network interfaces of an existing file system, and of who may reach them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pulumi
import pulumi_aws as aws

from components.network.network import StorePlace
from trainyard.existing.store_faults import Client, RuleFound, ServersFound
from trainyard.problems import InputError


def servers(interfaces: Iterable[str], ask: pulumi.InvokeOptions) -> dict[str, ServersFound]:
    """Zone → what is there of the file system. `interfaces`: ids of all its interfaces."""
    found: dict[str, list[aws.ec2.GetNetworkInterfaceResult]] = {}
    for id_ in sorted(interfaces):
        interface = aws.ec2.get_network_interface(id=id_, opts=ask)
        found.setdefault(interface.availability_zone, []).append(interface)
    return {
        zone: _servers(
            those[0].vpc_id, sorted({g for one in those for g in one.security_groups}), ask
        )
        for zone, those in found.items()
    }


def _servers(vpc_id: str, groups: Sequence[str], ask: pulumi.InvokeOptions) -> ServersFound:
    rules = aws.vpc.get_security_group_rules(filters=[_filter("group-id", *groups)], opts=ask).ids
    return ServersFound(
        vpc_id=vpc_id, groups=tuple(groups), rules=tuple(_rule(id_, ask) for id_ in rules)
    )


def _rule(id_: str, ask: pulumi.InvokeOptions) -> RuleFound:
    rule = aws.vpc.get_security_group_rule(security_group_rule_id=id_, opts=ask)
    return RuleFound(
        egress=rule.is_egress,
        protocol=rule.ip_protocol,
        ports=(rule.from_port, rule.to_port),
        cidr=rule.cidr_ipv4 or "",
        # The account of a group that another VPC has stands before its id.
        group_id=(rule.referenced_security_group_id or "").rpartition("/")[2],
    )


def interfaces_called(description: str, ask: pulumi.InvokeOptions) -> Sequence[str]:
    """Ids of the interfaces with that description, in which * stands for any text."""
    wanted = [_filter("description", description)]
    return aws.ec2.get_network_interfaces(filters=wanted, opts=ask).ids


def clients(
    zones: Iterable[str], place: StorePlace, ask: pulumi.InvokeOptions
) -> tuple[Client, ...]:
    """The nodes of the zones. Their own security group exists once the stack has made it."""
    wanted = [_filter("group-name", place.clients_name), _filter("vpc-id", str(place.vpc_id))]
    groups = (*aws.ec2.get_security_groups(filters=wanted, opts=ask).ids, *place.carried)
    return tuple(Client(zone=zone, cidr=place.cidr_in[zone], groups=groups) for zone in zones)


def refuse(name: str, errors: Iterable[InputError]) -> None:
    """End the program where something is wrong with the file system of a store."""
    if wrong := [*errors]:
        raise pulumi.RunError("\n".join([f"store {name} cannot be used", *map(str, wrong)]))


def _filter(name: str, *values: str) -> Any:
    """A filter of whichever look-up: the SDK has a type for each."""
    return {"name": name, "values": [*values]}
