"""The job behind `trainyard shell`, `tensorboard` and `notebook`: one pod on a pool, with the mounts, the
namespace and the queue of the stack's own jobs.

It is planned as an entry of the stack file would be, so that queue, quotas, Pod Security, taints and
mounts are those of any other job. It is in no stack file.
"""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pydantic

from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.catalog.versions import TRAINER_RELEASES
from trainyard.decide import plan_stack
from trainyard.derive.jobs import stores
from trainyard.derive.pools import TYPES
from trainyard.operations.reach.stack import Stack
from trainyard.plans.jobs import SHELL, JobPlan
from trainyard.problems import by_option
from trainyard.reports.costs.amounts import JobCost
from trainyard.reports.costs.cost import estimate
from trainyard.settings.job import JobConfig

UPSTREAM = "torch-distributed"
"""The runtime of the Trainer that such a job uses."""
ENDED = "[ended with "
"""Begins the last line of a command's output; its exit code and a bracket follow."""
GRACE_SECONDS = 30
STORES = "/stores"
"""Folder with the stores, each under its name."""
START_MINUTES = 60
"""Minutes in which a pod has its node and its image; a time limit counts them, too."""


class ShellError(RuntimeError):
    """Error: there can be no such job. The message says what to do."""


@dataclass(frozen=True, kw_only=True)
class Shell:
    """A job that is not sent yet."""

    plan: JobPlan
    stack: str
    pool: str
    instance_types: tuple[str, ...]
    gpus: int
    image: str
    places: tuple[str, ...]
    """Paths at which stores are mounted."""
    price: JobCost

    @property
    def body(self) -> dict[str, Any]:
        """The object to send. It has no identity of a run: no stack owns it."""
        return {
            "apiVersion": JOB_KINDS[self.plan.kind].api_version,
            "kind": self.plan.kind,
            "metadata": {
                "name": self.plan.name,
                "namespace": self.plan.namespace,
                "labels": dict(self.plan.labels),
            },
            "spec": self.plan.spec,
        }


def shell_job(
    stack: Stack,
    name: str,
    *,
    pool: str | None,
    image: str | None,
    gpus: int,
    minutes: int,
    command: str | None,
) -> Shell:
    """A job of one pod that ends by itself after `minutes`. `command`: what it runs; None: it waits
    for a terminal. ShellError where something of it is not known; Refused where the plan refuses
    it."""
    chosen = pool_of(stack, pool)
    return pod_job(
        stack,
        name,
        Wanted(
            pool=chosen,
            image=image or first_image(stack, chosen),
            gpus=gpus,
            minutes=minutes,
            words=_waits(minutes) if command is None else runs(command, minutes),
        ),
    )


def shell_name(word: str) -> str:
    """A new name for the job of a word, one of SHELL_WORDS."""
    return f"{word}-{secrets.token_hex(3)}"


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A pod that a word asks for."""

    pool: str
    image: str
    gpus: int | None
    """GPUs on a pool with GPUs; None: no GPU, so that the pod goes beside a gang that has them all."""
    minutes: int
    words: tuple[str, ...]
    """Command of its container, which ends by itself."""
    amounts: Mapping[str, int] = field(default_factory=dict)
    """cpus_per_node and memory_gib; by default the pod's share of its node."""


def pod_job(stack: Stack, name: str, wanted: Wanted) -> Shell:
    """A job of one pod. ShellError where something of it is not known; Refused where the plan refuses it."""
    kinds = stack.environment.pools[wanted.pool].instance_types
    most = TYPES[kinds[0]].gpus
    if most and wanted.gpus is not None and not 1 <= wanted.gpus <= most:
        raise ShellError(
            f"GPUS must be between 1 and {most}, because a pod on pool {wanted.pool} takes a part of a"
            f" node; got {wanted.gpus}. Fix: --gpus 1"
        )
    mounted = stores_of(stack)
    entry: dict[str, Any] = {
        **_controller(stack),
        **_time_limit(stack, wanted.minutes),
        "nodes": 1,
        "pool": wanted.pool,
        "image": wanted.image,
        "pull_secrets": stack.pull_secrets(wanted.image),
        "command": wanted.words,
        "processes_per_node": 1,
        "labels": {SHELL: "true"},
        "storage": {store: {"path": f"{STORES}/{store}"} for store in mounted},
        "allow_no_checkpoint": True,
        "expected_hours": wanted.minutes / 60,
        **wanted.amounts,
    }
    job = pydantic.TypeAdapter(JobConfig).validate_python(entry)
    # No stack file can say 0: a job that trains on a GPU pool has a GPU.
    job = dataclasses.replace(job, gpus_per_node=wanted.gpus or 0) if most else job
    plan, price = _planned(stack, name, job)
    return Shell(
        plan=plan,
        stack=stack.name,
        pool=wanted.pool,
        instance_types=kinds,
        gpus=(wanted.gpus or 0) if most else 0,
        image=wanted.image,
        places=tuple(f"{STORES}/{store}" for store in mounted),
        price=price,
    )


def _time_limit(stack: Stack, minutes: int) -> dict[str, int]:
    """The time after which its controller ends the job, where there is such a controller: the pod ends before."""
    environment = stack.environment
    release = TRAINER_RELEASES[environment.trainer.version]
    if "runtime" in _controller(stack) and not release.line.time_limit:
        return {}
    return {"time_limit_minutes": minutes + START_MINUTES}


def _waits(minutes: int) -> tuple[str, ...]:
    """A process that ends by itself; a terminal in its container ends with it."""
    return ("sleep", str(minutes * 60))


def runs(command: str, minutes: int) -> tuple[str, ...]:
    """The command, for so long at most. A pod that fails would be started again, so the exit code is
    a line of its log."""
    script = (
        f'timeout -k {GRACE_SECONDS} {minutes * 60} /bin/sh -c "$0"; code=$?;'
        f' printf "\\n{ENDED}%s]\\n" "$code"'
    )
    return ("/bin/sh", "-c", script, command)


def pool_of(stack: Stack, wanted: str | None) -> str:
    """The pool of this name; without a name the only one there is. Raises ShellError."""
    pools = stack.environment.pools
    name = next(iter(pools)) if wanted is None and len(pools) == 1 else wanted
    if name is None or name not in pools:
        got = "no pool is named" if name is None else f"there is no pool {name}"
        raise ShellError(f"{got}. Fix: {by_option('--pool', pools, 'a pool')}")
    return name


def first_image(stack: Stack, pool: str) -> str:
    """Image of the first job on the pool, else of the first job."""
    jobs = sorted(stack.jobs.values(), key=lambda job: job.pool != pool)
    if not jobs:
        raise ShellError(
            f"no job is described in {stack.file}, so no image is known. Fix: --image an image with a"
            " shell"
        )
    return jobs[0].image


def stores_of(stack: Stack) -> list[str]:
    """Stores of which the namespace has claims: of an environment all, of a team those that its
    jobs mount."""
    if stack.environment_stack == stack.name:
        return sorted(stack.environment.storage)
    return sorted({store for job in stack.jobs.values() for store in stores(job)})


def _controller(stack: Stack) -> dict[str, Any]:
    """The setting of the job that says who runs it."""
    trainer = stack.environment.trainer
    own = [name for name, runtime in trainer.own_runtimes.items() if runtime.kind == "torch"]
    found = [name for name in trainer.runtimes if name == UPSTREAM] + own
    if found:
        return {"runtime": found[0]}
    if stack.environment.training_operator:
        return {"pytorch_job": {}}
    raise ShellError(
        "the environment has no runtime for torch. Fix: add torch-distributed to"
        " environment.trainer.runtimes"
    )


def _planned(stack: Stack, name: str, job: JobConfig) -> tuple[JobPlan, JobCost]:
    """The job in the plan of the stack, which has no other job: they need not be right for it."""
    [config] = stack.reading.configs
    part = "environment" if config.environment else "team"
    changed = dataclasses.replace(getattr(config, part), jobs={name: job})
    config = dataclasses.replace(config, **{part: changed})
    plan = plan_stack(dataclasses.replace(stack.reading, configs=(config,)), Path(".")).accepted()
    [cost] = estimate(plan).jobs
    return plan.jobs[name], cost
