"""Metrics that AWS keeps: what an environment makes for them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.graphs import environment
from tests.support.recording import Graph
from tests.support.stackfile import Edit, at, environment_plan
from tests.support.stacks import KEY
from trainyard.live.encryption import encryption
from trainyard.plan import EnvironmentPlan
from trainyard.reports import plan as report
from trainyard.reports import policy
from trainyard.reports.costs.cost import estimate

REMOTE = {"url": "https://metrics.example.com/api/v1/write"}
SENT = at("metrics", {"managed_prometheus": {"retention_days": 400}})
BOTH = at("metrics", {"managed_prometheus": {"data": "delete"}, "remote_write": REMOTE})


@pytest.fixture(scope="module")
def sent() -> Graph:
    return environment(SENT)


def receivers(graph: Graph) -> list[dict[str, Any]]:
    file = graph["ConfigMap metrics-files"].inputs["data"]["prometheus.yml"]
    return json.loads(file).get("remote_write", [])


def test_without_the_setting_aws_keeps_nothing() -> None:
    graph = environment(at("metrics", {}))
    assert not graph.starting("aws:amp/") and receivers(graph) == []
    template = graph["Deployment metrics-prometheus"].inputs["spec"]["template"]
    assert "annotations" not in template["metadata"]


def test_the_setting_adds_a_workspace_and_changes_prometheus_alone(sent: Graph) -> None:
    before = json.loads(environment(at("metrics", {})).golden())
    after = json.loads(sent.golden())
    changed = {"metrics-files", "metrics-prometheus"}
    assert {each["name"] for each in before if each not in after} == changed
    added = {each["name"] for each in after if each not in before} - changed
    assert all(name.startswith("managed-prometheus") for name in added)


def test_the_workspace_keeps_samples_for_the_days_that_the_setting_says(sent: Graph) -> None:
    workspace = sent["Workspace managed-prometheus"]
    assert workspace.inputs["alias"].startswith("dev-metrics-")
    [kept] = sent.starting("aws:amp/workspaceConfiguration")
    assert kept.inputs["retentionPeriodInDays"] == 400
    assert sent.waits_for(kept, workspace)


def test_prometheus_signs_what_it_sends_to_the_workspace(sent: Graph) -> None:
    [receiver] = receivers(sent)
    assert receiver["url"].endswith("/api/v1/remote_write")
    assert receiver["sigv4"] == {"region": "ap-northeast-2"}


def test_the_workspace_stands_beside_another_receiver() -> None:
    plain, signed = receivers(environment(BOTH))
    assert plain == REMOTE and "sigv4" in signed


def test_its_role_may_write_to_that_workspace_and_read_none(sent: Graph) -> None:
    document = json.loads(sent["RolePolicy managed-prometheus-write"].inputs["policy"])
    [statement] = document["Statement"]
    assert statement["Action"] == "aps:RemoteWrite"
    assert "workspace" in statement["Resource"] and statement["Resource"] != "*"


def test_only_the_service_account_of_prometheus_gets_the_role(sent: Graph) -> None:
    trust = json.loads(sent["Role managed-prometheus"].inputs["assumeRolePolicy"])
    limits = trust["Statement"][0]["Condition"]["StringEquals"]
    pod = sent["Deployment metrics-prometheus"].inputs["spec"]["template"]["spec"]
    assert limits["aws:RequestTag/kubernetes-service-account"] == pod["serviceAccountName"]
    assert limits["aws:RequestTag/kubernetes-namespace"] == "trainyard-metrics"


def test_a_prometheus_that_runs_starts_again_with_its_identity(sent: Graph) -> None:
    """Pod Identity reaches a pod when it starts, and Prometheus refuses a file that it cannot sign for."""
    pod = sent["Deployment metrics-prometheus"]
    assert sent.waits_for(pod, sent["PodIdentityAssociation managed-prometheus"])
    assert sent.waits_for(pod, sent["RolePolicy managed-prometheus-write"])
    annotations = pod.inputs["spec"]["template"]["metadata"]["annotations"]
    assert "managed-prometheus" in annotations["trainyard/writes-as"]


def test_the_history_outlives_the_stack_unless_its_owner_says_delete(sent: Graph) -> None:
    assert sent["Workspace managed-prometheus"].options.protect
    assert not environment(BOTH)["Workspace managed-prometheus"].options.protect


def test_an_output_says_where_it_is_read(sent: Graph) -> None:
    [receiver] = receivers(sent)
    assert receiver["url"] == f"{sent.outputs['managed_prometheus']}api/v1/remote_write"


def test_a_key_of_the_company_encrypts_the_history() -> None:
    made = environment(SENT, at("kms_key_arn", KEY))
    assert made["Workspace managed-prometheus"].inputs["kmsKeyArn"] == KEY
    said = " ".join(" ".join(encryption(environment_plan(SENT, at("kms_key_arn", KEY)))).split())
    assert "the history of metrics" in said


def test_the_plan_says_how_many_samples_are_paid() -> None:
    made = environment_plan(SENT)
    assert isinstance(made, EnvironmentPlan)
    said = " ".join(report.text(made).split())
    assert "gets up to 2,277 million samples a month, and keeps them for 400 days" in said
    [line] = [each for each in estimate(made).usage if each.what == "managed Prometheus"]
    assert "by use" in line.assumption


def test_figures_that_jobs_push_are_paid_too() -> None:
    made = environment_plan(SENT, at("metrics.push_gateway", True))
    assert isinstance(made, EnvironmentPlan)
    assert "gets up to 4,029 million samples a month" in " ".join(report.text(made).split())


def test_who_deploys_may_delete_workspaces_of_the_stack_only() -> None:
    def statements(*edits: Edit) -> list[dict[str, Any]]:
        made = policy.policies(environment_plan(*edits))
        return [each for document in made.values() for each in document["Statement"]]

    [delete] = [each for each in statements(SENT) if "aps:DeleteWorkspace" in each["Action"]]
    assert delete["Condition"] == {"StringEquals": {"aws:ResourceTag/trainyard:stack": "dev"}}
    assert not [each for each in statements() if "aps:" in json.dumps(each)]
