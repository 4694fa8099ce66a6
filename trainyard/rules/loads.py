"""Errors and warnings about data and weights that are loaded before a job: no source or several, a place
that two sources share, a store that the job does not mount, nodes with GPUs.

Examples of each rule: tests/trainyard/rules/test_loads.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from trainyard.derive.loads import GIGABYTES_A_SECOND, pool_of, without_gpus
from trainyard.derive.model_memory.models import is_fp8
from trainyard.problems import REMOVE, At, InputError, InputWarning, write_one_of
from trainyard.rules.model_memory import fp8_warning
from trainyard.rules.pods import from_root, store_directory_errors
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.job import JobConfig
from trainyard.settings.training.loads import (
    HUGGING_FACE,
    HuggingFaceConfig,
    LoadConfig,
    S3SourceConfig,
    StoreSourceConfig,
)

COMMIT, SHA256 = re.compile(r"[0-9a-f]{40}"), re.compile(r"[0-9a-f]{64}")
REPOSITORY, SERVER = (
    re.compile(r"[\w.-]+(/[\w.-]+)?"),
    re.compile(r"https?://[^/\s?#]+(/[^\s?#]*)?"),
)


def load_errors(
    path: str, job: JobConfig, environment: EnvironmentConfig, region: str
) -> Iterator[InputError]:
    """Every error of what one job loads. `path`: the job's."""
    for setting, load in job.loads.items():
        at = f"{path}.{setting}"
        yield from _one_source(at, load)
        yield from _place(at, load, job, environment)
        yield from _pool(f"{at}.pool", load, environment)
        if load.check and load.check.sha256 and not SHA256.fullmatch(load.check.sha256):
            yield At(f"{at}.check.sha256").must(
                "be 64 hexadecimal digits, in small letters",
                got=load.check.sha256,
                fix="write what a load without it prints at its end, or delete it",
            )
        if load.from_huggingface:
            yield from _hugging_face(f"{at}.from_huggingface", load.from_huggingface, environment)
        if load.from_s3:
            yield from _bucket(f"{at}.from_s3", load.from_s3, region)
        if load.from_store:
            yield from _other_store(f"{at}.from_store", load.from_store, load, environment)


def load_warnings(path: str, job: JobConfig) -> Iterator[InputWarning]:
    """Warnings about what one job loads. `path`: the job's."""
    for name, load in job.weights.items():
        if load.from_huggingface and is_fp8(load.from_huggingface.repository):
            at = f"{path}.weights.{name}.from_huggingface.repository"
            yield fp8_warning(at, load.from_huggingface.repository)
    if job.model and job.model.name and is_fp8(job.model.name):
        yield fp8_warning(f"{path}.model.name", job.model.name)


def team_load_errors(jobs: Mapping[str, JobConfig]) -> Iterator[InputError]:
    """Loads of the jobs of a team. Its role may create no Jobs: the pods of a Job pass every queue."""
    for name, job in jobs.items():
        for setting in ("data", "weights"):
            if getattr(job, setting):
                yield At(f"team.jobs.{name}.{setting}").must(
                    "not be set by a team: its role cannot create the Job that loads",
                    got=", ".join(getattr(job, setting)),
                    fix="delete it, and write it into a job of the environment, or load in the script",
                    write=REMOVE,
                )


def shared_place_errors(path: str, jobs: Mapping[str, JobConfig]) -> Iterator[InputError]:
    """Loads whose directory another load of the stack has, or a job writes to. `path`: that holds the jobs."""
    written = {
        (place.store, PurePosixPath(job.in_run(place.directory))): f"{name}.{setting}"
        for name, job in jobs.items()
        for setting, place in (("checkpoints", job.checkpoints), ("tensorboard", job.tensorboard))
        if place
    }
    seen: dict[tuple[str, PurePosixPath], tuple[str, str, LoadConfig]] = {}
    for name, job in jobs.items():
        for setting, load in job.loads.items():
            mine, at = PurePosixPath(load.directory), At(f"{path}.{name}.{setting}.directory")
            for (store, directory), whose in written.items():
                if store == load.store and _touch(mine, directory):
                    yield _shared(at, load, f"{whose} writes to {directory}")
            for (store, directory), (whose, kind, other) in seen.items():
                alike = directory == mine and _same(kind, other, setting, load)
                if store == load.store and _touch(mine, directory) and not alike:
                    yield _shared(at, load, f"{whose} loads into {directory}")
            seen.setdefault((load.store, mine), (f"{name}.{setting}", setting, load))


def _same(kind: str, other: LoadConfig, setting: str, load: LoadConfig) -> bool:
    """True where two entries name the same load: one Job is enough."""
    return other == load and kind.partition(".")[0] == setting.partition(".")[0]


def _touch(one: PurePosixPath, other: PurePosixPath) -> bool:
    return one == other or one in other.parents or other in one.parents


def _shared(at: At, load: LoadConfig, why: str) -> InputError:
    return at.must(
        f"be a directory of one source alone: on store {load.store} {why}",
        got=load.directory,
        fix="write a directory of its own; or, for the same source, the same settings",
    )


def _one_source(path: str, load: LoadConfig) -> Iterator[InputError]:
    named = [kind for kind in GIGABYTES_A_SECOND if getattr(load, kind) is not None]
    if len(named) != 1:
        yield At(path).must(
            "have exactly one of from_huggingface, from_s3 and from_store",
            got=" and ".join(named) or "none",
            fix="write from_s3: {address: s3://bucket/prefix/}, from_huggingface: {repository: owner/name,"
            " revision: <commit>}, or from_store: {store: name, directory: path}",
        )


def _place(
    path: str, load: LoadConfig, job: JobConfig, environment: EnvironmentConfig
) -> Iterator[InputError]:
    yield from store_directory_errors(path, load.store, load.directory, environment)
    if load.store in environment.storage and load.store not in job.storage:
        yield At(f"{path}.store").must(
            "be a store that the job mounts, or its pods do not see the files",
            got=load.store,
            fix=f"add storage: {{{load.store}: {{path: /{load.store}}}}} to the job",
        )


def _pool(path: str, load: LoadConfig, environment: EnvironmentConfig) -> Iterator[InputError]:
    fitting = [name for name, pool in environment.pools.items() if without_gpus(pool)]
    name = pool_of(load, environment.pools)
    add = "add environment.pools.cpu: {instance_types: [m7i.4xlarge], max_nodes: 1}, which costs nothing while idle"
    if name is None:
        yield At(path).must(
            "name a pool without GPUs"
            if fitting
            else "name a pool without GPUs, and the environment has none",
            got="nothing",
            fix=write_one_of(fitting, add),
        )
    elif name not in fitting:
        known = name in environment.pools
        yield At(path).must(
            "be a pool without GPUs, whose idle time is what the load saves"
            if known
            else "be a pool of the environment",
            got=name,
            fix=write_one_of(fitting, add),
        )


def _hugging_face(
    path: str, at: HuggingFaceConfig, environment: EnvironmentConfig
) -> Iterator[InputError]:
    if not COMMIT.fullmatch(at.revision):
        yield At(f"{path}.revision").must(
            "be a commit, 40 hexadecimal digits: a branch or a tag can be another one tomorrow",
            got=at.revision,
            fix=f"write the newest commit of {HUGGING_FACE}/{at.repository}/commits/main",
        )
    if not REPOSITORY.fullmatch(at.repository):
        yield At(f"{path}.repository").must(
            "be a name of Hugging Face, without an address",
            got=at.repository,
            fix="write owner and name, such as Qwen/Qwen3-8B",
        )
    if not SERVER.fullmatch(at.endpoint):
        yield At(f"{path}.endpoint").must(
            "be the address of a server", got=at.endpoint, write=HUGGING_FACE
        )
    if at.endpoint == HUGGING_FACE and environment.network.internet == "none":
        yield At(f"{path}.endpoint").must(
            "be a server inside the VPC with internet: none",
            got=at.endpoint,
            fix="write its address, or copy the repository to S3 and write from_s3",
        )


def _bucket(path: str, at: S3SourceConfig, region: str) -> Iterator[InputError]:
    if at.region not in (None, region):
        yield At(f"{path}.region").must(
            f"be {region}, the region of the stack: each GB between regions is paid, and slow",
            got=at.region,
            fix=f"copy the prefix to a bucket in {region}, and name that one",
        )


def _other_store(
    path: str, at: StoreSourceConfig, load: LoadConfig, environment: EnvironmentConfig
) -> Iterator[InputError]:
    if at.store not in environment.storage:
        yield At(f"{path}.store").must(
            "be a store of the environment",
            got=at.store,
            fix=write_one_of(environment.storage, "add one under environment.storage", at.store),
        )
    here, there = PurePosixPath(load.directory), PurePosixPath(at.directory)
    if at.store == load.store and _touch(here, there):
        yield At(f"{path}.directory").must(
            f"be apart from {load.directory}, into which it is loaded",
            got=at.directory,
            fix="mount the directory as it is, and delete this entry",
        )
    if ".." in at.directory.split("/"):
        yield At(f"{path}.directory").must(
            "be a path from the root of its store, without `..`",
            got=at.directory,
            write=from_root(at.directory),
        )
