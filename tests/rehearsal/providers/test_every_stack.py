"""Every recorded stack comes up in an account without a cluster, has nothing to change then, and goes. With
a cluster, and with an existing VPC or cluster: tests/worlds.

Who deploys may do what `trainyard policy` prints for the stack file, and nothing else; who previews and
refreshes, what it prints with --preview."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

import pytest
import yaml

from development import engine
from development.down import _is_of
from rehearsal import paths
from rehearsal.aws.identity import ACCOUNT
from tests.graph.test_recorded_stacks import EVERYTHING, MORE
from tests.rehearsal.aws.test_permissions import Somebody
from tests.rehearsal.aws_world import policy, role
from tests.support.alone import LEFT, Alone, alone
from tests.support.everything import everything
from tests.support.recording import CHECKOUT, stack_values
from tests.support.stackfile import ENVIRONMENT
from tests.support.stacks import STACKS
from trainyard.objects.iam.encryption import key_policy
from trainyard.objects.iam.policies import document
from trainyard.reports.policy import policies
from trainyard.reports.stack_file import planned_file

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not (paths.BIN / "pulumi").exists(), reason="pulumi is not built"),
]
ELSEWHERE = {
    "existing VPC": "tests/worlds/test_existing_network_world.py",
    "existing cluster": "tests/worlds/test_existing_cluster_world.py",
}
"""Stacks that need something which exists in EC2 or EKS."""
ANY_ACCOUNT, ANY_KEY = r"1{4}2{4}3{4}|123456789012", r"arn:aws:kms:[\w-]+:\d+:key/[\w-]+"


def settings_of(name: str) -> dict[str, Any]:
    if name == EVERYTHING:
        values = everything()
        for job in values[ENVIRONMENT]["jobs"].values():
            for waits in ("wait", "after", "data", "weights"):  # nobody runs a job here
                job.pop(waits, None)
            job.get("sweep", {}).pop("at_most", None)
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
    for name in sorted(set(re.findall(r"arn:aws:iam::\d+:policy/([\w-]+)", text))):
        policy(place.account, name, Action="*", Resource="*")
    named = re.findall(r'"bucket": "([\w-]+)"|s3://([\w-]+)/', text)
    for bucket in sorted({"".join(each) for each in named}):
        place.account.client("s3").create_bucket(
            Bucket=bucket,
            CreateBucketConfiguration={"LocationConstraint": region},
        )
    if re.search(ANY_KEY, text):
        kms = place.account.client("kms")
        key = kms.create_key()["KeyMetadata"]["Arn"]
        allowed = json.dumps(key_policy(key, place.stack.name))
        kms.put_key_policy(KeyId=key, PolicyName="default", Policy=allowed)
        text = re.sub(ANY_KEY, key, text)
    return json.loads(text)


class Caller:
    """Who runs the engine: a role, and the roles that the stack file assumes from there. The last may do
    what it is allowed here, the others assume the next."""

    def __init__(self, place: Alone, settings: dict[str, Any]) -> None:
        self._place, self._iam = place, place.account.client("iam")
        assumed = [
            each["roleArn"].rpartition("/")[2] for each in settings.get("aws:assumeRoles", ())
        ]
        self._roles = ["caller", *assumed]
        self.keys = Somebody(place.account, "caller").keys
        """As environment variables."""
        trust = document({"Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"})
        for name in assumed:
            self._iam.update_assume_role_policy(RoleName=name, PolicyDocument=json.dumps(trust))
        for name, following in pairwise(self._roles):
            assume = document({"Action": ["sts:AssumeRole"], "Resource": arn_of(following)})
            self._iam.put_role_policy(
                RoleName=name, PolicyName="assume", PolicyDocument=json.dumps(assume)
            )

    def may(self, *, preview: bool) -> None:
        """Do what `trainyard policy` prints for the stack file as it is, and nothing else, by policies that
        can be attached to a role."""
        name = self._roles[-1]
        for old in self._iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]:
            self._iam.detach_role_policy(RoleName=name, PolicyArn=old["PolicyArn"])
            self._iam.delete_policy(PolicyArn=old["PolicyArn"])
        found = planned_file(self._place.stack.name)
        assert found and found[1].plan
        for title, allowed in policies(found[1].plan, preview=preview).items():
            made = self._iam.create_policy(PolicyName=title, PolicyDocument=json.dumps(allowed))
            self._iam.attach_role_policy(RoleName=name, PolicyArn=made["Policy"]["Arn"])


def arn_of(role: str) -> str:
    return f"arn:aws:iam::{ACCOUNT}:role/{role}"


def write(place: Alone, settings: dict[str, Any]) -> None:
    (place.checkout / "Pulumi.dev.yaml").write_text(yaml.safe_dump({"config": settings}))


@pytest.mark.parametrize("name", sorted({*STACKS, *MORE, EVERYTHING} - ELSEWHERE.keys()))
def test_it_comes_up_has_nothing_to_change_and_goes(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(name)
    manifests = [
        job["manifest"] for job in settings[ENVIRONMENT]["jobs"].values() if "manifest" in job
    ]
    with alone("dev", {path: (CHECKOUT / path).read_text() for path in manifests}) as place:
        settings = prepare(place, settings)
        write(place, settings)
        caller, variables = Caller(place, settings), engine.variables
        monkeypatch.setattr(engine, "variables", lambda stack: variables(stack) | caller.keys)
        monkeypatch.chdir(place.checkout)
        before = {thing["id"] for thing in place.left()}
        caller.may(preview=False)
        assert place.do("up") == 0, place.log.read_text()
        caller.may(preview=True)
        said = place.pulumi("preview", "--refresh", "--expect-no-changes")
        assert "error" not in said, said
        if settings[ENVIRONMENT]["cluster"].get("deletion_protection"):
            settings[ENVIRONMENT]["cluster"]["deletion_protection"] = False
            write(place, settings)
            caller.may(preview=False)
            assert place.do("up") == 0, place.log.read_text()
        caller.may(preview=False)
        assert place.do("down") in (0, LEFT), place.log.read_text()
        kept = before | {each["id"] for each in place.state() if each.get("id")}
        assert [thing for thing in place.left() if not _is_of(thing, kept)] == []
