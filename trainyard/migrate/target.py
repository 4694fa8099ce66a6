"""The names that an entry takes from the stack it is for: its pool, its runtime and its stores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainyard.derive.pools import TYPES
from trainyard.manifests.context import ManifestContext
from trainyard.settings.environment import EnvironmentConfig


def pool_for(
    context: ManifestContext, environment: EnvironmentConfig | None
) -> tuple[str, list[str]]:
    """The pool of a job, and what to say about it. `environment`: None where no stack is named."""
    fitting = _fitting_pool(context, environment) if environment else None
    pool = fitting or _guess(context)
    return pool, [] if fitting else [f"pool: {pool} is a guess; name a pool of your stack"]


def _fitting_pool(context: ManifestContext, environment: EnvironmentConfig) -> str | None:
    """The first pool with the instance type of the job, or else with its GPUs; and with its nodes."""
    wanted = context.instance_type
    fitting = [
        (name, kinds)
        for name, pool in environment.pools.items()
        if (kinds := [TYPES[kind] for kind in pool.instance_types if kind in TYPES])
        and bool(context.gpus) == bool(kinds[0].gpus)
        and context.gpus <= kinds[0].gpus
        and context.nodes <= pool.max_nodes
    ]
    alike = [name for name, kinds in fitting if wanted in kinds]
    return next(iter([*alike, *(name for name, _ in fitting)]), None)


def _guess(context: ManifestContext) -> str:
    """A guess: the family of an instance type that the job names, else the name of its GPU."""
    if context.instance_type:
        return (
            context.instance_type.family
            if context.instance_type.name in str(context.workload.body)
            else context.instance_type.gpu
        )
    return "gpu" if context.gpus else "cpu"


def names_to_fill_in(entry: Mapping[str, Any], environment: EnvironmentConfig | None) -> list[str]:
    """Names in the entry of what the stack does not have."""
    if environment is None:
        return []
    runtimes = (*environment.trainer.runtimes, *environment.trainer.own_runtimes)
    stores = {*entry.get("storage", {})}
    stores |= {entry["checkpoints"]["store"]} if "checkpoints" in entry else set()
    wanted = [("runtime", entry["runtime"], runtimes)]
    wanted += [("storage", store, tuple(environment.storage)) for store in sorted(stores)]
    return [
        f"{setting}: fill in another name for {name}: the stack has {', '.join(known) or 'none'}"
        for setting, name, known in wanted
        if name not in known
    ]
