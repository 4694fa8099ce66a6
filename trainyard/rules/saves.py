"""Warnings about the places in which a job saves and whose files are lost. Stores that cannot do what programs
do there: writes.py."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainyard.derive.job_view import ContainerView, JobView
from trainyard.derive.scripts import saved_in_the_container
from trainyard.problems import InputWarning


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
