"""Variables that somebody else owns: what a job writes into them has no effect, or takes away what was there.

Sources: torch 2.9 (distributed/elastic/agent/server/local_elastic_agent.py, _start_workers), training-operator
v1.8.1 (pytorch/envvar.go: its variables stand behind those of the file, and of two of a name the last one
counts), Kubernetes 1.35 (third_party/forked/golang/expansion: $(NAME) of variables before it, and nothing
else), CUDA programming guide (CUDA_VISIBLE_DEVICES: devices behind one that is not there are none).
Interfaces and devices of NCCL: trainyard/catalog/fabric.py. What the device plugin sets: devices.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from trainyard.catalog.job_kinds import job_kind
from trainyard.derive.job_view import ContainerView, JobView
from trainyard.derive.scripts import launches
from trainyard.problems import InputError, InputWarning

Problems = Iterator[InputError | InputWarning]


@dataclass(frozen=True, kw_only=True)
class Owner:
    """Somebody who sets variables, whatever the container has."""

    variables: tuple[str, ...]
    acts: Callable[[JobView, ContainerView], bool]
    """True where it sets them in the container."""
    text: str
    """Warning about a variable, {name}, of a job with a controller, {controller}."""
    unless_used: bool = False
    """A script that uses the variable itself may mean the value that the container has."""


def _by_torchrun(view: JobView, container: ContainerView) -> bool:
    return bool(launches(container.script))


def _by_master(view: JobView, container: ContainerView) -> bool:
    return _by_operator(view, container) and "RANK" in (container.more_env or ())


def _by_operator(view: JobView, container: ContainerView) -> bool:
    return job_kind(view.kind).keeps_variables


def _by_policy(view: JobView, container: ContainerView) -> bool:
    return _by_operator(view, container) and view.elastic


_BEHIND = "{controller} writes {name} behind this one, which so has no effect; delete it"
OWNERS: tuple[Owner, ...] = (
    Owner(
        variables=("MASTER_ADDR", "MASTER_PORT"),
        acts=_by_torchrun,
        text=(
            "{name} reaches no process, because torchrun sets it for them; delete it: --rdzv_endpoint says"
            " where nodes meet"
        ),
        unless_used=True,
    ),
    Owner(
        variables=(
            *("RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK"),
            *("WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE", "ROLE_WORLD_SIZE"),
            *("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS"),
        ),
        acts=_by_torchrun,
        text="{name} reaches no process, because torchrun sets it for each of them; delete it",
        unless_used=True,
    ),
    Owner(
        variables=(
            *("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK"),
            *("PET_MASTER_ADDR", "PET_MASTER_PORT", "PET_NODE_RANK"),
        ),
        acts=_by_master,
        text=_BEHIND,
    ),
    Owner(
        variables=("PET_RDZV_ENDPOINT", "PET_RDZV_BACKEND"),
        acts=_by_policy,
        text=f"{_BEHIND}, and set elasticPolicy",
    ),
    Owner(
        variables=("PET_NNODES",),
        acts=_by_operator,
        text=f"{_BEHIND}: replicas say how many nodes there are",
    ),
)
"""Owners of variables; the first that acts speaks."""
RANKS = ("RANK", "NODE_RANK", "GROUP_RANK", "JOB_COMPLETION_INDEX", "SLURM_NODEID")
"""Variables with the number of a node or of a process, by the habits of programs."""


def owned_variable(view: JobView, container: ContainerView) -> Problems:
    """A variable of somebody else, or one number for all nodes."""
    for name, value in container.env.items():
        owner = next((each for each in OWNERS if _owns(each, name, view, container)), None)
        if owner is not None:
            text = owner.text.format(name=name, controller=view.controller)
            yield container.where(f"env.{name}").warning(text)
        elif name in RANKS and (value or "").isdecimal() and _several(view, container):
            yield container.where(f"env.{name}").must(
                f"not be one number for {view.nodes} nodes: each would be the same one",
                got=f"{name}={value}",
                fix="delete it, and read PET_NODE_RANK",
            )


def _owns(owner: Owner, name: str, view: JobView, container: ContainerView) -> bool:
    if name not in owner.variables or not owner.acts(view, container):
        return False
    return not (owner.unless_used and re.search(rf"\b{name}\b", container.script))


def _several(view: JobView, container: ContainerView) -> bool:
    """True for a container that is the same on several nodes."""
    return view.nodes > 1 and container.node_rank is None


def own_value(view: JobView, container: ContainerView) -> Problems:
    """A value that is to add to the one of the image: kubelet does not put it in."""
    for name, value in container.env.items():
        if not re.search(rf"\$[({{]?{re.escape(name)}\b", value or ""):
            continue
        place, way = container.where(f"env.{name}"), f'export {name}="…:${name}" in the script'
        if name == "PATH" and "/usr/bin" not in str(value):
            yield place.must(
                "list every folder: it takes the place of the image's PATH, which kubelet does not put in"
                " here",
                got=str(value),
                fix=f"delete it, and write {way}",
            )
        else:
            yield place.warning(
                f"{name} takes the place of the image's value, which kubelet does not put in here; delete it,"
                f" and write {way}"
            )


LIBRARIES = "LD_LIBRARY_PATH"
_KEEPS = re.compile(rf"\$\{{?{LIBRARIES}|\bofi|/efa\b|amazon")
_WRITTEN = re.compile(rf"\b{LIBRARIES}=([^\s;&|]+)")


def hidden_plugin(view: JobView, container: ContainerView) -> Problems:
    """A path of libraries without that of aws-ofi-nccl, the plugin by which NCCL finds EFA."""
    if not view.efa or view.nodes < 2:
        return
    own = container.env.get(LIBRARIES) or ""
    found = [(f"env.{LIBRARIES}", own)] if own else []
    found += [("script", text[1]) for text in _WRITTEN.finditer(container.script)]
    for place, value in found:
        if not _KEEPS.search(value):
            yield container.where(place).warning(
                f"{LIBRARIES}={value[:60]} takes the place of the image's value: where the image finds"
                " aws-ofi-nccl by it, NCCL sends over TCP; write"
                f' export {LIBRARIES}="{value[:60]}:${LIBRARIES}" in the script'
            )


_EXPORTED = re.compile(
    r"\bexport\s+(PET_(?:NNODES|NODE_RANK|MASTER_ADDR|MASTER_PORT))=([^\s;&|$]+)"
)


def exported_variable(view: JobView, container: ContainerView) -> Iterator[InputWarning]:
    """A value of the script's own for a variable by which torchrun knows the other nodes."""
    if view.nodes < 2 or not view.torch or container.node_rank is not None:
        return
    for name, value in _EXPORTED.findall(container.script):
        if launches(container.script) and value != str(view.nodes):
            yield container.where("script").warning(
                f"{name}={value} takes the place of what {view.controller} sets, by which the ranks of"
                f" {view.nodes} nodes find each other; delete it"
            )


CUDA = "CUDA_VISIBLE_DEVICES"
_CHOSEN = re.compile(rf"\b{CUDA}=[\"']?(\d+(?:,\d+)*)")
_FOR_ALL = re.compile(
    rf"(?m)(?:\bexport[ \t]+|^[ \t]*){CUDA}=[\"']?(\d+(?:,\d+)*)[\"']?[ \t]*(?:[;&]|$)"
)
"""Devices that a script chooses for every program behind it."""


def absent_devices(view: JobView, container: ContainerView) -> Iterator[InputError]:
    """Numbers of GPUs that a pod does not have. A pod counts its own from 0."""
    found = [("script", each[1]) for each in _CHOSEN.finditer(container.script)]
    found += [
        (f"env.{CUDA}", value) for name, value in container.env.items() if name == CUDA and value
    ]
    for place, value in found if view.gpus else []:
        numbers = [each.strip() for each in value.split(",")]
        if any(each.isdecimal() and int(each) >= view.gpus for each in numbers):
            yield container.where(place).must(
                f"name GPUs of the pod, which counts its {view.gpus} from 0: CUDA sees none from the first on"
                " that is not there",
                got=f"{CUDA}={value}",
                fix="delete it",
            )


def hidden_devices(view: JobView, container: ContainerView) -> Iterator[InputError]:
    """Fewer GPUs than torchrun starts processes, each of which takes one."""
    own = container.env.get(CUDA) or ""
    found = [(f"env.{CUDA}", own)] if re.fullmatch(r"\d+(,\d+)*", own) else []
    chosen = {*_CHOSEN.findall(container.script)}
    found += [("script", each) for each in _FOR_ALL.findall(container.script) if len(chosen) == 1]
    for place, value in found:
        numbers, most = value.split(","), _most_ranks(view, container.script)
        if most > len(numbers) and all(int(each[:4]) < view.gpus for each in numbers):
            yield container.where(place).must(
                f"name a GPU for each of the {most} processes of a pod: CUDA has none for the others, which"
                " end at their start",
                got=f"{CUDA}={value}",
                fix="delete it",
            )


def _most_ranks(view: JobView, script: str) -> int:
    """Processes of the largest torchrun of a script; 0 where there is none, or nobody knows."""
    of_job = view.ranks or (view.gpus if view.torch else 0)
    starts = [each.ranks[:4] for each in launches(script)]
    return max((int(each) if each.isdecimal() else of_job for each in starts), default=0)
