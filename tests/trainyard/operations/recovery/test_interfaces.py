"""Which interfaces of the VPC CNI are leaked, in an account that answers as EC2 does (moto)."""

from __future__ import annotations

from typing import Any

import boto3

from trainyard.operations.recovery import interfaces
from trainyard.operations.recovery.interfaces import TAG, LeakedInterface

CLUSTER = "dev-cluster-12345678"


def _state(subnet: str) -> list[dict[str, Any]]:
    tags = {f"kubernetes.io/cluster/{CLUSTER}": "shared"}
    return [
        {"type": "aws:iam/role:Role", "id": "r", "inputs": {}},
        {"type": interfaces.SUBNET, "id": subnet, "inputs": {"tags": tags}},
    ]


def _interface(session: boto3.Session, subnet: str, **tags: str) -> str:
    specification = {
        "ResourceType": "network-interface",
        "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
    }
    more: dict[str, Any] = {"TagSpecifications": [specification]} if tags else {}
    made = session.client("ec2").create_network_interface(SubnetId=subnet, **more)
    return made["NetworkInterface"]["NetworkInterfaceId"]


def test_an_unattached_interface_with_the_clusters_tag_is_leaked_and_deleted(
    session: boto3.Session, subnet: str
) -> None:
    ours = _interface(session, subnet, **{TAG: CLUSTER})
    found = interfaces.leaked(session, _state(subnet))
    assert found == [LeakedInterface(id=ours, subnet=subnet)]
    interfaces.delete(session, found[0])
    interfaces.delete(session, found[0])
    session.client("ec2").delete_subnet(SubnetId=subnet)


def test_interfaces_of_others_stay(session: boto3.Session, subnet: str) -> None:
    _interface(session, subnet)
    _interface(session, subnet, **{TAG: "another-cluster"})
    ec2 = session.client("ec2")
    elsewhere = ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
    far = ec2.create_subnet(VpcId=elsewhere, CidrBlock="10.1.0.0/20")["Subnet"]["SubnetId"]
    _interface(session, far, **{TAG: CLUSTER})
    assert interfaces.leaked(session, _state(subnet)) == []


def test_in_an_existing_vpc_the_tag_of_the_nodes_group_names_the_cluster(
    session: boto3.Session, subnet: str
) -> None:
    ours = _interface(session, subnet, **{TAG: CLUSTER})
    _interface(session, subnet, **{TAG: "another-cluster"})
    ec2 = session.client("ec2")
    vpc = ec2.describe_subnets(SubnetIds=[subnet])["Subnets"][0]["VpcId"]
    inputs = {"vpcId": vpc, "tags": {interfaces.CLUSTER: CLUSTER}}
    group = {"type": interfaces.GROUP, "id": "sg-1", "inputs": inputs}
    assert interfaces.leaked(session, [group]) == [LeakedInterface(id=ours, subnet=subnet)]
    assert interfaces.leaked(session, [group | {"inputs": {"vpcId": vpc}}]) == []


def test_while_the_cluster_exists_no_interface_is_leaked(
    session: boto3.Session, subnet: str
) -> None:
    _interface(session, subnet, **{TAG: CLUSTER})
    session.client("eks").create_cluster(
        name=CLUSTER,
        roleArn="arn:aws:iam::123456789012:role/eks",
        resourcesVpcConfig={"subnetIds": [subnet]},
    )
    assert interfaces.leaked(session, _state(subnet)) == []


def test_a_stack_without_subnets_asks_nothing() -> None:
    assert interfaces.leaked(boto3.Session(region_name="us-east-1"), []) == []
