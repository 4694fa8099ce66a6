"""What an environment says of its metrics. What follows from it: stacks/derive/metrics.py."""

from __future__ import annotations

from typing import Annotated

import pydantic

from frozen import dataclass


@dataclass(frozen=True, kw_only=True)
class RemoteWriteConfig:
    """Another place that gets every sample, such as a Prometheus, Mimir or VictoriaMetrics of your
    own."""

    url: str
    """Its address for remote write: https://metrics.example.com/api/v1/write. No user name and no
    password: the address stands in a ConfigMap."""


@dataclass(frozen=True, kw_only=True)
class MetricsConfig:
    """Metrics of GPUs, nodes, controllers and runs, and alerts on them: a Prometheus on the system
    nodes, and two exporters on every node of a pool. Write `{}` for the defaults."""

    retention_days: Annotated[int, pydantic.Field(ge=1, le=90, strict=True)] = 15
    """Number of days that Prometheus keeps samples, on the disk of its system node. A new system node
    begins with an empty history: `remote_write` keeps it elsewhere."""
    remote_write: RemoteWriteConfig | None = None
    """By default samples stay in the cluster."""
