"""Warnings about what can keep nodes of an existing VPC from names, from AWS and from each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from tests.support.existing_vpc import EXISTING_VPC, SUBNETS, VPC
from tests.support.stackfile import Edit, at, environment_plan
from tests.trainyard.existing.test_vpc_faults import SOUND
from trainyard.live.existing.vpc_walls import LAST, acl_findings, dns_findings
from trainyard.live.questions.account import Account
from trainyard.live.questions.network_questions import AclRule
from trainyard.plans.access import AccessPlan
from trainyard.plans.networks import ExistingNetworkPlan

A, C = SUBNETS
REGION = A[:-1]
NO_INTERNET = (
    EXISTING_VPC,
    at("network.internet", "none"),
    at("artifacts.images", f"111122223333.dkr.ecr.{REGION}.amazonaws.com/mirror"),
)


def _network(*edits: Edit) -> ExistingNetworkPlan:
    network = environment_plan(*(edits or (EXISTING_VPC,))).network
    assert isinstance(network, ExistingNetworkPlan)
    return network


def _rule(number: int, action: str, **differs: Any) -> AclRule:
    told: dict[str, Any] = {
        "egress": False,
        "protocol": "-1",
        "ports": (0, 65535),
        "cidr": "0.0.0.0/0",
        **differs,
    }
    return AclRule(acl_id="acl-1", number=number, allows=action == "allow", **told)


OPEN = [_rule(100, "allow", egress=way) for way in (True, False)]
CLOSED = [_rule(LAST, "deny", egress=way) for way in (True, False)]


def _acl(*rules: AclRule, edits: tuple[Edit, ...] = ()) -> list[str]:
    """What is said of the subnet in the training zone."""
    listed = sorted([*rules, *CLOSED], key=lambda one: one.number)
    acls = {SUBNETS[A]: listed, SUBNETS[C]: [*OPEN, *CLOSED]}
    return [str(one) for one in acl_findings(_network(*edits), SOUND, acls)]


def test_the_default_acl_lets_everything_through() -> None:
    assert _acl(*OPEN) == []


def test_rules_that_together_allow_what_nodes_need_are_enough() -> None:
    inside = [_rule(10, "allow", egress=way, cidr="10.20.0.0/16") for way in (True, False)]
    https = _rule(20, "allow", egress=True, protocol="6", ports=(443, 443))
    replies = [
        _rule(30, "allow", protocol="6", ports=(1024, 49151)),
        _rule(31, "allow", protocol="6", ports=(49152, 65535)),
    ]
    assert _acl(*inside, https, *replies) == []
    [said] = _acl(*inside, https, replies[0])
    assert said == (
        f"environment.network.private_subnets.{A}: inbound rule * of acl-1 denies TCP 32768-60999 from"
        f" 0.0.0.0/0, which nodes in {SUBNETS[A]} need"
    )


DENIED: dict[str, tuple[AclRule, str]] = {
    "https": (
        _rule(50, "deny", egress=True, protocol="6", ports=(443, 443)),
        "outbound rule 50 of acl-1 denies TCP 443 to 0.0.0.0/0",
    ),
    "everything from the other subnet": (
        _rule(50, "deny", cidr="10.20.48.0/20"),
        f"inbound rule 50 of acl-1 denies TCP from 10.20.48.0/20, the subnet in {C}",
    ),
    "a part of the other subnet": (
        _rule(50, "deny", egress=True, cidr="10.20.48.0/24"),
        f"outbound rule 50 of acl-1 denies TCP to 10.20.48.0/20, the subnet in {C}",
    ),
}


@pytest.mark.parametrize("case", DENIED)
def test_a_rule_that_denies_what_nodes_need_is_named(case: str) -> None:
    rule, says = DENIED[case]
    assert says in _acl(*OPEN, rule)[0]


@pytest.mark.parametrize(
    "rule",
    [
        _rule(50, "deny", egress=True, cidr="198.51.100.0/24"),
        _rule(50, "deny", protocol="17"),
        _rule(150, "deny"),
        _rule(50, "deny", protocol="6", ports=(22, 22), cidr="192.168.0.0/16"),
    ],
    ids=["some range of the internet", "UDP", "behind a rule that allows", "another network"],
)
def test_a_rule_that_denies_something_else_is_no_wall(rule: AclRule) -> None:
    assert _acl(*OPEN, rule) == []


def test_without_the_internet_only_the_vpc_must_be_reached() -> None:
    inside = [_rule(10, "allow", egress=way, cidr="10.20.0.0/16") for way in (True, False)]
    assert _acl(*inside, edits=NO_INTERNET) == []
    assert len(_acl(*inside)) == 2
    elsewhere = at("network.endpoints", "elsewhere")
    assert _acl(*inside, edits=(*NO_INTERNET, elsewhere)) == []


def test_a_vpc_that_does_not_exist_has_no_walls() -> None:
    assert [*acl_findings(_network(), None, {})] == [*dns_findings(_network(), None, [])] == []


@pytest.mark.parametrize("servers", [[], ["AmazonProvidedDNS"], ["10.20.0.2"], ["169.254.169.253"]])
def test_amazons_own_dns_is_no_other(servers: list[str]) -> None:
    assert [*dns_findings(_network(), SOUND, servers)] == []


def test_other_dns_servers_are_named() -> None:
    [said] = map(str, dns_findings(_network(), SOUND, ["AmazonProvidedDNS", "10.1.1.5"]))
    assert f"the DHCP options of {VPC} name the DNS servers 10.1.1.5; unless they forward" in said


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    with mock_aws():
        yield Account(AccessPlan(region=REGION))


def test_ec2_tells_the_dns_servers_the_acls_and_the_endpoints(ours: Account) -> None:
    ec2 = boto3.client("ec2", REGION)
    vpc = ec2.create_vpc(CidrBlock="10.20.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.20.0.0/20")["Subnet"]["SubnetId"]
    assert ours.name_servers(vpc) == [] and ours.name_servers("vpc-0123456789abcdef0") == []
    options = ec2.create_dhcp_options(
        DhcpConfigurations=[{"Key": "domain-name-servers", "Values": ["10.1.1.5", "10.1.1.6"]}]
    )["DhcpOptions"]["DhcpOptionsId"]
    ec2.associate_dhcp_options(DhcpOptionsId=options, VpcId=vpc)
    assert ours.name_servers(vpc) == ["10.1.1.5", "10.1.1.6"]
    rules = ours.acls([subnet])[subnet]
    assert [(one.allows, one.egress) for one in rules if one.number == 100] in (
        [(True, True), (True, False)],
        [(True, False), (True, True)],
    )
    assert {one.number for one in rules} == {100, LAST}
    group = ec2.create_security_group(GroupName="all", Description="all", VpcId=vpc)["GroupId"]
    made = ec2.create_vpc_endpoint(
        VpcEndpointType="Interface",
        VpcId=vpc,
        ServiceName=f"com.amazonaws.{REGION}.sqs",
        SubnetIds=[subnet],
        SecurityGroupIds=[group],
        PrivateDnsEnabled=True,
    )["VpcEndpoint"]
    [endpoint] = ours.endpoints(vpc)
    assert (endpoint.id, endpoint.api, endpoint.private_dns) == (
        made["VpcEndpointId"],
        "sqs",
        True,
    )
    assert endpoint.state == "available" and endpoint.groups == (group,)
    assert [rule.egress for rule in endpoint.rules] == [True], "whatever EC2 puts into a group"
