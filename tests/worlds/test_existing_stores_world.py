"""An environment on a Lustre and an EFS that were there before: refused while their groups are closed,
a job that writes to both, and afterwards they are object by object what they were."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import yaml

from tests.support.worlds import NEEDS_A_WORLD
from tests.worlds.harness import Harness, Object, rehearsing
from tests.worlds.test_existing_network_world import ABSENT, REGION, ZONES, ec2, make_vpc

pytestmark = [pytest.mark.world, pytest.mark.soak, NEEDS_A_WORLD]
STACK, FILE = "stores", "Pulumi.stores.yaml"
STORES = ("scratch", "home")
LOOK = "; ".join(f"echo existing > /{store}/mine; cat /{store}/mine" for store in STORES)
IMAGE = "public.ecr.aws/deep-learning-containers/pytorch:2.11.0-cu130-amzn2023"


def stack(network: Object, lustre: str, efs: str) -> str:
    job = {
        "runtime": "torch-distributed",
        "nodes": 1,
        "pool": "l4",
        "image": IMAGE,
        "command": ["bash", "-c", LOOK],
        "shared_memory_gib": 8,
        "storage": {store: {"path": f"/{store}"} for store in STORES},
        "wait": "complete",
    }
    settings = {
        "zone": ZONES[0],
        "network": network,
        "pools": {"l4": {"instance_types": ["g6.12xlarge"], "max_nodes": 2}},
        "storage": {
            "scratch": {"lustre": {"file_system_id": lustre}},
            "home": {"efs": {"file_system_id": efs}},
        },
        "cluster": {"version": "1.35", "public_access_cidrs": ["203.0.113.7/32"]},
        "trainer": {"version": "2.1.0", "runtimes": ["torch-distributed"]},
        "jobs": {"look": job},
    }
    config = {"aws:region": REGION, "trainyard:environment": settings}
    return yaml.safe_dump({"config": config})


def aws(harness: Harness, command: str) -> Object:
    said = harness.shell(f"aws {command} --output json")
    return json.loads(said) if said.strip() else {}


def make_stores(harness: Harness, network: Object) -> tuple[str, str, str]:
    """A Lustre, an EFS and their group, which nobody reaches but from port 988."""
    subnet = network["private_subnets"][ZONES[0]]
    group = ec2(
        harness,
        f"create-security-group --group-name files --description files --vpc-id {network['vpc_id']}",
    )["GroupId"]
    ec2(
        harness,
        f"authorize-security-group-ingress --group-id {group} --protocol tcp --port 988 --cidr"
        " 10.20.0.0/16",
    )
    lustre = aws(
        harness,
        f"fsx create-file-system --file-system-type LUSTRE --storage-capacity 1200 --subnet-ids"
        f" {subnet} --security-group-ids {group} --file-system-type-version 2.15"
        " --lustre-configuration DeploymentType=SCRATCH_2 --tags Key=owner,Value=storage-team",
    )["FileSystem"]["FileSystemId"]
    efs = aws(harness, "efs create-file-system --creation-token ours --encrypted")["FileSystemId"]
    harness.shell(
        f"until aws efs describe-file-systems --file-system-id {efs} | grep -q available; do sleep 1;"
        f" done; until aws fsx describe-file-systems --file-system-ids {lustre} | grep -q AVAILABLE;"
        " do sleep 1; done"
    )
    aws(
        harness,
        f"efs create-mount-target --file-system-id {efs} --subnet-id {subnet} --security-groups"
        f" {group}",
    )
    harness.shell(
        f"until aws efs describe-mount-targets --file-system-id {efs} | grep -q available; do sleep 1;"
        " done"
    )
    return lustre, efs, group


def described(harness: Harness, lustre: str, efs: str, group: str) -> list[Object]:
    """Everything about them but how much they hold, and when that was measured."""
    kept = aws(harness, f"efs describe-file-systems --file-system-id {efs}")
    del kept["FileSystems"][0]["SizeInBytes"]
    return [
        aws(harness, f"fsx describe-file-systems --file-system-ids {lustre}"),
        kept,
        aws(harness, f"efs describe-mount-targets --file-system-id {efs}"),
        aws(harness, f"efs describe-access-points --file-system-id {efs}"),
        ec2(harness, f"describe-security-group-rules --filters Name=group-id,Values={group}"),
    ]


@pytest.fixture(scope="module")
def harness() -> Iterator[Harness]:
    absent = stack(ABSENT, "fs-0123456789abcdef1", "fs-0123456789abcdef2")
    with rehearsing(STACK, {FILE: absent}) as made:
        yield made


def test_a_job_writes_to_both_and_down_leaves_them_as_they_were(harness: Harness) -> None:
    # A world starts with its first `up`, which is refused: there is no such VPC.
    assert harness.do("up", "--stack", STACK) != 0
    network = make_vpc(harness)
    (harness.checkout / FILE).write_text(
        stack(network, "fs-0123456789abcdef1", "fs-1234567812345678")
    )
    assert harness.do("up", "--stack", STACK) != 0
    said = harness.log.read_text()
    assert "scratch.brought: resource 'fs-0123456789abcdef1' does not exist" in said, said

    lustre, efs, group = make_stores(harness, network)
    before = described(harness, lustre, efs, group)
    there = harness.inventory()
    (harness.checkout / FILE).write_text(stack(network, lustre, efs))
    assert harness.do("up", "--stack", STACK) != 0
    opening = f"aws ec2 authorize-security-group-ingress --group-id {group} --ip-permissions"
    said = harness.log.read_text()
    assert (
        f"must let TCP 1018-1023 in from 10.20.0.0/20, the nodes' subnet in {ZONES[0]}" in said
    ), said
    assert opening in said, said
    for ports in ("FromPort=1018,ToPort=1023", "FromPort=2049,ToPort=2049"):
        harness.shell(f"{opening} 'IpProtocol=tcp,{ports},IpRanges=[{{CidrIp=10.20.0.0/20}}]'")
    before[-1] = described(harness, lustre, efs, group)[-1]

    assert harness.do("up", "--stack", STACK) == 0, harness.log.read_text()
    logs = "kubectl logs --namespace training --selector jobset.sigs.k8s.io/jobset-name=look"
    assert harness.shell(f"{logs} --tail -1").count("existing") == len(STORES)
    harness.shell(f"pulumi up --stack {STACK} --refresh --yes --skip-preview --expect-no-changes")
    assert harness.do("down") != 0, "the file systems are in no stack, and the world stays for them"
    assert described(harness, lustre, efs, group) == before
    assert [one for one in harness.inventory() if one not in there] == []
