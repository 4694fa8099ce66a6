"""Changes of a store that stays, which would lose data or the way to it: the kinds of stores know them.
Changes that make another store: replacing.py."""

from __future__ import annotations

from collections.abc import Iterator

from trainyard.plan import EnvironmentPlan
from trainyard.problems import InputError, InputWarning
from trainyard.replacing.deployed import Deployed
from trainyard.replacing.replacing import changes
from trainyard.stores.kinds import KINDS, plan_kind

TYPES = frozenset().union(*(kind.compared for kind in KINDS.values()))
"""Types of resources that the rules look at, beside those of replacing.py."""


def store_errors(plan: EnvironmentPlan, deployed: Deployed) -> Iterator[InputError]:
    """Changes that AWS would refuse, or by which data of a store is lost."""
    replaced = {change.guarded.entry for change in changes(plan, deployed)}
    for name, store in plan.stores.items():
        kind = plan_kind(store)
        if f"storage.{name}" not in replaced:
            path = f"environment.storage.{name}.{kind.name}"
            yield from kind.update_errors(path, name, store, deployed.output)


def store_warnings(plan: EnvironmentPlan, deployed: Deployed) -> Iterator[InputWarning]:
    """Changes that work, and what they take."""
    for name, store in plan.stores.items():
        kind = plan_kind(store)
        path = f"environment.storage.{name}.{kind.name}"
        yield from kind.update_warnings(path, name, store, deployed.output)
