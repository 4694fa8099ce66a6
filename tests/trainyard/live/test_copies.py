"""What `trainyard check --live` says about the copies of images that nodes pull, and who may ask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from tests.support.stackfile import Edit, at, environment_plan
from tests.support.teams import checkout, team_of
from tests.trainyard.live.test_preflight import REGION, account, errors, found
from trainyard.live import preflight
from trainyard.live.questions.account import Account
from trainyard.live.questions.caller import NotAnswered
from trainyard.objects.iam.pull_through import CacheRule
from trainyard.plans.access import AccessPlan
from trainyard.problems import InputError, InputWarning
from trainyard.reports import policy

HOST = f"123456789012.dkr.ecr.{REGION}.amazonaws.com"
SETTING = "artifacts.images"
MIRRORED = at(SETTING, f"{HOST}/mirror")
COPIES = environment_plan(MIRRORED).copies
KARPENTER = "public.ecr.aws/karpenter/controller:1.14.1"
RULE = CacheRule(prefix="mirror/public.ecr.aws", upstream="public.ecr.aws")
DENIED = NotAnswered("ecr:DescribePullThroughCacheRules: AccessDeniedException")


def isolated(settings: dict[str, Any]) -> None:
    """An edit: nodes have no way to the internet."""
    settings["network"] = {"internet": "none", "endpoints": "private"}
    MIRRORED(settings)


def warnings(*edits: Edit, **answers: Any) -> list[str]:
    """Those about copies."""
    every = [str(one) for one in found(*edits, **answers) if isinstance(one, InputWarning)]
    return [one for one in every if "copies" in one]


@pytest.mark.parametrize("edit", [MIRRORED, isolated])
def test_copies_that_exist_have_no_finding(edit: Edit) -> None:
    assert errors(edit) == [] and warnings(edit) == []


def test_a_stack_without_copies_asks_about_none() -> None:
    assert errors(has_image=False) == []


@pytest.mark.parametrize("edit", [MIRRORED, isolated])
def test_copies_that_are_missing_are_named_with_the_command_that_makes_them(edit: Edit) -> None:
    [error] = errors(edit, has_image=False)
    assert error.startswith(f"environment.{SETTING}")
    assert f"got a registry without {len(COPIES)} of the {len(COPIES)} copies: " in error
    assert all(each.image in error for each in COPIES)
    assert error.endswith("Fix: run trainyard mirror dev --live")


def test_a_rule_stands_in_for_the_copies_that_it_imports() -> None:
    [error] = errors(MIRRORED, has_image=False, pull_through_rules=[RULE])
    assert KARPENTER not in error and "quay.io/" not in KARPENTER
    others = [one for one in COPIES if not one.image.startswith("public.ecr.aws/")]
    assert f"without {len(others)} of the {len(COPIES)} copies" in error
    assert warnings(MIRRORED, has_image=False, pull_through_rules=[RULE]) == []


def test_a_rule_does_not_import_for_nodes_without_the_internet() -> None:
    """The first pull by an endpoint of a VPC without a way out imports nothing."""
    [warning] = warnings(isolated, has_image=False, pull_through_rules=[RULE])
    assert KARPENTER in warning and "pull each of them once from another network" in warning


def test_without_permission_to_ask_for_rules_missing_copies_are_a_warning() -> None:
    [warning] = warnings(MIRRORED, has_image=False, pull_through_rules=DENIED)
    assert f"the registry lacks {len(COPIES)} of the {len(COPIES)} copies" in warning
    assert warning.endswith(f"import them is not known: {DENIED}")
    assert errors(MIRRORED, has_image=False, pull_through_rules=DENIED) == []
    assert errors(MIRRORED, has_image=NotAnswered("ecr:DescribeImages: AccessDenied")) == []


def of_team(folder: Path, environment: Edit, **answers: Any) -> list[InputError | InputWarning]:
    """What is said of a team in that environment."""
    plan = team_of(checkout(folder, environment, lambda _: None))
    return preflight.preflight(account(**answers), plan, None, 60)


@pytest.mark.parametrize("edit", [MIRRORED, isolated])
def test_a_team_hears_of_the_copies_that_its_jobs_miss(edit: Edit, tmp_path: Path) -> None:
    """Its nodes would start, and wait for images at full price."""
    who, error = map(str, of_team(tmp_path, edit, has_image=False))
    assert who.endswith("; only its copies of images are checked for a team")
    assert error.startswith("team.jobs: must have a copy of every image that nodes pull; got")
    assert error.endswith("Fix: run trainyard mirror team-vision --live")
    assert len(of_team(tmp_path, edit)) == 1


@pytest.mark.parametrize(("edit", "warned"), [(MIRRORED, False), (isolated, True)])
def test_a_team_learns_from_the_contract_that_no_rule_imports_for_its_nodes(
    edit: Edit, warned: bool, tmp_path: Path
) -> None:
    upstreams = ("docker.io", "public.ecr.aws", "quay.io", "registry.example.com", "ghcr.io")
    rules = [CacheRule(prefix=f"mirror/{each}", upstream=each) for each in upstreams]
    said = of_team(tmp_path, edit, has_image=False, pull_through_rules=rules)
    assert ["another network" in str(each) for each in said[1:]] == [True][: int(warned)]


def test_a_team_that_may_not_ask_about_copies_is_told_so(tmp_path: Path) -> None:
    denied = NotAnswered("ecr:DescribeImages: AccessDenied")
    [_, warning] = of_team(tmp_path, MIRRORED, has_image=denied)
    assert str(warning) == f"account: a question failed: {denied}"


OWN = f"{HOST}/dev/train:1"
JOB = "environment.jobs.t5-large"


def trains_with(image: str) -> Edit:
    def edit(settings: dict[str, Any]) -> None:
        settings["registries"] = {"train": {"data": "delete"}}
        settings["jobs"]["t5-large"]["image"] = image

    return edit


def test_an_image_of_a_job_that_ecr_lacks_is_refused_with_the_order_of_the_first_day() -> None:
    [error] = errors(trains_with(OWN), has_image=False)
    assert error == (
        f"{JOB}: must have an image that ECR has: its nodes would start and wait for it at full price;"
        f" got {OWN}. Fix: push it: trainyard image t5-large --from <folder> --stack dev --live; where the"
        " stack has not made dev/train yet, run `pulumi up` without the job first"
    )
    assert errors(trains_with(OWN)) == []


@pytest.mark.parametrize(
    "image",
    [
        OWN.replace("123456789012", "210987654321"),
        OWN.replace(REGION, "eu-west-1"),
        "ghcr.io/team/train:1",
    ],
    ids=["another account", "another region", "another registry"],
)
def test_images_about_which_the_account_cannot_tell_are_not_asked_for(image: str) -> None:
    assert errors(trains_with(image), has_image=False) == []


def test_a_rule_may_import_an_image_of_a_job_but_none_into_a_repository_of_the_stack() -> None:
    theirs = f"{HOST}/mirror/team/train:1"
    rule = CacheRule(prefix="mirror", upstream="ghcr.io")
    edit = trains_with(theirs)
    assert errors(edit, has_image=False, pull_through_rules=[rule]) == []
    [error] = errors(edit, has_image=False)
    assert error.endswith("Fix: push it to mirror/team/train, or name another image")
    [warning] = [
        str(each)
        for each in found(edit, has_image=False, pull_through_rules=DENIED)
        if JOB in str(each)
    ]
    assert warning.endswith(f"whether a pull-through rule imports it is not known: {DENIED}")
    assert len(errors(trains_with(OWN), has_image=False, pull_through_rules=DENIED)) == 1


def test_an_image_that_is_a_copy_is_asked_for_once() -> None:
    [error] = errors(MIRRORED, trains_with("ghcr.io/team/train:1"), has_image=False)
    assert error.startswith(f"environment.{SETTING}")


def test_the_account_knows_its_images_and_rules() -> None:
    with mock_aws():
        asked, ecr = Account(AccessPlan(region=REGION)), boto3.client("ecr", REGION)
        image = f"{HOST}/mirror/a/b:1"
        assert not asked.has_image(image)
        ecr.create_repository(repositoryName="mirror/a/b")
        assert not asked.has_image(image)
        kind = "application/vnd.oci.image.manifest.v1+json"
        manifest = f'{{"schemaVersion": 2, "mediaType": "{kind}", "layers": []}}'
        made = ecr.put_image(repositoryName="mirror/a/b", imageManifest=manifest, imageTag="1")[
            "image"
        ]
        digest = made["imageId"]["imageDigest"]
        assert asked.has_image(image) and asked.has_image(f"{image}@{digest}")
        assert not asked.has_image(f"{image}@sha256:{64 * '0'}")
        theirs = image.replace("123456789012", "210987654321")
        assert not asked.has_image(theirs)


@pytest.mark.parametrize("preview", [True, False])
def test_who_deploys_and_previews_may_ask_about_the_copies_and_no_other_image(
    preview: bool,
) -> None:
    def reads(*edits: Edit) -> list[Any]:
        documents = policy.policies(environment_plan(*edits), preview=preview).values()
        return [
            statement["Resource"]
            for document in documents
            for statement in document["Statement"]
            for action in ("ecr:DescribeImages", "ecr:DescribePullThroughCacheRules")
            if action in statement["Action"]
        ]

    own = f"arn:aws:ecr:{REGION}:123456789012:repository/mirror/*"
    assert reads(MIRRORED) == ["*", [own]]
    assert reads() == []
    assert reads(trains_with(OWN)) == [[f"arn:aws:ecr:{REGION}:123456789012:repository/dev/train"]]
