"""A chain of four jobs and a sweep of six in the queue of a team, two nodes for all, a job of the environment and
one of another team that begin every minute: under the real Kueue, the real Trainer and the real controller of
CronJobs. The order is computed from the times of objects and pods alone."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

import pytest
import yaml

from rehearsal import processes
from tests.support.patience import until
from tests.support.worlds import NEEDS_A_WORLD
from tests.worlds.harness import Harness, Object, rehearsing_teams, with_l4
from trainyard.decide import plan_stack
from trainyard.reports.policy import policies
from trainyard.settings.reading.reader import read_file

pytestmark = [pytest.mark.world, pytest.mark.soak, NEEDS_A_WORLD]

ENVIRONMENT, TEAM, NODES, AT_ONCE, MINUTES = "work", "vision", 2, 2, 15
TIMED = "audio"
"""The team whose entry has schedules: true."""
CHAIN = ("prepare", "train", "evaluate", "export")
SWEEP = tuple(f"tune-{x}" for x in (4, 2, 6, 3, 1, 5))
"""Written down a second time, beside the stack files: what the world is compared with."""
TICK_SECONDS = 80
"""A run is longer than the minute between two times."""
IMAGE = "public.ecr.aws/deep-learning-containers/pytorch:2.11.0-cu130-amzn2023"
ROLE = "arn:aws:iam::123456789012:role"
Spans = dict[str, tuple[datetime, datetime]]
"""Run → when it began and ended."""


def job(script: str, *after: str, **more: object) -> Object:
    return {
        "runtime": "torch-distributed",
        "nodes": 1,
        "pool": "l4",
        "image": IMAGE,
        "script": script,
        "shared_memory_gib": 8,
        "after": [*after],
        **more,
    }


def environment() -> Object:
    tick = job(
        f"echo tick {{scheduled_time}}; sleep {TICK_SECONDS}",
        pool="cpu",
        processes_per_node=1,
        schedule={"cron": "* * * * *", "keep_runs": 2},
    )
    one = {"instance_types": ["m7i.4xlarge"], "max_nodes": 1}
    found = with_l4(
        queues={},
        teams={
            TEAM: {"deployer": f"{ROLE}/{TEAM}"},
            TIMED: {"deployer": f"{ROLE}/{TIMED}", "schedules": True},
        },
        jobs={"tick": tick},
    )
    found["trainyard:environment"]["pools"]["l4"]["max_nodes"] = NODES
    found["trainyard:environment"]["pools"]["cpu"] = one
    return found


def team() -> Object:
    sweep = {"over": {"x": [4, 2, 6, 3, 1, 5]}, "at_most": AT_ONCE}
    jobs = {
        "prepare": job("sleep 4; echo prepared"),
        "train": job("sleep 4; echo trained", "prepare"),
        "evaluate": job("sleep 4; echo evaluated", "train"),
        "export": job("sleep 4; echo exported", "evaluate"),
        "tune": job("sleep 6; echo {x}", sweep=sweep),
    }
    return stack_of(TEAM, jobs)


def timed() -> Object:
    """The stack of the team with a schedule, whose runs wait in its queue."""
    schedule = {"cron": "* * * * *", "keep_runs": 1}
    return stack_of(TIMED, {"tock": job("echo tock {scheduled_time}", schedule=schedule)})


def stack_of(team: str, jobs: Object) -> Object:
    return {
        "aws:region": "us-east-2",
        "trainyard:team": {"environment": ENVIRONMENT, "name": team, "jobs": jobs},
    }


@pytest.fixture(scope="module")
def harness() -> Iterator[Harness]:
    stacks = {TEAM: team(), TIMED: timed()}
    files = {f"Pulumi.{name}.yaml": yaml.safe_dump({"config": it}) for name, it in stacks.items()}
    later = ("queues", "teams", "jobs")
    with rehearsing_teams(ENVIRONMENT, environment(), later=later, files=files) as made:
        for name in stacks:
            plan = plan_stack(read_file(name, made.checkout), made.checkout).accepted()
            [policy] = policies(plan).values()
            given = f"--role-name {name} --policy-name contract"
            made.shell(f"aws iam put-role-policy {given} --policy-document '{json.dumps(policy)}'")
            assert made.do("up", "--stack", name) == 0, made.log.read_text()
        made.do("kubeconfig", "--stack", ENVIRONMENT)
        assert processes.wait(lambda: all_ended(made), MINUTES * 60, 2), made.log.read_text()
        yield made


def jobs_of(harness: Harness, namespace: str) -> dict[str, Object]:
    found = harness.get(f"trainjobs --namespace {namespace}")["items"]
    return {each["metadata"]["name"]: each for each in found}


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def since(obj: Object, kind: str) -> datetime | None:
    """When a condition became true."""
    conditions = obj.get("status", {}).get("conditions", [])
    found = (
        c["lastTransitionTime"] for c in conditions if (c["type"], c["status"]) == (kind, "True")
    )
    return next((moment(each) for each in found), None)


def all_ended(harness: Harness) -> bool:
    found = jobs_of(harness, f"team-{TEAM}")
    return {*found} == {*CHAIN, *SWEEP} and all(since(each, "Complete") for each in found.values())


def pods(harness: Harness, namespace: str) -> Spans:
    """When the pod of each run got its node, and when its container ended."""
    found: Spans = {}
    for pod in harness.get(f"pods --namespace {namespace}")["items"]:
        run = pod["metadata"]["labels"].get("jobset.sigs.k8s.io/jobset-name")
        [status] = pod["status"].get("containerStatuses") or [{}]
        end = status.get("state", {}).get("terminated", {}).get("finishedAt")
        began = since(pod, "PodScheduled")
        if run and end and began:
            found[run] = (began, moment(end))
    return found


def at_once(spans: Iterable[tuple[datetime, datetime]]) -> int:
    """The most that went on at the same time, by the second."""
    steps = [(begin, 1) for begin, _ in spans] + [(end, -1) for _, end in spans]
    count = most = 0
    for _, step in sorted(steps, key=lambda each: (each[0], each[1])):
        count += step
        most = max(most, count)
    return most


def test_each_job_of_the_chain_was_made_when_the_one_before_was_complete(harness: Harness) -> None:
    found = jobs_of(harness, f"team-{TEAM}")
    for before, name in zip(CHAIN, CHAIN[1:], strict=False):
        end = since(found[before], "Complete")
        assert end and end <= moment(found[name]["metadata"]["creationTimestamp"]), (before, name)


def test_two_runs_of_the_sweep_went_on_at_once_in_the_order_of_the_file(harness: Harness) -> None:
    found = {name: each for name, each in jobs_of(harness, f"team-{TEAM}").items() if name in SWEEP}
    began = {name: moment(each["metadata"]["creationTimestamp"]) for name, each in found.items()}
    order = sorted(SWEEP, key=lambda name: began[name])
    assert {*order[:AT_ONCE]} == {*SWEEP[:AT_ONCE]} and order[AT_ONCE:] == [*SWEEP[AT_ONCE:]]
    spans = [(began[name], since(found[name], "Complete")) for name in SWEEP]
    assert at_once([(begin, end) for begin, end in spans if end]) == AT_ONCE


def test_kueue_started_no_more_pods_than_the_pool_has_nodes(harness: Harness) -> None:
    spans = pods(harness, f"team-{TEAM}")
    assert {*spans} == {*CHAIN, *SWEEP}
    assert at_once(spans.values()) == NODES
    for workload in harness.get(f"workloads --namespace team-{TEAM}")["items"]:
        assert since(workload, "Admitted"), workload["metadata"]["name"]


def test_a_run_began_at_each_time_and_never_two_at_once(harness: Harness) -> None:
    """A run is longer than a minute: some times are late, and none begins beside a run."""
    seen: Spans = {}
    until(lambda: _gathered(harness, seen), lambda: str(seen), every=5)
    ticks = sorted(seen)
    assert all(re.fullmatch(r"tick-\d{8}-\d{4}", name) for name in ticks), ticks
    assert at_once(seen.values()) == 1
    for name in ticks:
        time = datetime.strptime(f"{name}+0000", "tick-%Y%m%d-%H%M%z")
        assert timedelta(0) <= seen[name][0] - time < timedelta(minutes=5), (name, seen[name])


def _gathered(harness: Harness, seen: Spans) -> bool:
    seen.update(pods(harness, "training"))
    return len(seen) >= 4


def test_a_run_has_what_makes_it_known_and_its_own_time(harness: Harness) -> None:
    found = jobs_of(harness, "training")
    name = min(found)
    meta = found[name]["metadata"]
    assert meta["labels"] == {"trainyard.io/schedule": "tick"}
    assert meta["annotations"]["trainyard.io/run"]
    said = harness.shell(
        f"kubectl logs --namespace training --selector jobset.sigs.k8s.io/jobset-name={name} --tail -1"
    )
    assert f"tick {name.removeprefix('tick-')}" in said
    runs = json.loads(harness.shell(f"{sys.executable} -m trainyard runs {ENVIRONMENT} --json"))[
        "runs"
    ]
    assert {"tick"} == {run["job"][:4] for run in runs if run["namespace"] == "training"}
    assert all(run["by_stack"] for run in runs)


def test_a_run_of_a_team_waits_in_its_queue_and_belongs_to_its_time(harness: Harness) -> None:
    """Kueue takes a job with an owner that is no controller for one of its own."""
    until(lambda: _complete(harness, f"team-{TIMED}"), every=5)
    name, run = min(_complete(harness, f"team-{TIMED}").items())
    assert re.fullmatch(r"tock-\d{8}-\d{4}", name), name
    [owner] = run["metadata"]["ownerReferences"]
    assert owner["kind"] == "Job" and not owner.get("controller")
    workloads = harness.get(f"workloads --namespace team-{TIMED}")["items"]
    [admitted] = [
        since(each, "Admitted")
        for each in workloads
        if each["metadata"]["ownerReferences"][0]["name"] == name
    ]
    assert admitted
    accounts = {
        pod["spec"]["serviceAccountName"]
        for pod in harness.get(f"pods --namespace team-{TIMED}")["items"]
    }
    assert accounts == {"default", "trainyard-schedules"}


def _complete(harness: Harness, namespace: str) -> dict[str, Object]:
    found = jobs_of(harness, namespace)
    return {name: run for name, run in found.items() if since(run, "Complete")}


def test_the_cluster_keeps_as_many_complete_runs_as_the_entry_says(harness: Harness) -> None:
    def kept() -> bool:
        found = jobs_of(harness, "training").values()
        return 2 <= sum(since(each, "Complete") is not None for each in found) <= 3

    until(kept)


def test_no_time_starts_a_run_after_down_and_nothing_is_left(harness: Harness) -> None:
    until(
        lambda: [
            each for each in jobs_of(harness, "training").values() if not since(each, "Complete")
        ]
    )
    for name in (TIMED, TEAM):
        assert harness.do("down", "--stack", name) == 0, harness.log.read_text()
        given = f"--role-name {name}"
        harness.shell(f"aws iam delete-role-policy {given} --policy-name contract")
        harness.shell(f"aws iam delete-role {given}")
    assert harness.do("down", "--stack", ENVIRONMENT) == 0, harness.log.read_text()
