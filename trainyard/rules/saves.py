"""Warnings about the places in which a job saves: those whose files are lost, and stores that cannot do
what programs do when they save."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from trainyard.derive.job_view import ContainerView, JobView
from trainyard.derive.scripts import saved_in, saved_in_the_container
from trainyard.problems import InputWarning
from trainyard.settings.environment import EnvironmentConfig
from trainyard.stores.kinds import kinds_of


def lost_with_the_container(view: JobView, container: ContainerView) -> Iterator[InputWarning]:
    """A relative path, which is one of the image. A cd or a working directory may lead to a store."""
    if not view.runtime_known or re.search(r"\b(?:cd|pushd)\s", container.script):
        return
    if container.in_directory or not (view.nodes > 1 or view.restarts or view.pods_restart):
        return
    for directory in dict.fromkeys(saved_in_the_container(container.script)):
        yield container.where("script").warning(
            f"what is saved in {directory} is lost when the container starts again: the path is relative,"
            " so it is one of the image; write a path of a mounted store"
        )


def cannot_rename(
    view: JobView, mounts: Mapping[str, str], environment: EnvironmentConfig
) -> Iterator[InputWarning]:
    """Paths of stores whose files cannot be renamed. `mounts`: path, with a slash at its end → store."""
    for container in view.containers:
        for directory in dict.fromkeys(saved_in(container.script)):
            paths = [path for path in {*mounts, *view.mounts} if f"{directory}/".startswith(path)]
            store = mounts.get(max(paths, key=len, default=""), "")
            kinds = kinds_of(environment.storage[store]) if store in environment.storage else []
            if any([*kind.write_errors("", store)] for kind, _ in kinds):
                yield container.where("script").warning(
                    f"{directory} is on store {store}, whose files cannot be renamed or appended to:"
                    " programs that write under a temporary name and rename, as safetensors, transformers"
                    " and torch's checkpoints do, fail when they save; save on a Lustre or EFS store, and"
                    " copy"
                )
