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

TAG = "cluster.k8s.amazonaws.com/name"
"""Of every interface of the VPC CNI (amazon-vpc-cni-k8s, pkg/awsutils)."""
SUBNET = "aws:ec2/subnet:Subnet"
OF_CLUSTER = "kubernetes.io/cluster/"
"""Begins the tag of a subnet that names its cluster."""
Resource = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class LeakedInterface:
    """A network interface that belongs to nobody any more."""

    id: str
    subnet: str

    def __str__(self) -> str:
        return f"network interface {self.id}, which the VPC CNI left in {self.subnet}"


def leaked(session: boto3.Session, resources: list[Resource]) -> list[LeakedInterface]:
    """The leaked interfaces in the subnets of a stack whose cluster is gone. Empty while the cluster
    exists, or the stack has no subnet."""
    subnets = [resource for resource in resources if resource["type"] == SUBNET]
    names = {
        tag.removeprefix(OF_CLUSTER)
        for subnet in subnets
        for tag in subnet["inputs"].get("tags") or {}
        if tag.startswith(OF_CLUSTER)
    }
    gone = [name for name in sorted(names) if not _exists(session, name)]
    if not gone:
        return []
    found = (
        session.client("ec2")
        .get_paginator("describe_network_interfaces")
        .paginate(
            Filters=[
                {"Name": "status", "Values": ["available"]},
                {"Name": f"tag:{TAG}", "Values": gone},
                {"Name": "subnet-id", "Values": [subnet["id"] for subnet in subnets]},
            ]
        )
    )
    return [
        LeakedInterface(id=one["NetworkInterfaceId"], subnet=one["SubnetId"])
        for page in found
        for one in page["NetworkInterfaces"]
    ]


def delete(session: boto3.Session, interface: LeakedInterface) -> None:
    """Delete it; nothing where it is gone already."""
    try:
        session.client("ec2").delete_network_interface(NetworkInterfaceId=interface.id)
    except ClientError as error:
        if error.response["Error"]["Code"] != "InvalidNetworkInterfaceID.NotFound":
            raise


def _exists(session: boto3.Session, cluster: str) -> bool:
    try:
        session.client("eks").describe_cluster(name=cluster)
    except ClientError as error:
        if error.response["Error"]["Code"] == "ResourceNotFoundException":
            return False
        raise
    return True
