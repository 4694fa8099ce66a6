"""Security groups and routes, one taken out at a time: what does not get through any more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rehearsal.aws import principals
from rehearsal.kubelet.drivers import lustre
from rehearsal.kubelet.environment import NotReady
from tests.rehearsal.aws_world import (
    REGION,
    Account,
    Network,
    create_cluster,
    profile,
    refused,
    role,
    served,
)
from tests.support.patience import until

IMAGE = "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/recommended/image_id"


class Place:
    """A node in a private subnet with a way out, a cluster, and a store of each kind: wired by the
    rules of the product's graph."""

    def __init__(self, account: Account) -> None:
        self.account, self.network = account, Network(account)
        self.ec2 = self.network.ec2
        profile(account, "node")
        self.nodes, self.scratch, self.home = map(self._group, ("nodes", "scratch", "home"))
        self.rules: dict[str, dict[str, Any]] = {}
        for low, high in ((988, 988), (1018, 1023)):
            self._rule(f"scratch from nodes {low}", "in", self.scratch, self.nodes, low, high)
            self._rule(f"scratch to nodes {low}", "out", self.scratch, self.nodes, low, high)
            self._rule(f"nodes from scratch {low}", "in", self.nodes, self.scratch, low, high)
            self._rule(f"scratch from scratch {low}", "in", self.scratch, self.scratch, low, high)
            self._rule(f"scratch to scratch {low}", "out", self.scratch, self.scratch, low, high)
        self._rule("home from nodes", "in", self.home, self.nodes, 2049, 2049)
        self._routes()
        self._stores()
        made = create_cluster(account, self.network)["resourcesVpcConfig"]
        self.cluster_group = made["clusterSecurityGroupId"]
        self.node = self._launch(self.nodes, self.cluster_group)

    def _group(self, name: str) -> str:
        """Without the rule that lets everything out, for servers: Pulumi takes it away."""
        made = self.ec2.create_security_group(
            GroupName=name, Description=name, VpcId=self.network.vpc
        )["GroupId"]
        if name != "nodes":
            everything = [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]
            self.ec2.revoke_security_group_egress(GroupId=made, IpPermissions=everything)
        return made

    def _rule(self, name: str, way: str, of: str, peer: str, low: int, high: int) -> None:
        permission = {
            "IpProtocol": "tcp",
            "FromPort": low,
            "ToPort": high,
            "UserIdGroupPairs": [{"GroupId": peer}],
        }
        self.rules[name] = {"GroupId": of, "IpPermissions": [permission]}
        verb = "ingress" if way == "in" else "egress"
        getattr(self.ec2, f"authorize_security_group_{verb}")(**self.rules[name])

    def revoke(self, name: str) -> None:
        verb = "egress" if " to " in name else "ingress"
        getattr(self.ec2, f"revoke_security_group_{verb}")(**self.rules[name])

    def _routes(self) -> None:
        self.public = self.network.subnet("10.20.200.0/24", "a")
        tables = [
            self.ec2.create_route_table(VpcId=self.network.vpc)["RouteTable"]["RouteTableId"]
            for _ in range(2)
        ]
        self.private_table, self.public_table = tables
        self.association = self.ec2.associate_route_table(
            RouteTableId=self.private_table, SubnetId=self.network.subnets[0]
        )["AssociationId"]
        self.ec2.associate_route_table(RouteTableId=self.public_table, SubnetId=self.public)
        address = self.ec2.allocate_address(Domain="vpc")["AllocationId"]
        self.nat = self.ec2.create_nat_gateway(SubnetId=self.public, AllocationId=address)[
            "NatGateway"
        ]["NatGatewayId"]
        everywhere = {"DestinationCidrBlock": "0.0.0.0/0"}
        self.ec2.create_route(RouteTableId=self.private_table, NatGatewayId=self.nat, **everywhere)
        self.ec2.create_route(
            RouteTableId=self.public_table, GatewayId=self.network.gateway, **everywhere
        )

    def _stores(self) -> None:
        fsx, efs = self.account.client("fsx"), self.account.client("efs")
        subnet = self.network.subnets[0]
        self.lustre = fsx.create_file_system(
            FileSystemType="LUSTRE",
            StorageCapacity=1200,
            FileSystemTypeVersion="2.15",
            SubnetIds=[subnet],
            SecurityGroupIds=[self.scratch],
            LustreConfiguration={"DeploymentType": "SCRATCH_2"},
        )["FileSystem"]["FileSystemId"]
        self.efs = efs.create_file_system(CreationToken="home")["FileSystemId"]
        efs.describe_file_systems()
        efs.create_mount_target(FileSystemId=self.efs, SubnetId=subnet, SecurityGroups=[self.home])

    def _launch(self, *groups: str) -> str:
        image = self.account.client("ssm").get_parameter(Name=IMAGE)["Parameter"]["Value"]
        made = self.ec2.run_instances(
            MinCount=1,
            MaxCount=1,
            ImageId=image,
            InstanceType="m7i.large",
            SubnetId=self.network.subnets[0],
            SecurityGroupIds=list(groups),
            IamInstanceProfile={"Name": "node"},
        )
        return made["Instances"][0]["InstanceId"]

    def blocked(self, to: str, node: str = "") -> str:
        status, answer = self.account.world("GET", f"instances/{node or self.node}/reach?to={to}")
        assert status == 200, answer
        return answer["blocked"]

    def unreached(self, port: int, node: str = "") -> str:
        path = f"instances/{node or self.node}/reach?from=demo&port={port}"
        status, answer = self.account.world("GET", path)
        assert status == 200, answer
        return answer["blocked"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    with served(tmp_path, monkeypatch) as account:
        yield Place(account)


def test_a_node_reaches_what_it_needs(place: Place) -> None:
    for to in ("internet", "demo", place.lustre, place.efs):
        assert place.blocked(to) == "", to
    assert place.account.world("GET", f"instances/{place.node}/reach?to=fs-0")[0] == 404


@pytest.mark.parametrize(
    "rule",
    [
        f"{rule} {port}"
        for rule in (
            *("scratch from nodes", "scratch to nodes", "nodes from scratch"),
            *("scratch from scratch", "scratch to scratch"),
        )
        for port in (988, 1018)
    ]
    + ["home from nodes"],
)
def test_a_store_whose_rule_is_missing_is_not_mounted(place: Place, rule: str) -> None:
    place.revoke(rule)
    store, other = (
        (place.efs, place.lustre) if rule.startswith("home") else (place.lustre, place.efs)
    )
    port = "2049" if store == place.efs else rule[-4:].strip()
    assert f"lets TCP {port} " in place.blocked(store)
    assert place.blocked(other) == place.blocked("internet") == ""


def test_a_node_without_the_clusters_group_does_not_reach_its_api_server(place: Place) -> None:
    stranger = place._launch(place.nodes)
    assert f"no rule of {place.cluster_group} lets TCP 443 in from" in place.blocked(
        "demo", stranger
    )


def test_the_api_server_reaches_kubelets_and_webhooks_through_the_clusters_group(
    place: Place,
) -> None:
    stranger = place._launch(place.nodes)
    for port in (10250, 9443):
        assert place.unreached(port) == ""
        assert f"lets TCP {port} in from {place.cluster_group}" in place.unreached(port, stranger)


def test_the_clusters_own_rules_let_no_efa_out(place: Place) -> None:
    """EFA needs a rule that names a group, in and out: 0.0.0.0/0 means nothing to it."""
    assert "lets EFA out to" in place.blocked("peers")
    everything = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": place.nodes}]}]
    place.ec2.authorize_security_group_egress(GroupId=place.nodes, IpPermissions=everything)
    assert place.blocked("peers") == "", "the cluster's group lets its own in"
    stranger = place._launch(place.nodes)
    assert "lets EFA in from" in place.blocked("peers", stranger)
    some = [everything[0] | {"IpProtocol": "tcp", "FromPort": 0, "ToPort": 65535}]
    place.ec2.authorize_security_group_ingress(GroupId=place.nodes, IpPermissions=some)
    assert "lets EFA in from" in place.blocked("peers", stranger), "TCP is not EFA"


def _no_egress(place: Place) -> None:
    for group in (place.nodes, place.cluster_group):
        everything = [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]
        place.ec2.revoke_security_group_egress(GroupId=group, IpPermissions=everything)


def _no_route(place: Place) -> None:
    place.ec2.delete_route(RouteTableId=place.private_table, DestinationCidrBlock="0.0.0.0/0")


def _no_association(place: Place) -> None:
    place.ec2.disassociate_route_table(AssociationId=place.association)


def _no_public_route(place: Place) -> None:
    place.ec2.delete_route(RouteTableId=place.public_table, DestinationCidrBlock="0.0.0.0/0")


def _no_nat(place: Place) -> None:
    place.ec2.delete_nat_gateway(NatGatewayId=place.nat)


def _to_the_gateway(place: Place) -> None:
    _no_route(place)
    place.ec2.create_route(
        RouteTableId=place.private_table,
        GatewayId=place.network.gateway,
        DestinationCidrBlock="0.0.0.0/0",
    )


@pytest.mark.parametrize(
    ("without", "words"),
    [
        (_no_egress, "lets TCP 443 out to 0.0.0.0/0"),
        (_no_route, "has no route to 0.0.0.0/0"),
        (_no_association, "has no route to 0.0.0.0/0"),
        (_no_public_route, "which has no route to an internet gateway"),
        (_no_nat, " is delet"),
        (_to_the_gateway, "has no public address"),
    ],
)
def test_a_node_without_a_way_out_does_not_boot(place: Place, without: Any, words: str) -> None:
    without(place)
    assert words in place.blocked("internet")


APIS = ("ec2", "ecr.api", "ecr.dkr", "eks-auth", "sqs", "ssm")


class Isolated(Place):
    """The same place without a way to the internet, with endpoints."""

    def __init__(self, account: Account) -> None:
        super().__init__(account)
        self.ec2.delete_route(RouteTableId=self.private_table, DestinationCidrBlock="0.0.0.0/0")
        for attribute in ("EnableDnsSupport", "EnableDnsHostnames"):
            self.ec2.modify_vpc_attribute(VpcId=self.network.vpc, **{attribute: {"Value": True}})
        self.group = self._group("endpoints")
        self.https = {
            "GroupId": self.group,
            "IpPermissions": [
                {
                    "IpProtocol": "tcp",
                    "FromPort": 443,
                    "ToPort": 443,
                    "IpRanges": [{"CidrIp": "10.20.0.0/16"}],
                }
            ],
        }
        self.ec2.authorize_security_group_ingress(**self.https)
        self.endpoints = {api: self._endpoint(api) for api in APIS}
        self.s3 = self._create(f"com.amazonaws.{REGION}.s3", RouteTableIds=[self.private_table])
        self.wait()

    def _endpoint(self, api: str) -> str:
        return self._create(
            f"com.amazonaws.{REGION}.{api}",
            VpcEndpointType="Interface",
            SubnetIds=self.network.subnets[:1],
            SecurityGroupIds=[self.group],
            PrivateDnsEnabled=True,
        )

    def _create(self, service: str, **more: Any) -> str:
        made = self.ec2.create_vpc_endpoint(VpcId=self.network.vpc, ServiceName=service, **more)
        return str(made["VpcEndpoint"]["VpcEndpointId"])

    def wait(self) -> None:
        """Until no endpoint comes or goes."""

        def states() -> set[str]:
            found = self.ec2.describe_vpc_endpoints()["VpcEndpoints"]
            return {one["State"].lower() for one in found}

        until(lambda: states() <= {"available"}, lambda: str(states()))


@pytest.fixture
def isolated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Isolated]:
    with served(tmp_path, monkeypatch) as account:
        yield Isolated(account)


def test_endpoints_lead_to_aws_and_to_nothing_else(isolated: Isolated) -> None:
    assert "has no route to 0.0.0.0/0" in isolated.blocked("internet")
    assert [api for api in (*APIS, "s3") if isolated.blocked(f"aws:{api}")] == []
    assert "has no endpoint for pricing" in isolated.blocked("aws:pricing")


def test_each_endpoint_that_is_left_out_is_missed_by_name(isolated: Isolated) -> None:
    for api, id_ in {**isolated.endpoints, "s3": isolated.s3}.items():
        isolated.ec2.delete_vpc_endpoints(VpcEndpointIds=[id_])
        isolated.wait()
        wall = isolated.blocked(f"aws:{api}")
        assert ("endpoint for " + api in wall) and "has no route to 0.0.0.0/0" in wall, (api, wall)


def test_an_endpoint_whose_group_lets_nobody_in_keeps_even_a_node_with_nat_out(
    isolated: Isolated,
) -> None:
    isolated.ec2.revoke_security_group_ingress(**isolated.https)
    isolated.ec2.create_route(
        RouteTableId=isolated.private_table,
        NatGatewayId=isolated.nat,
        DestinationCidrBlock="0.0.0.0/0",
    )
    assert isolated.blocked("internet") == "" == isolated.blocked("aws:sts")
    assert "lets TCP 443 in from" in isolated.blocked("aws:ec2")


def test_a_pod_calls_no_api_that_its_network_does_not_lead_to(isolated: Isolated) -> None:
    arn = role(isolated.account, "isolated", "pods.eks.amazonaws.com")
    keys = principals.credentials(arn, "eks-demo-isolated")
    with refused("AccessDeniedException"):  # it arrives
        isolated.account.client("sqs", keys).get_queue_url(QueueName="interruptions")
    with refused("RequestTimeout"):
        isolated.account.client("sts", keys).get_access_key_info(AccessKeyId="AKIA0000000000000000")
    isolated.ec2.delete_vpc_endpoints(VpcEndpointIds=[isolated.endpoints["sqs"]])
    isolated.wait()
    with refused("RequestTimeout"):
        isolated.account.client("sqs", keys).get_queue_url(QueueName="interruptions")


def test_the_pod_of_a_store_that_is_not_reached_waits_and_says_why() -> None:
    class Asked:
        def fsx(self, *_: Any) -> Any:
            return {"FileSystems": [{"Lifecycle": "AVAILABLE", "DNSName": "fs-1.fsx"}]}

        def blocked(self, instance: str, to: str) -> str:
            return f"no rule lets {instance} to {to}"

    kubelet: Any = type("Kubelet", (), {"id": "i-1", "account": Asked(), "zone": f"{REGION}a"})
    with pytest.raises(NotReady, match=r"Connection timed out: no rule lets i-1 to fs-1$"):
        lustre(kubelet, {}, {"csi": {"volumeAttributes": {"dnsname": "fs-1.fsx"}}})
