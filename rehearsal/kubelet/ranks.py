"""Fates of the ranks of training jobs on a machine that breaks: they die, stand still or become
slow."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import suppress

from rehearsal.kubelet import images
from rehearsal.kubelet.container import Container
from rehearsal.kubelet.pod import Pod
from rehearsal.kubelet.process import Sandboxed

OUT_OF_MEMORY = "OOMKilled"
"""Reason of a container whose control group was killed: since Kubernetes 1.28 the kernel ends all
processes of a container at once (memory.oom.group)."""
KILLED, FAILED = 128 + signal.SIGKILL, 1


def trains(pod: Pod) -> bool:
    """True where the pod is of a training job."""
    return any(images.belongs_to(pod.obj, kind) for kind in ("Job", "PyTorchJob"))


def training(pods: Iterable[Pod]) -> Iterator[tuple[Pod, Container, Sandboxed]]:
    """Containers of training jobs that run."""
    for pod in pods:
        if trains(pod):
            for container in pod.containers:
                if isinstance(container.process, Sandboxed):
                    yield pod, container, container.process


def kill(process: Sandboxed) -> None:
    """As the kernel does: all of the container at once."""
    process.kill()


def run_out_of_memory(process: Sandboxed) -> None:
    """The kernel kills it because its pod has no more memory."""
    process.end_with(KILLED, OUT_OF_MEMORY)


def fail(process: Sandboxed, words: str) -> None:
    """The script says so, and gives up."""
    process.end_with(FAILED, words=words)


def stop(process: Sandboxed) -> None:
    """All of the container stands still."""
    _signal(process, signal.SIGSTOP)


def go_on(process: Sandboxed) -> None:
    """After `stop`."""
    _signal(process, signal.SIGCONT)


def _signal(process: Sandboxed, number: signal.Signals) -> None:
    for pid in reversed(process.inside()):
        with suppress(ProcessLookupError):
            os.kill(pid, number)
