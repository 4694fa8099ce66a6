"""Errors about the pods of an entry of `jobs`: stores, variables, labels and commands. Where things are mounted:
mounts.py. What no training job can be: jobs.py.

Sources: Kubeflow Trainer at v2.1.0, the validation of pods in the API server of Kubernetes. Examples
of each rule: tests/support/cases/environment.py.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping

from trainyard.derive.jobs import KEEP
from trainyard.derive.pools import job_type
from trainyard.objects.queues.queues import QUEUE_LABEL
from trainyard.problems import REMOVE, At, InputError, InputWarning, write_one_of
from trainyard.rules.mounts import mount_errors
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.job import SCHEDULED_TIME, JobConfig
from trainyard.settings.training.no_settings import TO_S3
from trainyard.stores.kinds import kinds_of

VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"
NAME_MAX = 255
"""Bytes of the name of a file or folder on Lustre, EFS and Linux (limits.h)."""
LABEL_KEY = r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?"
LABEL_VALUE = r"([A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?)?"


def pod_errors(path: str, job: JobConfig, environment: EnvironmentConfig) -> Iterator[InputError]:
    """Every error of the pods."""
    yield from _stores(path, job, environment)
    yield from mount_errors(path, job, recipe=has_recipe(job, environment))
    yield from _what_runs(path, job, environment)
    yield from _variables(path, job)
    yield from _labels(path, job)


def pod_warnings(
    path: str, job: JobConfig, environment: EnvironmentConfig
) -> Iterator[InputWarning]:
    """Warnings about pods that work."""
    if "@sha256:" not in job.image and not job.image.endswith(":latest"):
        yield At(f"{path}.image").warning(
            "a tag can change; a digest (@sha256:…) names the image that was tested"
        )
    if job.host_paths:
        yield At(f"{path}.host_paths").warning(
            "the folders must exist on every node, and this program puts nothing there; the"
            " namespace admits privileged pods because of them"
        )
    if QUEUE_LABEL in job.labels and environment.queues is None:
        queue = job.labels[QUEUE_LABEL]
        yield At(f"{path}.labels.{QUEUE_LABEL}").warning(unread_queue(queue))
    kind = job_type(job, environment)
    if kind and job.local_scratch and not kind.nvme_gb:
        yield At(f"{path}.local_scratch").warning(
            f"{kind.name} has no NVMe: the folder lies on the root volume of the node; set root_volume_gib of"
            f" pool {job.pool} to what it needs, or take a type with NVMe"
        )
    yield from _script_without_folder(path, job)


def _script_without_folder(path: str, job: JobConfig) -> Iterator[InputWarning]:
    """A script that `files` brings, and that torchrun looks for where the image begins."""
    if not (job.files and job.torchrun):
        return
    script = job.torchrun.script
    if script in {source.rpartition("/")[2] for source in job.files.sources}:
        yield At(f"{path}.torchrun.script").warning(
            f"torchrun looks for {script} in the working directory of the image, and `files` are in"
            f" {job.files.path}: write {job.files.path.rstrip('/')}/{script}, unless the image begins there"
        )


def _stores(path: str, job: JobConfig, environment: EnvironmentConfig) -> Iterator[InputError]:
    for store in job.storage:
        if store not in environment.storage:
            yield At(f"{path}.storage.{store}").must(
                "be a store of the environment", got=store, fix=_known_stores(environment, store)
            )
    for setting, place in (("checkpoints", job.checkpoints), ("tensorboard", job.tensorboard)):
        if place:
            directory = job.in_run(place.directory)
            if job.schedule:
                directory = directory.replace(SCHEDULED_TIME, "time")
            yield from store_directory_errors(
                f"{path}.{setting}", place.store, directory, environment
            )


def store_directory_errors(
    path: str,
    store: str,
    directory: str,
    environment: EnvironmentConfig,
) -> Iterator[InputError]:
    """Every error of a directory in one of the environment's stores."""
    if store not in environment.storage:
        known = _known_stores(environment, store)
        yield At(f"{path}.store").must(
            "be a store of the environment",
            got=store,
            fix=f"{known}; to have them in S3, {TO_S3}" if store.startswith("s3") else known,
        )
    if store in environment.storage:
        for kind, _ in kinds_of(environment.storage[store]):
            yield from kind.write_errors(f"{path}.store", store)
    if "://" in directory:
        plain = directory.partition("://")[2].partition("/")[2].strip("/")
        meant = plain or path.split(".")[-2]
        yield At(f"{path}.directory").must(
            "be a directory of its store, and no URI",
            got=directory,
            fix=f"write {meant}; to have checkpoints in S3, {TO_S3}",
            write=meant,
        )
    if any(len(part.encode()) > NAME_MAX for part in directory.split("/")):
        yield At(f"{path}.directory").must(
            f"have names of at most {NAME_MAX} bytes, as file systems take them",
            got=f"{len(directory)} characters",
            fix="shorten it",
        )
    if re.search("[{}]", directory):
        yield At(f"{path}.directory").must(
            "have no placeholder but {run}, which stands for the number of the run",
            got=directory,
            fix="write the text itself in its place; or {run}, and each run has a directory of its own",
        )
    if ".." in directory.split("/"):
        yield At(f"{path}.directory").must(
            "be a path from the root of its store, without `..`, which the API server refuses",
            got=directory,
            write=from_root(directory),
        )


def from_root(directory: str) -> str:
    """The directory to which a path with `..` leads, from the root of its store."""
    return posixpath.normpath(f"/{directory}").strip("/") or "data"


def _known_stores(environment: EnvironmentConfig, got: str) -> str:
    return write_one_of(environment.storage, "add one under environment.storage", got)


def has_recipe(job: JobConfig, environment: EnvironmentConfig) -> bool:
    """True where the job's runtime has a command of its own: it is of kind torchtune."""
    own = environment.own_runtime(job)
    return own is not None and own.kind == "torchtune"


def _runtime_runs(job: JobConfig, environment: EnvironmentConfig) -> bool:
    """True where the job's runtime has a command for jobs that have none."""
    own = environment.own_runtime(job)
    # A recipe with another kind is an error of the runtime.
    return has_recipe(job, environment) or bool(own and (own.command or own.torchtune))


def _what_runs(path: str, job: JobConfig, environment: EnvironmentConfig) -> Iterator[InputError]:
    if job.script is not None and not job.script.strip():
        yield At(f"{path}.script").must(
            "run something", got="nothing", fix="write the script, or delete the job"
        )
    if job.command and not job.command[0].strip():
        yield At(f"{path}.command").must(
            "begin with a program", got="nothing", fix="write the program first"
        )
    if job.torchrun and not job.torchrun.script.strip():
        yield At(f"{path}.torchrun.script").must(
            "be the path of a script in the container",
            got="nothing",
            fix="write one such as /workspace/train.py",
        )
    yield from _ways_to_run(path, job, environment)


def _ways_to_run(path: str, job: JobConfig, environment: EnvironmentConfig) -> Iterator[InputError]:
    ways = {
        "script": job.script is not None,
        "command": bool(job.command),
        "arguments": job.arguments is not None,
        "torchrun": job.torchrun is not None,
    }
    if sum(ways.values()) > 1 or not (any(ways.values()) or _runtime_runs(job, environment)):
        yield At(path).must(
            "have exactly one of script, command, arguments and torchrun",
            got=" and ".join(way for way, given in ways.items() if given) or "none",
            fix=_one_way([way for way, given in ways.items() if given]),
        )


def _one_way(given: list[str]) -> str:
    """The fix for a job that has these ways to run."""
    if not given:
        return (
            "write script: | with bash text, command: [program, argument], torchrun: {script: train.py}, or"
            " arguments: [] for the image's own entrypoint"
        )
    if set(given) == {"script", "arguments"}:
        return "write the arguments behind the program in script, and delete arguments; or delete script"
    if set(given) == {"command", "arguments"}:
        return "write the arguments behind the program in command, and delete arguments; or delete command"
    return f"delete {'one of' if len(given) == 2 else 'all of these but one:'} {', '.join(given)}"


def _variables(path: str, job: JobConfig) -> Iterator[InputError]:
    yield from _owned_variables(path, job)
    yield from variable_errors(f"{path}.env", job.env)
    yield from variable_errors(f"{path}.secrets", job.secrets)
    for name in job.secrets.keys() & job.env.keys():
        yield At(f"{path}.secrets.{name}").must(
            "be set once", got="a value in env, too", fix=f"delete env.{name}"
        )


def _owned_variables(path: str, job: JobConfig) -> Iterator[InputError]:
    """Variables that the stack sets from other settings of the job."""
    owned = {"CHECKPOINT_DIR": "checkpoints"} if job.checkpoints else {}
    owned |= {KEEP: "checkpoints.keep"} if job.checkpoints and job.checkpoints.keep else {}
    owned |= {"TENSORBOARD_DIR": "tensorboard"} if job.tensorboard else {}
    for setting, names in (("env", job.env), ("secrets", job.secrets)):
        for name in names:
            if name in owned:
                yield At(f"{path}.{setting}.{name}").must(
                    f"not be set beside {owned[name]}, from which the stack sets it",
                    got=name,
                    fix="delete it" if setting == "env" else "delete it, or rename it",
                    write=REMOVE,
                )


def variable_errors(path: str, names: Iterable[str]) -> Iterator[InputError]:
    """Names that no variable can have. `path`: of the setting that has them."""
    for name in names:
        if not re.fullmatch(VARIABLE, name):
            meant = re.sub(r"[^A-Za-z0-9_]", "_", name)
            yield At(f"{path}.{name}").must(
                "be the name of a variable: letters, digits and _, and the first is no digit",
                got=name or "an empty name",
                fix=f"rename it to {'_' * meant[0].isdecimal()}{meant}"
                if meant
                else "write a name before the colon, or delete the line",
            )


def unread_queue(queue: object) -> str:
    """Warning about a label by which Kueue would find a queue, in an environment without queues."""
    return (
        f"nobody reads the label, and no queue {queue} is there: the job starts at once; delete it, or"
        " add environment.queues"
    )


def _labels(path: str, job: JobConfig) -> Iterator[InputError]:
    yield from _label_errors(f"{path}.labels", job.labels)
    if job.pytorch_job:
        at = f"{path}.pytorch_job"
        yield from _label_errors(f"{at}.master_labels", job.pytorch_job.master_labels)
        yield from _label_errors(f"{at}.worker_labels", job.pytorch_job.worker_labels)


def _label_errors(path: str, labels: Mapping[str, str]) -> Iterator[InputError]:
    for key, value in labels.items():
        yield from label_errors(At(f"{path}.{key}"), key, value)


def label_errors(at: At, key: str, value: str) -> Iterator[InputError]:
    """The error of a label that the API server refuses."""
    if not re.fullmatch(LABEL_KEY, key):
        yield at.must(
            "be a name, or a domain, a slash and a name; a name has at most 63 letters, digits, - _ . and begins and"
            " ends with a letter or a digit",
            got=key,
            fix="rename it, or delete it",
        )
    elif not re.fullmatch(LABEL_VALUE, value):
        near = re.sub(r"[^-_.A-Za-z0-9]+", "-", value)[:63].strip("-_.")
        yield at.must(
            "be a label: at most 63 letters, digits, - _ . with a letter or a digit at both ends",
            got=value,
            fix=f"write {near}, or delete it" if near else "delete it",
            write=near or REMOVE,
        )
