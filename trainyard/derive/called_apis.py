"""Interface endpoints that an environment needs: those of the AWS APIs that its own nodes and
controllers call. Why each of them: trainyard/catalog/aws/endpoints.py."""

from __future__ import annotations

from collections.abc import Iterator

from trainyard.catalog.aws.endpoints import ALWAYS, SECRETS, SESSIONS
from trainyard.derive.secrets import mounts_secrets
from trainyard.parts.parts import wanted_parts
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
    for part, settings in wanted_parts(wanted):
        yield from part.apis(settings)
    if wanted.cluster.tunnel_port is not None or wanted.cluster.node_sessions:
        yield from SESSIONS
