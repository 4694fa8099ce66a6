"""A VPC without a way out: images are copied into the account, AWS is reached by endpoints, and everything
still comes up to a job that has run."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import yaml

from tests.support.worlds import NEEDS_A_WORLD
from tests.worlds.harness import Harness, Object, rehearsing, with_l4

pytestmark = [pytest.mark.world, pytest.mark.soak, NEEDS_A_WORLD]
STACK, REGION = "isolated", "us-east-2"
MIRROR = f"123456789012.dkr.ecr.{REGION}.amazonaws.com/mirror"
JOB = {
    "runtime": "torch-distributed",
    "nodes": 2,
    "pool": "l4",
    "image": "pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime",
    "command": ["bash", "-c", "echo trained > /home/team/it"],
    "storage": {"home": {"path": "/home/team"}},
    "shared_memory_gib": 8,
    "allow_no_checkpoint": True,
    "wait": "complete",
}
ISOLATED = with_l4(
    network={"internet": "none", "endpoints": "private"},
    artifacts={"images": MIRROR},
    storage={"home": {"efs": {}, "data": "delete"}},
    jobs={"hello": JOB},
)


@pytest.fixture(scope="module")
def harness() -> Iterator[Harness]:
    files = {f"Pulumi.{STACK}.yaml": yaml.safe_dump({"config": ISOLATED})}
    with rehearsing(STACK, files) as made:
        yield made


def ec2(harness: Harness, command: str, what: str) -> list[Object]:
    found: list[Object] = json.loads(harness.shell(f"aws ec2 {command} --output json"))[what]
    return found


def test_a_job_runs_in_a_vpc_that_nothing_leads_out_of(harness: Harness) -> None:
    assert harness.begin() == 0 and harness.tool("mirror", "--stack", STACK, "--yes") == 0, (
        harness.log.read_text()
    )
    copies = harness.inventory()
    assert copies and {one["type"] for one in copies} == {"ecr-repository"}

    assert harness.do("up", "--stack", STACK) == 0, harness.log.read_text()
    assert harness.condition("hello") == "Complete"
    assert ec2(harness, "describe-nat-gateways", "NatGateways") == []
    mine = [one for one in ec2(harness, "describe-vpcs", "Vpcs") if not one["IsDefault"]]
    gateways = ec2(harness, "describe-internet-gateways", "InternetGateways")
    attached = {one["VpcId"] for gateway in gateways for one in gateway["Attachments"]}
    assert len(mine) == 1 and mine[0]["VpcId"] not in attached

    pods = harness.get("pods --all-namespaces")["items"]
    pulled = {c["image"] for pod in pods for c in pod["spec"]["containers"]}
    outside = {image for image in pulled if f".dkr.ecr.{REGION}.amazonaws.com/" not in image}
    assert len(pulled) > 8 and outside == set()

    before = harness.log.read_text().count("0 of ")
    assert harness.tool("mirror", "--stack", STACK, "--yes") == 0
    assert harness.log.read_text().count("0 of ") == before + 1
    harness.shell(f"pulumi up --stack {STACK} --refresh --yes --skip-preview --expect-no-changes")
    assert harness.do("down") != 0, "the copies are in no stack, and the world stays for them"
    assert harness.inventory() == copies
