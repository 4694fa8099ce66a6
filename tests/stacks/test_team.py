"""Names of a team's objects in a program that makes several teams."""

from __future__ import annotations

from dataclasses import replace

from stacks.team import NOT_ALLOWED, NOT_THERE, _named, unread
from tests.support.stackfile import team_plan
from trainyard.plans.access import AssumedRole
from trainyard.plans.jobs import SweepPlan


def test_a_job_comes_after_the_jobs_of_its_own_team() -> None:
    [job] = team_plan().jobs.values()
    chain = {"prepare": job, "train": replace(job, after=("prepare",))}
    named = _named(chain, "vision-")
    assert {key: plan.after for key, plan in named.items()} == {
        "vision-prepare": (),
        "vision-train": ("vision-prepare",),
    }
    assert _named(chain, "") == chain


def test_a_run_of_a_sweep_waits_for_the_runs_of_its_own_team() -> None:
    [job] = team_plan().jobs.values()
    place = SweepPlan(entry="tune", at_most=1, earlier=("tune-1",), others=("tune-1", "tune-3"))
    [run] = _named({"tune-2": replace(job, sweep=place)}, "vision-").values()
    assert run.sweep and run.sweep.earlier == ("vision-tune-1",)
    assert run.sweep.others == ("vision-tune-1", "vision-tune-3")


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
