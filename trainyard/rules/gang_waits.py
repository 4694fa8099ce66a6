"""A launcher that itself says how long the nodes of a gang wait for each other, and says too
little: the gang spends a restart whenever a node comes later. What other gangs are told:
trainyard/objects/jobs/rendezvous.py."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from trainyard.catalog.limits import FIRST_NODE_SECONDS, TORCH_SECONDS
from trainyard.derive.job_view import ContainerView, JobView
from trainyard.derive.launchers import BY_TORCHRUN, other_launches
from trainyard.derive.scripts import Launch, launches
from trainyard.objects.jobs.rendezvous import KEYS, OPTION, VARIABLE, WHOLE, conf, read
from trainyard.problems import InputWarning

SEVERAL_MACHINES = re.compile(r"\bnum[_-]machines[:= \t]+(?!1\b)\S")
"""Words by which accelerate starts several machines: an option, or a line of a configuration that the
script writes."""


def short_wait(view: JobView, container: ContainerView) -> Iterator[InputWarning]:
    """Every launch of several nodes that gives up before nodes can be there."""
    if view.nodes < 2 and not view.elastic:
        return
    for launch in launches(container.script):
        if not launch.is_standalone and launch.nodes != "1":
            yield from _of_torchrun(view, container, launch)
    for other in other_launches(container.script):
        several = other.names is BY_TORCHRUN or SEVERAL_MACHINES.search(container.script)
        if other.names.conf and several:
            yield from _of_another(container, other.said.get(other.names.conf, ""))


def _of_torchrun(view: JobView, container: ContainerView, launch: Launch) -> Iterator[InputWarning]:
    """The command line wins over the variable."""
    in_env = container.env.get(VARIABLE) or ""
    written = launch.conf or in_env
    if not written or "$" in written:
        return
    name = OPTION if launch.conf else VARIABLE
    if text := too_short(name, read(written), _backend(view, container, launch)):
        place = "script" if launch.conf else f"env.{VARIABLE}"
        yield container.where(place).warning(text)


def too_short(name: str, said: Mapping[str, str], backend: str) -> str:
    """Warning about limits that end before nodes can be there; empty where they do not. `name`: of
    what says them."""
    keys = KEYS.get(backend, ())
    for key in keys:
        if (seconds := _seconds(said, key)) < FIRST_NODE_SECONDS:
            return (
                f"torchrun gives up where a node comes {seconds} s later than another ({name}"
                f" {'has' if key in said else 'lacks'} {key}), which costs a restart; write"
                f" {conf(*keys)}, or delete {name}: Trainyard sets {VARIABLE}"
            )
    return ""


def _of_another(container: ContainerView, written: str) -> Iterator[InputWarning]:
    """accelerate hands torchrun an option of its own, empty by default, so the variable has no effect
    (accelerate 1.10, utils/launch.py, _filter_args). Its backend is static."""
    limits = [_seconds(read(written), key) for key in read(written) or (WHOLE,)]
    if "$" not in written and max(limits) < FIRST_NODE_SECONDS:
        yield container.where("script").warning(
            f"accelerate launch gives up where a node comes {max(limits)} s later than another,"
            f" which costs a restart, and does not read {VARIABLE}; write {OPTION}"
            f" {conf(WHOLE)}"
        )


def _backend(view: JobView, container: ContainerView, launch: Launch) -> str:
    """Where neither the command line nor the container says it, training-operator does for an elastic
    job."""
    if "rdzv-backend" in launch.options:
        return launch.backend
    return container.env.get("PET_RDZV_BACKEND") or ("c10d" if view.elastic else launch.backend)


def _seconds(said: Mapping[str, str], key: str) -> int:
    written = said.get(key, "")
    return int(written) if written.isdecimal() else TORCH_SECONDS.get(key, 0)
