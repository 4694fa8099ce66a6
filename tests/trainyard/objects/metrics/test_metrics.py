"""The configuration of Prometheus: which series of whom it keeps."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.support.metrics import metrics_plan, names_in
from trainyard.objects.metrics.metrics import MetricsPlan, prometheus_config
from trainyard.objects.metrics.queries import QUERIES
from trainyard.plans.push_gateway import PushGatewayPlan

OFFERINGS = (
    "karpenter_cloudprovider_instance_type_offering_available",
    "karpenter_cloudprovider_instance_type_offering_price_estimate",
)
"""One series for each instance type of the region, zone and capacity type."""


def scraped(plan: MetricsPlan) -> dict[str, Any]:
    """Name of a job → how Prometheus asks it."""
    found = json.loads(prometheus_config(plan))["scrape_configs"]
    return {each["job_name"]: each for each in found}


def dropped(job: dict[str, Any], names: Iterator[str]) -> set[str]:
    """The metrics of which a scrape job keeps no series."""
    rules = job.get("metric_relabel_configs", ())
    drops = [
        each["regex"]
        for each in rules
        if each.get("action") == "drop" and each["source_labels"] == ["__name__"]
    ]
    return {name for name in names if any(re.fullmatch(each, name) for each in drops)}


def test_offerings_of_all_instance_types_of_a_region_are_dropped() -> None:
    karpenter = scraped(metrics_plan())["karpenter"]
    assert dropped(karpenter, iter(OFFERINGS)) == {*OFFERINGS}


def test_no_controller_drops_a_metric_that_a_query_reads() -> None:
    read = {name for query in QUERIES.values() for name in names_in(query.promql)}
    assert "karpenter_nodepools_usage" in read
    plan = metrics_plan()
    jobs = scraped(plan)
    for target in plan.controllers:
        assert not dropped(jobs[target.job], iter(read)), target.job


def test_the_kubelet_of_a_node_says_which_exporters_the_node_must_have() -> None:
    """By the labels that the DaemonSets of exporters select; series of containers stay as they are."""
    job = scraped(metrics_plan())["containers"]
    copied = {each["target_label"]: each["source_labels"] for each in job["relabel_configs"]}
    label = "__meta_kubernetes_node_label_"
    assert copied == {
        "node": ["__meta_kubernetes_node_name"],
        "pool": [f"{label}trainyard_io_pool"],
        "gpu_manufacturer": [f"{label}karpenter_k8s_aws_instance_gpu_manufacturer"],
        "instance_type": [f"{label}node_kubernetes_io_instance_type"],
    }
    rules = job["metric_relabel_configs"]
    [gone] = [each["regex"] for each in rules if each.get("action") == "labeldrop"]
    kept = {name for name in copied if not re.fullmatch(gone, name)}
    assert kept == {"node"}


def pushed() -> dict[str, Any]:
    """How Prometheus asks a Pushgateway."""
    plan = replace(metrics_plan(), push_gateway=PushGatewayPlan(image="pushgateway"))
    return scraped(plan)["pushgateway"]


def test_no_job_can_push_what_a_query_or_an_alert_reads() -> None:
    """Prometheus keeps the labels of pushed figures, so a team could forge a broken GPU of another's node."""
    read = {name for query in QUERIES.values() for name in names_in(query.promql)}
    read |= {"up", "ALERTS", "ALERTS_FOR_STATE", "scrape_duration_seconds"}
    assert read - dropped(pushed(), iter(read)) == set()


def test_figures_of_a_run_are_kept() -> None:
    figures = ("train_loss", "loss", "tokens_per_second", "upload_seconds", "nodes", "run_step")
    assert dropped(pushed(), iter((*figures, "push_time_seconds"))) == set()


def test_figures_of_a_run_cannot_fill_prometheus() -> None:
    assert pushed()["sample_limit"] == 20_000
