"""Where a broken node is replaced too late for its gang."""

from __future__ import annotations

from collections.abc import Iterator

from trainyard.problems import InputWarning
from trainyard.settings.environment import EnvironmentConfig


def repair_warnings(wanted: EnvironmentConfig) -> Iterator[InputWarning]:
    """Pools whose capacity is taken in full: the slot of an instance that ends comes back minutes
    later."""
    if wanted.repair is None:
        return
    for name, pool in wanted.pools.items():
        if pool.reservation and pool.replicas and not pool.warm_spares:
            yield InputWarning(
                path=f"environment.pools.{name}.warm_spares",
                text=(
                    "without a warm spare a gang that loses a node waits until the reservation gives"
                    " the place of its instance back, for a p5 more than a quarter of an hour; lower"
                    " replicas and write warm_spares: 1"
                ),
            )
