"""Errors about devices that a job leaves unused or does not have: GPUs that no process uses, EFA
that it does not have. What its pool cannot give: gangs.py."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainyard.catalog import fabric
from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.derive.job_view import ContainerView, JobView
from trainyard.derive.scripts import launches, single_program
from trainyard.objects.jobs.pod_template import NO_DEVICES, VISIBLE
from trainyard.problems import InputError, InputWarning

STARTS_MORE = re.compile(
    r"(?:--?|\btrainer\.)(?:devices|gpus|num[-_]gpus|strategy|nproc\S*|tensor[-_]parallel\S*|tp)\b"
    r"|spawn|parallel|device_map|ray\b|CUDA_VISIBLE_DEVICES"
)
"""Words that show that a program uses several GPUs by itself."""
EFA_VARIABLE = re.compile(r"\b(FI_EFA_(?!SET_DEFAULT_GDR)\w+|FI_PROVIDER(?==[\"']?efa))=")
"""All but one that is no variable at all: trainyard/catalog/fabric.py."""


def no_gpus(view: JobView) -> Iterator[InputWarning]:
    """A job without GPUs on nodes that have some."""
    kind = view.instance_type
    if not kind or not kind.gpus or view.gpus or view.means_gpus:
        return
    if view.runtime_known and view.kind in JOB_KINDS:
        yield view.where("gpus").warning(
            f"the pods ask for no GPU, and {kind.name} has {kind.gpus}: they see none, and the"
            " job trains on the CPU; ask for nvidia.com/gpu in limits, or take a pool of CPUs"
        )


def fewer_ranks(view: JobView) -> Iterator[InputWarning]:
    """Processes of a pod, as the job sets them."""
    if view.ranks and view.ranks < view.gpus and _one_a_gpu(view):
        yield view.where("ranks").warning(_idle(f"{view.ranks} processes", view.ranks, view.gpus))


def idle_gpus(view: JobView, container: ContainerView) -> Iterator[InputWarning]:
    """Processes of a pod, as its script starts them."""
    if not _one_a_gpu(view) or container.own_entrypoint:
        return
    for count in _started(view, container.script):
        if 0 < count < view.gpus and count != view.ranks:
            yield container.where("script").warning(
                _idle(f"--nproc_per_node={count}", count, view.gpus)
            )
    program = single_program(container.script)
    alone = view.torch and view.nodes > 1  # no_launcher in jobs.py speaks
    several = STARTS_MORE.search(container.script) or _is_jax(container)
    if program and view.gpus > 1 and not alone and not several:
        yield container.where("script").warning(_idle(f"`{program}`", 1, view.gpus))


def _is_jax(container: ContainerView) -> bool:
    """True for a program of JAX, of which one process takes all GPUs of a pod."""
    return bool(
        re.search(
            r"(?i)\bjax|maxtext|\bXLA_", f"{container.image} {container.script} {[*container.env]}"
        )
    )


def _started(view: JobView, script: str) -> list[int]:
    """Processes of each launch; none where launches share all GPUs of a pod, each by the numbers of its
    own."""
    counts = [int(each.ranks) for each in launches(script) if each.ranks.isdecimal()]
    return [] if "CUDA_VISIBLE_DEVICES" in script and sum(counts) == view.gpus else counts


def efa_variable(view: JobView, container: ContainerView) -> Iterator[InputWarning]:
    """A variable for EFA in pods without an EFA device. On one node nothing needs it."""
    if view.efa or view.nodes < 2 or not view.runtime_known:
        return
    kind = view.instance_type
    pairs = [(f"env.{name}", f"{name}={value}") for name, value in container.env.items()]
    for place, text in (*pairs, ("script", container.script)):
        found = EFA_VARIABLE.search(text)
        if found and not (kind and fabric.harm(found[1], "1", kind, has_devices=False)):
            better = "take whole nodes of a type with EFA"
            if kind and kind.efa and view.gpus == kind.gpus and view.origin == "file":
                better = f"add vpc.amazonaws.com/efa: {kind.efa} to the resources of the pods"
            yield container.where(place).warning(
                f"{found[1]} is for EFA, and the pods ask for no vpc.amazonaws.com/efa: NCCL sends"
                f" over TCP; {better}, or delete {found[1]}"
            )


def visible_devices(view: JobView, container: ContainerView) -> Iterator[InputError]:
    """A variable of NVIDIA's container runtime that the device plugin sets to the GPUs of the pod, and
    that a job's own value overrides: then the pods of a node see each other's."""
    value = container.env.get(VISIBLE)
    kind = view.instance_type
    whole = kind is None or view.gpus >= kind.gpus
    if value and not whole and view.runtime_known and value not in NO_DEVICES:
        yield container.where(f"env.{VISIBLE}").must(
            f"not be set: the device plugin sets it to the {view.gpus} GPUs that a pod requests, and"
            " with another value the pods of a node take each other's",
            got=value,
            fix="delete it",
        )


def _one_a_gpu(view: JobView) -> bool:
    """True where each GPU needs a process of its own, as with PyTorch; JAX has one a node."""
    return view.gpus > 1 and view.starts_own_ranks


def _idle(started: str, used: int, gpus: int) -> str:
    return (
        f"{started}: {used} of the {gpus} GPUs of a pod get a process, unless the program starts"
        " others itself"
    )
