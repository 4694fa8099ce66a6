"""Prometheus itself, as the pod of the program's own Deployment, asks the real controllers of a world."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml

from rehearsal import processes
from tests.support.grafana import panels
from tests.support.worlds import NEEDS_A_WORLD
from tests.worlds.harness import Harness, Object, rehearsing_teams, with_l4
from tests.worlds.prometheus import asked, values
from trainyard.objects.metrics import grafana
from trainyard.objects.metrics.metrics import APP, NAMESPACE
from trainyard.plans.push_gateway import PORT as PUSH_PORT

pytestmark = [pytest.mark.world, pytest.mark.soak, NEEDS_A_WORLD]

CONTROLLERS = (
    *("karpenter", "trainer", "jobset", "training-operator", "kueue"),
    "trainyard-history",
)
PATIENCE = 600
SQS = 'aws sqs --endpoint-url "$AWS_ENDPOINT_URL"'
"""Version 1 of the AWS CLI does not read the variable for this service alone."""


STACK = with_l4(
    training_operator={"version": "1.8.1"},
    queues={},
    history={"progress": True},
    teams={"vision": {"deployer": "arn:aws:iam::123456789012:role/vision"}},
    metrics={
        "push_gateway": True,
        "grafana": True,
        "managed_prometheus": {"data": "delete"},
        "alerts": {"emails": ["gpu-oncall@example.com"], "severity": "info"},
    },
)


@pytest.fixture(scope="module")
def rehearsal() -> Iterator[Harness]:
    later = ("queues", "teams", "metrics")
    with rehearsing_teams("watched", STACK, later=later) as made:
        yield made


def test_every_controller_answers(rehearsal: Harness) -> None:
    def all_up() -> bool:
        found = values(rehearsal, "max by (job) (up)")
        return all(found.get(name) == 1 for name in (*CONTROLLERS, "prometheus"))

    assert processes.wait(all_up, PATIENCE), asked(rehearsal, "targets?state=active")


def test_no_rule_has_an_error_and_no_controller_is_missed(rehearsal: Harness) -> None:
    [group] = asked(rehearsal, "rules")["groups"]
    assert {rule["health"] for rule in group["rules"]} <= {"ok", "unknown"}
    assert [rule.get("lastError") for rule in group["rules"] if rule.get("lastError")] == []
    firing = {
        each["labels"]["alertname"]
        for each in asked(rehearsal, "alerts")["alerts"]
        if each["state"] == "firing"  # others only begin to hold
    }
    assert "Watchdog" in firing and "ControllerDown" not in firing


def test_an_alert_reaches_who_reads_the_topic(rehearsal: Harness) -> None:
    """Published by Alertmanager itself, in the name of its pod's role."""
    [topic] = json.loads(rehearsal.shell("aws sns list-topics"))["Topics"]
    queue = json.loads(rehearsal.shell(f"{SQS} create-queue --queue-name reader"))["QueueUrl"]
    asked_for = f"{SQS} get-queue-attributes --queue-url {queue} --attribute-names QueueArn"
    arn = json.loads(rehearsal.shell(asked_for))["Attributes"]["QueueArn"]
    of_topic = f"aws sns subscribe --topic-arn {topic['TopicArn']} --protocol sqs"
    rehearsal.shell(f"{of_topic} --notification-endpoint {arn}")
    rehearsal.shell(f"kubectl delete pods --namespace {NAMESPACE} --selector {APP}=alertmanager")
    received: list[Object] = []

    def told() -> bool:
        said = rehearsal.shell(f"{SQS} receive-message --queue-url {queue}").strip()
        received.extend(
            json.loads(one["Body"]) for one in json.loads(said or "{}").get("Messages", ())
        )
        return any("Prometheus judges its rules" in one["Message"] for one in received)

    try:
        assert processes.wait(told, PATIENCE), received
        assert received[0]["Subject"].startswith("FIRING watched: ")
        assert "Fix: " in received[0]["Message"]
    finally:
        rehearsal.shell(f"{SQS} delete-queue --queue-url {queue}")


def test_what_a_run_pushes_is_in_prometheus_under_its_own_name(
    rehearsal: Harness, tmp_path: Path
) -> None:
    """Through the Service that jobs are told of."""
    (figure := tmp_path / "figure").write_text("train_loss 0.17\n")
    gateway = f"/api/v1/namespaces/{NAMESPACE}/services/pushgateway:{PUSH_PORT}/proxy"
    rehearsal.shell(f"kubectl create --raw {gateway}/metrics/job/t5-large -f {figure}")
    assert processes.wait(
        lambda: values(rehearsal, "train_loss").get("t5-large") == 0.17, PATIENCE
    ), asked(rehearsal, "targets?state=active")


def test_samples_arrive_in_the_workspace_signed_by_the_role_and_by_nobody_else(
    rehearsal: Harness,
) -> None:
    """What Prometheus sent with the keys of its pod. Without the policy of the role it is refused."""
    [workspace] = rehearsal.aws("amp").list_workspaces()["workspaces"]
    path = f"workspaces/{workspace['workspaceId']}/api/v1/label/__name__/values"
    keys = '--user "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY"'
    asked_for = f'curl -s --aws-sigv4 "aws:amz:$AWS_REGION:aps" {keys} "$AWS_ENDPOINT_URL/{path}"'

    def arrived() -> bool:
        return "karpenter_build_info" in json.loads(rehearsal.shell(asked_for)).get("data", ())

    failed = "max by (job) (prometheus_remote_storage_samples_failed_total)"
    assert processes.wait(arrived, PATIENCE), asked(rehearsal, f"query?query={quote(failed)}")
    assert values(rehearsal, failed) == {"prometheus": 0}
    iam = rehearsal.aws("iam")
    [role] = [r["RoleName"] for r in iam.list_roles()["Roles"] if "-prometheus-" in r["RoleName"]]
    written = iam.get_role_policy(RoleName=role, PolicyName="write")["PolicyDocument"]
    iam.delete_role_policy(RoleName=role, PolicyName="write")
    try:
        assert processes.wait(lambda: values(rehearsal, failed)["prometheus"] > 0, PATIENCE)
        assert processes.wait(
            lambda: bool(values(rehearsal, 'ALERTS{alertname="SamplesLost"}')), 60
        )
    finally:
        iam.put_role_policy(RoleName=role, PolicyName="write", PolicyDocument=json.dumps(written))


def test_no_alert_fired_since_prometheus_began(rehearsal: Harness) -> None:
    """But for those that say what is no fault."""
    fired = 'count by (alertname) (count_over_time(ALERTS{alertstate="firing"}[1d]))'
    found = asked(rehearsal, f"query?query={quote(fired)}")["result"]
    assert {each["metric"]["alertname"] for each in found} == {"Watchdog"}, found


def test_every_panel_of_grafana_is_answered_by_prometheus(
    rehearsal: Harness, tmp_path: Path
) -> None:
    """Grafana is a stand-in; its files, its data source and Prometheus are not."""
    at = f"/api/v1/namespaces/{NAMESPACE}/services/{grafana.APP}:{grafana.PORT}/proxy/api"

    def ask(path: str, body: Any) -> Any:
        (file := tmp_path / "body.json").write_text(json.dumps(body))
        verb = "get" if body is None else f"create -f {file}"
        return json.loads(rehearsal.shell(f"kubectl {verb} --raw '{at}/{path}'"))

    found = [*panels(ask)]
    assert {page for page, _, _ in found} == {
        f"{name} of watched" for name in ("Fleet", "Team", "Run", "Platform")
    }
    assert [each for each in found if each[2]["status"] != 200] == []
    shown = {panel for _, panel, answer in found if answer["frames"]}
    of_controllers = {"Series in Prometheus", "Programs that answer", "Memory of programs"}
    assert of_controllers | {"GPUs guaranteed"} <= shown, shown


def test_metrics_go_and_leave_nothing(rehearsal: Harness) -> None:
    less = copy.deepcopy(STACK)
    del less["trainyard:environment"]["metrics"]
    (rehearsal.checkout / "Pulumi.watched.yaml").write_text(yaml.safe_dump({"config": less}))
    assert rehearsal.do("up", "--stack", "watched") == 0, rehearsal.log.read_text()
    assert NAMESPACE not in rehearsal.shell("kubectl get namespaces --output name")
    assert NAMESPACE not in rehearsal.shell("kubectl get clusterroles --output name")
    assert json.loads(rehearsal.shell("aws sns list-topics"))["Topics"] == []
    assert rehearsal.aws("amp").list_workspaces()["workspaces"] == []
