"""The acceptance job of a pool in a stack file: the entry that is there, or a new one with its
price."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pydantic
import yaml

from operations.stack_lines import with_job
from stacks.derive.acceptance import acceptance_entry, is_acceptance, measured_stores
from stacks.plan import plan_stack
from stacks.reports.cost import JobCost, estimate
from stacks.settings.environment import EnvironmentConfig, PoolConfig
from stacks.settings.job import JobConfig, typed
from stacks.settings.problems import Refused, one_of
from stacks.settings.reader import Reading, read_file
from stacks.settings.teams import environment_of

RUNTIME = "torch-distributed"
"""The runtime that the Trainer ships for torchrun."""


class EntryError(RuntimeError):
    """Why a stack file has no acceptance job and gets none; the message says what to do."""


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


@dataclass(frozen=True, kw_only=True)
class Stack:
    """A stack file without errors, and its environment."""

    name: str
    reading: Reading
    environment: EnvironmentConfig
    """For a team: the one that it is on."""
    environment_stack: str
    """The stack of the environment."""
    jobs: Mapping[str, JobConfig]
    """Those that are described in the file."""
    taken: frozenset[str]
    """Names of all jobs."""

    @property
    def file(self) -> str:
        return f"Pulumi.{self.name}.yaml"

    @property
    def region(self) -> str:
        return self.reading.configs[0].region

    def acceptance_job(self, pool: str | None) -> str | None:
        """Name of the job that measures the pool, or any pool; None where there is none.
        EntryError where there are several."""
        found = [
            name
            for name, job in self.jobs.items()
            if is_acceptance(job) and pool in (None, job.pool)
        ]
        if len(found) > 1:
            pools = ", ".join(dict.fromkeys(self.jobs[name].pool for name in found))
            raise EntryError(
                f"{self.file} has {len(found)} acceptance jobs: {', '.join(found)}. Fix: POOL= one of"
                f" {pools}, with one job each"
            )
        return found[0] if found else None

    def new_entry(self, pool: str | None, nodes: int | None, image: str | None) -> Entry:
        """An entry for the pool. EntryError where something of it is not known; Refused where the
        plan refuses it."""
        name, settings = self._pool(pool)
        nodes = settings.max_nodes if nodes is None else nodes
        if nodes < 2:
            raise EntryError(
                f"NODES must be 2 or more, because one node has no neighbour; got {nodes}."
                f" Fix: NODES=2, and environment.pools.{name}.max_nodes: 2"
            )
        if not measured_stores(self.environment):
            raise EntryError(
                "the environment has no store that takes checkpoints and results. Fix: add a Lustre or"
                " EFS store to environment.storage"
            )
        entry = acceptance_entry(
            self.environment,
            pool=name,
            nodes=nodes,
            image=image or self._image(name),
            runtime=self._runtime(),
        )
        job = f"accept-{name}"
        if job in self.taken:
            raise EntryError(f"{self.file} has another job {job}. Fix: rename it")
        cost = self._cost(job, pydantic.TypeAdapter(JobConfig).validate_python(entry))
        text = yaml.safe_dump({job: entry}, sort_keys=False, default_flow_style=None, width=100)
        return Entry(
            stack=self.name,
            pool=name,
            file=self.file,
            text=text,
            changed=self._with(text),
            price=_price(job, cost, settings.instance_types[0], float(entry["expected_hours"])),
        )

    def _pool(self, wanted: str | None) -> tuple[str, PoolConfig]:
        pools = self.environment.pools
        name = next(iter(pools)) if wanted is None and len(pools) == 1 else wanted
        if name not in pools:
            got = "none is named" if name is None else f"there is no pool {name}"
            raise EntryError(f"{got}. Fix: POOL= {one_of(pools, 'a pool of the environment')}")
        return name, pools[name]

    def _image(self, pool: str) -> str:
        """That of the first job on the pool."""
        found = next((job.image for job in self.jobs.values() if job.pool == pool), None)
        if found is None:
            raise EntryError(
                f"no job of {self.file} is on pool {pool}, so no image is known. Fix: IMAGE= an image"
                " with torch"
            )
        return found

    def _runtime(self) -> str:
        trainer = self.environment.trainer
        own = [name for name, runtime in trainer.own_runtimes.items() if runtime.kind == "torch"]
        found = [name for name in trainer.runtimes if name == RUNTIME] + own
        if not found:
            raise EntryError(
                "the environment has no runtime for torchrun. Fix: add torch-distributed to"
                " environment.trainer.runtimes"
            )
        return found[0]

    def _cost(self, name: str, job: JobConfig) -> JobCost:
        """What a run of the job costs, by the plan of the stack with it."""
        [config] = self.reading.configs
        part = "environment" if config.environment else "team"
        wanted = getattr(config, part)
        changed = dataclasses.replace(wanted, jobs={**wanted.jobs, name: job})
        config = dataclasses.replace(config, **{part: changed})
        plan = plan_stack(dataclasses.replace(self.reading, configs=(config,))).accepted()
        return next(cost for cost in estimate(plan).jobs if cost.job == name)

    def _with(self, text: str) -> str:
        """The stack file with the entry before its first job."""
        changed = with_job(Path(self.file).read_text(), text)
        if changed is None:
            raise EntryError(
                f"the jobs of {self.file} are in braces. Fix: write this below `jobs:`\n\n{text}"
            )
        return changed


def read_stack(name: str) -> Stack:
    """A stack file and its environment. Refused where one of them has errors."""
    reading = read_file(name)
    if reading.errors or len(reading.configs) != 1:
        raise Refused(reading.errors)
    [config] = reading.configs
    if config.team:
        base, error = environment_of(config.team, Path("."))
        if error or base.errors or not base.config or not base.config.environment:
            raise Refused([error] if error else base.errors)
        environment, jobs = base.config.environment, config.team.jobs
    else:
        environment = config.environment
        jobs = environment.jobs if environment else {}
    assert environment is not None  # a file without errors has one of the two
    return Stack(
        name=name,
        reading=reading,
        environment=environment,
        environment_stack=config.team.environment if config.team else name,
        jobs=typed(jobs),
        taken=frozenset(jobs),
    )


def _price(name: str, cost: JobCost, instance_type: str, hours: float) -> str:
    start, measuring = cost.cold_start_seconds / 60, hours * 60
    dollars = (
        f"about {cost.usd:,.2f} USD"
        if cost.usd is not None
        else f"no price is known of {', '.join(cost.missing)}"
    )
    return (
        f"jobs.{name}: {cost.nodes} nodes of {instance_type}, {start:.0f} minutes of starting and"
        f" {measuring:.0f} of measuring, {dollars}"
    )
