"""An environment that a key of the company encrypts and a policy of the company limits: refused while
nobody may use the key, nodes that end at launch while Karpenter may not, and up and down once the policy
of the key is the printed one."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.support.worlds import NEEDS_A_WORLD
from tests.worlds.harness import Harness, rehearsing, with_l4
from trainyard.objects.iam.boundary import boundary
from trainyard.objects.iam.encryption import key_policy
from trainyard.parts.parts import SERVICES

pytestmark = [pytest.mark.world, pytest.mark.soak, NEEDS_A_WORLD]
STACK, FILE, REGION = "sealed", "Pulumi.sealed.yaml", "us-east-2"
DEVELOPER = "arn:aws:iam::123456789012:user/developer"
UNKNOWN = f"arn:aws:kms:{REGION}:123456789012:key/0a1b2c3d-0000-4000-8000-000000000000"
BOUNDARY = "arn:aws:iam::123456789012:policy/company"
PATIENCE_SECONDS = 240


def stack(key: str, *, protected: bool = True) -> str:
    job: Any = {
        "runtime": "torch-distributed",
        "nodes": 1,
        "pool": "l4",
        "image": "public.ecr.aws/deep-learning-containers/pytorch:2.11.0-cu130-amzn2023",
        "command": ["bash", "-c", "date > /home-of-all/date && echo written"],
        "shared_memory_gib": 8,
        "storage": {"home": {"path": "/home-of-all"}, "scratch": {"path": "/scratch"}},
    }
    lustre = {"capacity_gib": 1200, "throughput_mbps_per_tib": 125}
    config = with_l4(
        kms_key_arn=key,
        permissions_boundary=BOUNDARY,
        network={"flow_logs": {"days": 7}},
        storage={
            "home": {"efs": {}, "data": "delete"},
            "scratch": {"lustre": lustre, "data": "delete"},
        },
        jobs={"write": job},
    )
    cluster = config["trainyard:environment"]["cluster"]
    cluster |= {"log_retention_days": 30, "deletion_protection": protected}
    cluster["scaling_tier"] = "tier-xl"
    return yaml.safe_dump({"config": config})


@pytest.fixture(scope="module")
def harness() -> Iterator[Harness]:
    with rehearsing(STACK, {FILE: stack(UNKNOWN)}) as made:
        limit = f"--policy-name company --policy-document '{json.dumps(boundary(SERVICES))}'"
        assert made.do("up", "--stack", STACK) != 0
        assert f"Scope ARN: {BOUNDARY} does not exist" in made.log.read_text()
        said = made.shell(f".venv/bin/python -m trainyard check {STACK} --rehearsal", check=False)
        assert f"got {BOUNDARY}, which does not exist" in said, said
        made.shell(f"aws iam create-policy {limit}")
        assert made.do("up", "--stack", STACK) != 0
        assert f"the KMS key {UNKNOWN}" in made.log.read_text()
        yield made


@pytest.fixture(scope="module")
def key(harness: Harness) -> str:
    made = harness.shell("aws kms create-key --query KeyMetadata.Arn --output text").strip()
    (harness.checkout / FILE).write_text(stack(made))
    return made


def without_iam(key: str) -> Any:
    """The policy of a key that leaves nothing to IAM: who made the cluster may use it, and Karpenter
    may not."""
    whole = json.dumps(key_policy(key, STACK))
    return json.loads(whole.replace("arn:aws:iam::123456789012:root", DEVELOPER))


def put_policy(harness: Harness, key: str, policy: Any) -> None:
    given = f"--key-id {key} --policy-name default --policy '{json.dumps(policy)}'"
    harness.shell(f"aws kms put-key-policy {given}")


def until(what: str, harness: Harness, command: str) -> str:
    """What a command says once it says something."""
    end, said = time.monotonic() + PATIENCE_SECONDS, ""
    while what not in said and time.monotonic() < end:
        said = harness.shell(command, check=False)
        time.sleep(2)
    assert what in said, said
    return said


def test_a_key_whose_policy_is_the_default_is_refused_before_anything_is_made(
    harness: Harness, key: str
) -> None:
    said = harness.shell(f".venv/bin/python -m trainyard check {STACK} --rehearsal", check=False)
    assert "LaunchSystemNodes, GrantSystemNodes, SendInterruptions, WriteLogs" in said, said
    assert f"trainyard policy {STACK} --key" in said


def test_nodes_end_at_launch_while_karpenter_may_not_use_the_key(
    harness: Harness, key: str
) -> None:
    put_policy(harness, key, without_iam(key))
    assert harness.do("up", "--stack", STACK, "--wait", "20") != 0
    ended = (
        "aws ec2 describe-instances --filters Name=instance-state-name,Values=terminated --query"
        " 'Reservations[].Instances[].StateReason.Code' --output text"
    )
    until("Client.InternalError", harness, ended)
    status = f".venv/bin/python -m trainyard status {STACK}"
    assert "kms_key_arn" in until("Client.InternalError", harness, status)


def test_the_printed_policy_lets_everything_run(harness: Harness, key: str) -> None:
    printed = harness.shell(f".venv/bin/python -m trainyard policy {STACK} --key")
    put_policy(harness, key, json.loads(printed))
    # Karpenter waits 15 minutes for a node whose instance ended before it joined.
    harness.shell("kubectl delete nodeclaims --all --wait=false")
    until("Complete", harness, "kubectl get trainjobs --namespace training")
    assert harness.do("up", "--stack", STACK) == 0, harness.log.read_text()
    refreshed = f"pulumi up --stack {STACK} --refresh --yes --skip-preview --expect-no-changes"
    harness.shell(refreshed)


def test_the_control_plane_has_the_tier_that_the_stack_file_names(
    harness: Harness, key: str
) -> None:
    name = harness.shell("aws eks list-clusters --query 'clusters[0]' --output text").strip()
    told = f"aws eks describe-cluster --name {name} --query cluster.controlPlaneScalingConfig.tier"
    assert json.loads(harness.shell(told)) == "tier-xl"


def test_what_the_stack_stores_is_encrypted_with_the_key(harness: Harness, key: str) -> None:
    def said(command: str) -> str:
        return harness.shell(f"aws {command} --output text")

    volumes = json.loads(harness.shell("aws ec2 describe-volumes --output json"))["Volumes"]
    assert {one.get("KmsKeyId") for one in volumes} == {key}
    assert key in said("efs describe-file-systems --query 'FileSystems[].KmsKeyId'")
    assert key in said("fsx describe-file-systems --query 'FileSystems[].KmsKeyId'")
    groups = json.loads(harness.shell("aws logs describe-log-groups --output json"))["logGroups"]
    assert {(one["kmsKeyId"], one["retentionInDays"]) for one in groups} == {(key, 7), (key, 30)}


def test_a_protected_cluster_is_not_deleted_before_the_stack_file_says_so(
    harness: Harness, key: str
) -> None:
    assert harness.do("down") != 0
    assert "is protected from deletion" in harness.log.read_text()
    (harness.checkout / FILE).write_text(stack(key, protected=False))
    assert harness.do("up", "--stack", STACK) == 0, harness.log.read_text()
    assert harness.do("down") == 0, harness.log.read_text()
