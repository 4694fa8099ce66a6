"""Who is told of alerts: what an environment makes for it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.graphs import environment
from tests.support.recording import Graph
from tests.support.stackfile import Edit, at, environment_plan, planned
from trainyard.plan import EnvironmentPlan
from trainyard.reports import plan as report
from trainyard.reports import policy

TOPIC = "arn:aws:sns:ap-northeast-2:123456789012:gpu-alerts"
ADDRESS = "gpu-oncall@example.com"
TOLD, WITH_TOPIC = (
    at("metrics", {"alerts": each}) for each in ({"emails": [ADDRESS]}, {"topic_arn": TOPIC})
)


@pytest.fixture(scope="module")
def told() -> Graph:
    return environment(TOLD)


@pytest.fixture(scope="module")
def with_topic() -> Graph:
    return environment(WITH_TOPIC)


def config(graph: Graph) -> Any:
    return json.loads(graph["ConfigMap alertmanager-file"].inputs["data"]["alertmanager.json"])


def test_without_the_setting_nobody_is_told() -> None:
    graph = environment(at("metrics", {}))
    assert "alertmanager" not in graph.golden() and "alerts_topic" not in graph.outputs


def test_the_setting_changes_the_files_of_prometheus_and_nothing_else(told: Graph) -> None:
    before = json.loads(environment(at("metrics", {})).golden())
    after = json.loads(told.golden())
    assert {each["name"] for each in before if each not in after} <= {"metrics-files"}
    added = {each["name"] for each in after if each not in before}
    assert all(name.startswith(("alertmanager", "metrics-files")) for name in added)


def test_prometheus_sends_its_alerts_to_the_pod_of_alertmanager(told: Graph) -> None:
    sent = json.loads(told["ConfigMap metrics-files"].inputs["data"]["prometheus.yml"])
    [target] = sent["alerting"]["alertmanagers"]
    [found] = target["kubernetes_sd_configs"]
    label, _, value = found["selectors"][0]["label"].partition("=")
    template = told["Deployment alertmanager"].inputs["spec"]["template"]
    assert template["metadata"]["labels"][label] == value
    assert {"target_label": "__address__", "replacement": "$1:9093"}.items() <= target[
        "relabel_configs"
    ][1].items()


def test_addresses_subscribe_to_an_encrypted_topic_of_the_stack(told: Graph) -> None:
    topic = told["Topic alertmanager-topic"]
    assert topic.inputs["kmsMasterKeyId"] and topic.inputs["name"].startswith("dev-alerts-")
    reader = told[f"TopicSubscription alertmanager-{ADDRESS}"].inputs
    assert (reader["protocol"], reader["endpoint"]) == ("email", ADDRESS)


def test_a_topic_of_somebody_is_published_to_and_not_made(with_topic: Graph) -> None:
    assert not with_topic.starting("aws:sns/")
    assert config(with_topic)["receivers"][1]["sns_configs"][0]["topic_arn"] == TOPIC
    assert with_topic.outputs["alerts_topic"] == TOPIC


def test_its_role_may_publish_to_that_topic_and_do_nothing_else(with_topic: Graph) -> None:
    document = json.loads(with_topic["RolePolicy alertmanager-topic"].inputs["policy"])
    [statement] = document["Statement"]
    assert (statement["Action"], statement["Resource"]) == ("sns:Publish", TOPIC)


def test_only_its_own_service_account_gets_the_role(told: Graph) -> None:
    trust = json.loads(told["Role alertmanager"].inputs["assumeRolePolicy"])
    limits = trust["Statement"][0]["Condition"]["StringEquals"]
    assert limits["aws:RequestTag/kubernetes-service-account"] == "alertmanager"
    assert limits["aws:RequestTag/kubernetes-namespace"] == "trainyard-metrics"


def test_its_pod_starts_after_its_identity_and_has_no_other(told: Graph) -> None:
    pod = told["Deployment alertmanager"]
    assert told.waits_for(pod, told["PodIdentityAssociation alertmanager"])
    assert told.waits_for(pod, told["RolePolicy alertmanager-topic"])
    spec = pod.inputs["spec"]["template"]["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True


def test_another_configuration_is_another_pod(told: Graph, with_topic: Graph) -> None:
    """Alertmanager reads its file when it starts."""
    template = "Deployment alertmanager"
    assert (
        told[template].inputs["spec"]["template"] != with_topic[template].inputs["spec"]["template"]
    )


@pytest.mark.parametrize(
    ("severity", "sent"),
    [("critical", "critical"), ("warning", "critical|warning"), ("info", "critical|warning|info")],
)
def test_alerts_from_the_least_severity_on_are_sent(severity: str, sent: str) -> None:
    graph = environment(at("metrics", {"alerts": {"topic_arn": TOPIC, "severity": severity}}))
    assert config(graph)["route"]["routes"][0]["matchers"] == [f'severity=~"{sent}"']


def test_the_plan_says_who_is_told() -> None:
    def said(*edits: Edit) -> str:
        made = environment_plan(*edits)
        assert isinstance(made, EnvironmentPlan)
        return " ".join(report.text(made).split())

    assert "nobody is told of alerts: set environment.metrics.alerts" in said(at("metrics", {}))
    assert f"alerts (critical and warning) are sent to {TOPIC}" in said(WITH_TOPIC)
    assert f"with {ADDRESS}" in said(TOLD)


def test_a_topic_that_nobody_reads_is_a_warning() -> None:
    def warned(*edits: Edit) -> bool:
        found = [w for w in planned(*edits).warnings if "nobody reads the topic" in w.text]
        assert {each.path for each in found} <= {"environment.metrics.alerts"}
        return bool(found)

    assert warned(at("metrics", {"alerts": {}}))
    assert not warned(TOLD) and not warned(WITH_TOPIC) and not warned(at("metrics", {}))


def test_who_deploys_may_make_topics_of_the_stack_only() -> None:
    def statements(*edits: Edit) -> list[dict[str, Any]]:
        made = policy.policies(environment_plan(*edits))
        return [each for document in made.values() for each in document["Statement"]]

    [write] = [each for each in statements(TOLD) if each["Sid"] == "WriteSns"]
    assert write["Resource"] == "arn:aws:sns:ap-northeast-2:*:dev-*"
    assert {"sns:CreateTopic", "sns:DeleteTopic", "sns:Subscribe"} <= {*write["Action"]}
    assert not [each for each in statements(WITH_TOPIC) if "sns:" in json.dumps(each)]
