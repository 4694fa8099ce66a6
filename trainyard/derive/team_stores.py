"""The stores of an environment that a team sees."""

from __future__ import annotations

from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.stores import StoreConfig
from trainyard.settings.team_entry import TeamEntryConfig


def stores_of(entry: TeamEntryConfig, wanted: EnvironmentConfig) -> dict[str, StoreConfig]:
    """The stores of the environment that a team can mount."""
    listed = wanted.storage if entry.stores is None else entry.stores
    return {name: store for name, store in wanted.storage.items() if name in listed}
