"""Metrics for tests: a plan with every controller, and what exporters serve."""

from __future__ import annotations

from pathlib import Path

from plans.metrics import MetricsPlan
from tests.support.stackfile import at, environment_plan
from tests.support.teams import with_queues

RECORDED = Path(__file__).parent / "exposition"
"""Files of Prometheus's text format, each with its source."""


def metrics_plan() -> MetricsPlan:
    """Of an environment with queues, the training-operator, repair, and a history that follows runs."""
    operator = at("training_operator", {"version": "1.8.1"})
    repair, history = at("repair", {}), at("history", {"progress": True})
    made = environment_plan(at("metrics", {}), with_queues, operator, repair, history).metrics
    assert made
    return made
