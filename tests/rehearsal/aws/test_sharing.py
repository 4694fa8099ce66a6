"""A VPC that another account shares: what this account sees of it, and what it cannot do there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rehearsal.aws.sharing import OF_THE_OWNER
from tests.rehearsal.aws_world import REGION, Account, Network, create_cluster, refused, served

OWNER = "444455556666"
S3 = f"com.amazonaws.{REGION}.s3"


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    folder: Path = tmp_path_factory.mktemp("account")
    with pytest.MonkeyPatch.context() as patch, served(folder, patch) as account:
        yield account


@pytest.fixture(scope="module")
def network(account: Account) -> Network:
    """A shared VPC, with an endpoint of its owner."""
    made = Network(account).lead_out()
    made.ec2.create_tags(Resources=[made.subnets[0]], Tags=[{"Key": "team", "Value": "network"}])
    made.ec2.create_vpc_endpoint(VpcId=made.vpc, ServiceName=S3, RouteTableIds=[_table(made)])
    status, _ = account.world("POST", "faults", {"kind": "share", "vpc": made.vpc, "owner": OWNER})
    assert status == 200
    return made


def _table(network: Network) -> str:
    of_vpc = [{"Name": "vpc-id", "Values": [network.vpc]}]
    return network.ec2.describe_route_tables(Filters=of_vpc)["RouteTables"][0]["RouteTableId"]


def test_who_owns_a_vpc_its_subnets_and_routes_is_told(network: Network) -> None:
    [vpc] = network.ec2.describe_vpcs(VpcIds=[network.vpc])["Vpcs"]
    [subnet] = network.ec2.describe_subnets(SubnetIds=network.subnets[:1])["Subnets"]
    tables = network.ec2.describe_route_tables(RouteTableIds=[_table(network)])["RouteTables"]
    assert {one["OwnerId"] for one in (vpc, subnet, *tables)} == {OWNER}
    assert subnet["SubnetArn"].split(":")[4] == OWNER


def test_tags_and_endpoints_of_the_owner_are_not_visible(network: Network) -> None:
    [subnet] = network.ec2.describe_subnets(SubnetIds=network.subnets[:1])["Subnets"]
    assert subnet.get("Tags", []) == []
    of_vpc = [{"Name": "vpc-id", "Values": [network.vpc]}]
    assert network.ec2.describe_vpc_endpoints(Filters=of_vpc)["VpcEndpoints"] == []


REFUSED: dict[str, Callable[[Network], Any]] = {
    "gateway endpoint": lambda its: its.ec2.create_vpc_endpoint(
        VpcId=its.vpc, ServiceName=S3, RouteTableIds=[_table(its)]
    ),
    "interface endpoint": lambda its: its.ec2.create_vpc_endpoint(
        VpcId=its.vpc,
        ServiceName=f"com.amazonaws.{REGION}.ec2",
        VpcEndpointType="Interface",
        SubnetIds=its.subnets,
    ),
    "subnet": lambda its: its.subnet("10.20.200.0/24", "a"),
    "attribute": lambda its: its.ec2.modify_vpc_attribute(
        VpcId=its.vpc, EnableDnsHostnames={"Value": True}
    ),
    "attribute of a subnet": lambda its: its.ec2.modify_subnet_attribute(
        SubnetId=its.subnets[0], MapPublicIpOnLaunch={"Value": False}
    ),
    "route": lambda its: its.ec2.create_route(
        RouteTableId=_table(its), DestinationCidrBlock="10.0.0.0/8", GatewayId=its.gateway
    ),
    "route table": lambda its: its.ec2.create_route_table(VpcId=its.vpc),
    "flow logs": lambda its: its.ec2.create_flow_logs(
        ResourceIds=[its.vpc], ResourceType="VPC", LogGroupName="all", TrafficType="ALL"
    ),
    "the VPC's end": lambda its: its.ec2.delete_vpc(VpcId=its.vpc),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_the_owners_is_refused(network: Network, what: str) -> None:
    with refused("UnauthorizedOperation"):
        REFUSED[what](network)


def test_every_refused_call_is_one_of_ec2(network: Network) -> None:
    assert {*OF_THE_OWNER.split()} <= {*network.ec2.meta.service_model.operation_names}


def test_groups_interfaces_and_clusters_are_made_in_shared_subnets(
    account: Account, network: Network
) -> None:
    group = network.ec2.create_security_group(
        GroupName="mine", Description="mine", VpcId=network.vpc
    )["GroupId"]
    made = network.ec2.create_network_interface(SubnetId=network.subnets[0], Groups=[group])
    network.ec2.delete_network_interface(
        NetworkInterfaceId=made["NetworkInterface"]["NetworkInterfaceId"]
    )
    network.ec2.create_tags(Resources=[network.subnets[0]], Tags=[{"Key": "mine", "Value": ""}])
    assert create_cluster(account, network)["name"] == "demo"


def test_a_vpc_of_this_account_is_as_before(account: Account, network: Network) -> None:
    other = network.ec2.create_vpc(CidrBlock="10.30.0.0/16")["Vpc"]["VpcId"]
    [vpc] = network.ec2.describe_vpcs(VpcIds=[other])["Vpcs"]
    assert vpc["OwnerId"] != OWNER
    network.ec2.delete_vpc(VpcId=other)


def test_only_a_vpc_that_exists_is_shared_and_by_another_account(
    account: Account, network: Network
) -> None:
    absent = {"kind": "share", "vpc": "vpc-0123456789abcdef0", "owner": OWNER}
    assert account.world("POST", "faults", absent)[0] == 404
    own = {"kind": "share", "vpc": network.vpc, "owner": "123456789012"}
    assert account.world("POST", "faults", own)[0] == 404
