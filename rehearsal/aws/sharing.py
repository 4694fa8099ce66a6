"""A VPC that another account owns and shares with this one by AWS RAM: what this account sees of it,
and what AWS refuses it there.

Sources: VPC user guide, vpc-sharing and vpc-share-limitations (endpoints, routes, subnets and network
ACLs are the owner's; tags are not shared); AWS re:Post, vpc-interface-endpoint-creation-errors (the
answer to CreateVpcEndpoint); ekristen/aws-nuke#497 (the answer to other calls); aws-ecs-exec-checker#29
(DescribeVpcEndpoints lists none of the owner's).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rehearsal.aws import backends
from rehearsal.aws.operations import Call, Fields, follows, refuse, refuses

OWNERS: dict[str, str] = {}
"""VPC → the account that shares it; those of this account are not in it."""
OF_THE_OWNER = (
    "AssociateDhcpOptions AssociateRouteTable AssociateVpcCidrBlock AttachInternetGateway"
    " CreateFlowLogs CreateNatGateway CreateNetworkAcl CreateNetworkAclEntry CreateRoute"
    " CreateRouteTable CreateSubnet DeleteNatGateway DeleteNetworkAcl DeleteNetworkAclEntry DeleteRoute"
    " DeleteRouteTable DeleteSubnet DeleteVpc DeleteVpcEndpoints DetachInternetGateway"
    " DisassociateRouteTable ModifySubnetAttribute ModifyVpcAttribute ModifyVpcEndpoint"
    " ReplaceNetworkAclAssociation ReplaceNetworkAclEntry ReplaceRoute ReplaceRouteTableAssociation"
)
"""Calls that are refused to an account with which a VPC is shared."""


def share(vpc: str, owner: str) -> None:
    """From now on the VPC, with all that is in it, belongs to that account."""
    found = [ec2 for ec2 in backends.used("ec2") if vpc in ec2.vpcs]
    refuse(not found, "InvalidVpcID.NotFound", f"The vpc ID '{vpc}' does not exist")
    refuse(owner == backends.ACCOUNT, "InvalidParameter", "want another account than this one")
    OWNERS[vpc] = owner
    for id_ in _parts(found[0], vpc):
        found[0].tags.pop(id_, None)


def _parts(ec2: Any, vpc: str) -> Iterator[str]:
    """The ids of a VPC and of what is in it."""
    yield vpc
    yield from (id_ for id_, of in _vpcs(ec2).items() if of == vpc)


def _vpcs(ec2: Any) -> dict[str, str]:
    """Id of whatever is in a VPC → the VPC. Ids of associations are in it, too."""
    things = [
        *(subnet for zone in ec2.subnets.values() for subnet in zone.values()),
        *ec2.route_tables.values(),
        *ec2.network_acls.values(),
        *ec2.vpc_end_points.values(),
        *ec2.nat_gateways.values(),
    ]
    associations = {
        id_: table.vpc_id
        for table in ec2.route_tables.values()
        for id_ in (*table._associations, table.main_association_id)
        if id_
    }
    acls = {id_: acl.vpc_id for acl in ec2.network_acls.values() for id_ in acl.associations}
    return {one.id: one.vpc_id for one in things} | associations | acls


def _of_another(call: Call) -> bool:
    """True where the call names anything of a VPC that is shared with this account."""
    named = [
        id_
        for value in call.params.values()
        for id_ in (value if isinstance(value, list) else [value])
        if isinstance(id_, str)
    ]
    vpcs = _vpcs(call.ec2) if OWNERS else {}
    return any(vpcs.get(id_, id_) in OWNERS for id_ in named)


refuses(
    "ec2",
    "CreateVpcEndpoint",
    "UnauthorizedOperation",
    "This operation does not support shared VPCs.",
    _of_another,
    status=403,
    first=True,
)
for _action in OF_THE_OWNER.split():
    refuses(
        "ec2",
        _action,
        "UnauthorizedOperation",
        f"You are not authorized to perform {_action} operation. A subnet in this vpc is shared but the"
        " provided object is not owned by you",
        _of_another,
        status=403,
        first=True,
    )


@follows("ec2", "DescribeVpcs", "DescribeSubnets", "DescribeRouteTables", "DescribeNetworkAcls")
def _tell_the_owner(call: Call, answer: Fields) -> None:
    for one in answer.get(call.action.removeprefix("Describe")) or ():
        if owner := OWNERS.get(one["VpcId"]):
            one["OwnerId"] = owner
            if "SubnetArn" in one:
                one["SubnetArn"] = one["SubnetArn"].replace(backends.ACCOUNT, owner)


@follows("ec2", "DescribeVpcEndpoints")
def _hide(call: Call, answer: Fields) -> None:
    there = answer.get("VpcEndpoints") or ()
    answer["VpcEndpoints"] = [one for one in there if one["VpcId"] not in OWNERS]
