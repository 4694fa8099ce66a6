"""Warnings about the places in which a job saves and whose files are lost, and about how many stay. Stores that
cannot do what programs do there: writes.py."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from trainyard.derive.commands import command_of
from trainyard.derive.job_view import ContainerView, JobView
from trainyard.derive.jobs import CHECKPOINTS, KEEP, PLACE
from trainyard.derive.scripts import knows_s3, saved_in_the_container
from trainyard.problems import At, InputWarning
from trainyard.settings.job import JobConfig
from trainyard.settings.reading.files import is_inside


def lost_with_the_container(view: JobView, container: ContainerView) -> Iterator[InputWarning]:
    """A relative path, which is one of the image. A cd or a working directory may lead to a store, and a script
    that writes to S3 may copy it there."""
    if not view.runtime_known or re.search(r"\b(?:cd|pushd)\s", container.script):
        return
    if knows_s3(container.script):
        return
    if container.in_directory or not (view.nodes > 1 or view.restarts or view.pods_restart):
        return
    for directory in dict.fromkeys(saved_in_the_container(container.script)):
        yield container.where("script").warning(
            f"what is saved in {directory} is lost when the container starts again: the path is relative,"
            " so it is one of the image; write a path of a mounted store"
        )


def lost_warnings(path: str, job: JobConfig) -> Iterator[InputWarning]:
    """A job whose pods mount nothing that outlives them: they can only read `host_paths`. A recipe of torchtune,
    which has no command, saves where its runtime says."""
    outlives = (job.storage, job.checkpoints, job.tensorboard, job.data)
    if any(outlives) or job.allow_no_checkpoint or not command_of(job):
        return
    yield At(path).warning(
        "it mounts no store: all that it writes ends with its pods, the model too; write checkpoints: {store: …,"
        " directory: …}, or allow_no_checkpoint: true"
    )


def keep_warnings(path: str, job: JobConfig, folder: Path) -> Iterator[InputWarning]:
    """A number of checkpoints to keep that nothing of the stack file hands to whoever deletes them."""
    if job.checkpoints is None or job.checkpoints.keep is None:
        return
    if not any(KEEP in text for text in _brought(job, folder)):
        yield At(f"{path}.checkpoints.keep").warning(
            f"neither the command of the job nor a file that it brings names {KEEP}: if no script in"
            " the image reads it, every checkpoint stays until the store is full. Hand it over, such"
            f" as --save_total_limit $({KEEP}) to transformers"
        )


def place_warnings(path: str, job: JobConfig, folder: Path) -> Iterator[InputWarning]:
    """Checkpoints of a job that brings its script, where neither the script nor its command names their place."""
    if job.checkpoints is None or not job.files or not job.files.sources:
        return
    mounted = job.storage.get(job.checkpoints.store)
    places = (PLACE, mounted.path.rstrip("/") if mounted else CHECKPOINTS)
    if not any(place in text for text in _brought(job, folder) for place in places):
        yield At(f"{path}.checkpoints").warning(
            f"neither the command of the job nor a file that it brings names {' or '.join(places)}: what the"
            f" script saves elsewhere ends with its pod, and each try begins at step 1; save in ${PLACE}"
        )


def _brought(job: JobConfig, folder: Path) -> Iterator[str]:
    """Texts of the stack file, and of files of the checkout, that go into the pods of a job."""
    yield from (*command_of(job), *(job.arguments or ()), *job.env.values())
    for each in job.files.sources if job.files else ():
        if is_inside(folder, each):
            yield (folder / each).read_text("utf-8", "replace")
