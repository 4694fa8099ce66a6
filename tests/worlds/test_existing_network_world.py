"""An environment in a VPC that was there before: refused while it does not exist, up and down in it, and
afterwards the VPC is object by object what it was."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import yaml

from tests.support.worlds import NEEDS_A_WORLD
from tests.worlds.harness import Harness, Object, rehearsing

pytestmark = [pytest.mark.world, pytest.mark.soak, NEEDS_A_WORLD]
STACK, FILE = "existing", "Pulumi.existing.yaml"
REGION, ZONES = "us-east-2", ("us-east-2a", "us-east-2b")
ABSENT = {
    "vpc_id": "vpc-0123456789abcdef0",
    "private_subnets": {zone: f"subnet-0123456789abcdef{n}" for n, zone in enumerate(ZONES)},
}
DESCRIBED = (
    "vpcs",
    "subnets",
    "route-tables",
    "internet-gateways",
    "nat-gateways",
    "addresses",
    "network-acls",
    "security-groups",
    "network-interfaces",
    "vpc-endpoints",
)


def stack(network: Object) -> str:
    settings = {
        "zone": ZONES[0],
        "network": network,
        "pools": {"l4": {"instance_types": ["g6.12xlarge"], "max_nodes": 2}},
        "storage": {"home": {"efs": {}, "data": "delete"}},
        "cluster": {"version": "1.35", "public_access_cidrs": ["203.0.113.7/32"]},
        "trainer": {"version": "2.1.0", "runtimes": ["torch-distributed"]},
    }
    config = {"aws:region": REGION, "trainyard:environment": settings}
    return yaml.safe_dump({"config": config})


def ec2(harness: Harness, command: str) -> Object:
    said = harness.shell(f"aws ec2 {command} --output json")
    return json.loads(said) if said.strip() else {}


def make_vpc(harness: Harness) -> Object:
    """A VPC with a NAT gateway, as people have them; the settings that name it."""
    vpc = ec2(harness, "create-vpc --cidr-block 10.20.0.0/16")["Vpc"]["VpcId"]
    for option in ("--enable-dns-support", "--enable-dns-hostnames"):
        ec2(harness, f"modify-vpc-attribute --vpc-id {vpc} {option}")

    def subnet(number: int, zone: str) -> str:
        there = f"--cidr-block 10.20.{16 * number}.0/20 --availability-zone {zone}"
        made = ec2(harness, f"create-subnet --vpc-id {vpc} {there}")
        return made["Subnet"]["SubnetId"]

    def table(target: str, *subnets: str) -> None:
        id_ = ec2(harness, f"create-route-table --vpc-id {vpc}")["RouteTable"]["RouteTableId"]
        everywhere = "--destination-cidr-block 0.0.0.0/0"
        ec2(harness, f"create-route --route-table-id {id_} {everywhere} {target}")
        for one in subnets:
            ec2(harness, f"associate-route-table --route-table-id {id_} --subnet-id {one}")

    private = {zone: subnet(number, zone) for number, zone in enumerate(ZONES)}
    public = subnet(5, ZONES[0])
    gateway = ec2(harness, "create-internet-gateway")["InternetGateway"]["InternetGatewayId"]
    ec2(harness, f"attach-internet-gateway --internet-gateway-id {gateway} --vpc-id {vpc}")
    table(f"--gateway-id {gateway}", public)
    address = ec2(harness, "allocate-address --domain vpc")["AllocationId"]
    at = f"--subnet-id {public} --allocation-id {address}"
    nat = ec2(harness, f"create-nat-gateway {at}")["NatGateway"]["NatGatewayId"]
    harness.shell(f"aws ec2 wait nat-gateway-available --nat-gateway-ids {nat}")
    table(f"--nat-gateway-id {nat}", *private.values())
    ec2(harness, f"create-tags --resources {vpc} {public} --tags Key=owner,Value=network-team")
    return {"vpc_id": vpc, "private_subnets": private}


def described(harness: Harness) -> dict[str, Object]:
    return {kind: ec2(harness, f"describe-{kind}") for kind in DESCRIBED}


@pytest.fixture(scope="module")
def harness() -> Iterator[Harness]:
    with rehearsing(STACK, {FILE: stack(ABSENT)}) as made:
        yield made


def test_a_vpc_that_does_not_exist_is_refused_before_anything_is_made(harness: Harness) -> None:
    assert harness.do("up", "--stack", STACK) != 0
    assert "environment.network.vpc_id: must be a VPC of this account" in harness.log.read_text()
    assert harness.inventory() == []


def test_up_and_down_leave_the_vpc_as_it_was(harness: Harness) -> None:
    network = make_vpc(harness)
    before, there = described(harness), harness.inventory()
    (harness.checkout / FILE).write_text(stack(network))
    assert harness.do("up", "--stack", STACK) == 0, harness.log.read_text()
    groups = ec2(
        harness, f"describe-security-groups --filters Name=vpc-id,Values={network['vpc_id']}"
    )
    assert "existing-nodes" in str(groups)
    harness.shell(f"pulumi up --stack {STACK} --refresh --yes --skip-preview --expect-no-changes")
    assert harness.do("down") != 0, "the VPC is in no stack, and the world stays for it"
    assert harness.inventory() == there
    assert described(harness) == before
