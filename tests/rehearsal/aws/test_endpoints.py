"""Interface endpoints: what AWS refuses about them, and how they come and go."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rehearsal.aws.endpoints import LACKING, SERVICES
from tests.rehearsal.aws_world import REGION, Account, Network, refused, served, speak_to
from trainyard.catalog.aws.endpoints import ALWAYS, EFS_API, NONE, SECRETS, SESSIONS, TOPICS
from trainyard.live.questions.account import Account as Asked
from trainyard.plans.access import AccessPlan


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    with served(tmp_path, monkeypatch) as account:
        yield account


@pytest.fixture
def network(account: Account) -> Network:
    made = Network(account)
    for attribute in ("EnableDnsSupport", "EnableDnsHostnames"):
        made.ec2.modify_vpc_attribute(VpcId=made.vpc, **{attribute: {"Value": True}})
    return made


def wanted(network: Network, **more: Any) -> dict[str, Any]:
    return {
        "VpcId": network.vpc,
        "ServiceName": f"com.amazonaws.{REGION}.ec2",
        "VpcEndpointType": "Interface",
        "SubnetIds": network.subnets[:2],
        "PrivateDnsEnabled": True,
        **more,
    }


def create(network: Network, **more: Any) -> dict[str, Any]:
    made: dict[str, Any] = network.ec2.create_vpc_endpoint(**wanted(network, **more))
    return made["VpcEndpoint"]


def test_an_endpoint_has_an_interface_in_each_of_its_subnets_until_it_is_gone(
    network: Network,
) -> None:
    made = create(network)
    assert made["State"] in ("pending", "available")
    [found] = network.ec2.describe_vpc_endpoints(VpcEndpointIds=[made["VpcEndpointId"]])[
        "VpcEndpoints"
    ]
    described = network.ec2.describe_network_interfaces(
        NetworkInterfaceIds=found["NetworkInterfaceIds"]
    )["NetworkInterfaces"]
    assert {one["SubnetId"] for one in described} == {*network.subnets[:2]}
    with refused("DependencyViolation"):
        network.ec2.delete_subnet(SubnetId=network.subnets[0])
    network.ec2.delete_vpc_endpoints(VpcEndpointIds=[made["VpcEndpointId"]])
    with refused("InvalidVpcEndpointId.NotFound"):
        network.ec2.delete_vpc_endpoints(VpcEndpointIds=["vpce-0"])


def test_a_gateway_endpoint_leads_from_the_tables_that_it_has_now(network: Network) -> None:
    ec2 = network.ec2
    tables = [
        ec2.create_route_table(VpcId=network.vpc)["RouteTable"]["RouteTableId"] for _ in range(2)
    ]
    made = ec2.create_vpc_endpoint(
        VpcId=network.vpc, ServiceName=f"com.amazonaws.{REGION}.s3", RouteTableIds=tables[:1]
    )["VpcEndpoint"]["VpcEndpointId"]
    ec2.modify_vpc_endpoint(
        VpcEndpointId=made, AddRouteTableIds=tables[1:], RemoveRouteTableIds=tables[:1]
    )
    told = ec2.describe_route_tables(RouteTableIds=tables)["RouteTables"]
    assert {
        table["RouteTableId"]: [route.get("GatewayId") for route in table["Routes"]][1:]
        for table in told
    } == {tables[0]: [], tables[1]: [made]}
    ec2.delete_vpc_endpoints(VpcEndpointIds=[made])
    assert ec2.describe_vpc_endpoints()["VpcEndpoints"] == []


@pytest.mark.parametrize("api", NONE)
def test_an_api_without_an_endpoint_has_none(network: Network, api: str) -> None:
    with refused("InvalidServiceName"):
        create(network, ServiceName=f"com.amazonaws.{REGION}.{api}")


def test_every_api_that_a_stack_may_call_has_an_endpoint_and_no_other_is_named() -> None:
    assert {*ALWAYS, TOPICS, EFS_API, SECRETS, *SESSIONS} <= SERVICES
    assert not NONE.keys() & SERVICES


def test_a_second_endpoint_with_the_same_names_is_refused(network: Network) -> None:
    create(network)
    with refused("InvalidParameter"):
        create(network)
    create(network, PrivateDnsEnabled=False)
    create(network, ServiceName=f"com.amazonaws.{REGION}.ec2messages")


def test_private_names_need_dns_in_the_vpc(network: Network) -> None:
    network.ec2.modify_vpc_attribute(VpcId=network.vpc, EnableDnsHostnames={"Value": False})
    with refused("InvalidParameter"):
        create(network)


def test_two_subnets_of_one_zone_are_refused(network: Network) -> None:
    second = network.subnet("10.20.210.0/24", "a")
    with refused("DuplicateSubnetsInSameZone"):
        create(network, SubnetIds=[network.subnets[0], second])


def test_a_service_is_offered_in_its_zones_and_refused_in_others(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(LACKING, "ec2", frozenset({"apne2-az3"}))
    with refused("InvalidParameter"):
        create(network)
    made = create(network, SubnetIds=network.subnets[:1])
    with refused("InvalidParameter"):
        network.ec2.modify_vpc_endpoint(
            VpcEndpointId=made["VpcEndpointId"], AddSubnetIds=network.subnets[1:2]
        )
    create(network, ServiceName=f"com.amazonaws.{REGION}.sqs")


def test_services_and_their_zones_are_told_as_the_check_asks_for_them(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    speak_to(account, monkeypatch)
    monkeypatch.setitem(LACKING, "ec2", frozenset({"apne2-az3"}))
    told = Asked(AccessPlan(region=REGION)).endpoint_offers(["ec2", "sqs", "pricing"])
    zones = [f"{REGION}{letter}" for letter in "abcd"]
    assert told == {"ec2": (zones[0], zones[1], zones[3]), "sqs": tuple(zones)}
    ec2 = account.client("ec2")
    both = ec2.describe_vpc_endpoint_services(ServiceNames=[f"com.amazonaws.{REGION}.s3"])
    kinds = [one["ServiceType"][0]["ServiceType"] for one in both["ServiceDetails"]]
    assert sorted(kinds) == ["Gateway", "Interface"] and len(both["ServiceNames"]) == 1
    with refused("InvalidServiceName"):
        ec2.describe_vpc_endpoint_services(ServiceNames=["com.amazonaws.eu-west-1.s3"])
