"""Alerts about what measures and what controls: exporters, controllers, and samples for another place.

Queries: platform_queries.py. Every alert: alerts.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainyard.objects.metrics.alert import Alert
from trainyard.objects.metrics.metrics import (
    APP,
    EFA,
    EXPORTERS,
    GPUS,
    NODES,
    MetricsPlan,
    exporter,
)
from trainyard.objects.metrics.queries import query
from trainyard.plans.push_gateway import NAMESPACE

LATE_SECONDS, LATE_MINUTES = 600, 5
"""The alert begins 15 minutes after another place took the last sample. Prometheus tries again for ever
where the place does not answer, answers 5xx, or the pod has no credentials, and counts no such sample as
failed (Prometheus 3.14, storage/remote/client.go; sigv4 0.4.1, sigv4.go)."""
KEPT_HOURS = 2
"""The write-ahead log keeps at least so much (Prometheus 3.14, docs/storage.md)."""


def exporters(plan: MetricsPlan) -> Alert:
    """The alert about an exporter that does not answer, or never started: Prometheus asks running pods
    only, and a pod whose image cannot be pulled is pending. 10 minutes are enough for a pull."""
    expected = {NODES: "", GPUS: 'gpu_manufacturer="nvidia"'}
    if plan.efa:
        expected[EFA] = f'instance_type=~"{"|".join(plan.efa.instance_types)}"'
    missing = " or ".join(
        f"label_replace({query('nodes of pools', of)} == 1 unless on (node)"
        f' up{{job="{job}"}}, "job", "{job}", "", "")'
        for job, of in expected.items()
    )
    app = exporter("{{ $labels.job }}")
    return Alert(
        name="ExporterDown",
        severity="warning",
        expression=f"{query('exporters')} == 0 or {missing}",
        minutes=10,
        says=(
            "node {{ $labels.node }} has no exporter of {{ $labels.job }}, or it does not answer: alerts on"
            " that node are blind"
        ),
        fix=(
            f"kubectl --namespace {EXPORTERS} describe pods --selector '{APP} in ({app}, {app}-by-driver)'"
        ),
    )


def platform(plan: MetricsPlan) -> Iterator[Alert]:
    """Alerts about controllers, and about samples for another place."""
    names = [target.job for target in plan.controllers]
    matchers = f'job=~"{"|".join(names)}"'
    missing = "".join(f' or absent(up{{job="{name}"}})' for name in names)
    yield Alert(
        name="ControllerDown",
        severity="critical",
        expression=f"{query('programs', matchers)} == 0{missing}",
        minutes=5,
        says="no pod of {{ $labels.job }} answers: what it does for jobs and nodes is not done",
        fix="trainyard status lists the controllers that do not run, and why",
    )
    if plan.remote_write_url or plan.managed:
        yield from _samples()


def _samples() -> Iterator[Alert]:
    yield Alert(
        name="SamplesLost",
        severity="warning",
        expression=f"{query('samples lost')} > 0",
        minutes=5,
        says="{{ $labels.url }} refuses samples of Prometheus, and they are lost there",
        fix=(
            f"kubectl --namespace {NAMESPACE} logs deployment/prometheus says why; a workspace of"
            " managed Prometheus refuses samples with 403 where the role lacks its policy, which"
            " pulumi up --refresh brings back"
        ),
    )
    yield Alert(
        name="SamplesLate",
        severity="warning",
        expression=f"{query('samples late')} > {LATE_SECONDS}",
        minutes=LATE_MINUTES,
        says=(
            f"{{{{ $labels.url }}}} has taken no sample of the last {LATE_SECONDS // 60} minutes: Prometheus"
            f" tries again, and can lose there what waits for over {KEPT_HOURS} hours"
        ),
        fix=(
            f"kubectl --namespace {NAMESPACE} logs deployment/prometheus says why: the place does not"
            " answer, answers 5xx, or the pod of Prometheus has no credentials"
        ),
    )
