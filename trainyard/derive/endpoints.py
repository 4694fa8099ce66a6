"""Which interface endpoints an environment needs: those of the AWS APIs that its own nodes and
controllers call. Why each of them: trainyard/catalog/aws/endpoints.py."""

from __future__ import annotations

from collections.abc import Iterator

from trainyard.catalog.aws.endpoints import ALERTS, ALWAYS, LOGS, SAMPLES, SECRETS, TUNNEL
from trainyard.derive.secrets import mounts_secrets
from trainyard.settings.environment import EnvironmentConfig
from trainyard.stores.kinds import drivers


def called_apis(wanted: EnvironmentConfig) -> tuple[str, ...]:
    """The AWS APIs that are called from inside the VPC, in the order of their names. S3 is not among
    them: its gateway endpoint has no price."""
    return tuple(sorted({*ALWAYS, *_from_settings(wanted)}))


def _from_settings(wanted: EnvironmentConfig) -> Iterator[str]:
    for driver in drivers(wanted.storage):
        yield from driver.apis
    if mounts_secrets(wanted.jobs, wanted.teams):
        yield SECRETS
    if wanted.metrics and wanted.metrics.alerts:
        yield ALERTS
    if wanted.metrics and wanted.metrics.managed_prometheus:
        yield SAMPLES
    if wanted.logs:
        yield LOGS
    if wanted.cluster.tunnel_port is not None:
        yield from TUNNEL
