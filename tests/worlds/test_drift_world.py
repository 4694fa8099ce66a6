"""What somebody changes by hand in the account and in the cluster is named and mended, and an older state
gets back what exists. A gang that runs notices none of it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import yaml

from tests.support.worlds import NEEDS_A_WORLD
from tests.worlds.harness import Harness, Object, rehearsing, with_l4

pytestmark = [pytest.mark.world, pytest.mark.soak, NEEDS_A_WORLD]
STACK = "drifts"
JOB = {
    "nodes": 2,
    "pool": "l4",
    "runtime": "torch-distributed",
    "image": "trainer:1",
    "gpus_per_node": 1,
    "allow_no_checkpoint": True,
    "script": "sleep 3000",
    "wait": "running",
    "wait_minutes": 10,
}
RIGHTS = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}],
    }
)
SPARE = {"instance_types": ["g6.12xlarge"], "max_nodes": 2}


def stack_file(*pools: str, jobs: Object) -> str:
    made = with_l4(jobs=jobs)
    for name in ("spare", *pools):
        made["trainyard:environment"]["pools"][name] = SPARE
    return yaml.safe_dump({"config": made})


@pytest.fixture(scope="module")
def harness() -> Iterator[Harness]:
    file = f"Pulumi.{STACK}.yaml"
    with rehearsing(STACK, {file: stack_file(jobs={})}) as made:
        assert made.do("up", "--stack", STACK) == 0, made.log.read_text()
        (made.checkout / file).write_text(stack_file(jobs={"goes-on": JOB}))
        up(made)
        yield made


def said_by(harness: Harness, word: str) -> tuple[int, str]:
    code = harness.tool(word, STACK)
    return code, harness.said(word)


def up(harness: Harness, before: str = "") -> str:
    """Plain pulumi; what it counts at its end."""
    said = harness.shell(
        f"{before} pulumi up --stack {STACK} --yes --skip-preview --non-interactive 2>&1"
    )
    return said.partition("Resources:")[2]


def pods(harness: Harness) -> set[str]:
    found = harness.get("pods -n training -l jobset.sigs.k8s.io/jobset-name=goes-on")["items"]
    return {pod["metadata"]["uid"] for pod in found}


def test_what_somebody_changed_by_hand_is_named_and_mended(harness: Harness) -> None:
    gang = pods(harness)
    assert len(gang) == 2
    assert said_by(harness, "drift")[0] == 0, harness.said("drift")
    assert "Not as the last update" not in said_by(harness, "status")[1]
    harness.shell("kubectl delete nodepool spare")
    patch = json.dumps({"spec": {"limits": {"nodes": 9}}})
    harness.shell(f"kubectl patch nodepool l4 --type=merge -p '{patch}'")
    [vpc] = harness.aws("ec2").describe_vpcs(
        Filters=[{"Name": "tag:trainyard:stack", "Values": [STACK]}]
    )["Vpcs"]
    harness.aws("ec2").create_tags(
        Resources=[vpc["VpcId"]], Tags=[{"Key": "trainyard:stack", "Value": "other"}]
    )
    iam = harness.aws("iam")
    [plane] = [
        role["RoleName"]
        for role in iam.list_roles()["Roles"]
        if role["RoleName"].startswith("cluster-eksRole-role")
    ]
    given = {"RoleName": plane, "PolicyName": "more"}
    iam.put_role_policy(**given, PolicyDocument=RIGHTS)
    _, status = said_by(harness, "status")
    assert "NodePool spare is gone" in status and "NodePool l4 was changed" in status
    assert "spec.limits.nodes is 9 and was 2" in status
    code, drift = said_by(harness, "drift")
    assert code == 1 and "4 objects are not as the last update left them" in drift
    assert f"aws iam delete-role-policy --role-name {plane} --policy-name more" in drift
    assert "tags.trainyard:stack is other and was drifts" in drift
    harness.shell(f"pulumi refresh --stack {STACK} --yes --skip-preview --non-interactive")
    with pytest.raises(RuntimeError, match="field conflict detected"):
        up(harness)
    up(harness, "PULUMI_K8S_ENABLE_PATCH_FORCE=true")
    assert "1 updated" in up(harness), "the provider without its setting, and nothing else"
    code, drift = said_by(harness, "drift")
    assert code == 1 and "1 object is not as the last update left it" in drift, drift
    iam.delete_role_policy(**given)
    assert said_by(harness, "drift")[0] == 0, harness.said("drift")
    assert "Not as the last update" not in said_by(harness, "status")[1]
    assert pods(harness) == gang


def test_an_older_state_gets_back_what_was_made_after_it(harness: Harness) -> None:
    """As docs/drift.md takes it back from a bucket: the file of the back end, at its own place."""
    gang = pods(harness)
    backend = harness.shell("echo $PULUMI_BACKEND_URL").strip().removeprefix("file://")
    held = f"{backend.partition('?')[0]}/.pulumi/stacks/trainyard/{STACK}.json"
    harness.shell(f"cp {held} older.json")
    file = harness.checkout / f"Pulumi.{STACK}.yaml"
    file.write_text(stack_file("late", jobs={"goes-on": JOB}))
    assert " created" in up(harness)
    harness.shell(f"cp older.json {held}")
    assert harness.tool("repair", STACK, "--yes") == 0
    assert "nothing to repair" in harness.said("repair"), "the history tells of no older state"
    assert harness.tool("repair", STACK, "--restored", "--yes") == 0
    assert "imports late-pool (late)" in harness.said("repair")
    assert " created" not in up(harness)
    assert "unchanged" in up(harness) and said_by(harness, "drift")[0] == 0
    assert pods(harness) == gang
