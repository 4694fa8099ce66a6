"""Broken nodes replace themselves: what an environment makes for it."""

from __future__ import annotations

import json

import pytest

from rehearsal.providers.kubernetes import kinds
from tests.support.graphs import environment
from tests.support.recording import Graph
from tests.support.stackfile import at
from trainyard.catalog.repair import CONDITIONS
from trainyard.objects.programs.repair import AGENT, APP


@pytest.fixture(scope="module")
def repaired() -> Graph:
    return environment(at("repair", {}))


def test_the_setting_adds_its_own_objects_and_changes_nothing(repaired: Graph) -> None:
    before, after = json.loads(environment().golden()), json.loads(repaired.golden())
    assert [each for each in before if each not in after] == []
    added = {each["name"] for each in after if each not in before}
    assert added and all(name.startswith("repair") or name == AGENT for name in added)


def test_the_agent_s_server_of_dcgm_runs_on_nodes_with_any_taint(repaired: Graph) -> None:
    said = json.loads(repaired[f"Addon {AGENT}"].inputs["configurationValues"])
    assert said == {"dcgmAgent": {"tolerations": [{"operator": "Exists"}]}}


def test_its_pod_has_the_program_and_may_not_write_to_its_disk(repaired: Graph) -> None:
    pod = repaired["Deployment repair"].inputs["spec"]["template"]["spec"]
    [container] = pod["containers"]
    files = repaired["ConfigMap repair-files"].inputs["data"]
    assert container["command"][2].rpartition("/")[2] in files
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert json.loads(files["settings.json"])["conditions"] == list(CONDITIONS)


def test_it_may_not_read_secrets_nor_make_pods(repaired: Graph) -> None:
    rules = repaired["ClusterRole repair-acts"].inputs["rules"]
    may = {(kind, verb) for rule in rules for kind in rule["resources"] for verb in rule["verbs"]}
    assert ("nodeclaims", "delete") in may
    assert not may & {("pods", "create"), ("secrets", "get"), ("nodes", "delete")}


def test_only_where_runs_that_stand_still_start_anew_it_reads_logs(repaired: Graph) -> None:
    def kinds_of(graph: Graph) -> set[str]:
        rules = graph["ClusterRole repair-acts"].inputs["rules"]
        return {kind for rule in rules for kind in rule["resources"]}

    anew = environment(at("repair", {"hung_minutes": 30}))
    assert kinds_of(anew) - kinds_of(repaired) == {"pods/log"}
    files = anew["ConfigMap repair-files"].inputs["data"]
    assert json.loads(files["settings.json"])["hung_minutes"] == 30 and "hangs.py" in files


def _exporters(graph: Graph) -> dict[str, tuple[bool, list[str]]]:
    """DaemonSet for GPUs → whether it asks the agent's server, and the instance types of its nodes."""
    found = {}
    for node in graph.of("DaemonSet"):
        if node.name.startswith("trainyard-gpus"):
            pod = node.inputs["spec"]["template"]["spec"]
            [exporter] = pod["containers"]
            variables = {each["name"]: each.get("value") for each in exporter["env"]}
            server = variables.get("DCGM_REMOTE_HOSTENGINE_INFO")
            assert server in (None, "$(HOST_IP):5555")
            types = [
                value
                for term in pod.get("affinity", {})
                .get("nodeAffinity", {})
                .get("requiredDuringSchedulingIgnoredDuringExecution", {})
                .get("nodeSelectorTerms", [])
                for each in term["matchExpressions"]
                for value in each["values"]
            ]
            found[node.name] = (server is not None, types)
    return found


def _with_pools(*types: str) -> Graph:
    pools = {
        f"pool-{n}": {"instance_types": [name], "max_nodes": 2} for n, name in enumerate(types)
    }
    return environment(at("repair", {}), at("metrics", {}), at("pools", pools), at("jobs", {}))


def test_the_exporter_asks_the_agent_s_server_where_that_one_can_profile() -> None:
    """It cannot profile GPUs before Hopper: there the series would be missing, and alerts with them."""
    assert _exporters(_with_pools("p5.48xlarge")) == {"trainyard-gpus": (True, [])}
    assert _exporters(_with_pools("g6e.48xlarge", "p4d.24xlarge", "g5.48xlarge")) == {
        "trainyard-gpus": (False, [])
    }
    assert _exporters(_with_pools("g6e.48xlarge", "p5.48xlarge", "c7i.8xlarge")) == {
        "trainyard-gpus": (False, ["g6e.48xlarge"]),
        "trainyard-gpus-by-driver": (True, ["p5.48xlarge"]),
    }


def test_prometheus_asks_the_program_and_all_exporters() -> None:
    graph = _with_pools("g6e.48xlarge", "p5.48xlarge")
    asked = json.loads(graph["ConfigMap metrics-files"].inputs["data"]["prometheus.yml"])
    jobs = {each["job_name"]: each for each in asked["scrape_configs"]}
    assert APP in jobs
    [found] = jobs["gpus"]["kubernetes_sd_configs"]
    [selector] = found["selectors"]
    assert selector["label"] == (
        "app.kubernetes.io/name in (trainyard-gpus, trainyard-gpus-by-driver)"
    )


def test_the_rehearsal_implements_every_kind_of_it(repaired: Graph) -> None:
    made = [node.inputs for node in repaired.starting("kubernetes:")]
    assert all(kinds.of(inputs) for inputs in made if "kind" in inputs)


def test_with_metrics_alone_the_exporter_has_its_own_server() -> None:
    graph = environment(at("metrics", {}))
    [exporter] = graph["DaemonSet trainyard-gpus"].inputs["spec"]["template"]["spec"]["containers"]
    assert "DCGM_REMOTE_HOSTENGINE_INFO" not in {each["name"] for each in exporter["env"]}
