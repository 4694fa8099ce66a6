"""A preview names jobs whose next pod the cluster would refuse."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.deployed import deployed
from tests.support.graphs import environment
from tests.support.stackfile import Edit, at, environment_plan, planned, reading, without
from tests.support.teams import listed
from trainyard.catalog.job_kinds import resource_of
from trainyard.replacing.compared import compared
from trainyard.replacing.deployed import PROVIDER, Deployed, Show
from trainyard.replacing.jobs.admission import admission_warnings
from trainyard.replacing.replacing import RUNTIME

ALLOWED = at("teams.vision.allowed_priorities", ["high"])
ALONE = (at("jobs", {}), listed, ALLOWED)
NO_CLASS = (at("priorities", {}), at("teams.vision.allowed_priorities", []))
NOT_ALLOWED = at("teams.vision.allowed_priorities", [])
OTHER_IMAGES = at("teams.vision.image_prefixes", ["registry.example.com/vision/"])
IMAGE = "public.ecr.aws/deep-learning-containers/pytorch:2"
REFUSES = (
    ": the cluster then refuses each new pod of theirs, so one that waits never starts, and one that loses a pod never"
    " starts again. To lose nothing, change it when they have ended"
)


@pytest.fixture(scope="module")
def before() -> Deployed:
    made = deployed(environment(*ALONE))
    provider = {(PROVIDER, "cluster"): {"kubeconfig": "ours", "clusterIdentifier": "arn"}}
    return Deployed(resources={**made.resources, **provider})


def _job(name: str, *conditions: str, space: str = "team-vision", **trainer: Any) -> Any:
    shown = [{"type": each, "status": "True"} for each in conditions]
    pod = {"spec": {"priorityClassName": "high"}}
    return {
        "metadata": {"name": name, "namespace": space},
        "spec": {
            "runtimeRef": {"name": "torch-distributed"},
            "trainer": {"image": IMAGE} | trainer,
            "podTemplateOverrides": [pod],
        },
        "status": {"conditions": shown},
    }


def _shows(*jobs: Any) -> Show:
    return lambda _, kind, space: [*jobs] if kind == resource_of("TrainJob") else []


def _said(before: Deployed, *edits: Edit, jobs: list[Any]) -> list[str]:
    plan = environment_plan(*ALONE, *edits)
    return [str(each) for each in admission_warnings(plan, before, _shows(*jobs))]


def test_a_priority_that_goes_names_the_jobs_that_ask_for_it(before: Deployed) -> None:
    assert _said(before, *NO_CLASS, jobs=[_job("long"), _job("done", "Complete")]) == [
        "environment.priorities: this update deletes high, and TrainJob team-vision/long asks for it"
        + REFUSES
    ]


def test_a_priority_of_a_runtime_is_one_of_its_jobs(before: Deployed) -> None:
    job = _job("long")
    del job["spec"]["podTemplateOverrides"]
    assert _said(before, *NO_CLASS, jobs=[job]) == []
    made = {(RUNTIME, "torch-distributed"): {"spec": {"priorityClassName": "high"}}}
    runtime = Deployed(resources={**before.resources, **made})
    assert len(_said(runtime, *NO_CLASS, jobs=[job])) == 1


def test_a_priority_that_a_team_may_not_use_any_more_names_its_jobs(before: Deployed) -> None:
    jobs = [_job("long"), _job("other", space="training")]
    assert _said(before, NOT_ALLOWED, jobs=jobs) == [
        "environment.teams.vision.allowed_priorities: this update takes what TrainJob team-vision/long asks for"
        + REFUSES
    ]


def test_images_that_no_prefix_of_a_team_matches_any_more_name_its_jobs(before: Deployed) -> None:
    jobs = [_job("long"), _job("fits", image="registry.example.com/vision/a:1")]
    said = "environment.teams.vision.image_prefixes: this update takes what TrainJob team-vision/long asks for"
    assert _said(before, OTHER_IMAGES, jobs=jobs) == [said + REFUSES]
    job = _job("long", image="")
    made = {(RUNTIME, "torch-distributed"): {"spec": {"containers": [{"image": IMAGE}]}}}
    runtime = Deployed(resources={**before.resources, **made})
    assert _said(runtime, OTHER_IMAGES, jobs=[job]) == [said + REFUSES]


def test_nothing_is_said_of_more_rights_or_of_what_was_never_allowed(before: Deployed) -> None:
    wider = without("teams.vision.image_prefixes")
    assert _said(before, wider, jobs=[_job("long")]) == []
    assert _said(before, OTHER_IMAGES, jobs=[_job("odd", image="docker.io/a:1")]) == []


def test_nobody_is_asked_where_nothing_is_taken(before: Deployed) -> None:
    def show(*_: Any) -> list[Any]:
        raise AssertionError

    more = at("priorities", {"high": 1000, "higher": 2000})
    assert not [*admission_warnings(environment_plan(*ALONE, more), before, show)]
    assert not [*admission_warnings(environment_plan(*ALONE, *NO_CLASS), Deployed(), show)]


def test_a_preview_warns_of_them(before: Deployed) -> None:
    edits = (*ALONE, OTHER_IMAGES)
    found = compared(
        planned(*edits), reading(*edits).lines, lambda *_: before, _shows(_job("long"))
    )
    assert "environment.teams.vision.image_prefixes" in [each.path for each in found.warnings]
