"""Which secrets of Secrets Manager a job or a team cannot read, each with its sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.cases.jobs import SCRIPT, pytorch_job
from tests.support.stackfile import Edit, at, without
from tests.support.stackfile import planned as environment_planned
from tests.support.sweep import lines_not_reached
from tests.support.teams import both, by_name, checkout, listed, planned
from trainyard.objects.iam.secrets import covers
from trainyard.rules import secrets

JOB = "jobs.t5-large"
TEAM_JOB = "jobs.vit-base"
HF = {"HF_TOKEN": {"secrets_manager": "vision/hf", "key": "token"}}
KEY = "arn:aws:kms:ap-northeast-2:111122223333:key/0a1b2c3d-0000-4000-8000-000000000000"


def arn(region: str = "ap-northeast-2", account: str = "111122223333") -> str:
    return f"arn:aws:secretsmanager:{region}:{account}:secret:vision/hf-AbCdEf"


def of(name: str, **more: str) -> dict[str, Any]:
    return {"HF_TOKEN": {"secrets_manager": name, **more}}


ENTRIES: dict[str, tuple[Edit, str, str]] = {
    "an ARN of another region": (
        at(f"{JOB}.secrets", of(arn("eu-west-1"))),
        f"{JOB}.secrets.HF_TOKEN.secrets_manager",
        "must be a secret in ap-northeast-2, the region of the stack; got"
        f" {arn('eu-west-1')}. Fix: replicate the secret to ap-northeast-2, and write vision/hf",
    ),
    "an ARN of another account": (
        both(
            at("cluster.deployer_role_arn", "arn:aws:iam::444455556666:role/up"),
            at(f"{JOB}.secrets", of(arn())),
        ),
        f"{JOB}.secrets.HF_TOKEN.secrets_manager",
        "must be a secret of the account of the stack, 444455556666",
    ),
    "a grant of another region": (
        both(listed, at("teams.vision.secrets", ["vision/", arn("eu-west-1")])),
        "teams.vision.secrets",
        "must be a secret in ap-northeast-2",
    ),
    "an entrypoint that exports nothing": (
        both(without(SCRIPT), at(f"{JOB}.arguments", ["--epochs", "3"]), at(f"{JOB}.secrets", HF)),
        f"{JOB}.secrets",
        "must be Secrets of Kubernetes in a job without script, command and torchrun",
    ),
    "a variable that Kubernetes would fill": (
        both(
            without(SCRIPT),
            at(f"{JOB}.command", ["torchrun", "t.py", "--token=$(HF_TOKEN)"]),
            at(f"{JOB}.secrets", HF),
        ),
        f"{JOB}.command",
        "must not contain $(HF_TOKEN): Kubernetes does not see what is in Secrets Manager; got"
        " $(HF_TOKEN). Fix: write a script, and $HF_TOKEN in it",
    ),
    "a variable with two values": (
        both(at(f"{JOB}.env", {"HF_TOKEN": "a"}), at(f"{JOB}.secrets", HF)),
        f"{JOB}.secrets.HF_TOKEN",
        "must be set once; got a value in env, too. Fix: delete env.HF_TOKEN",
    ),
    "a store where the files lie": (
        both(
            at(f"{JOB}.storage", {"scratch": {"path": "/run/trainyard/secrets"}}),
            at(f"{JOB}.secrets", HF),
        ),
        f"{JOB}.storage.scratch.path",
        "must be a path of its own, and not that of secrets; got /run/trainyard/secrets",
    ),
    "a folder with the name of the volume": (
        both(
            at(f"{JOB}.host_paths", {"secrets-manager": {"host": "/a", "path": "/b"}}),
            at(f"{JOB}.secrets", HF),
        ),
        f"{JOB}.host_paths.secrets-manager",
        "the pod has a volume of this name for secrets",
    ),
    "a key of another region than the secrets": (
        both(
            listed,
            at("teams.vision.secrets", ["vision/"]),
            at("teams.vision.kms_key_arns", [KEY.replace("ap-northeast-2", "eu-west-1")]),
        ),
        "teams.vision.kms_key_arns",
        "must be keys of ap-northeast-2, the region of the stack",
    ),
}
"""What is wrong in an environment → its edit, path of the error, part of its text."""


@pytest.mark.parametrize("case", ENTRIES)
def test_a_secret_that_no_pod_can_read_is_refused(case: str) -> None:
    edit, path, says = ENTRIES[case]
    found = [e for e in environment_planned(edit).errors if e.path == f"environment.{path}"]
    assert found and says in str(found[0]), environment_planned(edit).errors


granted = both(listed, at("teams.vision.secrets", ["vision/", "shared/hf"]))
STACKS: dict[str, tuple[Edit, Edit, str, str]] = {
    "another team's": (
        granted,
        both(by_name, at(f"{TEAM_JOB}.secrets", of("nlp/hf"))),
        f"{TEAM_JOB}.secrets.HF_TOKEN.secrets_manager",
        "must be a secret that the environment's entry of the team lists; got nlp/hf. Fix: write one of"
        " vision/, shared/hf",
    ),
    "one of a team without any": (
        listed,
        both(by_name, at(f"{TEAM_JOB}.secrets", HF)),
        f"{TEAM_JOB}.secrets.HF_TOKEN.secrets_manager",
        "Fix: add vision/hf to environment.teams.vision.secrets",
    ),
    "a key of the team's own": (
        granted,
        both(by_name, at(f"{TEAM_JOB}.secrets", of("vision/hf", kms_key_arn=KEY))),
        f"{TEAM_JOB}.secrets.HF_TOKEN.kms_key_arn",
        "environment.teams.vision.kms_key_arns has it",
    ),
    "a team that the environment does not list": (
        lambda _: None,
        at(f"{TEAM_JOB}.secrets", HF),
        f"{TEAM_JOB}.secrets.HF_TOKEN.secrets_manager",
        "must not be set by a team that the environment does not list",
    ),
}
"""What is wrong → edits of the environment and of the team, path of the error, part of its text."""


@pytest.mark.parametrize("case", STACKS)
def test_a_secret_that_the_environment_does_not_grant_is_refused(case: str, tmp_path: Path) -> None:
    environment, team, path, says = STACKS[case]
    errors = planned("team-vision", checkout(tmp_path, environment, team)).errors
    found = [e for e in errors if e.path == f"team.{path}"]
    assert found and says in str(found[0]), errors


@pytest.mark.parametrize(
    "secret",
    [of("vision/hf"), of("shared/hf", key="token"), of(arn()), {**HF, **HF}],
)
def test_a_secret_that_the_environment_grants_is_not_refused(secret: Any, tmp_path: Path) -> None:
    team = both(by_name, at(f"{TEAM_JOB}.secrets", secret))
    assert planned("team-vision", checkout(tmp_path, granted, team)).errors == ()


@pytest.mark.parametrize(
    "edits",
    [
        [at(f"{JOB}.secrets", HF)],
        [at(f"{JOB}.secrets", of(arn(), kms_key_arn=KEY))],
        [*pytorch_job(), at(f"{JOB}.secrets", HF)],
        [
            at("cluster.deployer_role_arn", "arn:aws:iam::111122223333:role/up"),
            at(f"{JOB}.secrets", of(arn())),
        ],
    ],
)
def test_a_secret_that_pods_can_read_is_not_refused(edits: list[Edit]) -> None:
    assert environment_planned(*edits).errors == ()


@pytest.mark.parametrize(
    ("grant", "wanted", "granted"),
    [
        ("vision/", "vision/hf", True),
        ("vision/", arn(), True),
        ("vision/", "vision2/hf", False),
        ("vision/", "vision", False),
        ("vision/hf", arn(), True),
        ("vision/hf", "vision/hf-2", False),
        (arn(), "vision/hf", True),
        (arn(), arn(), True),
        (arn(), arn(account="444455556666"), False),
    ],
)
def test_a_grant_is_of_whole_names(grant: str, wanted: str, granted: bool) -> None:
    assert covers(grant, wanted) is granted


def test_every_line_of_the_rules_is_reached_by_a_case_above(tmp_path: Path) -> None:
    def run() -> None:
        for edit, _, _ in ENTRIES.values():
            environment_planned(edit)
        environment_planned(PULLS)
        for environment, team, _, _ in STACKS.values():
            planned("team-vision", checkout(tmp_path, environment, team))

    assert lines_not_reached((secrets,), run) == []


def test_a_secret_of_kubernetes_is_named_with_the_command_that_makes_it() -> None:
    wanted = at(f"{JOB}.secrets", {"HF_TOKEN": {"secret": "hf", "key": "token"}})
    [said] = [
        str(each) for each in environment_planned(wanted).warnings if "Secret hf" in str(each)
    ]
    assert said.startswith(
        f"environment.{JOB}.secrets.HF_TOKEN.secret: Secret hf with key token must be in"
    )
    assert said.endswith(
        "make it with kubectl -n <namespace> create secret generic hf --from-literal=token=…; where its"
        " namespace is not there yet, run `pulumi up` without the job first"
    )


PULLS = both(
    at(f"{JOB}.image", "registry.example.com:5000/team/train:1"), at(f"{JOB}.pull_secrets", ["reg"])
)


@pytest.mark.parametrize(
    ("image", "server"),
    [
        ("registry.example.com:5000/team/train:1", "registry.example.com:5000"),
        ("ghcr.io/team/train:1", "ghcr.io"),
        ("team/train:1", "https://index.docker.io/v1/"),
    ],
)
def test_a_secret_for_a_registry_is_named_with_the_command_that_makes_it(
    image: str, server: str
) -> None:
    found = environment_planned(PULLS, at(f"{JOB}.image", image)).warnings
    [said] = [str(each) for each in found if "Secret reg" in str(each)]
    assert said.startswith(f"environment.{JOB}.pull_secrets.0: Secret reg must be in the job's")
    assert (
        "ImagePullBackOff on nodes that cost; make it with kubectl -n <namespace> create secret"
        f" docker-registry reg --docker-server={server} --docker-username=… --docker-password=…;"
    ) in said
    assert said.endswith("run `pulumi up` without the job first")


def test_nodes_pull_from_ecr_without_a_secret_so_a_missing_one_is_no_warning() -> None:
    ecr = "123456789012.dkr.ecr.ap-northeast-2.amazonaws.com/train:1"
    found = environment_planned(PULLS, at(f"{JOB}.image", ecr)).warnings
    assert not [each for each in found if "Secret reg" in str(each)]
