"""Runs are recorded: what an environment makes for it."""

from __future__ import annotations

import json

import pytest

from rehearsal.providers.kubernetes import kinds
from tests.support.graphs import environment
from tests.support.recording import Graph
from tests.support.stackfile import at, errors
from trainyard.plans.jobs import EXPECTED, GOODPUT, INTERVAL, RUN, Expected

PLANNED = {
    "parameters_billion": 0.7,
    "checkpoints": {"store": "scratch", "directory": "t5-large", "interval_minutes": 20},
}


@pytest.fixture(scope="module")
def recorded() -> Graph:
    return environment(at("history", {"days": 7}))


def test_the_setting_adds_its_own_objects_and_changes_nothing(recorded: Graph) -> None:
    before, after = json.loads(environment().golden()), json.loads(recorded.golden())
    assert [each for each in before if each not in after] == []
    added = {each["name"] for each in after if each not in before}
    assert added and all(name.startswith("history") for name in added)


def test_its_pod_has_the_program_and_how_long_runs_stay(recorded: Graph) -> None:
    pod = recorded["Deployment history"].inputs["spec"]["template"]["spec"]
    [container] = pod["containers"]
    files = recorded["ConfigMap history-files"].inputs["data"]
    assert container["command"][2].rpartition("/")[2] in files
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert json.loads(files["settings.json"])["days"] == 7


def test_it_lists_and_writes_only_its_own_config_maps(recorded: Graph) -> None:
    rules = recorded["ClusterRole history-looks"].inputs["rules"]
    assert {verb for rule in rules for verb in rule["verbs"]} == {"list", "watch"}
    assert "secrets" not in {kind for rule in rules for kind in rule["resources"]}
    [own] = recorded["Role history-remembers"].inputs["rules"]
    assert own["resources"] == ["configmaps"]


def test_it_reads_logs_and_jobs_say_what_is_planned_only_where_runs_are_followed() -> None:
    edits = [at(f"jobs.t5-large.{name}", value) for name, value in PLANNED.items()]
    before = environment(*edits)
    followed = environment(*edits, at("history", {"progress": True}))
    rules = followed["ClusterRole history-looks"].inputs["rules"]
    assert [rule["verbs"] for rule in rules if rule["resources"] == ["pods/log"]] == [["get"]]
    planned = followed["TrainJob t5-large"].inputs["metadata"]["annotations"]
    run = before["TrainJob t5-large"].inputs["metadata"]["annotations"]
    assert planned.pop(INTERVAL) == "1200" and 0.5 < float(planned.pop(GOODPUT)) < 1
    assert planned == run, "the run does not start again"


def test_a_job_carries_what_the_plan_counts_for_its_run_and_does_not_start_again_for_it() -> None:
    before = environment()["TrainJob t5-large"]
    after = environment(at("jobs.t5-large.expected_hours", 12))["TrainJob t5-large"]
    notes = dict(after.inputs["metadata"]["annotations"])
    said = Expected.read(notes.pop(EXPECTED))
    assert said == Expected(hours=12, nodes=2, instance_type="g6e.48xlarge", capacity="on_demand")
    assert notes == before.inputs["metadata"]["annotations"]
    assert after.inputs["spec"] == before.inputs["spec"]
    assert [*after.options.replaceOnChanges] == [f'metadata.annotations["{RUN}"]']


def test_the_rehearsal_implements_every_kind_of_it(recorded: Graph) -> None:
    made = [each.inputs for each in recorded.starting("kubernetes:")]
    assert all(kinds.of(inputs) for inputs in made if "kind" in inputs)


def test_its_namespace_is_no_namespace_for_jobs() -> None:
    [error] = errors(at("namespace", "trainyard-history"))
    assert "trainyard-history" in str(error)
