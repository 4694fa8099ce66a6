"""A security group, its rules as resources of their own: inline rules that refer to each other
cannot be destroyed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_aws as aws

from trainyard.plans.identity import Identity

EVERYTHING = "-1"
Ports = tuple[int, int]


def security_group(
    parent: pulumi.Resource,
    name: str,
    identity: Identity,
    vpc_id: pulumi.Input[str],
    description: str,
    tags: Mapping[str, str] | None = None,
) -> aws.ec2.SecurityGroup:
    """An empty group: nobody reaches it and it reaches nobody. `tags`: others than those of its
    name."""
    return aws.ec2.SecurityGroup(
        name,
        name=identity.name(name),
        description=description,
        vpc_id=vpc_id,
        tags=tags or identity.tags(name),
        opts=pulumi.ResourceOptions(parent=parent),
    )


def allow(
    parent: pulumi.Resource,
    name: str,
    identity: Identity,
    group_id: pulumi.Input[str],
    *,
    source: pulumi.Input[str] | None = None,
    source_cidr: pulumi.Input[str] | None = None,
    ports: Ports,
) -> aws.vpc.SecurityGroupIngressRule:
    """Let members of the group `source`, or a range of addresses, reach TCP `ports` of the group's
    members."""
    return aws.vpc.SecurityGroupIngressRule(
        name,
        **_tcp(name, identity, group_id, source, ports),
        cidr_ipv4=source_cidr,
        opts=pulumi.ResourceOptions(parent=parent),
    )


def let_out(
    parent: pulumi.Resource,
    name: str,
    identity: Identity,
    group_id: pulumi.Input[str],
    *,
    target: pulumi.Input[str],
    ports: Ports,
) -> aws.vpc.SecurityGroupEgressRule:
    """Let the group's members reach TCP `ports` of members of `target`."""
    return aws.vpc.SecurityGroupEgressRule(
        name,
        **_tcp(name, identity, group_id, target, ports),
        opts=pulumi.ResourceOptions(parent=parent),
    )


def _tcp(
    name: str,
    identity: Identity,
    group_id: pulumi.Input[str],
    other: pulumi.Input[str] | None,
    ports: Ports,
) -> dict[str, Any]:
    """Inputs that a rule for TCP ports has in either direction."""
    return {
        "security_group_id": group_id,
        "referenced_security_group_id": other,
        "ip_protocol": "tcp",
        "from_port": ports[0],
        "to_port": ports[1],
        "description": name,
        "tags": identity.tags(name),
    }


def talk_to_itself(
    parent: pulumi.Resource,
    name: str,
    identity: Identity,
    group_id: pulumi.Input[str],
) -> list[pulumi.Resource]:
    """All traffic among members, both directions by group id: EFA and Lustre do not count
    0.0.0.0/0."""
    return talk_to(
        parent,
        f"{name}-self",
        identity,
        group_id,
        group_id,
        (f"{name} from itself", f"{name} to itself"),
    )


def talk_to(
    parent: pulumi.Resource,
    name: str,
    identity: Identity,
    group_id: pulumi.Input[str],
    other: pulumi.Input[str],
    described: tuple[str, str],
) -> list[pulumi.Resource]:
    """All traffic of the group's members with another group's, as far as this group goes; the other
    has rules too."""
    shared = {
        "security_group_id": group_id,
        "referenced_security_group_id": other,
        "ip_protocol": EVERYTHING,
    }
    return [
        aws.vpc.SecurityGroupIngressRule(
            f"{name}-in",
            **shared,
            description=described[0],
            tags=identity.tags(f"{name}-in"),
            opts=pulumi.ResourceOptions(parent=parent),
        ),
        aws.vpc.SecurityGroupEgressRule(
            f"{name}-out",
            **shared,
            description=described[1],
            tags=identity.tags(f"{name}-out"),
            opts=pulumi.ResourceOptions(parent=parent),
        ),
    ]
