"""A job of the environment and one of a team read their secrets of Secrets Manager as variables, a changed
value reaches a running pod, and another team is refused by AWS. No value is anywhere but in the pods."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from rehearsal import processes
from tests.support.worlds import NEEDS_A_WORLD
from tests.worlds.harness import Harness, Object, rehearsing_teams, with_l4
from trainyard.decide import plan_stack
from trainyard.objects.iam.secrets import FOLDER, ManagedSecret, secret_files
from trainyard.reports.policy import policies
from trainyard.settings.reading.reader import read_file

pytestmark = [pytest.mark.world, pytest.mark.soak, NEEDS_A_WORLD]

TEAMS, REGION = ("vision", "nlp"), "us-east-2"
PLANTED = {
    "shared/hf": {"token": "planted-for-the-environment"},
    "vision/hf": {"token": "planted-for-vision", "other": "planted-beside-it"},
    "nlp/hf": {"token": "planted-for-nlp"},
}
MINUTES = 5
ROTATED = "planted-after-rotation"
IMAGE = "public.ecr.aws/deep-learning-containers/pytorch:2.11.0-cu130-amzn2023"
HASH = "printf %s \"$HF_TOKEN\" | sha256sum | sed 's/^/read /'"
STACK = with_l4(
    teams={
        team: {
            "deployer": f"arn:aws:iam::123456789012:role/{team}",
            "secrets": [f"{team}/"],
        }
        for team in TEAMS
    },
)


def job(secret: str, *lines: str) -> Object:
    return {
        "runtime": "torch-distributed",
        "nodes": 1,
        "pool": "l4",
        "image": IMAGE,
        "script": "\n".join((HASH, *lines)),
        "shared_memory_gib": 8,
        "secrets": {"HF_TOKEN": {"secrets_manager": secret, "key": "token"}},
    }


def team(name: str) -> str:
    """A job that ends when the file of its secret has another value than its variable."""
    file = f"{FOLDER}/HF_TOKEN.value"
    change = f'until [ "$(cat {file})" != "$HF_TOKEN" ]; do sleep 1; done; sha256sum < {file}'
    jobs = {"look": job(f"{name}/hf", change)}
    settings = {"environment": "shared", "name": name, "jobs": jobs}
    return yaml.safe_dump({"config": {"aws:region": REGION, "trainyard:team": settings}})


def digest(value: str) -> str:
    return hashlib.sha256(value.encode()).hexdigest()


@pytest.fixture(scope="module")
def harness() -> Iterator[Harness]:
    files = {f"Pulumi.{name}.yaml": team(name) for name in TEAMS}
    with rehearsing_teams("shared", STACK, files=files) as made:
        for name, value in PLANTED.items():
            made.shell(
                f"aws secretsmanager create-secret --name {name}"
                f" --secret-string '{json.dumps(value)}'"
            )
        yield made


def log_of(harness: Harness, namespace: str, job: str) -> str:
    selector = f"jobset.sigs.k8s.io/jobset-name={job}"
    return harness.shell(
        f"kubectl logs --namespace {namespace} --selector {selector} --tail -1", check=False
    )


def test_a_job_of_the_environment_reads_its_secret(harness: Harness) -> None:
    config: Any = yaml.safe_load((harness.checkout / "Pulumi.shared.yaml").read_text())
    config["config"]["trainyard:environment"]["jobs"] = {"own": job("shared/hf")}
    (harness.checkout / "Pulumi.shared.yaml").write_text(yaml.safe_dump(config))
    assert harness.do("up", "--stack", "shared") == 0, harness.log.read_text()
    assert f"read {digest('planted-for-the-environment')}" in log_of(harness, "training", "own")


def test_a_team_reads_its_secret_and_what_becomes_of_it(harness: Harness) -> None:
    plan = plan_stack(read_file("vision", harness.checkout), harness.checkout).accepted()
    [policy] = policies(plan).values()
    given = "--role-name vision --policy-name contract"
    harness.shell(f"aws iam put-role-policy {given} --policy-document '{json.dumps(policy)}'")
    up = harness.start("up", "--stack", "vision")
    words = f"read {digest('planted-for-vision')}"
    seen = processes.wait(lambda: words in log_of(harness, "team-vision", "look"), MINUTES * 60, 3)
    assert seen, harness.log.read_text()
    changed = json.dumps({"token": ROTATED})
    harness.shell(
        f"aws secretsmanager put-secret-value --secret-id vision/hf --secret-string '{changed}'"
    )
    assert up.wait() == 0, harness.log.read_text()
    assert digest(ROTATED) in log_of(harness, "team-vision", "look")


def test_the_secret_of_another_team_is_refused_by_aws_and_status_says_so(harness: Harness) -> None:
    """The class is one that a member of the team can write; `trainyard check` refuses it in the stack
    file."""
    # The shell speaks to the cluster as the stack did that was asked about last.
    assert harness.do("status", "--stack", "shared") == 0, harness.log.read_text()
    made = secret_files("look", {"HF_TOKEN": ManagedSecret(secrets_manager="vision/hf")}, REGION)
    assert made
    harness.apply(made.object() | {"metadata": {"name": made.name, "namespace": "team-nlp"}})
    attack: Any = harness.get("trainjob look --namespace team-vision")
    text = json.dumps(attack["spec"])
    [named] = {
        volume["csi"]["volumeAttributes"]["secretProviderClass"]
        for volume in attack["spec"]["podTemplateOverrides"][0]["spec"]["volumes"]
        if "csi" in volume
    }
    harness.apply(
        {
            "apiVersion": attack["apiVersion"],
            "kind": attack["kind"],
            "metadata": {"name": "attack", "namespace": "team-nlp"},
            "spec": json.loads(text.replace(named, made.name)),
        }
    )
    said = ""

    def refused() -> bool:
        nonlocal said
        said = harness.shell(
            f"{sys.executable} -m trainyard status --stack {harness.stack} --silence 0.25",
            check=False,
        )
        return "Secrets Manager refuses vision/hf" in said

    assert processes.wait(refused, MINUTES * 60, 5), said
    assert "is not authorized to perform: secretsmanager:GetSecretValue" in said
    harness.shell("kubectl delete trainjob attack --namespace team-nlp")


def content_of(file: Path) -> bytes:
    """Nothing of a file that a part of the world has just removed."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""


def test_no_value_is_in_a_file_of_the_world_or_in_the_cluster(harness: Harness) -> None:
    """But in the folders of volumes, which stand for the memory of nodes."""
    values = [value.encode() for secret in PLANTED.values() for value in secret.values()]
    names = set[str]()
    for folder in (harness.state, harness.checkout):
        for file in folder.rglob("*"):
            if not file.is_file() or file.is_symlink() or "volumes" in file.parts:
                continue
            content = content_of(file)
            found = [value for value in (*values, ROTATED.encode()) if value in content]
            assert not found, (file, found)
            if b"SecretProviderClass" in content:
                names |= {*file.relative_to(folder).parts}
    assert {"backend", "plane"} <= names, "neither state nor etcd was looked at"
    assert "planted" not in harness.log.read_text()
    kinds = "secrets,configmaps,pods,trainjobs,secretproviderclasses,events"
    assert "planted" not in harness.shell(f"kubectl get {kinds} --all-namespaces --output json")


def test_down_leaves_nothing(harness: Harness) -> None:
    assert harness.do("down", "--stack", "vision") == 0, harness.log.read_text()
    harness.shell("aws iam delete-role-policy --role-name vision --policy-name contract")
    for name in TEAMS:
        harness.shell(f"aws iam delete-role --role-name {name}")
    assert harness.do("down") == 0, harness.log.read_text()
