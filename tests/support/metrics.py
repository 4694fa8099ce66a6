"""Metrics for tests: a plan with every controller, what exporters serve, and what queries name."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from tests.support.stackfile import at, environment_plan
from tests.support.teams import with_queues
from trainyard.objects.metrics.metrics import DayBudget, MetricsPlan
from trainyard.parts.parts import METRICS

RECORDED = Path(__file__).parent / "exposition"
"""Files of Prometheus's text format, each with its source."""
_WORDS = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*_[a-zA-Z0-9_]*")
_FUNCTIONS = {
    *(
        "group_left",
        "histogram_quantile",
        "label_values",
        "max_over_time",
        "predict_linear",
        "sum_over_time",
    )
}
_LABELS = {"sick_node", "sick_pool", "cluster_queue", "job_namespace", "resource_type", "__name__"}


def metrics_plan() -> MetricsPlan:
    """Of an environment with queues, the training-operator, repair, and a history that follows runs. A
    reservation of its pool ends 2 hours after 1970 began, when promtool's clock does."""
    operator = at("training_operator", {"version": "1.8.1"})
    repair, history = at("repair", {}), at("history", {"progress": True})
    wanted = at("metrics", {"dollars_a_day": 100, "managed_prometheus": {}})
    made = METRICS.of(environment_plan(wanted, with_queues, operator, repair, history))
    assert made and made.budget
    budget = DayBudget(dollars=made.budget.dollars, prices=(("h100", "70.5"),))
    return replace(made, ends=(("h100", 7200),), budget=budget)


def names_in(promql: str) -> set[str]:
    """The metrics that a query names, also by a pattern of names."""
    for two in re.findall(r"(\w+)\((\w+)\|(\w+)\)(\w+)", promql):
        promql += f" {two[0]}{two[1]}{two[3]} {two[0]}{two[2]}{two[3]}"
        promql = promql.replace(f"{two[0]}({two[1]}|{two[2]}){two[3]}", "")
    bare = re.sub(r'"[^"]*"', '""', promql)
    return {*_WORDS.findall(bare)} - _FUNCTIONS - _LABELS
