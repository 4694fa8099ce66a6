"""What `trainyard check --live` says about the copies of images that nodes pull, and who may ask."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from moto import mock_aws

from tests.support.stackfile import Edit, at, environment_plan
from tests.trainyard.live.test_preflight import REGION, errors, found
from trainyard.live.questions.account import Account
from trainyard.live.questions.caller import NotAnswered
from trainyard.objects.iam.pull_through import CacheRule
from trainyard.plans.access import AccessPlan
from trainyard.problems import InputWarning
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


def test_the_account_knows_its_images_and_rules() -> None:
    with mock_aws():
        account, ecr = Account(AccessPlan(region=REGION)), boto3.client("ecr", REGION)
        image = f"{HOST}/mirror/a/b:1"
        assert not account.has_image(image)
        ecr.create_repository(repositoryName="mirror/a/b")
        assert not account.has_image(image)
        kind = "application/vnd.oci.image.manifest.v1+json"
        manifest = f'{{"schemaVersion": 2, "mediaType": "{kind}", "layers": []}}'
        made = ecr.put_image(repositoryName="mirror/a/b", imageManifest=manifest, imageTag="1")[
            "image"
        ]
        digest = made["imageId"]["imageDigest"]
        assert account.has_image(image) and account.has_image(f"{image}@{digest}")
        assert not account.has_image(f"{image}@sha256:{64 * '0'}")
        theirs = image.replace("123456789012", "210987654321")
        assert not account.has_image(theirs)


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
