"""Whose resources a stack makes: names and tags by which they are found again, and what limits its
roles."""

from __future__ import annotations

from trainyard.plans.identity import Identity
from trainyard.settings.environment import EnvironmentConfig, StackConfig


def identity(config: StackConfig, wanted: EnvironmentConfig) -> Identity:
    """Identity of an environment: its names and tags."""
    return Identity(
        project=config.project,
        stack=config.stack,
        region=config.region,
        extra_tags=tuple(sorted(wanted.tags.items())),
        permissions_boundary=wanted.permissions_boundary,
        kms_key_arn=wanted.kms_key_arn,
    )
