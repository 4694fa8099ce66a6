"""A question to Prometheus, and how its series are told apart.

In a query, WHERE stands for further matchers of labels.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Query:
    """A question to Prometheus."""

    promql: str
    title: str
    unit: str
    """In Grafana's words."""
    legend: str = ""
    """Labels that tell its series apart, as Grafana's template."""

    def where(self, matchers: str = "") -> str:
        """The query for series with these labels, such as run="t5-large"; for all without."""
        return self.promql.replace("WHERE", matchers)


RANK, RUN, POOL, NODE, QUEUE, JOB = (
    "{{rank}} {{node}}",
    "{{namespace}} {{run}}",
    "{{nodepool}}",
    "{{node}}",
    "{{cluster_queue}}",
    "{{job}}",
)
"""Legends."""
