"""Stack files for tests: small edits of the two in the checkout, read and planned as `trainyard check`
does."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests.support.recording import CHECKOUT, stack_values
from trainyard.catalog.aws.instances import GPU_TYPES
from trainyard.catalog.aws.zones import ZONE_LETTERS, regions_with, zone_names
from trainyard.decide import plan_stack
from trainyard.plan import EnvironmentPlan, Planned, TeamPlan
from trainyard.plans.identity import digest
from trainyard.plans.networks import OwnNetworkPlan
from trainyard.plans.stores import EfsPlan, LustrePlan
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.reading.reader import Reading, read

ENVIRONMENT, TEAM = "trainyard:environment", "trainyard:team"
SCRATCH = f"scratch-{digest(['lustre', 'ap-northeast-2a', 'PERSISTENT_2'])[:8]}"
"""Claim of the dev file's scratch."""
Edit = Callable[[dict[str, Any]], object]


def at(path: str, value: Any) -> Edit:
    """An edit that sets one value: at("pools.g6e.max_nodes", 9)."""

    def edit(settings: dict[str, Any]) -> None:
        *way, last = path.split(".")
        for step in way:
            settings = settings.setdefault(step, {})
        settings[last] = copy.deepcopy(value)  # what the next edit changes is not this one's

    return edit


def without(path: str) -> Edit:
    """An edit that takes one value away."""

    def edit(settings: dict[str, Any]) -> None:
        *way, last = path.split(".")
        for step in way:
            settings = settings[step]
        del settings[last]

    return edit


def own_network(plan: EnvironmentPlan) -> OwnNetworkPlan:
    """The plan of a network that the stack makes."""
    assert isinstance(plan.network, OwnNetworkPlan)
    return plan.network


def lustre(plan: EnvironmentPlan, name: str = "scratch") -> LustrePlan:
    """The plan of a Lustre store."""
    found = plan.stores[name]
    assert isinstance(found, LustrePlan)
    return found


def efs(plan: EnvironmentPlan, name: str = "home") -> EfsPlan:
    """The plan of an EFS store."""
    found = plan.stores[name]
    assert isinstance(found, EfsPlan)
    return found


def values(*edits: Edit, stack: str = "dev") -> dict[str, Any]:
    """A stack file's configuration, with its environment or team edited."""
    found = stack_values(stack)
    for edit in edits:
        edit(found[ENVIRONMENT if ENVIRONMENT in found else TEAM])
    return found


def reading(*edits: Edit, stack: str = "dev") -> Reading:
    return read(values(*edits, stack=stack), stack=stack, project="trainyard")


def planned(*edits: Edit, stack: str = "dev", folder: Path = CHECKOUT) -> Planned:
    return plan_stack(reading(*edits, stack=stack), folder)


def errors(*edits: Edit, stack: str = "dev") -> list[str]:
    return [str(error) for error in planned(*edits, stack=stack).errors]


def environment(*edits: Edit) -> EnvironmentConfig:
    """Settings of the dev environment."""
    found = reading(*edits).config
    assert found and found.environment
    return found.environment


def environment_plan(*edits: Edit, folder: Path = CHECKOUT) -> EnvironmentPlan:
    plan = planned(*edits, folder=folder).accepted()
    assert isinstance(plan, EnvironmentPlan)
    return plan


def team_plan(*edits: Edit) -> TeamPlan:
    plan = planned(*edits, stack="team-vision").accepted()
    assert isinstance(plan, TeamPlan)
    return plan


@st.composite
def sound_stacks(draw: st.DrawFn) -> dict[str, Any]:
    """Environments of any region, zone and mix of pools, stores and jobs."""
    region = draw(st.sampled_from([r for r in ZONE_LETTERS if _sold(r)]))
    found = values()
    found["aws:region"], settings = region, found[ENVIRONMENT]
    settings["zone"] = draw(st.sampled_from(zone_names(region)))
    kinds = draw(st.lists(st.sampled_from(_sold(region)), min_size=1, max_size=3, unique=True))
    settings["pools"] = {
        f"pool-{i}": {"instance_types": [kind], "max_nodes": draw(st.integers(1, 8))}
        for i, kind in enumerate(kinds)
    }
    stores = draw(st.lists(st.sampled_from(["scratch", "home", "data"]), unique=True))
    settings["storage"] = {
        name: draw(
            st.sampled_from(
                [{"efs": {}}, {"lustre": {"capacity_gib": 2400, "throughput_mbps_per_tib": 250}}]
            )
        )
        for name in stores
    }
    settings["jobs"] = {
        f"job-{i}": draw(_jobs(pool, settings["pools"][pool]["max_nodes"], stores, f"a/{i}"))
        for i, pool in enumerate(
            draw(st.lists(st.sampled_from(list(settings["pools"])), max_size=3))
        )
    }
    return found


@st.composite
def _jobs(
    draw: st.DrawFn, pool: str, most: int, stores: list[str], directory: str
) -> dict[str, Any]:
    job: dict[str, Any] = {
        "runtime": draw(st.sampled_from(["torch-distributed", "torch-distributed-resilient"])),
        "pool": pool,
        "image": "image:1",
        "command": ["true"],
        "nodes": draw(st.integers(1, most)),
        "shared_memory_gib": 4,
        "env": draw(st.dictionaries(st.sampled_from(["A", "B"]), st.just("1"))),
        "allow_no_checkpoint": True,
    }
    if stores:
        mounted = draw(st.lists(st.sampled_from(stores), unique=True))
        job["storage"] = {name: {"path": f"/{name}"} for name in mounted}
        if saved_on := draw(st.none() | st.sampled_from(stores)):
            job["checkpoints"] = {"store": saved_on, "directory": directory}
    return job


def _sold(region: str) -> list[str]:
    return [name for name in GPU_TYPES if region in regions_with(name)]
