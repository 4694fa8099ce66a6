"""Findings of `trainyard check --live` about the endpoints of an existing VPC."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

from tests.support.existing_cluster import GROUP, IN_CLUSTER, NAME
from tests.support.existing_vpc import EXISTING_VPC, VPC
from tests.support.stackfile import Edit, at, environment, environment_plan
from tests.trainyard.existing.test_vpc_faults import SOUND as SOUND_VPC
from trainyard.existing.store_faults import RuleFound
from trainyard.live.existing.vpc import vpc_checks
from trainyard.live.questions.account import Account
from trainyard.live.questions.network_questions import EndpointFound
from trainyard.plans.access import AccessPlan


def said(asked: Any, question: str, *edits: Edit) -> list[str]:
    """The findings of one question."""
    checks = vpc_checks(asked, environment_plan(*edits), environment(*edits))
    return [str(each) for each in checks[question]()]


def test_an_endpoint_lets_nodes_in_by_the_group_of_an_existing_cluster() -> None:
    asked = Mock(spec=Account)
    asked.vpc.return_value, asked.cluster_groups.return_value = SOUND_VPC, (GROUP,)
    rule = RuleFound(egress=False, protocol="tcp", ports=(443, 443), cidr="", group_id=GROUP)
    asked.endpoints.return_value = [
        EndpointFound(
            id="vpce-1",
            api="sqs",
            state="available",
            private_dns=True,
            groups=("sg-1",),
            rules=(rule,),
        )
    ]
    assert said(asked, f"endpoints of {VPC}", *IN_CLUSTER) == []
    asked.cluster_groups.assert_called_once_with(NAME)
    [shut] = said(asked, f"endpoints of {VPC}", EXISTING_VPC)
    assert "must let TCP 443 in from the private subnets" in shut


TEAMS = at("teams", {"nlp": {"deployer": "arn:aws:iam::111122223333:role/nlp"}})


def test_teams_hear_of_the_networks_that_their_pods_reach() -> None:
    """Their policies refuse the VPC alone, and let TCP 443 out to what is behind it."""
    asked = Mock(spec=Account)
    asked.ways_to_networks.return_value = {"10.0.0.0/8": "tgw-1", "172.16.0.0/12": "pcx-1"}
    question = f"networks behind {VPC}"
    [warning] = said(asked, question, EXISTING_VPC, TEAMS)
    assert warning.startswith("environment.teams: pods of teams reach TCP 443")
    assert "10.0.0.0/8 by tgw-1, 172.16.0.0/12 by pcx-1." in warning
    asked.ways_to_networks.return_value = {}
    assert said(asked, question, EXISTING_VPC, TEAMS) == []
    plan = environment_plan(EXISTING_VPC)
    assert question not in vpc_checks(asked, plan, environment(EXISTING_VPC)), "without teams"


def test_routes_to_other_networks_are_those_of_gateways_and_peers() -> None:
    target = {
        "10.0.0.0/8": {"TransitGatewayId": "tgw-1"},
        "172.16.0.0/12": {"VpcPeeringConnectionId": "pcx-1"},
        "192.168.0.0/16": {"GatewayId": "vgw-1"},
        "0.0.0.0/0": {"NatGatewayId": "nat-1"},
        "10.20.0.0/16": {"GatewayId": "local"},
        "10.9.0.0/16": {"TransitGatewayId": "tgw-2", "State": "blackhole"},
    }
    routes = [{"DestinationCidrBlock": cidr, **each} for cidr, each in target.items()]
    six = {"DestinationIpv6CidrBlock": "::/0", "TransitGatewayId": "tgw-1"}
    table = {"Associations": [{"Main": True}], "Routes": [*routes, six]}
    account = Account(AccessPlan(region="us-east-2"))
    account.__dict__["_ask"] = lambda *_, **__: {"RouteTables": [table]}
    assert account.ways_to_networks(VPC, ["subnet-1"]) == {
        "10.0.0.0/8": "tgw-1",
        "172.16.0.0/12": "pcx-1",
        "192.168.0.0/16": "vgw-1",
    }


LAYERS = "arn:aws:s3:::prod-ap-northeast-2-starport-layer-bucket/*"
OURS = {"Effect": "Allow", "Principal": "*", "Action": "s3:*", "Resource": "arn:aws:s3:::corp-*"}


def of_s3(*statements: Any, edits: tuple[Edit, ...] = (EXISTING_VPC,)) -> list[str]:
    """Findings about a gateway endpoint with this policy."""
    asked = Mock(spec=Account)
    asked.vpc.return_value = SOUND_VPC
    asked.s3_policies.return_value = {"vpce-s3": json.dumps({"Statement": [*statements]})}
    return said(asked, f"policy of the S3 endpoint of {VPC}", *edits)


def test_an_endpoint_of_s3_with_the_companys_buckets_alone_is_refused() -> None:
    error, warning = of_s3(OURS)
    assert error == (
        "environment.network.vpc_id: must have a gateway endpoint for S3 that lets nodes pull images: s3:GetObject on"
        f" {LAYERS}, in which ECR keeps layers; got vpce-s3 in {VPC}, whose policy does not allow it: no node becomes"
        " Ready. Fix: have its owner add that to the policy, for Principal *, by `aws ec2 modify-vpc-endpoint"
        " --vpc-endpoint-id vpce-s3 --policy-document file://policy.json`"
    )
    assert "arn:aws:s3:::al2023-repos-ap-northeast-2-de612dc2/*: nodes get no lustre-c" in warning


def test_an_endpoint_of_s3_without_layers_is_no_finding_of_a_shared_vpc() -> None:
    asked = Mock(spec=Account)
    asked.vpc.return_value = replace(SOUND_VPC, shared_by="999999999999")
    asked.s3_policies.return_value = {}
    assert said(asked, f"policy of the S3 endpoint of {VPC}", EXISTING_VPC) == []


def test_a_policy_with_what_aws_needs_is_no_finding() -> None:
    read = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": ["s3:GetObject"]}
    packages = "arn:aws:s3:::al2023-repos-ap-northeast-2-*/*"
    assert of_s3(OURS, read | {"Resource": [LAYERS, packages]}) == []
    assert of_s3(OURS | {"Resource": "*"}) == []


def test_conditions_are_a_warning() -> None:
    mine = {"StringEquals": {"aws:PrincipalOrgID": "o-1"}}
    [warning] = of_s3(OURS | {"Resource": "*", "Condition": mine})
    assert "the policy of vpce-s3 has conditions, which nothing here judges" in warning
    perimeter = OURS | {"Effect": "Deny", "Resource": "*", "Condition": mine}
    assert len(of_s3(OURS | {"Resource": "*"}, perimeter)) == 1


def test_a_denial_decides() -> None:
    every = OURS | {"Resource": "*"}
    denied, *_ = of_s3(every, {**every, "Effect": "Deny", "Resource": LAYERS})
    assert "no node becomes Ready" in denied
    others = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "NotResource": [LAYERS, "*al2023*"],
    }
    assert of_s3(every, others) == []


def test_buckets_of_the_stack_file_are_asked_about() -> None:
    read = {"Effect": "Allow", "Principal": "*", "Action": "s3:Get*", "Resource": "*"}
    store = at("storage.corpus", {"s3": {"bucket": "sets", "writable": True}})
    [warning] = of_s3(read, edits=(EXISTING_VPC, store))
    assert warning.startswith("environment.storage.corpus.s3.bucket: the policy of vpce-s3")
    assert "does not allow s3:PutObject on arn:aws:s3:::sets/*: where" in warning


def test_endpoints_of_apis_with_a_policy_of_their_own_are_named() -> None:
    asked = Mock(spec=Account)
    asked.vpc.return_value = SOUND_VPC
    rule = RuleFound(egress=False, protocol="-1", ports=(-1, -1), cidr="0.0.0.0/0", group_id="")
    own = json.dumps({"Statement": {"Effect": "Allow", "Principal": "*", "Action": "sqs:Send*"}})
    asked.endpoints.return_value = [
        EndpointFound(
            id=f"vpce-{api}",
            api=api,
            state="available",
            private_dns=True,
            groups=("sg-1",),
            rules=(rule,),
            policy=policy,
        )
        for api, policy in (("sqs", own), ("eks", ""), ("kms", own))
    ]
    [warning] = said(asked, f"endpoints of {VPC}", EXISTING_VPC)
    assert "the policies of vpce-sqs for sqs do not let every call through" in warning
