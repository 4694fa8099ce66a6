"""Runs that begin after others of their name, and a team that leaves with a job: nothing of an old run
is there beside a new one, and nothing waits for something that nobody ends."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.support.patience import until
from tests.support.worlds import NEEDS_A_WORLD
from tests.worlds.census import counted
from tests.worlds.harness import Harness, Object, rehearsing_teams, with_l4
from trainyard.decide import plan_stack
from trainyard.reports.policy import policies
from trainyard.settings.reading.reader import read_file

pytestmark = [pytest.mark.world, pytest.mark.apart, NEEDS_A_WORLD]

STACK, TEAM = "ghosts", "nlp"
SLOW = "trap 'sleep 3; exit 143' TERM; sleep 900 & wait"
"""A script that writes a checkpoint when it is told to end."""
TIMES = 2
LUSTRE = {"lustre": {"capacity_gib": 1200, "deployment": "SCRATCH_2"}, "data": "delete"}
CONFIG = with_l4(
    max_nodes=4,
    storage={"scratch": LUSTRE},
    teams={TEAM: {"deployer": f"arn:aws:iam::123456789012:role/{TEAM}", "stores": ["scratch"]}},
    training_operator={"version": "1.8.1"},
)
SETTINGS = CONFIG["trainyard:environment"]
SETTINGS["trainer"]["own_runtimes"] = {"once": {"image": "trainer:1", "max_restarts": 0}}


def job(what: int, **more: Any) -> Object:
    return {
        "nodes": 1,
        "pool": "l4",
        "image": "trainer:1",
        "gpus_per_node": 1,
        "storage": {"scratch": {"path": "/scratch"}},
        "allow_no_checkpoint": True,
        "script": f"echo {what}; {SLOW}",
        "wait": "running",
        "wait_minutes": 10,
        **more,
    }


def both(what: int) -> dict[str, Object]:
    return {"mine": job(what, runtime="once"), "old": job(what, pytorch_job={})}


def of_the_team(jobs: Object) -> Object:
    config = {"environment": STACK, "name": TEAM, "jobs": jobs}
    return {"aws:region": "us-east-2", "trainyard:team": config}


def one(script: str) -> dict[str, Object]:
    return {"llm": job(0, runtime="once", script=script, wait="none")}


def write(harness: Harness, name: str, config: Object) -> None:
    (harness.checkout / f"Pulumi.{name}.yaml").write_text(yaml.safe_dump({"config": config}))


def up(harness: Harness, jobs: Object | None = None, *, teams: bool = True) -> str:
    """Plain pulumi on the environment with these jobs; what it says, at last FAILED where it fails."""
    left_out = () if teams else ("teams",)
    settings = {key: value for key, value in SETTINGS.items() if key not in left_out}
    write(harness, STACK, {**CONFIG, "trainyard:environment": settings | {"jobs": jobs or {}}})
    return pulumi_up(harness, STACK)


def pulumi_up(harness: Harness, stack: str) -> str:
    """Plain pulumi on a stack: what it says, at last FAILED where it fails."""
    return harness.shell(
        f"pulumi up --stack {stack} --yes --skip-preview --non-interactive 2>&1 || echo FAILED"
    )


@pytest.fixture(scope="module")
def harness() -> Iterator[Harness]:
    team = {f"Pulumi.team-{TEAM}.yaml": yaml.safe_dump({"config": of_the_team(one(SLOW))})}
    with rehearsing_teams(STACK, CONFIG, files=team) as made:
        yield made


def changed_stopped_and_deleted(harness: Harness, times: int) -> None:
    with counted(harness) as seen:
        for what in range(times):
            said = up(harness, both(what))
            assert "FAILED" not in said, said
        for name in both(0):
            stopped = harness.shell(
                f"{sys.executable} -m trainyard stop --stack {STACK} --job {name} --yes",
                check=False,
            )
            assert "stopped;" in stopped, stopped
            label = (
                "jobset.sigs.k8s.io/jobset-name"
                if name == "mine"
                else "training.kubeflow.org/job-name"
            )
            assert not harness.get(f"pods -n training -l {label}={name}")["items"]
        for what in range(times):
            assert "FAILED" not in up(harness, both(1000 + what))
            assert "FAILED" not in up(harness), "without jobs"
    assert seen.looks > 10 * times
    assert seen.overlaps == []
    assert {name: len(runs) for name, runs in seen.runs.items()} == {
        "mine": 2 * times,
        "old": 2 * times,
    }
    assert seen.nodes <= 2


def test_no_run_is_beside_a_later_one(harness: Harness) -> None:
    changed_stopped_and_deleted(harness, TIMES)


@pytest.mark.soak
def test_no_run_is_beside_a_later_one_ten_times(harness: Harness) -> None:
    changed_stopped_and_deleted(harness, 10)


def test_a_job_that_changes_its_kind_ends_before_it_begins(harness: Harness) -> None:
    """Each of the two becomes the other, and back."""
    kinds = {"mine": {"pytorch_job": {}}, "old": {"runtime": "once"}}
    other = {name: job(1, **more) for name, more in kinds.items()}
    with counted(harness) as seen:
        for jobs in (both(0), other, both(2)):
            said = up(harness, jobs)
            assert "FAILED" not in said, said
    assert "FAILED" not in up(harness), "without jobs"
    assert seen.overlaps == []
    assert {name: len(runs) for name, runs in seen.runs.items()} == {"mine": 3, "old": 3}
    assert seen.nodes <= 2


def let_the_team(harness: Harness, jobs: Object) -> None:
    """Write the team's stack file, and give its role what the stack needs."""
    write(harness, f"team-{TEAM}", of_the_team(jobs))
    plan = plan_stack(read_file(f"team-{TEAM}", harness.checkout), harness.checkout).accepted()
    [policy] = policies(plan).values()
    given = f"--role-name {TEAM} --policy-name contract"
    harness.shell(f"aws iam put-role-policy {given} --policy-document '{json.dumps(policy)}'")


def down_of_the_team(harness: Harness, times: int) -> None:
    """Both kinds of job run whenever their stack goes down."""
    let_the_team(harness, both(0))
    with counted(harness) as seen:
        for _ in range(times):
            harness.shell(f"pulumi stack select --create --stack team-{TEAM}")
            said = pulumi_up(harness, f"team-{TEAM}")
            assert "FAILED" not in said, said
            assert harness.do("down", "--stack", f"team-{TEAM}") == 0, harness.log.read_text()
    assert seen.looks > 5 * times
    assert seen.overlaps == []
    assert {name: len(runs) for name, runs in seen.runs.items()} == {
        "mine": times,
        "old": times,
    }
    assert seen.nodes <= 2


def test_no_run_outlives_the_stack_of_its_team(harness: Harness) -> None:
    down_of_the_team(harness, TIMES)


@pytest.mark.soak
def test_no_run_outlives_the_stack_of_its_team_ten_times(harness: Harness) -> None:
    down_of_the_team(harness, 10)


def team_up(harness: Harness, script: str) -> None:
    let_the_team(harness, one(script))
    assert harness.do("up", "--stack", f"team-{TEAM}", "--wait", "1") in (0, 1)
    llm = f"pods -n team-{TEAM} -l jobset.sigs.k8s.io/jobset-name=llm"
    assert until(lambda: [p["status"]["phase"] for p in harness.get(llm)["items"]])


@pytest.mark.parametrize("script", [SLOW, "true"], ids=["running", "finished"])
def test_a_team_with_a_job_leaves_after_its_stack(harness: Harness, script: str) -> None:
    """First as nobody should, with the way out of the documents; then in the right order."""
    team_up(harness, script)
    refused = up(harness, teams=False)
    assert f"must stay while stack team-{TEAM} has jobs of the team" in refused
    assert f"pulumi destroy --stack team-{TEAM}" in refused
    # Somebody forgets the stack file: nothing is known of the stack.
    file = harness.checkout / f"Pulumi.team-{TEAM}.yaml"
    text = file.read_text()
    file.unlink()
    if script == SLOW:
        refused = up(harness, teams=False)
        assert f"and in team-{TEAM} TrainJob llm" in refused
        harness.shell(f"kubectl --namespace team-{TEAM} delete trainjob llm")
    said = up(harness, teams=False)
    assert "FAILED" not in said, said
    assert f"this update deletes team {TEAM}" in said
    assert not harness.get("namespaces -l trainyard.io/team")["items"]
    assert not [it for it in harness.get("pv")["items"] if TEAM in it["metadata"]["name"]]
    file.write_text(text)
    harness.shell(
        f"PULUMI_K8S_DELETE_UNREACHABLE=true pulumi refresh --yes --stack team-{TEAM} 2>&1"
    )
    assert harness.do("down", "--stack", f"team-{TEAM}") == 0, harness.log.read_text()
    assert "FAILED" not in up(harness)
    team_up(harness, script)
    assert harness.do("down", "--stack", f"team-{TEAM}") == 0, harness.log.read_text()
    assert "FAILED" not in up(harness, teams=False)
    assert "FAILED" not in up(harness)


def test_down_leaves_nothing(harness: Harness) -> None:
    assert "FAILED" not in up(harness, both(0))
    went_down(harness)


def went_down(harness: Harness) -> None:
    """An environment in which a job of each kind runs goes down: no third run begins."""
    # `down` names what no stack owns, as the role of the team, which a person has made.
    given = f"--role-name {TEAM}"
    harness.shell(f"aws iam delete-role-policy {given} --policy-name contract", check=False)
    harness.shell(f"aws iam delete-role {given}", check=False)
    with counted(harness) as seen:
        assert harness.do("down", "--stack", STACK) == 0, harness.log.read_text()
    assert set(seen.runs) == set(both(0)) and all(len(runs) == 1 for runs in seen.runs.values())
    assert seen.looks > 5 and seen.nodes <= 2


@pytest.mark.soak
def test_down_leaves_nothing_ten_times(harness: Harness) -> None:
    """The world ends with its only stack, and each time a new one comes up."""
    settings = {key: value for key, value in SETTINGS.items() if key != "teams"}
    jobs = {"jobs": both(0)}
    write(harness, STACK, {**CONFIG, "trainyard:environment": settings | jobs})
    (harness.checkout / f"Pulumi.team-{TEAM}.yaml").unlink()
    for _ in range(10):
        harness.do("up", "--stack", STACK, "--wait", "1")  # the jobs go on without it
        went_down(harness)
