"""Settings of metrics. Their plan: trainyard/parts/metrics.py."""

from dataclasses import dataclass
from typing import Annotated, Literal

import pydantic

from trainyard.settings.section import Section


@dataclass(frozen=True, kw_only=True)
class RemoteWriteConfig:
    """Another place that gets every sample, such as a Prometheus, Mimir or VictoriaMetrics of your
    own."""

    url: str
    """Its address for remote write: https://metrics.example.com/api/v1/write. No user name and no
    password: the address stands in a ConfigMap."""


@dataclass(frozen=True, kw_only=True)
class ManagedPrometheusConfig:
    """A workspace of Amazon Managed Service for Prometheus, which gets every sample. AWS bills it by
    the sample: `trainyard plan` prints how many. Write `{}` for the defaults."""

    retention_days: Annotated[int, pydantic.Field(ge=1, le=1095, strict=True)] = 150
    """Number of days that the workspace keeps samples."""
    data: Literal["keep", "delete"] = "keep"
    """`keep`: the workspace is protected, and `pulumi destroy` leaves it and prints its name.
    `delete`: the workspace and its history are deleted with the stack, once a `pulumi up` has taken the
    protection away."""


@dataclass(frozen=True, kw_only=True)
class AlertsConfig:
    """Receivers of alerts: an SNS topic, which e-mail, Slack (Amazon Q in chat applications) and
    PagerDuty can subscribe to. Write `{}` for a topic of the environment."""

    emails: tuple[str, ...] = ()
    """E-mail addresses that the environment subscribes to its topic. AWS asks each one to confirm,
    once."""
    topic_arn: str | None = None
    """ARN of an existing SNS topic, in the region of the stack. By default the environment makes
    one. A key of yours that encrypts the topic must let the role of Alertmanager use it."""
    severity: Literal["critical", "warning", "info"] = "warning"
    """The least severity of an alert that is sent: `critical` where money is lost now, `warning` also
    where it will be, `info` also what is only worth knowing."""


@dataclass(frozen=True, kw_only=True)
class MetricsConfig:
    """Metrics of GPUs, nodes, controllers and runs, and alerts on them: a Prometheus on the system
    nodes, and exporters on every node of a pool. Write `{}` for the defaults."""

    retention_days: Annotated[int, pydantic.Field(ge=1, le=90, strict=True)] = 15
    """Number of days that Prometheus keeps samples, on the disk of its system node. A new system node
    begins with an empty history: `remote_write` keeps it elsewhere."""
    remote_write: Section[RemoteWriteConfig] = None
    """By default samples stay in the cluster."""
    managed_prometheus: Section[ManagedPrometheusConfig] = None
    """By default AWS keeps no samples."""
    push_gateway: bool = False
    """`true`: jobs can send figures of their own, such as the loss, to a Prometheus Pushgateway.
    Jobs find its address in the variable PROMETHEUS_PUSHGATEWAY."""
    grafana: bool = False
    """`true`: a Grafana on the system nodes shows the dashboards. Whoever can forward a port of the
    cluster can look, and nobody can change anything."""
    dollars_a_day: Annotated[float, pydantic.Field(gt=0)] | None = None
    """USD that nodes of pools can cost within 24 hours before an alert says so: nodes that ran, by the
    prices of `trainyard plan`, spot by the price on demand. Capacity Blocks, which are paid in advance, do
    not count. By default there is no such alert."""
    alerts: Section[AlertsConfig] = None
    """By default alerts stand in Prometheus, and nobody is told."""
