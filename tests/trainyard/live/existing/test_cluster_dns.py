"""Whether nodes reach CoreDNS of an existing cluster, as `trainyard check --live` says it."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import boto3
import pytest
from moto import mock_aws

from tests.support.existing_cluster import GROUP, IN_CLUSTER, NAME
from tests.support.existing_vpc import REGION, SUBNETS, VPC
from tests.support.stackfile import environment_plan
from tests.trainyard.existing.test_vpc_faults import SOUND as SOUND_VPC
from trainyard.existing.store_faults import RuleFound
from trainyard.live.existing.cluster_dns import dns_findings
from trainyard.live.questions.account import Account
from trainyard.live.questions.caller import NotAnswered
from trainyard.live.questions.cluster_questions import DnsPodFound
from trainyard.live.questions.network_questions import InterfaceFound
from trainyard.plans.access import AccessPlan
from trainyard.plans.clusters import ExistingClusterPlan
from trainyard.plans.networks import ExistingNetworkPlan
from trainyard.problems import InputWarning

NODES = "sg-node"
POD = DnsPodFound(address="10.20.17.9", node="10.20.17.4")


def rule(protocol: str, **to: Any) -> RuleFound:
    """A rule that lets port 53 in."""
    whom: dict[str, Any] = {"cidr": "", "group_id": "", **to}
    return RuleFound(egress=False, protocol=protocol, ports=(53, 53), **whom)


def findings(
    *rules: RuleFound, pods: Any = (POD,), env: Any = None, back: bool = True
) -> list[Any]:
    """Findings about a CoreDNS whose interface has these rules. `back`: the group of the cluster lets the owner's nodes
    in."""
    told = Mock(spec=Account)
    told.dns_pods.configure_mock(
        **{"side_effect" if isinstance(pods, Exception) else "return_value": pods}
    )
    told.cni_env.return_value = env or {}
    told.vpc.return_value, told.cluster_groups.return_value = SOUND_VPC, (GROUP,)
    self_alone = RuleFound(egress=False, protocol="-1", ports=(-1, -1), cidr="", group_id=GROUP)
    ways = [rule(protocol, group_id=NODES) for protocol in ("udp", "tcp")] if back else []
    told.group_rules.return_value = (self_alone, *ways)
    told.interfaces_of.return_value = [
        InterfaceFound(address=pod.address, groups=(NODES, "sg-2"), rules=rules)
        for pod in (() if isinstance(pods, Exception) else pods)
    ]
    plan = environment_plan(*IN_CLUSTER)
    assert isinstance(plan.cluster, ExistingClusterPlan)
    assert isinstance(plan.network, ExistingNetworkPlan)
    return [*dns_findings(told, plan.cluster, plan.network)]


@pytest.mark.parametrize("to", [{"group_id": GROUP}, {"cidr": "10.20.0.0/16"}])
def test_a_group_that_lets_the_nodes_ask_is_no_finding(to: dict[str, str]) -> None:
    assert findings(rule("udp", **to), rule("6", **to)) == []
    everything = RuleFound(
        egress=False, protocol="-1", ports=(-1, -1), **{"cidr": "", "group_id": "", **to}
    )
    assert findings(everything) == []


def test_a_group_that_lets_only_itself_in_is_refused_with_the_command_that_opens_it() -> None:
    """That of terraform-aws-eks."""
    [fault] = findings(rule("udp", group_id=NODES), rule("tcp", group_id=NODES))
    assert str(fault) == (
        "environment.cluster.name: must be a cluster whose CoreDNS lets UDP and TCP 53 in from nodes of this stack,"
        f" which carry {GROUP}: else their pods resolve no name; got CoreDNS of {NAME} at 10.20.17.9, whose security"
        f" groups ({NODES}, sg-2) have no rule for them. Fix: have its owner run `aws ec2"
        f" authorize-security-group-ingress --group-id {NODES} --ip-permissions"
        f" IpProtocol=udp,FromPort=53,ToPort=53,UserIdGroupPairs=[{{GroupId={GROUP}}}]"
        f" IpProtocol=tcp,FromPort=53,ToPort=53,UserIdGroupPairs=[{{GroupId={GROUP}}}]`"
    )


def test_a_rule_for_one_subnet_of_two_is_not_enough() -> None:
    [subnet, _] = [SOUND_VPC.subnets[id_] for id_ in SUBNETS.values()]
    assert len(findings(rule("udp", cidr=subnet.cidr), rule("tcp", cidr=subnet.cidr))) == 1


def test_udp_alone_is_a_warning() -> None:
    [warning] = findings(rule("udp", group_id=GROUP))
    assert isinstance(warning, InputWarning) and "by UDP and not by TCP" in str(warning)
    assert "IpProtocol=tcp" in str(warning) and "IpProtocol=udp" not in str(warning)


def test_nodes_of_the_owner_that_do_not_reach_the_stacks_are_a_warning() -> None:
    """System nodes have no taint: CoreDNS can come there, and then half of all questions got no answer."""
    opened = rule("udp", group_id=GROUP), rule("tcp", group_id=GROUP)
    [warning] = findings(*opened, back=False)
    assert isinstance(warning, InputWarning)
    assert f"nodes with {NODES}, sg-2 resolve no name" in warning.text
    assert f"--group-id {GROUP} --ip-permissions IpProtocol=udp" in warning.text
    assert f"UserIdGroupPairs=[{{GroupId={NODES}}}]" in warning.text


def test_nodes_of_the_owner_with_the_group_of_the_cluster_reach_the_stacks() -> None:
    told = Mock(spec=Account)
    told.dns_pods.return_value, told.cni_env.return_value = [POD], {}
    told.vpc.return_value, told.cluster_groups.return_value = SOUND_VPC, (GROUP,)
    everything = RuleFound(egress=False, protocol="-1", ports=(-1, -1), cidr="", group_id=GROUP)
    told.group_rules.return_value = (everything,)
    told.interfaces_of.return_value = [
        InterfaceFound(address=POD.address, groups=(GROUP,), rules=(everything,))
    ]
    plan = environment_plan(*IN_CLUSTER)
    assert isinstance(plan.cluster, ExistingClusterPlan)
    assert isinstance(plan.network, ExistingNetworkPlan)
    assert [*dns_findings(told, plan.cluster, plan.network)] == []


def test_pods_of_custom_networking_have_other_groups_and_are_not_judged() -> None:
    assert findings(env={"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG": "true"}) == []


def test_pods_with_the_same_groups_are_one_finding() -> None:
    [fault] = findings(pods=(POD, DnsPodFound(address="10.20.17.10", node="10.20.17.5")))
    assert "at 10.20.17.9, 10.20.17.10, whose" in str(fault)


def test_a_cluster_that_does_not_answer_is_a_warning() -> None:
    [warning] = findings(pods=NotAnswered("https://x: ConnectTimeoutError"))
    assert "reach the DNS of research is not checked: https://x" in str(warning)
    assert findings(pods=()) == []


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Any:
    """EC2 with a VPC, a subnet and two groups."""
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"):
        monkeypatch.setenv(f"AWS_{name}", "x")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        ec2 = boto3.client("ec2", REGION)
        vpc = ec2.create_vpc(CidrBlock="10.20.0.0/16")["Vpc"]["VpcId"]
        subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.20.16.0/20")["Subnet"]["SubnetId"]
        group = ec2.create_security_group(GroupName="node", Description="n", VpcId=vpc)["GroupId"]
        ec2.authorize_security_group_ingress(
            GroupId=group,
            IpPermissions=[
                {
                    "IpProtocol": "udp",
                    "FromPort": 53,
                    "ToPort": 53,
                    "UserIdGroupPairs": [{"GroupId": group}],
                }
            ],
        )
        yield ec2, vpc, subnet, group


def test_interfaces_are_found_by_the_addresses_of_pods(network: Any) -> None:
    ec2, vpc, subnet, group = network
    ec2.create_network_interface(
        SubnetId=subnet, Groups=[group], PrivateIpAddress=POD.address, Description="d"
    )
    account = Account(AccessPlan(region=REGION))
    [found] = account.interfaces_of(vpc, {POD.address: POD.node, "10.20.17.200": "10.20.17.4"})
    assert (found.address, found.groups) == (POD.address, (group,))
    [way] = [each for each in found.rules if not each.egress]
    assert (way.protocol, way.ports, way.group_id) == ("udp", (53, 53), group)


def test_an_address_of_a_prefix_is_found_by_its_node() -> None:
    """EC2 finds no interface by it."""

    class There(Account):
        def _ask(self, action: str, **asked: Any) -> dict[str, Any]:
            filters = asked["filters"]
            if action == "ec2:DescribeSecurityGroupRules":
                return {"SecurityGroupRules": []}
            if "attachment.instance-id" in filters:
                assert filters["attachment.instance-id"] == ["i-1"]
                return {
                    "NetworkInterfaces": [
                        {"Groups": [{"GroupId": "sg-1"}]},
                        {
                            "Groups": [{"GroupId": "sg-2"}],
                            "Ipv4Prefixes": [{"Ipv4Prefix": "10.20.17.0/28"}],
                        },
                    ]
                }
            assert filters["vpc-id"] == [VPC]
            node = {
                "Groups": [{"GroupId": "sg-1"}],
                "PrivateIpAddresses": [{"PrivateIpAddress": POD.node}],
                "Attachment": {"InstanceId": "i-1"},
            }
            return {
                "NetworkInterfaces": [node]
                if POD.node in filters["addresses.private-ip-address"]
                else []
            }

    [found] = There(AccessPlan(region=REGION)).interfaces_of(VPC, {POD.address: POD.node})
    assert found == InterfaceFound(address=POD.address, groups=("sg-2",), rules=())
