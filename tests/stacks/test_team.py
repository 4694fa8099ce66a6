"""Names of a team's objects in a program that makes several teams."""

from __future__ import annotations

from dataclasses import replace

from stacks.team import NOT_ALLOWED, NOT_THERE, _named, unread
from tests.support.stackfile import team_plan
from trainyard.plans.access import AssumedRole


def test_a_job_comes_after_the_jobs_of_its_own_team() -> None:
    [job] = team_plan().jobs.values()
    chain = {"prepare": job, "train": replace(job, after=("prepare",))}
    named = _named(chain, "vision-")
    assert {key: plan.after for key, plan in named.items()} == {
        "vision-prepare": (),
        "vision-train": ("vision-prepare",),
    }
    assert _named(chain, "") == chain


def test_a_contract_that_the_deployer_cannot_read_has_the_commands_that_mend_it() -> None:
    deployer = AssumedRole(arn="arn:aws:iam::123456789012:role/ours/vision-deployer")
    plan = replace(team_plan(), access=replace(team_plan().access, roles=(deployer,)))
    said = str(unread(plan, f"AccessDeniedException: {NOT_ALLOWED} on resource: vision"))
    assert f"trainyard policy {plan.identity.stack} --part deployer > policy.json" in said
    assert "aws iam put-role-policy --role-name vision-deployer --policy-name trainyard" in said


def test_a_contract_that_is_not_there_asks_for_an_update_of_the_environment() -> None:
    said = str(unread(team_plan(), f"reading SSM Parameter: {NOT_THERE}"))
    assert said.endswith("Fix: run `pulumi up` of dev first: it publishes the contract of the team")


def test_who_has_no_credentials_is_told_to_sign_in() -> None:
    said = str(unread(team_plan(), "NoCredentialsError: Unable to locate credentials"))
    assert said.endswith("Fix: sign in to AWS: who runs this has no credentials, or they are over")
