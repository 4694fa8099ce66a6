"""What `trainyard plan` says of metrics: what Prometheus takes of its node, what AWS keeps, who is told."""

from __future__ import annotations

from trainyard.command_line import table, wrapped
from trainyard.derive.metrics import samples_a_month
from trainyard.objects.metrics.metrics import MetricsPlan
from trainyard.plan import EnvironmentPlan, TeamPlan


def metrics(plan: EnvironmentPlan | TeamPlan) -> list[str]:
    """What programs take of a system node. It is in the price of the system nodes."""
    if isinstance(plan, TeamPlan) or plan.metrics is None:
        return []
    m = plan.metrics
    rows = [
        ("metrics", "series", "vCPUs", "memory", "disk", "history"),
        (
            "Prometheus",
            f"{m.series:,}",
            f"{m.millicpus / 1000:g}",
            f"{m.memory_mib // 1024} GiB",
            f"{m.disk_gib} GiB",
            f"{m.retention_days} days",
        ),
    ]
    if m.grafana:
        of = f"{m.grafana.millicpus / 1000:g}", f"{m.grafana.memory_mib // 1024} GiB"
        rows.append(("Grafana", "", *of, "", ""))
    note = "on a system node, which is paid already; where all pools are full"
    return [*table(rows), *wrapped(note), *_kept_by_aws(m), *_told(m)]


def _kept_by_aws(plan: MetricsPlan) -> list[str]:
    """What managed Prometheus gets. It is paid by the sample."""
    if plan.managed is None:
        return []
    samples = samples_a_month(plan.series) // 10**6
    return wrapped(
        f"workspace {plan.managed.alias} of managed Prometheus gets up to {samples:,} million samples a"
        f" month, and keeps them for {plan.managed.retention_days} days"
    )


def _told(plan: MetricsPlan) -> list[str]:
    """Who is told of alerts."""
    if plan.alerts is None:
        return wrapped("nobody is told of alerts: set environment.metrics.alerts")
    topic = plan.alerts.topic_arn or f"the topic {plan.alerts.topic_name}"
    readers = f", with {', '.join(plan.alerts.emails)}" if plan.alerts.emails else ""
    sent = " and ".join(plan.alerts.severities)
    return wrapped(f"alerts ({sent}) are sent to {topic}{readers}")
