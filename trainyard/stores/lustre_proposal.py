"""A Lustre in the place of the store that a job's checkpoints are on: which one, and what to write.

What it is proposed for: trainyard/rules/checkpoint_advice.py.
"""

from __future__ import annotations

from dataclasses import replace

from trainyard.settings.reading.yaml_file import as_yaml
from trainyard.settings.stores import LustreConfig, StoreConfig
from trainyard.stores.lustre_sizing import Needs, chosen


def on_lustre(store: StoreConfig, needs: Needs) -> StoreConfig | None:
    """The store as the cheapest Lustre that gives a training run what it needs; None where there is none. It
    is no smaller than a Lustre that is there: FSx makes none smaller, and other files are on it.
    `store`: with its size decided."""
    own = store.lustre or LustreConfig()
    choice = chosen(replace(needs, least_gib=own.capacity_gib or 0))
    if choice is None:
        return None
    size = choice.store
    lustre = replace(
        own,
        deployment="PERSISTENT_2",
        capacity_gib=size.capacity_gib,
        throughput_mbps_per_tib=size.tier,
    )
    return replace(store, lustre=lustre, efs=None, s3=None)


def to_write(before: StoreConfig, after: StoreConfig) -> str:
    """The settings of the Lustre that is proposed, in words; empty where it is the one that is there."""
    old, new = before.lustre, after.lustre
    if new is None or new == old:
        return ""
    settings = {
        "capacity_gib": new.capacity_gib,
        "throughput_mbps_per_tib": new.throughput_mbps_per_tib,
        **({"efa": True} if new.efa else {}),
        **({"deployment": new.deployment} if old and old.deployment != new.deployment else {}),
    }
    written = f"lustre: {as_yaml(settings)}"
    return written if old else f"a store of {written} for the checkpoints"
