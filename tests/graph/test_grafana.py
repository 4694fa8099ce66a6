"""Grafana in the cluster: what an environment makes for it, and that nobody has a password."""

from __future__ import annotations

import configparser
import json
from typing import Any

import pytest

from tests.support.graphs import environment
from tests.support.recording import Graph
from tests.support.stackfile import at, environment_plan
from tests.support.teams import with_queues
from trainyard.objects.metrics.dashboards import pages
from trainyard.reports import plan as report

ON = at("metrics", {"grafana": True})
LARGEST_CONFIG_MAP = 2**20
"""Bytes that the API server takes (Kubernetes, concepts/configuration/configmap)."""


@pytest.fixture(scope="module")
def shown() -> Graph:
    return environment(ON)


def pod(graph: Graph) -> Any:
    return graph["Deployment grafana"].inputs["spec"]["template"]


def files(graph: Graph) -> dict[str, str]:
    """Path in the container → text, as the volume lays the ConfigMap out."""
    data = graph["ConfigMap grafana-files"].inputs["data"]
    [items] = [each["configMap"]["items"] for each in volumes(graph) if "configMap" in each]
    assert {item["key"] for item in items} == {*data}, "a key that is not mounted, or the reverse"
    return {item["path"]: data[item["key"]] for item in items}


def volumes(graph: Graph) -> Any:
    return pod(graph)["spec"]["volumes"]


def test_without_the_setting_there_is_no_grafana() -> None:
    graph = environment(at("metrics", {}))
    assert "grafana" not in graph.golden() and "grafana" not in graph.outputs


def test_the_setting_changes_nothing_else(shown: Graph) -> None:
    before = json.loads(environment(at("metrics", {})).golden())
    after = json.loads(shown.golden())
    assert [each for each in before if each not in after] == []
    assert all(each["name"].startswith("grafana") for each in after if each not in before)


def test_its_pages_are_those_that_make_dashboards_writes(shown: Graph) -> None:
    def found(graph: Graph) -> dict[str, str]:
        return {p: text for p, text in files(graph).items() if p.endswith(".json")}

    wanted = pages("dev", queues=False, follows=False)
    assert found(shown) == {f"dashboards/{name}.json": page for name, page in wanted.items()}
    follows = environment(ON, with_queues, at("history", {"progress": True}))
    wanted = pages("dev", queues=True, follows=True)
    assert found(follows) == {f"dashboards/{name}.json": page for name, page in wanted.items()}
    assert sum(map(len, files(follows).values())) < LARGEST_CONFIG_MAP / 4


def test_its_data_source_is_the_service_of_prometheus_with_managed_prometheus_too() -> None:
    graph = environment(at("metrics", {"grafana": True, "managed_prometheus": {}}))
    service = graph["Service metrics-service"].inputs
    name, namespace = service["metadata"]["name"], service["metadata"]["namespace"]
    found = json.loads(files(graph)["provisioning/datasources/trainyard.yaml"])
    [source] = found["datasources"]
    assert source["url"] == f"http://{name}.{namespace}:{service['spec']['ports'][0]['port']}"
    assert (source["type"], source["isDefault"]) == ("prometheus", True)


def test_nobody_has_a_password_and_everybody_only_looks(shown: Graph) -> None:
    settings = configparser.ConfigParser(interpolation=None)
    settings.read_string(files(shown)["grafana.ini"])
    assert settings["security"]["disable_initial_admin_creation"] == "true"
    assert settings["auth"]["disable_login_form"] == "true"
    assert settings["auth.basic"]["enabled"] == "false"
    assert dict(settings["auth.anonymous"]) == {"enabled": "true", "org_role": "Viewer"}
    assert not pod(shown)["spec"]["containers"][0].get("env")
    assert "password" not in json.dumps(files(shown))


def test_it_has_no_rights_and_writes_only_what_ends_with_it(shown: Graph) -> None:
    spec = pod(shown)["spec"]
    [container] = spec["containers"]
    assert spec["securityContext"]["runAsNonRoot"] and not spec["automountServiceAccountToken"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    kinds = {kind for volume in volumes(shown) for kind in volume if kind != "name"}
    assert kinds == {"configMap", "emptyDir"}


def test_no_pod_reaches_it_and_it_reaches_prometheus(shown: Graph) -> None:
    policy = shown["NetworkPolicy grafana-network"].inputs["spec"]
    labels = pod(shown)["metadata"]["labels"]
    assert policy["podSelector"]["matchLabels"] == labels
    assert policy["policyTypes"] == ["Ingress", "Egress"] and "ingress" not in policy
    [to] = policy["egress"][-1]["to"]
    prometheus = shown["Deployment metrics-prometheus"].inputs["spec"]["template"]["metadata"]
    assert to["podSelector"]["matchLabels"] == prometheus["labels"]
    assert "namespaceSelector" not in to, "the policy lies in the namespace of Prometheus"


def test_another_page_is_another_pod(shown: Graph) -> None:
    more = environment(ON, with_queues)
    assert pod(shown)["metadata"]["annotations"] != pod(more)["metadata"]["annotations"]


def test_the_output_is_the_command_that_shows_it(shown: Graph) -> None:
    service = shown["Service grafana-service"].inputs
    assert shown.outputs["grafana"] == (
        "kubectl --namespace trainyard-metrics port-forward service/grafana 3000"
    )
    assert service["metadata"]["name"] == "grafana"
    assert service["spec"]["selector"] == pod(shown)["metadata"]["labels"]


def test_the_plan_says_what_it_takes_of_a_node(shown: Graph) -> None:
    printed = [" ".join(line.split()) for line in report.text(environment_plan(ON)).splitlines()]
    assert "Grafana 0.1 1 GiB" in printed
    container = pod(shown)["spec"]["containers"][0]["resources"]
    assert container["requests"] == {"cpu": "100m", "memory": "1024Mi"}
    assert container["limits"]["memory"] == "1024Mi"
