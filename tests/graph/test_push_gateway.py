"""Jobs that send figures of their own: what an environment makes for it, and what jobs are told."""

from __future__ import annotations

import json

import pytest

from tests.support.cases.jobs import JOB, SCRIPT, pytorch_job
from tests.support.graphs import environment
from tests.support.recording import Graph
from tests.support.stackfile import Edit, at, environment_plan, planned, without
from tests.support.teams import listed
from trainyard.plans.push_gateway import ADDRESS, VARIABLE

PUSHED = at("metrics", {"push_gateway": True})


@pytest.fixture(scope="module")
def pushed() -> Graph:
    return environment(PUSHED)


def test_without_the_setting_nothing_is_pushed() -> None:
    graph = environment(at("metrics", {}))
    assert "pushgateway" not in graph.golden() and VARIABLE not in graph.golden()


def test_prometheus_keeps_the_labels_that_jobs_give(pushed: Graph) -> None:
    asked = json.loads(pushed["ConfigMap metrics-files"].inputs["data"]["prometheus.yml"])
    [found] = [each for each in asked["scrape_configs"] if each["job_name"] == "pushgateway"]
    assert found["honor_labels"] is True
    label, _, value = found["kubernetes_sd_configs"][0]["selectors"][0]["label"].partition("=")
    template = pushed["Deployment push-gateway"].inputs["spec"]["template"]
    assert template["metadata"]["labels"][label] == value


def test_the_address_of_jobs_is_that_of_the_service(pushed: Graph) -> None:
    service = pushed["Service push-gateway-service"].inputs
    name, namespace = service["metadata"]["name"], service["metadata"]["namespace"]
    [port] = service["spec"]["ports"]
    assert f"http://{name}.{namespace}:{port['port']}" == ADDRESS
    template = pushed["Deployment push-gateway"].inputs["spec"]["template"]
    assert service["spec"]["selector"] == template["metadata"]["labels"]
    assert template["spec"]["containers"][0]["ports"][0]["containerPort"] == port["port"]


@pytest.mark.parametrize("twin", [(), pytorch_job()], ids=["TrainJob", "PyTorchJob"])
def test_a_job_has_the_address_and_its_own_value_wins(twin: tuple[Edit, ...]) -> None:
    def told(*edits: Edit) -> str:
        return json.dumps(environment_plan(*twin, *edits).jobs["t5-large"].spec)

    assert VARIABLE not in told()
    assert f'{{"name": "{VARIABLE}", "value": "{ADDRESS}"}}' in told(PUSHED)
    own = at(f"{JOB}.env.{VARIABLE}", "http://gateway.example.com:9091")
    assert ADDRESS not in told(PUSHED, own) and "gateway.example.com" in told(PUSHED, own)


def test_a_run_that_goes_on_does_not_start_again_for_a_gateway() -> None:
    def run(*edits: Edit) -> str:
        return environment_plan(*edits).jobs["t5-large"].run

    own = at(f"{JOB}.env.{VARIABLE}", ADDRESS)
    assert run() == run(PUSHED) != run(PUSHED, own)


def test_the_rules_know_the_variable_where_there_is_a_gateway() -> None:
    """A program that no shell starts gets a variable as $(NAME)."""
    program = at(f"{JOB}.command", ["python", "train.py", f"${VARIABLE}"])

    def about(*edits: Edit) -> list[str]:
        found = planned(without(SCRIPT), program, *edits).errors
        return [each.fix for each in found if VARIABLE in each.got]

    [unknown] = about()
    assert unknown.startswith("write what belongs there") and about(PUSHED) == [
        f"write $({VARIABLE})"
    ]


def test_pods_of_listed_teams_reach_it() -> None:
    def ports(*edits: Edit) -> list[int]:
        policy = environment(listed, *edits)["NetworkPolicy team-vision-network"].inputs
        return [port["port"] for way in policy["spec"]["egress"] for port in way.get("ports", ())]

    assert 9091 not in ports(at("metrics", {}))
    assert 9091 in ports(PUSHED)
