"""Look-ups of an existing VPC against the rehearsal's account: as the component asks, and as `trainyard check
--live` asks, the same is found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rehearsal.aws.sharing import OWNERS, share
from rehearsal.providers.aws.provider import Aws
from rehearsal.providers.problems import Refused
from tests.rehearsal.aws_world import AT_ONCE, REGION, Account, Network, served, speak_to
from tests.support.recording import Graph, deploy
from tests.support.stackfile import ENVIRONMENT, at, environment_plan
from trainyard.existing.vpc_faults import faults
from trainyard.live.questions.account import Account as Asked
from trainyard.plans.access import AccessPlan
from trainyard.plans.networks import ExistingNetworkPlan


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    with (
        pytest.MonkeyPatch.context() as patch,
        served(tmp_path_factory.mktemp("account"), patch) as account,
    ):
        speak_to(account, patch)
        account.speed(AT_ONCE)
        yield account


@pytest.fixture(scope="module")
def network(account: Account) -> Network:
    """The subnet of zone a has a route table of its own, that of zone c follows the main one."""
    made = Network(account)
    nat, _ = made.nat()
    for name in ("EnableDnsSupport", "EnableDnsHostnames"):
        made.ec2.modify_vpc_attribute(VpcId=made.vpc, **{name: {"Value": True}})
    own = made.ec2.create_route_table(VpcId=made.vpc)["RouteTable"]["RouteTableId"]
    made.ec2.associate_route_table(RouteTableId=own, SubnetId=made.subnets[0])
    for table in (own, _main(made)):
        made.ec2.create_route(
            RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", NatGatewayId=nat
        )
    return made


def _main(network: Network) -> str:
    of_vpc = [
        {"Name": "vpc-id", "Values": [network.vpc]},
        {"Name": "association.main", "Values": ["true"]},
    ]
    [table] = network.ec2.describe_route_tables(Filters=of_vpc)["RouteTables"]
    return table["RouteTableId"]


def _settings(network: Network) -> dict[str, Any]:
    zones = [f"{REGION}a", f"{REGION}c"]
    return {
        "vpc_id": network.vpc,
        "private_subnets": dict(zip(zones, network.subnets, strict=True)),
    }


@pytest.fixture(scope="module")
def plugin(account: Account) -> Aws:
    made = Aws()
    made.configure({"region": REGION})
    return made


def _deployed(network: Network, plugin: Aws, **more: Any) -> Graph:
    """The dev stack in that VPC, whose look-ups the aws plugin answers. `more`: settings of the network."""

    def changes(values: dict[str, Any]) -> None:
        values[ENVIRONMENT]["network"] = _settings(network) | more

    return deploy("dev", changes, vpc=plugin.invoke)


def test_a_sound_vpc_is_found_sound_by_the_component_and_by_the_check(
    network: Network, plugin: Aws
) -> None:
    graph = _deployed(network, plugin)
    assert graph["NodeGroup system"].inputs["subnetIds"] == network.subnets
    plan = environment_plan(at("network", _settings(network))).network
    assert isinstance(plan, ExistingNetworkPlan)
    asked = Asked(AccessPlan(region=REGION))
    found = asked.vpc(network.vpc, network.subnets)
    assert found and found.subnets.keys() == {*network.subnets}
    assert [*faults(plan, found)] == []
    assert asked.vpc("vpc-0123456789abcdef0", network.subnets) is None
    assert asked.without_s3(network.vpc, network.subnets) == network.subnets


def test_a_route_to_the_internet_gateway_is_found_by_both(network: Network, plugin: Aws) -> None:
    to = {"DestinationCidrBlock": "0.0.0.0/0", "RouteTableId": _main(network)}
    [nat] = network.ec2.describe_nat_gateways()["NatGateways"]
    network.ec2.replace_route(**to, GatewayId=network.gateway)
    try:
        with pytest.raises(Exception, match=f"leads to {network.gateway}"):
            _deployed(network, plugin)
        found = Asked(AccessPlan(region=REGION)).vpc(network.vpc, network.subnets)
        assert found and found.subnets[network.subnets[1]].way_out == network.gateway
    finally:
        network.ec2.replace_route(**to, NatGatewayId=nat["NatGatewayId"])


def test_an_endpoint_of_s3_is_seen_in_the_route_tables_that_have_it(network: Network) -> None:
    made = network.ec2.create_vpc_endpoint(
        VpcId=network.vpc,
        ServiceName=f"com.amazonaws.{REGION}.s3",
        VpcEndpointType="Gateway",
        RouteTableIds=[_main(network)],
    )["VpcEndpoint"]["VpcEndpointId"]
    without = Asked(AccessPlan(region=REGION)).without_s3(network.vpc, network.subnets)
    assert without == network.subnets[:1]
    network.ec2.delete_vpc_endpoints(VpcEndpointIds=[made])


def test_the_owner_of_a_shared_vpc_is_found_by_both(network: Network, plugin: Aws) -> None:
    share(network.vpc, "444455556666")
    try:
        found = Asked(AccessPlan(region=REGION)).vpc(network.vpc, network.subnets)
        assert found and found.shared_by == "444455556666"
        assert _deployed(network, plugin)["NodeGroup system"]
        with pytest.raises(Exception, match="belongs to account 444455556666"):
            _deployed(network, plugin, s3_endpoint=True)
    finally:
        OWNERS.clear()


def test_what_does_not_exist_is_refused_in_the_genuine_providers_words(plugin: Aws) -> None:
    with pytest.raises(Refused, match="VpcID|vpc"):
        plugin.invoke("aws:ec2/getVpc:getVpc", {"id": "vpc-0123456789abcdef0"})
    asked = {"filters": [{"name": "vpc-id", "values": ["vpc-0123456789abcdef0"]}]}
    assert plugin.invoke("aws:ec2/getVpcs:getVpcs", asked)["ids"] == []
