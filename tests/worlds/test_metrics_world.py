"""Prometheus itself, as the pod of the program's own Deployment, asks the real controllers of a world."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest
import yaml

from plans.metrics import NAMESPACE, PORT
from plans.policies import document
from rehearsal import processes, world
from tests.worlds.harness import Harness, Object, rehearsing

pytestmark = [
    pytest.mark.world,
    pytest.mark.soak,
    pytest.mark.skipif(world.obstacle() is not None, reason=str(world.obstacle())),
]

CONTROLLERS = ("karpenter", "trainer", "jobset", "training-operator", "kueue")
PATIENCE = 600


def stack() -> Object:
    return {
        "aws:region": "us-east-2",
        "trainyard:environment": {
            "zone": "us-east-2a",
            "pools": {"l4": {"instance_types": ["g6.12xlarge"], "max_nodes": 2}},
            "cluster": {
                "version": "1.35",
                "endpoint": "public-and-private",
                "public_access_cidrs": ["203.0.113.7/32"],
            },
            "trainer": {"version": "2.1.0", "runtimes": ["torch-distributed"]},
            "training_operator": {"version": "1.8.1"},
            "queues": {},
            "teams": {"vision": {"deployer": "arn:aws:iam::123456789012:role/vision"}},
            "metrics": {},
        },
    }


@pytest.fixture(scope="module")
def rehearsal() -> Iterator[Harness]:
    file, whole = "Pulumi.watched.yaml", stack()
    first = {
        key: value
        for key, value in whole["trainyard:environment"].items()
        if key not in ("queues", "teams", "metrics")
    }
    before = {**whole, "trainyard:environment": first}
    with rehearsing("watched", {file: yaml.safe_dump({"config": before})}) as made:
        # The account lives as long as the world, and the role must be there before the team.
        assert made.do("up", "--stack", "watched") == 0, made.log.read_text()
        owner = {"AWS": "arn:aws:iam::123456789012:root"}
        trust = json.dumps(document({"Principal": owner, "Action": ["sts:AssumeRole"]}))
        made.shell(
            f"aws iam create-role --role-name vision --assume-role-policy-document '{trust}'"
        )
        (made.checkout / file).write_text(yaml.safe_dump({"config": whole}))
        assert made.do("up", "--stack", "watched") == 0, made.log.read_text()
        yield made


def asked(rehearsal: Harness, path: str) -> Object:
    """An answer of Prometheus, through the API server."""
    pods = rehearsal.get(f"pods --namespace {NAMESPACE}")["items"]
    at = f"/api/v1/namespaces/{NAMESPACE}/pods/{pods[0]['metadata']['name']}:{PORT}/proxy/api/v1"
    return json.loads(rehearsal.shell(f"kubectl get --raw '{at}/{path}'"))["data"]


def values(rehearsal: Harness, promql: str) -> dict[str, float]:
    """The value of a query for each program."""
    found = asked(rehearsal, f"query?query={quote(promql)}")["result"]
    return {each["metric"].get("job", ""): float(each["value"][1]) for each in found}


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


def test_metrics_go_and_leave_nothing(rehearsal: Harness) -> None:
    less = stack()
    del less["trainyard:environment"]["metrics"]
    (rehearsal.checkout / "Pulumi.watched.yaml").write_text(yaml.safe_dump({"config": less}))
    assert rehearsal.do("up", "--stack", "watched") == 0, rehearsal.log.read_text()
    assert NAMESPACE not in rehearsal.shell("kubectl get namespaces --output name")
    assert NAMESPACE not in rehearsal.shell("kubectl get clusterroles --output name")
