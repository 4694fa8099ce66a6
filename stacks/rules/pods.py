"""What a job's pods cannot be: mounts, variables, commands; and what in them changes without
anybody changing it.

Sources: Trainer 2.1 (shared facts trainer.md), traps 2a to 2c of by-hand-and-traps.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from catalog import fabric
from plans.upstream_runtimes import WORKSPACE
from stacks.derive.capacity import job_type
from stacks.derive.jobs import CHECKPOINTS, TENSORBOARD
from stacks.derive.scripts import launches
from stacks.rules.pinning import unpinned
from stacks.settings.environment import EnvironmentConfig
from stacks.settings.job import TO_S3, JobConfig
from stacks.settings.problems import InputError, InputWarning

RESERVED_ENV = (
    "PET_NNODES",
    "PET_NPROC_PER_NODE",
    "PET_NODE_RANK",
    "PET_MASTER_ADDR",
    "PET_MASTER_PORT",
)
"""The Trainer sets them; its webhook refuses a job that does."""
TOKEN = re.compile(
    r"hf_[A-Za-z0-9]{20,}|AKIA[0-9A-Z]{16}|sk-lf-[0-9a-f-]{20,}|nvapi-[A-Za-z0-9_-]{20,}"
)
"""What tokens of Hugging Face, AWS, Langfuse and NVIDIA look like."""
LABEL = r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?"


def pod_errors(
    path: str, job: JobConfig, environment: EnvironmentConfig, set_aside: frozenset[str]
) -> Iterator[InputError]:
    """Every error of the pods. `set_aside`: names that were left out, so that no second error names
    them."""
    yield from _mounts(path, job, environment, set_aside)
    yield from _files(path, job)
    yield from _command(path, job, environment)
    yield from _variables(path, job, environment)
    for where, what, way_out in (
        unpinned(job.image, job.script or "") if environment.production else ()
    ):
        yield InputError(
            path=f"{path}.{where}", must="be pinned in production", got=what, fix=way_out
        )


def pod_warnings(
    path: str, job: JobConfig, environment: EnvironmentConfig
) -> Iterator[InputWarning]:
    """What works but should be known about the pods."""
    kind = job_type(job, environment)
    for key, value in job.env.items():
        if kind and (vain := fabric.harm(key, value, kind)) and vain.idle:
            yield InputWarning(path=f"{path}.env.{key}", text=vain.reason)
    loose = [] if environment.production else list(unpinned(job.image, job.script or ""))
    for where, what, way_out in loose:
        yield InputWarning(path=f"{path}.{where}", text=f"{what}: {way_out}")
    if "@sha256:" not in job.image and not any(where == "image" for where, _, _ in loose):
        yield InputWarning(
            path=f"{path}.image", text="is a tag; a digest (@sha256:…) is what was tested"
        )
    if job.host_paths:
        yield InputWarning(
            path=f"{path}.host_paths",
            text=(
                "must exist on every node, where this program puts nothing; the"
                " namespace admits privileged pods because of them"
            ),
        )
    if kind and job.local_scratch and not kind.nvme_gb:
        yield InputWarning(
            path=f"{path}.local_scratch",
            text=f"{kind.name} has no NVMe: it lies on the root volume",
        )


def _mounts(
    path: str, job: JobConfig, environment: EnvironmentConfig, set_aside: frozenset[str]
) -> Iterator[InputError]:
    for store in job.storage:
        if store not in environment.storage and store not in set_aside:
            yield InputError(
                path=f"{path}.storage.{store}",
                must="be a store of the environment",
                got=store,
                fix=f"one of {', '.join(environment.storage) or 'none yet'}",
            )
    paths = [
        at.rstrip("/")
        for at in (*_paths(job), *([WORKSPACE] if _has_recipe(job, environment) else []))
    ]
    for twice in sorted({at for at in paths if paths.count(at) > 1}):
        yield InputError(
            path=f"{path}.storage",
            must="mount one thing at a path",
            got=twice,
            fix="take another path",
        )
    for place, at in (("checkpoints", job.checkpoints), ("tensorboard", job.tensorboard)):
        if at:
            yield from place_errors(
                f"{path}.{place}", at.store, at.directory, environment, set_aside
            )


def place_errors(
    path: str,
    store: str,
    directory: str,
    environment: EnvironmentConfig,
    set_aside: frozenset[str] = frozenset(),
) -> Iterator[InputError]:
    """Every error of a directory in one of the environment's stores."""
    if store not in environment.storage and store not in set_aside:
        known = f"one of {', '.join(environment.storage) or 'none yet'}"
        yield InputError(
            path=f"{path}.store",
            must="be a store of the environment",
            got=store,
            fix=f"{known}; to S3: {TO_S3}" if re.match("local|nvme|s3", store) else known,
        )
    if "://" in directory:
        yield InputError(
            path=f"{path}.directory",
            must="be a directory of its store",
            got=directory,
            fix=TO_S3,
        )
    if ".." in directory.split("/"):
        yield InputError(
            path=f"{path}.directory",
            must="stay in its store (the API server refuses `..`)",
            got=directory,
            fix="name it from the store's root",
        )


def _paths(job: JobConfig) -> Iterator[str]:
    """Everything that is mounted in the container."""
    yield from ("/dev/shm", CHECKPOINTS, TENSORBOARD)
    yield from (mount.path for mount in job.storage.values())
    yield from (mount.path for mount in job.host_paths.values())
    yield from [job.files.path] if job.files else []
    yield from [job.local_scratch] if job.local_scratch else []


def _files(path: str, job: JobConfig) -> Iterator[InputError]:
    """A script that torchrun looks for where the job's files are is one of them."""
    if not (job.files and job.torchrun):
        return
    folder, _, name = job.torchrun.script.rpartition("/")
    brought = [source.rpartition("/")[2] for source in job.files.sources]
    if folder == job.files.path.rstrip("/") and name not in brought:
        yield InputError(
            path=f"{path}.torchrun.script",
            must=f"be one of the files in {folder}",
            got=name,
            fix=f"one of {', '.join(brought)}, or add it to files.sources",
        )


def _has_recipe(job: JobConfig, environment: EnvironmentConfig) -> bool:
    own = environment.own_runtime(job)
    return own is not None and own.kind == "torchtune"


def _command(path: str, job: JobConfig, environment: EnvironmentConfig) -> Iterator[InputError]:
    if not job.image.strip() or " " in job.image.strip():
        yield InputError(
            path=f"{path}.image",
            must="be an image",
            got=job.image or "nothing",
            fix="registry/name:tag, better registry/name@sha256:…",
        )
    elif not re.search(r"[:@][^/]+$", job.image):
        yield InputError(
            path=f"{path}.image",
            must="have a tag: without one it is whatever is newest",
            got=job.image,
            fix=f"{job.image}:<version>, better a digest (@sha256:…)",
        )
    if job.script is not None and not job.script.strip():
        yield InputError(
            path=f"{path}.script",
            must="do something",
            got="nothing",
            fix="write it, or drop the job",
        )
    ways = {
        "script": job.script is not None,
        "command": bool(job.command),
        "torchrun": job.torchrun is not None,
    }
    if sum(ways.values()) > 1 or not any(ways.values()) and not _has_recipe(job, environment):
        yield InputError(
            path=path,
            must="have exactly one of script, command and torchrun",
            got=" and ".join(way for way, given in ways.items() if given) or "none",
            fix=(
                "script: | with bash text, command: [program, argument], or torchrun: {script:"
                " train.py}"
            ),
        )
    text = job.script or " ".join(job.command)
    for launch in launches(text) if job.nodes > 1 else ():
        if launch.alone and (launch.endpoint or not job.elastic):
            yield InputError(
                path=f"{path}.script",
                must=(
                    "give torchrun a rendezvous endpoint: without one every node"
                    " waits at its own localhost"
                ),
                got=launch.text[:60],
                fix="--rdzv_backend=c10d --rdzv_endpoint=${PET_MASTER_ADDR}:${PET_MASTER_PORT}",
            )
    if re.search(r"\\[ \t]+(#|$)", job.script or "", re.MULTILINE):
        yield InputError(
            path=f"{path}.script",
            must="end continued lines with the backslash",
            got="a blank after \\",
            fix="delete what follows the backslash",
        )
    for token in TOKEN.findall(text):
        yield InputError(
            path=f"{path}.script",
            must="contain no token in clear",
            got=f"{token[:4]}…",
            fix="put it into a Kubernetes Secret",
        )


def _variables(path: str, job: JobConfig, environment: EnvironmentConfig) -> Iterator[InputError]:
    kind = job_type(job, environment)
    for key, value in job.env.items():
        path_of = f"{path}.env.{key}"
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key):
            yield InputError(
                path=path_of,
                must="be a variable's name",
                got=key,
                fix="letters, digits and _",
            )
        if key in RESERVED_ENV:
            yield InputError(path=path_of, must="be set by the Trainer", got=value, fix="drop it")
        if TOKEN.search(value):
            yield InputError(
                path=path_of,
                must="contain no token in clear",
                got=f"{value[:4]}…",
                fix="put it into a Kubernetes Secret; it would be in the state file",
            )
        if kind and (harm := fabric.harm(key, value, kind)) and not harm.idle:
            yield InputError(path=path_of, must=harm.reason, got=value, fix="drop it")
    for key in job.secrets:
        path_of = f"{path}.secrets.{key}"
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key) or key in RESERVED_ENV:
            yield InputError(
                path=path_of,
                must="be a variable's name, and none that the Trainer sets",
                got=key,
                fix="letters, digits and _",
            )
        if key in job.env:
            yield InputError(
                path=path_of,
                must="be given once",
                got="in env too",
                fix="drop the one in env",
            )
    for key, value in job.labels.items():
        if not re.fullmatch(LABEL, key) or not re.fullmatch(
            r"([A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?)?", value
        ):
            yield InputError(
                path=f"{path}.labels.{key}",
                must="be a label: at most 63 letters, digits, - _ .",
                got=value,
                fix="put free text into an annotation, or drop it",
            )
