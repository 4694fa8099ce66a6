"""Claims stay while jobs of others mount them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.deployed import deployed
from tests.support.graphs import environment
from tests.support.stackfile import SCRATCH, Edit, at, environment_plan, planned, reading, without
from tests.support.teams import listed
from trainyard.catalog.job_kinds import resource_of
from trainyard.replacing.compared import compared
from trainyard.replacing.deployed import PROVIDER, Deployed, Show
from trainyard.replacing.jobs.mounted import mount_errors
from trainyard.replacing.replacing import RUNTIME

ALONE = (at("jobs", {}), listed, without("teams.vision.max_gpus"))
APART = at("storage.scratch.teams", "apart")
NARROWER = at("teams.vision.stores", ["home"])
SPACE = "team-vision"


def gone(settings: dict[str, Any]) -> None:
    """The store leaves."""
    del settings["storage"]["scratch"]
    settings["teams"]["vision"]["stores"] = ["home"]


@pytest.fixture(scope="module")
def before() -> Deployed:
    made = deployed(environment(*ALONE))
    provider = {(PROVIDER, "cluster"): {"kubeconfig": "ours", "clusterIdentifier": "arn"}}
    return Deployed(resources={**made.resources, **provider})


def _job(name: str, *conditions: str, claim: str = SCRATCH, space: str = SPACE) -> Any:
    volume = {"name": "scratch", "persistentVolumeClaim": {"claimName": claim}}
    shown = [{"type": each, "status": "True"} for each in conditions]
    return {
        "metadata": {"name": name, "namespace": space},
        "spec": {
            "runtimeRef": {"name": "torch-distributed"},
            "podTemplateOverrides": [{"spec": {"volumes": [volume]}}],
        },
        "status": {"conditions": shown},
    }


def _shows(*jobs: Any) -> Show:
    return lambda _, kind, space: [*jobs] if kind == resource_of("TrainJob") else []


def _said(before: Deployed, *edits: Edit, jobs: list[Any]) -> list[str]:
    plan = environment_plan(*ALONE, *edits)
    return [str(each) for each in mount_errors(plan, before, _shows(*jobs))]


def test_a_store_stays_until_the_jobs_that_mount_it_have_ended(before: Deployed) -> None:
    jobs = [_job("long"), _job("done", "Complete"), _job("other", claim="home-12345678")]
    assert _said(before, gone, jobs=jobs) == [
        "environment.storage.scratch: must stay as it is while jobs that have not ended mount it: Kubernetes keeps a"
        " claim until its last pod is gone and lets no new pod mount it, so `pulumi up` fails after 10 minutes, and a"
        f" gang that loses a pod never starts again; got no claim {SCRATCH} in team-vision beside TrainJob"
        " team-vision/long. Fix: write it as it was, and change it when they have ended; kubectl --namespace"
        " team-vision delete <kind> <name> ends one"
    ]
    assert _said(before, gone, jobs=jobs[1:]) == []


def test_teams_see_the_same_part_of_a_store_until_their_jobs_have_ended(before: Deployed) -> None:
    [error] = _said(before, APART, jobs=[_job("long")])
    assert error.startswith("environment.storage.scratch: must stay as it is while jobs")


def test_a_team_keeps_its_stores_until_its_jobs_have_ended(before: Deployed) -> None:
    [error] = _said(before, NARROWER, jobs=[_job("long")])
    assert error.startswith("environment.teams.vision.stores: must stay as it is while jobs")
    assert _said(before, NARROWER, jobs=[_job("long", space="team-nlp")]) == []


def test_a_job_whose_runtime_mounts_the_store_keeps_it(before: Deployed) -> None:
    job, of_the_team = _job("long", claim="home-12345678"), _job("own", claim="home-12345678")
    job["spec"]["runtimeRef"]["name"] = "tuned"
    of_the_team["spec"]["runtimeRef"] |= {"name": "tuned", "kind": "TrainingRuntime"}
    assert _said(before, gone, jobs=[job]) == []
    made = {(RUNTIME, "tuned"): {"spec": _job("")["spec"]}}
    [error] = _said(Deployed(resources={**before.resources, **made}), gone, jobs=[job, of_the_team])
    assert "TrainJob team-vision/long." in error


def test_jobs_of_the_stack_itself_and_of_a_team_that_leaves_hold_nothing(before: Deployed) -> None:
    assert _said(before, without("teams.vision"), jobs=[_job("long")]) == []
    own = deployed(environment(listed))
    made = Deployed(resources={**before.resources, **own.resources})
    leaves = _job("t5-large", space="training")
    assert _said(made, APART, jobs=[leaves]) == []
    assert len(_said(before, APART, jobs=[leaves])) == 1


def test_nobody_is_asked_where_claims_stay(before: Deployed) -> None:
    def show(*_: Any) -> list[Any]:
        raise AssertionError

    assert not [*mount_errors(environment_plan(*ALONE), before, show)]
    assert not [*mount_errors(environment_plan(*ALONE, gone), Deployed(), show)]


def test_a_preview_refuses_to_take_a_store_from_under_a_job(before: Deployed) -> None:
    edits = (*ALONE, NARROWER)
    found = compared(
        planned(*edits), reading(*edits).lines, lambda *_: before, _shows(_job("long"))
    )
    assert "environment.teams.vision.stores" in [each.path for each in found.errors]
