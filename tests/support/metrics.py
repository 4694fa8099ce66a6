"""Metrics for tests: a plan with every controller, and what exporters serve."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.support.stackfile import at, environment_plan
from tests.support.teams import with_queues
from trainyard.objects.metrics.metrics import DayBudget, MetricsPlan
from trainyard.parts.parts import METRICS

RECORDED = Path(__file__).parent / "exposition"
"""Files of Prometheus's text format, each with its source."""


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
