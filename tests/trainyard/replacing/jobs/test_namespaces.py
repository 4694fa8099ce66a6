"""A namespace keeps its name while jobs of others go on in it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.deployed import deployed
from tests.support.graphs import environment
from tests.support.recording import Graph
from tests.support.stackfile import Edit, at, environment_plan, planned, reading, team_plan
from tests.support.teams import listed
from trainyard.catalog.job_kinds import resource_of
from trainyard.replacing.compared import compared
from trainyard.replacing.deployed import PROVIDER, Deployed, Show
from trainyard.replacing.jobs.namespaces import namespace_errors, namespace_warnings

TEAM = at("teams.vision.namespace", "seers")
OWN = at("namespace", "others")
OF_A_STACK = at("namespace", "seers")
REACHED = {(PROVIDER, "cluster"): {"kubeconfig": "ours", "clusterIdentifier": "arn"}}


def _reached(made: Deployed) -> Deployed:
    return Deployed(resources={**made.resources, **REACHED})


@pytest.fixture(scope="module")
def before() -> Deployed:
    return _reached(deployed(environment(listed)))


@pytest.fixture(scope="module")
def of_a_team(team: Graph) -> Deployed:
    return _reached(deployed(team))


def _job(name: str, space: str, *conditions: str) -> Any:
    shown = [{"type": each, "status": "True"} for each in conditions]
    return {
        "metadata": {"name": name, "namespace": space},
        "spec": {},
        "status": {"conditions": shown},
    }


def _shows(*jobs: Any) -> Show:
    return lambda _, kind, space: [*jobs] if kind == resource_of("TrainJob") else []


def _refused(before: Deployed, *edits: Edit, jobs: list[Any]) -> list[str]:
    plan = environment_plan(listed, *edits)
    return [str(each) for each in namespace_errors(plan, before, _shows(*jobs))]


def test_a_team_keeps_its_namespace_until_the_jobs_in_it_have_ended(before: Deployed) -> None:
    jobs = [
        _job("long", "team-vision"),
        _job("done", "team-vision", "Complete"),
        _job("x", "team-nlp"),
    ]
    assert _refused(before, TEAM, jobs=jobs) == [
        "environment.teams.vision.namespace: must stay team-vision while jobs go on in it, whoever sent them: another"
        " name makes another namespace, and the old one is deleted with every job in it; got seers, and in team-vision"
        " TrainJob team-vision/long. Fix: write team-vision again, and change it when they have ended; kubectl"
        " --namespace team-vision delete <kind> <name> ends one"
    ]
    assert _refused(before, TEAM, jobs=jobs[1:]) == []


def test_the_environment_keeps_its_namespace_until_jobs_of_others_in_it_have_ended(
    before: Deployed,
) -> None:
    """Its own get another run in the new one."""
    own, sent = _job("t5-large", "training"), _job("byhand", "training")
    [error] = _refused(before, OWN, jobs=[own, sent])
    assert error.startswith("environment.namespace: must stay training while jobs go on in it")
    assert "got others, and in training TrainJob training/byhand. Fix" in error
    assert _refused(before, OWN, jobs=[own]) == []


def test_the_stack_of_a_team_keeps_its_namespace_until_jobs_of_others_have_ended(
    of_a_team: Deployed,
) -> None:
    plan = team_plan(OF_A_STACK)
    own = [_job(name, "team-vision") for name in plan.jobs]
    show = _shows(*own, _job("byhand", "team-vision"))
    [error] = namespace_errors(plan, of_a_team, show)
    assert str(error).startswith("team.namespace: must stay team-vision while jobs go on in it")
    assert "in team-vision TrainJob team-vision/byhand. Fix" in str(error)
    assert not [*namespace_errors(plan, of_a_team, _shows(*own))]


def test_what_goes_with_a_namespace_is_said(before: Deployed, of_a_team: Deployed) -> None:
    [own, team] = namespace_warnings(environment_plan(listed, TEAM, OWN), before)
    assert str(team) == (
        "environment.teams.vision.namespace: this update deletes the namespace team-vision and makes seers. With"
        " team-vision go all jobs and schedules in it, whoever sent them, and Secrets that somebody made there. Files"
        " on stores stay. The next `pulumi up` of the team's stack starts another run of each of its jobs in seers"
    )
    assert str(own).startswith("environment.namespace: this update deletes the namespace training")
    again = "This update starts another run of each job of this stack file in others"
    assert again in str(own)
    [of_a_stack] = namespace_warnings(team_plan(OF_A_STACK), of_a_team)
    assert str(of_a_stack).startswith("team.namespace: this update deletes the namespace team-v")


def test_nobody_is_asked_where_namespaces_stay_or_are_new(before: Deployed) -> None:
    def show(*_: Any) -> list[Any]:
        raise AssertionError

    assert not [*namespace_errors(environment_plan(listed), before, show)]
    assert not [*namespace_warnings(environment_plan(listed), before)]
    assert not [*namespace_errors(environment_plan(listed, TEAM), Deployed(), show)]


@pytest.mark.parametrize(
    ("stack", "edits", "path"),
    [
        ("dev", (listed, TEAM), "environment.teams.vision.namespace"),
        ("team-vision", (OF_A_STACK,), "team.namespace"),
    ],
)
def test_a_preview_refuses_another_namespace_while_jobs_go_on_there(
    before: Deployed, of_a_team: Deployed, stack: str, edits: tuple[Edit, ...], path: str
) -> None:
    there = before if stack == "dev" else of_a_team
    lines = reading(*edits, stack=stack).lines
    show = _shows(_job("byhand", "team-vision"))
    found = compared(planned(*edits, stack=stack), lines, lambda *_: there, show)
    assert path in [each.path for each in found.errors]
    assert path in [each.path for each in found.warnings]
