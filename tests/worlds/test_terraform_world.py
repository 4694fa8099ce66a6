"""Terraform with the genuine AWS provider, of which pulumi-aws is made, creates the AWS half of three
stacks in an empty account, finds no difference to them, asks for nothing that the policy of their deployer
does not allow, and destroys them."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rehearsal.aws.identity import ACCOUNT
from rehearsal.tests.foreign.foreign_world import ALONE, PROVIDERS, World, missing_of_terraform
from tests.graph.test_recorded_stacks import EVERYTHING, changes_of, graph_of, plan_of
from tests.support import account_log
from tests.support.terraform import CLUSTER, Translation
from tests.support.worlds import NEEDS_A_WORLD
from trainyard.objects.iam.encryption import key_policy
from trainyard.reports.policy import policies

REGION = "ap-northeast-2"
QUIET = "-no-color -input=false"
KEY = f"arn:aws:kms:{REGION}:111122223333:key/0a1b2c3d-0000-4000-8000-000000000000"
"""The key that the stack with every setting names."""
BUCKETS = ("data-sets", "our-sets", "results", "sets")
TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"},
            "Action": "sts:AssumeRole",
        }
    ],
}
ANYTHING = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}],
}
OF_THE_TEST = {
    *("sts:GetCallerIdentity", "iam:CreatePolicy", "kms:CreateKey", "kms:PutKeyPolicy"),
    *("backup:ListBackupVaults", "backup:ListRecoveryPointsByBackupVault"),
    "backup:DeleteRecoveryPoint",
}
"""Calls of prepare() and delete_data(), and the one that needs no permission."""

pytestmark = [
    pytest.mark.world,
    pytest.mark.apart,
    NEEDS_A_WORLD,
    pytest.mark.skipif(missing_of_terraform() != "", reason=missing_of_terraform()),
]


@pytest.fixture
def made() -> Iterator[World]:
    """A world without anything. Short paths, since Unix sockets want them."""
    folder = Path(tempfile.mkdtemp(prefix="terraform-", dir="/tmp"))
    (folder / "p").mkdir()
    found = World(state=folder / "s", project=folder / "p", region=REGION)
    found.rehearsal("up")
    try:
        yield found
    finally:
        found.rehearsal("down", "--force")
        shutil.rmtree(folder)


def configuration(made: World, stack: str) -> dict[str, Any]:
    """The stack in Terraform's words, and Terraform made ready for it."""
    file = made.project / "main.tf.json"
    provider = {"terraform": {"required_providers": {"aws": {"source": "hashicorp/aws"}}}}
    file.write_text(json.dumps(provider))
    made.shell(f"{ALONE} init {QUIET} -plugin-dir={PROVIDERS}")
    [schema] = json.loads(made.shell(f"{ALONE} providers schema -json"))[
        "provider_schemas"
    ].values()
    found = Translation(schema["resource_schemas"]).configuration(changes_of(stack), REGION)
    file.write_text(json.dumps(found))
    return found


def prepare(made: World, wanted: dict[str, Any]) -> list[str]:
    """Make what people have before such a stack: roles that enter the cluster and, for the stack that names
    them, a key, a boundary and buckets. Returns what the account then has."""
    entries = wanted["resource"].get("aws_eks_access_entry", {}).values()
    roles = {each["principal_arn"].rpartition("/")[2] for each in entries}
    for role in sorted(role for role in roles if "$" not in role):
        made.shell(
            f"aws iam create-role --role-name {role} --assume-role-policy-document"
            f" '{json.dumps(TRUST)}'"
        )
    text = json.dumps(wanted)
    if KEY.replace("111122223333", ACCOUNT) in text:
        key = made.shell("aws kms create-key --query KeyMetadata.Arn --output text").strip()
        policy = json.dumps(key_policy(key, "dev"))
        made.shell(
            f"aws kms put-key-policy --key-id {key} --policy-name default --policy '{policy}'"
        )
        text = text.replace(KEY.replace("111122223333", ACCOUNT), key)
        made.shell(
            "aws iam create-policy --policy-name boundary --policy-document"
            f" '{json.dumps(ANYTHING)}'"
        )
        for bucket in BUCKETS:
            made.shell(f"aws s3 mb s3://{bucket}")
    (made.project / "main.tf.json").write_text(text)
    return made.left()


def delete_data(made: World) -> None:
    """Delete file systems, since the provider sleeps ten minutes after its own call (on 2026-11-27 it was let
    do it once, for dev), and the backups that keep a vault from being deleted."""
    listed = "aws fsx describe-file-systems --query 'FileSystems[].FileSystemId' --output text"
    for system in made.shell(listed).split():
        made.shell(f"aws fsx delete-file-system --file-system-id {system}")
    vaults = "aws backup list-backup-vaults --query 'BackupVaultList[].BackupVaultName'"
    for vault in json.loads(made.shell(f"{vaults} --output json")):
        points = json.loads(
            made.shell(
                f"aws backup list-recovery-points-by-backup-vault --backup-vault-name {vault}"
                " --query 'RecoveryPoints[].RecoveryPointArn' --output json"
            )
        )
        for point in points:
            made.shell(
                f"aws backup delete-recovery-point --backup-vault-name {vault}"
                f" --recovery-point-arn {point}"
            )


@pytest.mark.parametrize("stack", ["dev", "no way to the internet", EVERYTHING])
def test_the_genuine_provider_creates_reads_and_destroys_a_stack(made: World, stack: str) -> None:
    wanted = configuration(made, stack)
    before = prepare(made, wanted)
    graph = graph_of(stack)
    count = len(graph.starting("aws:")) + len(graph.of(CLUSTER))

    said = made.shell(f"{ALONE} apply -auto-approve {QUIET}")
    [added] = re.findall(r"Resources: (\d+) added, 0 changed, 0 destroyed", said)
    assert int(added) >= count > 70
    made.shell(f"{ALONE} plan -detailed-exitcode {QUIET}")  # 2 where something would change
    assert len(made.left()) > len(before) + 10

    delete_data(made)
    made.shell(f"{ALONE} destroy -auto-approve {QUIET}")
    assert made.left() == before
    asked = account_log.asked(made.state / "logs")
    beyond = asked - account_log.allowed(policies(plan_of(stack)))
    assert len(asked) > 70 and beyond <= OF_THE_TEST
