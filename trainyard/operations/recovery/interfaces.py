"""Network interfaces that the VPC CNI left behind when its node went: they hold their subnet, so that
`pulumi destroy` fails with DependencyViolation.

The CNI tags its interfaces with the cluster's name, and a job of its own, which runs on a node,
deletes leaked ones every hour (amazon-vpc-cni-k8s#1223). After the last node is gone nothing does.
Only while the cluster no longer exists is an unattached interface surely a leaked one: a living CNI
creates an interface before it attaches it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import boto3
from botocore.exceptions import ClientError

from trainyard.plans.identity import OF_CLUSTER

TAG = "cluster.k8s.amazonaws.com/name"
"""Tag of every interface of the VPC CNI (amazon-vpc-cni-k8s, pkg/awsutils)."""
SUBNET = "aws:ec2/subnet:Subnet"
GROUP = "aws:ec2/securityGroup:SecurityGroup"
CLUSTER = "trainyard:cluster"
"""Tag of the nodes' group in an existing VPC, whose subnets are not the stack's
(components/network/existing_network.py)."""
Resource = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class LeakedInterface:
    """A network interface that belongs to nobody any more."""

    id: str
    subnet: str

    def __str__(self) -> str:
        return f"network interface {self.id}, which the VPC CNI left in {self.subnet}"


def leaked(session: boto3.Session, resources: list[Resource]) -> list[LeakedInterface]:
    """The leaked interfaces in the subnets of a stack whose cluster is gone, or in the existing VPC that
    it used. Empty while the cluster exists, or the stack has neither subnet nor group."""
    return [
        LeakedInterface(id=one["NetworkInterfaceId"], subnet=one["SubnetId"])
        for name, place in sorted(places(resources).items())
        if not exists(session, name)
        for page in session.client("ec2")
        .get_paginator("describe_network_interfaces")
        .paginate(
            Filters=[
                {"Name": "status", "Values": ["available"]},
                {"Name": f"tag:{TAG}", "Values": [name]},
                place,
            ]
        )
        for one in page["NetworkInterfaces"]
    ]


def places(resources: list[Resource]) -> dict[str, Any]:
    """Cluster → the filter for where its nodes' interfaces are."""
    subnets = [resource for resource in resources if resource["type"] == SUBNET]
    ids = [subnet["id"] for subnet in subnets]
    own = {
        tag.removeprefix(OF_CLUSTER): {"Name": "subnet-id", "Values": ids}
        for subnet in subnets
        for tag in _tags(subnet)
        if tag.startswith(OF_CLUSTER)
    }
    existing = {
        _tags(group)[CLUSTER]: {"Name": "vpc-id", "Values": [group["inputs"]["vpcId"]]}
        for group in resources
        if group["type"] == GROUP and CLUSTER in _tags(group)
    }
    return own | existing


def _tags(resource: Resource) -> dict[str, str]:
    return resource.get("inputs", {}).get("tags") or {}


def delete(session: boto3.Session, interface: LeakedInterface) -> None:
    """Delete it; nothing where it is gone already."""
    try:
        session.client("ec2").delete_network_interface(NetworkInterfaceId=interface.id)
    except ClientError as error:
        if error.response["Error"]["Code"] != "InvalidNetworkInterfaceID.NotFound":
            raise


def exists(session: boto3.Session, cluster: str) -> bool:
    """True while EKS has the cluster."""
    try:
        session.client("eks").describe_cluster(name=cluster)
    except ClientError as error:
        if error.response["Error"]["Code"] == "ResourceNotFoundException":
            return False
        raise
    return True
