"""The security group of GPU nodes, which carries EFA, in a network of either kind."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
import pulumi_aws as aws

from components.base.security_group import EVERYTHING, security_group, talk_to_itself
from trainyard.plans.identity import Identity
from trainyard.plans.networks import NODES


def node_security_group(
    parent: pulumi.Resource,
    identity: Identity,
    vpc_id: pulumi.Input[str],
    tags: Mapping[str, str],
) -> tuple[aws.ec2.SecurityGroup, list[pulumi.Resource]]:
    """The group of GPU nodes, and its rules. `tags`: of the group."""
    name = NODES
    group = security_group(
        parent, name, identity, vpc_id, "GPU nodes: EFA among themselves", tags=tags
    )
    rules = talk_to_itself(parent, name, identity, group.id)
    # This rule is also what lets nodes reach Lustre (988, 1018-1023) and EFS (2049): no store makes
    # an egress rule for its clients.
    out = aws.vpc.SecurityGroupEgressRule(
        f"{name}-out",
        security_group_id=group.id,
        ip_protocol=EVERYTHING,
        cidr_ipv4="0.0.0.0/0",
        description="images, packages and AWS APIs",
        tags=identity.tags(f"{name}-out"),
        opts=pulumi.ResourceOptions(parent=parent),
    )
    return group, [*rules, out]
