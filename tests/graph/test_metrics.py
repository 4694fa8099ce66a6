"""Metrics: what an environment makes for them, and whom Prometheus asks."""

from __future__ import annotations

import csv
import json
from decimal import Decimal
from typing import Any

import pytest

from tests.support.graphs import environment
from tests.support.recording import Graph
from tests.support.stackfile import Edit, at, environment_plan
from tests.support.stacks import BLOCK, H100
from tests.support.teams import with_queues
from trainyard.catalog.aws.prices import price
from trainyard.objects.metrics.metrics import RULES
from trainyard.parts.parts import METRICS
from trainyard.plan import EnvironmentPlan
from trainyard.reports import plan as report

ON = at("metrics", {})
OPERATOR = at("training_operator", {"version": "1.8.1"})
WITHOUT_EFA = (
    at("pools", {"l40s": {"instance_types": ["g6e.4xlarge"], "max_nodes": 2}}),
    at("jobs", {}),
)


@pytest.fixture(scope="module")
def watched() -> Graph:
    return environment(ON, with_queues, OPERATOR)


def file(graph: Graph, name: str) -> Any:
    return json.loads(graph["ConfigMap metrics-files"].inputs["data"][name])


def asked(graph: Graph) -> dict[str, Any]:
    """Name of a job → how Prometheus asks it."""
    found = file(graph, "prometheus.yml")["scrape_configs"]
    return {each["job_name"]: each for each in found}


def pod(graph: Graph, resource: str) -> Any:
    return graph[resource].inputs["spec"]["template"]["spec"]


def test_an_environment_without_metrics_has_nothing_of_them() -> None:
    graph = environment()
    assert not graph.starting("trainyard:metrics:") and "prometheus" not in graph.golden()


def test_metrics_change_nothing_else() -> None:
    before, after = (json.loads(environment(*edits).golden()) for edits in ((), (ON,)))
    assert [each for each in before if each not in after] == []
    added = {each["name"] for each in after if each not in before}
    assert all(name.startswith(("metrics", "exporters", "trainyard-")) for name in added)


def test_prometheus_asks_every_controller_of_the_environment(watched: Graph) -> None:
    everything = {"karpenter", "trainer", "jobset", "training-operator", "kueue"}
    own = {"prometheus", "gpus", "nodes", "efa", "containers", "kube-apiserver"}
    assert {*asked(watched)} == everything | own
    assert {*asked(environment(ON))} == {"karpenter", "trainer", "jobset"} | own


def test_what_asks_who_reads_gets_the_token_of_prometheus(watched: Graph) -> None:
    found = asked(watched)
    secure = {name for name, each in found.items() if each.get("scheme") == "https"}
    assert secure == {"trainer", "jobset", "kueue", "containers", "kube-apiserver"}
    role = watched["ClusterRole metrics-reads"].inputs["rules"]
    assert {"nonResourceURLs": ["/metrics"], "verbs": ["get"]} in role
    assert all({*rule["verbs"]} <= {"get", "list", "watch"} for rule in role)
    assert not any("secrets" in rule.get("resources", []) for rule in role)


def test_an_exporter_is_found_by_the_label_of_its_pods(watched: Graph) -> None:
    for name in ("gpus", "nodes", "efa"):
        labels = watched[f"DaemonSet trainyard-{name}"].inputs["spec"]["template"]["metadata"][
            "labels"
        ]
        [discovery] = asked(watched)[name]["kubernetes_sd_configs"]
        [selector] = discovery["selectors"]
        assert selector["label"] == ",".join(f"{k}={v}" for k, v in labels.items())


def test_the_gpu_exporter_runs_on_nodes_with_gpus_and_holds_none(watched: Graph) -> None:
    spec = pod(watched, "DaemonSet trainyard-gpus")
    assert spec["nodeSelector"] == {"karpenter.k8s.aws/instance-gpu-manufacturer": "nvidia"}
    [container] = spec["containers"]
    assert not any("nvidia" in name for name in container["resources"]["requests"])
    rows = list(
        csv.reader(
            watched["ConfigMap exporters-counters"].inputs["data"]["counters.csv"].split("\n")
        )
    )
    assert all(len(row) == 3 and row[1] in ("gauge", "counter") for row in rows if row)


def test_exporters_fit_beside_a_job_that_takes_a_whole_node(watched: Graph) -> None:
    """pod_resources.py keeps 500m and 1024 MiB for all DaemonSets, of which the others take half."""
    requests = [
        pod(watched, f"DaemonSet trainyard-{name}")["containers"][0]["resources"]["requests"]
        for name in ("gpus", "nodes", "efa")
    ]
    assert sum(int(each["cpu"].removesuffix("m")) for each in requests) <= 100
    assert sum(int(each["memory"].removesuffix("Mi")) for each in requests) <= 350


def test_the_exporter_of_efa_runs_on_types_with_efa_and_has_no_rights(watched: Graph) -> None:
    spec = pod(watched, "DaemonSet trainyard-efa")
    assert spec["nodeSelector"] == {"trainyard.io/nodes": "training"}
    assert spec["affinity"] == pod(watched, "DaemonSet efa-device-plugin")["affinity"]
    [container] = spec["containers"]
    assert container["securityContext"]["runAsUser"] > 0
    assert all(mount["readOnly"] for mount in container["volumeMounts"] if mount["name"] == "sys")
    files = watched["ConfigMap exporters-efa"].inputs["data"]
    program, system, port = container["command"][-3:]
    [folder] = [
        each["mountPath"] for each in container["volumeMounts"] if each["name"] == "program"
    ]
    assert program.removeprefix(f"{folder}/") in files and system == "/host/sys"
    assert {"name": "metrics", "containerPort": int(port)} in container["ports"]


def test_only_a_pool_with_efa_has_an_exporter_and_an_alert_of_it() -> None:
    plain = environment(ON, *WITHOUT_EFA)
    assert "efa" not in asked(plain)
    assert not [each for each in json.loads(plain.golden()) if "trainyard-efa" in str(each)]
    named = [each["alert"] for each in file(plain, RULES)["groups"][0]["rules"]]
    assert "EfaRetransmits" not in named and "GpuMemoryBroken" in named


def test_a_changed_file_is_no_new_pod(watched: Graph) -> None:
    """A new pod begins with an empty history, so nothing of the files is in its template."""
    longer = environment(ON, with_queues, OPERATOR, at("metrics.remote_write", {"url": WRITE}))
    same = "Deployment metrics-prometheus"
    assert longer[same].inputs == watched[same].inputs
    assert file(longer, "prometheus.yml")["remote_write"] == [{"url": WRITE}]


WRITE = "https://metrics.example.com/api/v1/write"


def test_prometheus_runs_on_system_nodes_without_rights_on_them(watched: Graph) -> None:
    spec = pod(watched, "Deployment metrics-prometheus")
    assert spec["nodeSelector"] == {"trainyard.io/nodes": "system"}
    assert spec["securityContext"]["runAsNonRoot"] is True
    level = watched["Namespace metrics"].inputs["metadata"]["labels"]
    assert level == {"pod-security.kubernetes.io/enforce": "restricted"}
    assert not any("hostPath" in volume for volume in spec["volumes"])


def test_more_nodes_are_more_series_and_seldom_another_pod() -> None:
    few, some, many = (
        METRICS.of(environment_plan(ON, at("pools.h100.max_nodes", nodes))) for nodes in (2, 8, 256)
    )
    assert few and some and many
    assert few.series < some.series < many.series
    assert (few.memory_mib, few.millicpus) == (some.memory_mib, some.millicpus)
    assert few.memory_mib < many.memory_mib and few.disk_gib < many.disk_gib


def test_a_node_counts_with_its_gpus_and_its_efa_devices() -> None:
    few, many = (METRICS.of(environment_plan(ON, at("pools.h100.max_nodes", n))) for n in (2, 102))
    assert few and many
    assert many.series - few.series == 100 * (450 + 8 * 30 + 32 * 10)


def test_the_plan_says_what_prometheus_takes_and_the_stack_how_to_see_it(watched: Graph) -> None:
    made = environment_plan(ON)
    assert isinstance(made, EnvironmentPlan)
    lines = [" ".join(line.split()) for line in report.text(made).splitlines()]
    assert "Prometheus 26,000 0.5 1 GiB 3 GiB 15 days" in lines
    assert watched.outputs["metrics"].startswith("kubectl --namespace trainyard-metrics")


def test_the_budget_of_a_day_counts_nodes_by_the_prices_of_the_plan() -> None:
    def prices(*edits: Edit) -> dict[str, str]:
        made = METRICS.of(environment_plan(at("metrics", {"dollars_a_day": 500}), *edits))
        assert made and made.budget
        return dict(made.budget.prices)

    known = price("ec2", "p5.48xlarge", "ap-northeast-2")
    assert known and prices()["h100"] == str(known.usd)
    assert prices(at("pools.h100.capacity", "spot"))["h100"] == str(known.usd), "at most"
    block = at("pools.h100", H100 | {"capacity": "block", "reservation": BLOCK})
    assert "h100" not in prices(block), "it is paid in advance"
    several = prices(at("pools.h100.instance_types", ["p5.48xlarge", "p4d.24xlarge"]))
    second = price("ec2", "p4d.24xlarge", "ap-northeast-2")
    assert second and (several["h100"], several["h100-2"]) == (str(known.usd), str(second.usd))
    own = at("prices", {"discount_percent": 10, "savings_plan_percent": {"p5": 50}})
    assert prices(own)["h100"] == str(known.usd * Decimal("0.45"))


def test_the_end_of_a_reservation_is_in_the_rules() -> None:
    block = at("pools.h100", H100 | {"capacity": "block", "reservation": BLOCK})
    named = [each["alert"] for each in file(environment(ON, block), RULES)["groups"][0]["rules"]]
    assert "ReservationEnds" in named
    plain = [each["alert"] for each in file(environment(ON), RULES)["groups"][0]["rules"]]
    assert not {"ReservationEnds", "BudgetOfTheDay", "SamplesLost", "SamplesLate"} & {*plain}
