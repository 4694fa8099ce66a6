"""What AWS refuses about networks, and the time NAT gateways take."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rehearsal.aws_world import NEVER, REGION, Account, Network, refused, served


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    with served(tmp_path, monkeypatch) as account:
        yield account


@pytest.fixture
def network(account: Account) -> Network:
    return Network(account)


@pytest.mark.parametrize(
    ("cidr", "zone", "code"),
    [
        ("10.20.0.0/24", "a", "InvalidSubnet.Conflict"),
        ("10.99.0.0/24", "a", "InvalidSubnet.Range"),
        ("10.20.250.0/24", "z", "InvalidParameterValue"),
    ],
)
def test_a_subnet_must_fit(network: Network, cidr: str, zone: str, code: str) -> None:
    with refused(code):
        network.subnet(cidr, zone)


def test_a_nat_gateway_takes_its_time_and_blocks_subnet_address_and_gateway(
    account: Account, network: Network
) -> None:
    account.speed(NEVER)
    nat, address = network.nat()
    assert (
        network.ec2.describe_nat_gateways(NatGatewayIds=[nat])["NatGateways"][0]["State"]
        == "pending"
    )
    with refused("DependencyViolation"):
        network.ec2.delete_subnet(SubnetId=network.subnets[0])
    with refused("InvalidIPAddress.InUse"):
        network.ec2.release_address(AllocationId=address)
    with refused("DependencyViolation"):
        network.ec2.detach_internet_gateway(InternetGatewayId=network.gateway, VpcId=network.vpc)
    with refused("Resource.AlreadyAssociated"):
        network.ec2.create_nat_gateway(SubnetId=network.subnets[1], AllocationId=address)


def test_a_deleted_nat_gateway_lets_go_of_everything(network: Network) -> None:
    nat, address = network.nat()
    assert (
        network.ec2.describe_nat_gateways(NatGatewayIds=[nat])["NatGateways"][0]["State"]
        == "available"
    )
    network.ec2.delete_nat_gateway(NatGatewayId=nat)
    assert (
        network.ec2.describe_nat_gateways(NatGatewayIds=[nat])["NatGateways"][0]["State"]
        == "deleted"
    )
    network.ec2.release_address(AllocationId=address)
    network.ec2.delete_subnet(SubnetId=network.subnets[0])


def test_a_nat_gateway_without_internet_gateway_fails(network: Network) -> None:
    network.ec2.detach_internet_gateway(InternetGatewayId=network.gateway, VpcId=network.vpc)
    nat, _ = network.nat()
    found = network.ec2.describe_nat_gateways(NatGatewayIds=[nat])["NatGateways"][0]
    assert (found["State"], found["FailureCode"]) == ("failed", "Gateway.NotAttached")


def test_a_vpc_in_use_stays(network: Network) -> None:
    for subnet in network.subnets:
        network.ec2.delete_subnet(SubnetId=subnet)
    with refused("DependencyViolation"):
        network.ec2.delete_vpc(VpcId=network.vpc)
    network.ec2.detach_internet_gateway(InternetGatewayId=network.gateway, VpcId=network.vpc)
    with refused("DependencyViolation"):
        network.ec2.delete_vpc(VpcId=network.vpc)
    network.ec2.delete_security_group(GroupId=network.group)
    network.ec2.delete_vpc(VpcId=network.vpc)


def test_a_security_group_that_a_rule_or_an_interface_uses_stays(network: Network) -> None:
    other = network.ec2.create_security_group(
        GroupName="other", Description="o", VpcId=network.vpc
    )["GroupId"]
    rule = [
        {
            "IpProtocol": "tcp",
            "FromPort": 988,
            "ToPort": 988,
            "UserIdGroupPairs": [{"GroupId": network.group}],
        }
    ]
    network.ec2.authorize_security_group_ingress(GroupId=other, IpPermissions=rule)
    with refused("DependencyViolation"):
        network.ec2.delete_security_group(GroupId=network.group)
    network.ec2.create_network_interface(SubnetId=network.subnets[0], Groups=[other])
    with refused("DependencyViolation"):
        network.ec2.delete_security_group(GroupId=other)


def test_a_rule_keeps_its_description(network: Network) -> None:
    permission = {
        "IpProtocol": "-1",
        "UserIdGroupPairs": [{"GroupId": network.group, "Description": "itself"}],
    }
    network.ec2.authorize_security_group_ingress(GroupId=network.group, IpPermissions=[permission])
    rules = network.ec2.describe_security_group_rules()["SecurityGroupRules"]
    assert "itself" in {rule.get("Description") for rule in rules}


def test_routes_lead_to_gateways_of_the_same_vpc(network: Network) -> None:
    table = network.ec2.create_route_table(VpcId=network.vpc)["RouteTable"]["RouteTableId"]
    stray = network.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    with refused("InvalidParameterValue"):
        network.ec2.create_route(
            RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", GatewayId=stray
        )
    network.ec2.create_route(
        RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", GatewayId=network.gateway
    )


def test_a_subnet_has_one_route_table(network: Network) -> None:
    tables = [
        network.ec2.create_route_table(VpcId=network.vpc)["RouteTable"]["RouteTableId"]
        for _ in range(2)
    ]
    network.ec2.associate_route_table(RouteTableId=tables[0], SubnetId=network.subnets[0])
    with refused("Resource.AlreadyAssociated"):
        network.ec2.associate_route_table(RouteTableId=tables[1], SubnetId=network.subnets[0])


def test_gateway_endpoints_exist_for_s3_and_need_real_route_tables(network: Network) -> None:
    with refused("InvalidRouteTableID.NotFound"):
        network.ec2.create_vpc_endpoint(
            VpcId=network.vpc, ServiceName=f"com.amazonaws.{REGION}.s3", RouteTableIds=["rtb-0"]
        )
    table = network.ec2.create_route_table(VpcId=network.vpc)["RouteTable"]["RouteTableId"]
    made = {
        "VpcId": network.vpc,
        "ServiceName": f"com.amazonaws.{REGION}.s3",
        "RouteTableIds": [table],
    }
    endpoint = network.ec2.create_vpc_endpoint(**made)["VpcEndpoint"]["VpcEndpointId"]
    network.ec2.delete_vpc_endpoints(VpcEndpointIds=[endpoint])
    network.ec2.create_vpc_endpoint(**made)


def test_a_new_account_has_few_vpcs_and_addresses(network: Network) -> None:
    """Of the five VPCs one is the default VPC, and one that of the test."""
    for number in range(3):
        network.ec2.create_vpc(CidrBlock=f"10.{number}.0.0/16")
    with refused("VpcLimitExceeded"):
        network.ec2.create_vpc(CidrBlock="10.9.0.0/16")
    for _ in range(5):
        network.ec2.allocate_address(Domain="vpc")
    with refused("AddressLimitExceeded"):
        network.ec2.allocate_address(Domain="vpc")
