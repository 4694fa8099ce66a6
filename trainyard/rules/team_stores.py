"""Errors about what a team does with the stores of its environment: mount one that keeps teams
apart past its own directory, or write to one that teams only read.

Why each team has its own directory: docs/decisions/0014-each-team-mounts-its-own-directory.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from trainyard.derive.team_stores import stores_of
from trainyard.problems import At, InputError, InputWarning, few, write_one_of
from trainyard.settings.environment import EnvironmentConfig, TeamConfig
from trainyard.settings.job import AnyJob, JobConfig, typed

CACHES = re.compile(r"HF_HOME|TORCH_HOME|WANDB_DIR|\w+_CACHE(_DIR|_HOME)?")
"""Variables with a folder that programs write to: Hugging Face, PyTorch, Triton, XDG, pip, W&B."""
OFFLINE = "HF_HUB_OFFLINE"
"""Variable with which Hugging Face's libraries only read what is there."""
_TRUE = ("1", "ON", "YES", "TRUE")


def wall_warnings(wanted: EnvironmentConfig) -> Iterator[InputWarning]:
    """Stores that several teams write to, beside stores that keep teams apart: what one team leaves
    there, another reads and deletes."""
    kept = [name for name, store in wanted.storage.items() if store.teams == "apart"]
    if not kept:
        return
    for name, store in wanted.storage.items():
        who = [team for team, entry in wanted.teams.items() if name in stores_of(entry, wanted)]
        if store.teams == "together" and len(who) > 1:
            yield At(f"environment.storage.{name}").warning(
                f"{few(who)} read and write all of it, although"
                f" {kept[0]} keeps teams apart: set teams: apart or teams: read_only, or list it"
                " in stores of one team only"
            )


def past_the_wall_errors(team: TeamConfig, environment: EnvironmentConfig) -> Iterator[InputError]:
    """A team that makes its volumes itself, where some store limits what teams see."""
    limited = [name for name, store in environment.storage.items() if store.teams != "together"]
    if limited and team.name is None:
        yield At("team").must(
            f"be listed by the environment, because teams do not see all of its store {limited[0]}",
            got=f"namespace {team.namespace}",
            fix=f"add an entry under environment.teams in Pulumi.{team.environment}.yaml, and write"
            " its name here",
        )


def read_only_errors(
    jobs: Mapping[str, AnyJob], described: Mapping[str, JobConfig], environment: EnvironmentConfig
) -> Iterator[InputError]:
    """Jobs of a listed team that write to a store which teams only read. `described`: all of them in
    the words of settings."""
    for name, job in described.items():
        own = environment.own_runtime(job)
        if own and own.torchtune and _reads(own.torchtune.store, environment):
            setting = "runtime" if name in typed(jobs) else "manifest"
            yield At(f"team.jobs.{name}.{setting}").must(
                "be a runtime whose model lies on a store that teams can write to",
                got=f"{job.runtime}, which writes to {own.torchtune.store}",
                fix="take another runtime, or another store in the torchtune of this one",
            )
    for name, job in typed(jobs).items():
        yield from _directories(f"team.jobs.{name}", job, environment)
        yield from _caches(f"team.jobs.{name}", job, environment)


def _reads(store: str, environment: EnvironmentConfig) -> bool:
    return store in environment.storage and environment.storage[store].teams == "read_only"


def _directories(path: str, job: JobConfig, environment: EnvironmentConfig) -> Iterator[InputError]:
    for setting, place in (("checkpoints", job.checkpoints), ("tensorboard", job.tensorboard)):
        if place and _reads(place.store, environment):
            yield At(f"{path}.{setting}.store").must(
                "be a store that teams can write to",
                got=f"{place.store}, which is teams: read_only",
                fix=_writable(environment),
            )


def _caches(path: str, job: JobConfig, environment: EnvironmentConfig) -> Iterator[InputError]:
    """Variables that send a cache to where nothing can be written."""
    mounts = {
        mount.path.rstrip("/"): store
        for store, mount in job.storage.items()
        if _reads(store, environment)
    }
    offline = job.env.get(OFFLINE, "").upper() in _TRUE
    for variable, value in job.env.items():
        below = [at for at in mounts if f"{value.rstrip('/')}/".startswith(f"{at}/")]
        if not below or not CACHES.fullmatch(variable):
            continue
        if offline and variable.startswith("HF_"):
            continue
        yield At(f"{path}.env.{variable}").must(
            "be a folder that the job can write to",
            got=f"{value}, on {mounts[below[0]]}, which is teams: read_only",
            fix="write a folder on another store or under local_scratch"
            + (f', or set {OFFLINE}: "1"' if variable.startswith("HF_") else ""),
        )


def _writable(environment: EnvironmentConfig) -> str:
    free = [name for name, store in environment.storage.items() if store.teams != "read_only"]
    return write_one_of(free, "add a store under environment.storage that is not read_only")
