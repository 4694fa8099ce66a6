"""Prometheus's Pushgateway, which takes figures that jobs send, such as the loss of a step: where it
listens, and how Prometheus asks it.

What a job is told: VARIABLE. Which pods of teams may reach it: team_network.py.
"""

from __future__ import annotations

from dataclasses import dataclass

APP = "pushgateway"
"""Name of its Deployment and its Service, and the label of its pods."""
NAMESPACE = "trainyard-metrics"
PORT = 9091
MILLICPUS = 50
"""CPU that its pod requests, in thousandths of a vCPU."""
SERIES = 20_000
"""Most series that Prometheus takes of it; of more it takes none (Prometheus 3.14, scrape/scrape.go,
sample_limit). 1,500 runs with 10 figures that nobody deleted stay below it."""
VARIABLE = "PROMETHEUS_PUSHGATEWAY"
"""Environment variable of jobs with its address."""
ADDRESS = f"http://{APP}.{NAMESPACE}:{PORT}"


@dataclass(frozen=True, kw_only=True)
class PushGatewayPlan:
    """The Pushgateway."""

    image: str
