"""Every recorded stack comes up in an account without a cluster, has nothing to change then, and goes. With
a cluster, and with a network or a cluster that is brought: tests/worlds."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from plans.encryption import key_policy
from plans.policies import document
from rehearsal import paths
from rehearsal.aws.identity import ACCOUNT
from rehearsal.commands.down import _is_of
from tests.graph.test_recorded_stacks import EVERYTHING, MORE
from tests.rehearsal.aws_world import Account, policy, role
from tests.support.alone import LEFT, Alone, alone
from tests.support.everything import everything
from tests.support.recording import CHECKOUT, stack_values
from tests.support.stackfile import ENVIRONMENT
from tests.support.stacks import STACKS

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not (paths.BIN / "pulumi").exists(), reason="pulumi is not built"),
]
ELSEWHERE = {
    "brought VPC": "tests/worlds/test_brought_network_world.py",
    "brought cluster": "tests/worlds/test_brought_cluster_world.py",
}
"""Stacks that need something which exists in EC2 or EKS."""
ANY_ACCOUNT, ANY_KEY = r"1{4}2{4}3{4}|123456789012", r"arn:aws:kms:[\w-]+:\d+:key/[\w-]+"


def settings_of(name: str) -> dict[str, Any]:
    if name == EVERYTHING:
        values = everything()
        for job in values[ENVIRONMENT]["jobs"].values():
            job.pop("wait", None)  # nobody runs it here
        return values
    values = stack_values("dev")
    for edit in (STACKS | MORE)[name]:
        edit(values[ENVIRONMENT])
    return values


def prepare(place: Alone, settings: dict[str, Any]) -> dict[str, Any]:
    """Make what a stack file names and does not make; the stack file with the ids of all that."""
    text = re.sub(ANY_ACCOUNT, ACCOUNT, json.dumps(settings))
    region = settings["aws:region"]
    for name in sorted(set(re.findall(r"arn:aws:iam::\d+:role/([\w-]+)", text))):
        role(place.account, name, "ec2.amazonaws.com")
    for chain in settings.get("aws:assumeRoles", ()):
        deploys(place.account, chain["roleArn"].rpartition("/")[2])
    for name in sorted(set(re.findall(r"arn:aws:iam::\d+:policy/([\w-]+)", text))):
        policy(place.account, name, Action="*", Resource="*")
    for bucket in sorted(set(re.findall(r'"bucket": "([\w-]+)"|s3://([\w-]+)/', text))):
        place.account.client("s3").create_bucket(
            Bucket="".join(bucket),
            CreateBucketConfiguration={"LocationConstraint": region},
        )
    if re.search(ANY_KEY, text):
        kms = place.account.client("kms")
        key = kms.create_key()["KeyMetadata"]["Arn"]
        allowed = json.dumps(key_policy(key, place.stack.name))
        kms.put_key_policy(KeyId=key, PolicyName="default", Policy=allowed)
        text = re.sub(ANY_KEY, key, text)
    return json.loads(text)


def deploys(account: Account, name: str) -> None:
    """Let everybody assume the role, and the role do everything."""
    iam = account.client("iam")
    anybody = document({"Principal": {"AWS": "*"}, "Action": ["sts:AssumeRole"]})
    iam.update_assume_role_policy(RoleName=name, PolicyDocument=json.dumps(anybody))
    iam.put_role_policy(
        RoleName=name,
        PolicyName="everything",
        PolicyDocument=json.dumps(document({"Action": ["*"], "Resource": "*"})),
    )


def write(place: Alone, settings: dict[str, Any]) -> None:
    (place.checkout / "Pulumi.dev.yaml").write_text(yaml.safe_dump({"config": settings}))


@pytest.mark.parametrize("name", sorted({*STACKS, *MORE, EVERYTHING} - ELSEWHERE.keys()))
def test_it_comes_up_has_nothing_to_change_and_goes(name: str) -> None:
    settings = settings_of(name)
    manifests = [
        job["manifest"] for job in settings[ENVIRONMENT]["jobs"].values() if "manifest" in job
    ]
    with alone("dev", {path: (CHECKOUT / path).read_text() for path in manifests}) as place:
        settings = prepare(place, settings)
        write(place, settings)
        before = {thing["id"] for thing in place.left()}
        assert place.do("up") == 0, place.log.read_text()
        assert "error" not in (said := place.pulumi("preview", "--expect-no-changes")), said
        if settings[ENVIRONMENT]["cluster"].get("deletion_protection"):
            settings[ENVIRONMENT]["cluster"]["deletion_protection"] = False
            write(place, settings)
            assert place.do("up") == 0, place.log.read_text()
        assert place.do("down") in (0, LEFT), place.log.read_text()
        kept = before | {each["id"] for each in place.state() if each.get("id")}
        assert [thing for thing in place.left() if not _is_of(thing, kept)] == []
