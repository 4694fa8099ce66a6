"""The acceptance job of a pool in a stack file: the entry that is there, or a new one with its
price."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import pydantic

from trainyard.catalog.scalars import as_file
from trainyard.decide import plan_stack
from trainyard.derive.acceptance import acceptance_entry, is_acceptance, measured_stores
from trainyard.operations.reach.stack import Stack
from trainyard.operations.reach.stack_lines import with_job
from trainyard.problems import by_option
from trainyard.reports.costs.amounts import JobCost
from trainyard.reports.costs.cost import estimate
from trainyard.settings.job import JobConfig
from trainyard.settings.pools import PoolConfig

RUNTIME = "torch-distributed"
"""The runtime that the Trainer ships for torchrun."""


class EntryError(RuntimeError):
    """Error: a stack file has no acceptance job and gets none. The message says what to do."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A new entry of a stack file."""

    stack: str
    pool: str
    file: str
    text: str
    """The entry."""
    changed: str
    """The file with it."""
    price: str
    """A sentence."""


def acceptance_job(stack: Stack, pool: str | None) -> str | None:
    """Name of the job that measures the pool, or any pool; None where there is none.
    EntryError where there are several."""
    found = [
        name for name, job in stack.jobs.items() if is_acceptance(job) and pool in (None, job.pool)
    ]
    if len(found) > 1:
        pools = dict.fromkeys(stack.jobs[name].pool for name in found)
        raise EntryError(
            f"{stack.file} has {len(found)} acceptance jobs: {', '.join(found)}. Fix:"
            f" {by_option('--pool', pools, 'a pool')}, with one job each"
        )
    return found[0] if found else None


def new_entry(stack: Stack, pool: str | None, nodes: int | None, image: str | None) -> Entry:
    """An entry for the pool. EntryError where something of it is not known; Refused where the
    plan refuses it."""
    name, settings = _pool(stack, pool)
    nodes = settings.max_nodes if nodes is None else nodes
    if nodes < 2:
        raise EntryError(
            f"NODES must be 2 or more, because one node has no neighbour; got {nodes}."
            f" Fix: --nodes 2, and environment.pools.{name}.max_nodes: 2"
        )
    team = _team(stack)
    if not measured_stores(stack.environment, team):
        raise _no_store(team)
    image = image or _image(stack, name)
    entry = acceptance_entry(
        stack.environment,
        pool=name,
        nodes=nodes,
        image=image,
        runtime=_runtime(stack),
        team=team,
    )
    if secrets := stack.pull_secrets(image):
        entry["pull_secrets"] = [*secrets]
    job = f"accept-{name}"
    if job in stack.taken:
        raise EntryError(f"{stack.file} has another job {job}. Fix: rename it")
    cost = _cost(stack, job, pydantic.TypeAdapter(JobConfig).validate_python(entry))
    text = as_file({job: entry}, default_flow_style=None, width=100)
    return Entry(
        stack=stack.name,
        pool=name,
        file=stack.file,
        text=text,
        changed=_with(stack, text),
        price=_price(job, cost, settings.instance_types[0], float(entry["expected_hours"])),
    )


def _team(stack: Stack) -> str | None:
    """Name of the team of a team's stack, by which its environment lists it."""
    team = stack.reading.configs[0].team
    return team.name if team else None


def _no_store(team: str | None) -> EntryError:
    fix = "add a Lustre or EFS store to environment.storage"
    if team is None:
        return EntryError(
            f"the environment has no store that takes checkpoints and results. Fix: {fix}"
        )
    return EntryError(
        f"the environment has no store that team {team} can write checkpoints to. Fix: {fix} that the"
        " team can mount, without teams: read_only"
    )


def _pool(stack: Stack, wanted: str | None) -> tuple[str, PoolConfig]:
    pools = stack.environment.pools
    name = next(iter(pools)) if wanted is None and len(pools) == 1 else wanted
    if name not in pools:
        got = "none is named" if name is None else f"there is no pool {name}"
        raise EntryError(f"{got}. Fix: {by_option('--pool', pools, 'a pool')}")
    return name, pools[name]


def _image(stack: Stack, pool: str) -> str:
    """Image of the first job on the pool."""
    found = next((job.image for job in stack.jobs.values() if job.pool == pool), None)
    if found is None:
        raise EntryError(
            f"no job of {stack.file} is on pool {pool}, so no image is known. Fix: --image an image"
            " with torch"
        )
    return found


def _runtime(stack: Stack) -> str:
    trainer = stack.environment.trainer
    own = [name for name, runtime in trainer.own_runtimes.items() if runtime.kind == "torch"]
    found = [name for name in trainer.runtimes if name == RUNTIME] + own
    if not found:
        raise EntryError(
            "the environment has no runtime for torchrun. Fix: add torch-distributed to"
            " environment.trainer.runtimes"
        )
    return found[0]


def _cost(stack: Stack, name: str, job: JobConfig) -> JobCost:
    """Cost of a run of the job, by the plan of the stack with it."""
    [config] = stack.reading.configs
    part = "environment" if config.environment else "team"
    wanted = getattr(config, part)
    changed = dataclasses.replace(wanted, jobs={**wanted.jobs, name: job})
    config = dataclasses.replace(config, **{part: changed})
    plan = plan_stack(dataclasses.replace(stack.reading, configs=(config,))).accepted()
    return next(cost for cost in estimate(plan).jobs if cost.job == name)


def _with(stack: Stack, text: str) -> str:
    """The stack file with the entry before its first job."""
    changed = with_job(Path(stack.file).read_text(), text)
    if changed is None:
        raise EntryError(
            f"the jobs of {stack.file} are in braces. Fix: write this below `jobs:`\n\n{text}"
        )
    return changed


def _price(name: str, cost: JobCost, instance_type: str, hours: float) -> str:
    start, measuring = cost.cold_start_seconds / 60, hours * 60
    if cost.prepaid:
        dollars = "paid already with a Capacity Block"
    elif cost.at_most and cost.most_usd is not None:
        dollars = f"at most {cost.most_usd:,.2f} USD"
    elif cost.usd is not None:
        dollars = f"about {cost.usd:,.2f} USD"
    else:
        dollars = f"no price is known of {', '.join(cost.missing)}"
    return (
        f"jobs.{name}: {cost.nodes} nodes of {instance_type}, {start:.0f} minutes of starting and"
        f" {measuring:.0f} of measuring, {dollars}"
    )
