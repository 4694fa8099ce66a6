"""What somebody of a team tries with a schedule at a real API server, where its entry has `schedules: true`: each
attack is refused, and passes when its rule is taken away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from rehearsal.kube import Object
from tests.controllers.test_queue_attacks import OWNER, job
from tests.controllers.test_team_attacks import OWN, named
from tests.support.patience import until
from tests.support.stackfile import environment_plan
from tests.support.team_server import (
    PREFIX,
    As,
    TeamServer,
    environment_with_schedules,
    refusal,
    team_server,
    without_rule,
)
from tests.trainyard.derive.test_schedule import nightly
from trainyard.objects.jobs.pod_template import GPU
from trainyard.objects.jobs.schedule import cron_job_spec
from trainyard.objects.teams.team_admission import OF_SCHEDULES, RULES, WITH_SCHEDULES
from trainyard.objects.teams.teams import STARTER

CRON_JOBS, JOBS = f"/apis/batch/v1/{OWN}/cronjobs", f"/apis/batch/v1/{OWN}/jobs"
PODS, RUNS = f"/api/v1/{OWN}/pods", f"/apis/trainer.kubeflow.org/v1alpha1/{OWN}/trainjobs"


@pytest.fixture(scope="module")
def teams(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamServer]:
    with team_server(tmp_path_factory.mktemp("schedules"), environment_with_schedules) as made:
        yield made


def ours() -> Any:
    """The spec of a CronJob as this program makes it for a team."""
    plan = environment_plan(nightly()).jobs["nightly"]
    assert plan.schedule
    return cron_job_spec(plan, replace(plan.schedule, account=STARTER))


def changed(way: str, **fields: Any) -> Object:
    """A CronJob of ours with other fields at a place."""
    spec = ours()
    place = spec["jobTemplate"]["spec"]
    for key in way.split("/") if way else ():
        place = place[int(key) if key.isdecimal() else key]
    place.update(fields)
    return named("batch/v1", "CronJob", spec=spec)


POD, CONTAINER = "template/spec", "template/spec/containers/0"
OTHER = {"name": "train", "image": f"{PREFIX}train:1"}
GPUS = {"limits": {GPU: "8", "memory": "64Mi"}, "requests": {"cpu": "10m"}}
LARGE = {"limits": {"memory": "64Mi"}, "requests": {"cpu": "64", "memory": "64Mi"}}
ACCOUNT, STARTS, ONE = (
    WITH_SCHEDULES["service account"].message,
    OF_SCHEDULES["service account"].message,
    OF_SCHEDULES["one pod"].message,
)
REFUSED: dict[str, tuple[str, Object]] = {
    "A17 GPUs past the queue": (STARTS, changed(CONTAINER, resources=GPUS)),
    "A17 a node of CPUs past the queue": (STARTS, changed(CONTAINER, resources=LARGE)),
    "A17 a second container": (STARTS, changed(POD, initContainers=[OTHER])),
    "A17 a thousand pods": (ONE, changed("", parallelism=1000, completions=1000)),
    "A17 pods one after the other": (ONE, changed("", completions=1000)),
    "A17 another program under the account of training": (
        STARTS,
        changed(POD, serviceAccountName="default"),
    ),
    "A9 a folder of the node": (
        RULES["volumes"].message,
        changed(POD, volumes=[{"name": "program", "hostPath": {"path": "/"}}]),
    ),
    "A8 another account": (STARTS, changed(POD, serviceAccountName="other")),
    "an image of another team": (
        RULES["images"].message,
        changed(CONTAINER, image="registry.example.com/nlp/a:1"),
    ),
}
"""What is tried → the sentence that refuses it, and the CronJob."""


def of_cron_job(body: Object) -> Object:
    """A Job as kubectl makes it of a CronJob."""
    return named("batch/v1", "Job", spec=body["spec"]["jobTemplate"]["spec"])


def test_the_schedule_of_a_job_is_admitted_and_a_run_of_it_by_hand(teams: TeamServer) -> None:
    sound = changed("")
    assert refusal(teams.of("deployer"), "POST", CRON_JOBS, sound) == ""
    assert refusal(teams.of("deployer"), "POST", JOBS, of_cron_job(sound)) == ""
    pod = named("v1", "Pod", spec=ours()["jobTemplate"]["spec"]["template"]["spec"])
    assert refusal(teams.of("job-controller"), "POST", PODS, pod) == ""


@pytest.mark.parametrize("role", ["member", "viewer"])
def test_others_of_the_team_read_schedules_and_make_none(teams: TeamServer, role: str) -> None:
    assert "cannot create" in refusal(teams.of(role), "POST", CRON_JOBS, changed(""))
    assert "cannot create" in refusal(teams.of(role), "POST", JOBS, of_cron_job(changed("")))
    assert teams.of(role).request("GET", CRON_JOBS)["items"] == []


@pytest.mark.parametrize("case", REFUSED)
def test_anything_else_is_refused_by_its_sentence(teams: TeamServer, case: str) -> None:
    message, body = REFUSED[case]
    assert message in refusal(teams.of("deployer"), "POST", CRON_JOBS, body)
    assert message in refusal(teams.of("deployer"), "POST", JOBS, of_cron_job(body))


@pytest.mark.parametrize("message", sorted({message for message, _ in REFUSED.values()}))
def test_without_its_rule_each_attack_passes(teams: TeamServer, message: str) -> None:
    bodies = [body for said, body in REFUSED.values() if said == message]
    deployer = teams.of("deployer")
    with without_rule(teams, message):
        for body in bodies:
            assert until(lambda body=body: not refusal(deployer, "POST", CRON_JOBS, body))
    for body in bodies:
        assert until(lambda body=body: bool(refusal(deployer, "POST", CRON_JOBS, body)))


def test_a_large_pod_cannot_have_the_account_of_schedules(teams: TeamServer) -> None:
    attack = named(
        "v1",
        "Pod",
        spec=changed(CONTAINER, resources=GPUS)["spec"]["jobTemplate"]["spec"]["template"]["spec"],
    )
    controller = teams.of("job-controller")
    assert ACCOUNT in refusal(controller, "POST", PODS, attack)
    with without_rule(teams, ACCOUNT):
        assert until(lambda: not refusal(controller, "POST", PODS, attack))
    assert until(lambda: bool(refusal(controller, "POST", PODS, attack)))


def starter(teams: TeamServer, space: str = "team-vision") -> As:
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{space}")
    return As(teams.server, f"system:serviceaccount:{space}:{STARTER}", *groups)


def test_the_account_makes_a_run_in_the_queue_of_its_team(teams: TeamServer) -> None:
    owner = {key: it for key, it in OWNER.items() if key != "controller"}
    run = job(ownerReferences=[owner])
    assert refusal(starter(teams), "POST", RUNS, run) == ""
    assert "queue" in refusal(starter(teams), "POST", RUNS, job(queue="nlp"))
    controlled = job(ownerReferences=[OWNER])
    assert "must not be a controller" in refusal(starter(teams), "POST", RUNS, controlled)


def test_the_account_of_a_team_without_schedules_is_not_there(teams: TeamServer) -> None:
    elsewhere = RUNS.replace("team-vision", "team-nlp")
    assert "cannot create" in refusal(starter(teams, "team-nlp"), "POST", elsewhere, job())
    as_nlp = As(teams.server, "the deployer of nlp", "trainyard:team-nlp:deployer")
    body = changed("")
    answer = refusal(as_nlp, "POST", CRON_JOBS.replace("team-vision", "team-nlp"), body)
    assert STARTS in answer


@pytest.mark.parametrize(
    ("verb", "path"),
    [
        ("GET", f"/api/v1/{OWN}/secrets"),
        ("POST", PODS),
        ("POST", JOBS),
        ("POST", CRON_JOBS),
        ("DELETE", f"{RUNS}/train"),
        ("GET", RUNS.replace("team-vision", "team-nlp")),
        ("GET", "/api/v1/nodes"),
    ],
)
def test_the_account_may_do_nothing_else(teams: TeamServer, verb: str, path: str) -> None:
    body = {"metadata": {"name": "train"}} if verb != "GET" else None
    assert "cannot" in refusal(starter(teams), verb, path, body)
