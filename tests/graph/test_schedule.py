"""The schedule of a job in the graph: its CronJob, and the rights of the pod that makes a run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.graph.test_secrets import differ
from tests.support.graphs import environment
from tests.support.recording import Graph
from tests.trainyard.derive.test_schedule import nightly


@pytest.fixture(scope="module")
def graph() -> Graph:
    return environment(nightly(files={"sources": ["workloads/whole.py"], "path": "/app"}))


def settings(graph: Graph) -> dict[str, Any]:
    [files] = [each for each in graph.of("ConfigMap") if each.name == "nightly-program"]
    return json.loads(files.inputs["data"]["settings.json"])


def test_an_update_makes_a_cron_job_and_no_run(graph: Graph) -> None:
    assert [each.name for each in graph.of("TrainJob")] == ["t5-large"]
    spec = graph["CronJob nightly"].inputs["spec"]
    assert spec["schedule"] == "0 3 * * 1" and spec["timeZone"] == "Etc/UTC"
    assert spec["concurrencyPolicy"] == "Forbid" and spec["startingDeadlineSeconds"] == 3600
    assert spec["successfulJobsHistoryLimit"] == spec["failedJobsHistoryLimit"] == 3


def test_its_pod_may_make_runs_of_either_kind_and_files_and_read_nothing_else(graph: Graph) -> None:
    """A run that goes on while its entry changes its kind is asked for with the rights of the new description."""
    rules = graph["Role nightly-starts"].inputs["rules"]
    assert rules == [
        {
            "apiGroups": ["trainer.kubeflow.org"],
            "resources": ["trainjobs"],
            "verbs": ["create", "get", "list"],
        },
        {
            "apiGroups": ["kubeflow.org"],
            "resources": ["pytorchjobs"],
            "verbs": ["create", "get", "list"],
        },
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]},
    ]
    [subject] = graph["RoleBinding nightly-starts"].inputs["subjects"]
    pod = graph["CronJob nightly"].inputs["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert subject["name"] == pod["serviceAccountName"] == "nightly-schedule"


def test_a_run_has_what_a_job_of_an_entry_has(graph: Graph) -> None:
    files, job = [each["object"] for each in settings(graph)["objects"]]
    assert files["kind"] == "ConfigMap" and "whole.py" in files["data"]
    assert job["metadata"]["name"] == "{scheduled_run}"
    assert job["metadata"]["labels"] == {"trainyard.io/schedule": "nightly"}
    one = environment(
        nightly(
            schedule=None,
            files={"sources": ["workloads/whole.py"], "path": "/app"},
            labels={"trainyard.io/schedule": "nightly"},
            checkpoints={"store": "scratch", "directory": "nightly"},
        )
    )["TrainJob nightly"].inputs
    own = json.dumps(job["spec"]).replace("nightly/{scheduled_time}", "nightly")
    [mounted] = [
        each["configMap"]["name"]
        for each in one["spec"]["podTemplateOverrides"][0]["spec"]["volumes"]
        if "configMap" in each
    ]
    assert json.loads(own.replace("{scheduled_run}-files", mounted)) == one["spec"]
    of_the_engine = {"pulumi.com/deletionPropagationPolicy"}
    assert {*job["metadata"]["annotations"]} == {*one["metadata"]["annotations"]} - of_the_engine


def test_its_times_begin_when_everything_that_a_run_needs_is_there(graph: Graph) -> None:
    cron = graph["CronJob nightly"]
    for earlier in ("ServiceAccount nightly-account", "RoleBinding nightly-starts"):
        assert graph.waits_for(cron, graph[earlier])
    assert graph.waits_for(cron, graph["NodePool g6e-pool"])
    meta = cron.inputs["metadata"]
    assert meta["annotations"] == {"pulumi.com/deletionPropagationPolicy": "background"}


def test_a_schedule_changes_no_other_resource(graph: Graph) -> None:
    new, changed = differ(environment(), graph)
    assert changed == set() and {each.split()[0] for each in new} == {
        "Schedule",
        "ServiceAccount",
        "ConfigMap",
        "Role",
        "RoleBinding",
        "CronJob",
    }


def test_an_output_says_how_to_see_its_times_and_to_start_a_run_now(graph: Graph) -> None:
    assert {*graph.outputs["jobs"]} == {"t5-large"}
    assert graph.outputs["schedules"] == {
        "nightly": {
            "kind": "TrainJob",
            "namespace": "training",
            "name": "nightly",
            "cron": "0 3 * * 1",
            "time_zone": "Etc/UTC",
            "status": "kubectl -n training get cronjob nightly"
            " && kubectl -n training get trainjob,jobs -l trainyard.io/schedule=nightly",
            "start": "kubectl -n training create job --from=cronjob/nightly"
            " nightly-$(date -u +%Y%m%d-%H%M)",
        }
    }
    assert "schedules" not in environment().outputs
