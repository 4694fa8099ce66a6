"""What breaks on a machine, by command, and what the EKS node monitoring agent says of it.

`python -m rehearsal fault break` appends to a file in the machine's folder, one JSON object a line,
which its process reads. The agent's words: aws/eks-node-monitoring-agent 1.7.0, pkg/manager and
dcgm_policies.go (2026-08).
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from catalog.repair import AT_END, CONDITIONS, FATAL_XIDS
from catalog.xids import XID_CLASSES
from rehearsal import paths
from rehearsal.kube import Object
from rehearsal.kubelet import images
from rehearsal.kubelet.aws import TROUBLE
from rehearsal.kubelet.kubelet import Kubelet
from rehearsal.kubelet.node import GPU, now
from rehearsal.kubelet.pod import Pod
from rehearsal.kubelet.process import Sandboxed

LOOK_SECONDS = 0.3
AGENT, DCGM = "eks-node-monitoring-agent", "dcgm-server"
"""Names of the add-on's DaemonSets: their label k8s-app."""
DCGM_SECONDS = 20.0
"""For which the agent waits for its server of DCGM; on AWS 60."""
GPU_CONDITION = "AcceleratedHardwareReady"
APPLICATION = next(kind.xids for kind in XID_CLASSES if kind.name == "Application")
HANGS = next(kind.xids for kind in XID_CLASSES if kind.name == "NVLink")
"""Xids with which ranks wait for each other; with other fatal ones they die."""
Latched = dict[str, tuple[str, str, str]]
"""Condition that is False → reason, message, since when."""


class Damage:
    """What is broken on one machine."""

    def __init__(self, kubelet: Kubelet) -> None:
        self._kubelet, self._read = kubelet, 0
        self._latched: Latched = {}
        self._agent, self._agent_since = "", 0.0
        self._acts: dict[str, Callable[[Object], None]] = {
            "xid": lambda said: self._xid(int(said["xid"])),
            "kubelet-dead": lambda _: self._kubelet.die(),
            "node-lost": lambda _: os.kill(os.getpid(), signal.SIGKILL),
            "rank-killed": lambda _: self._ranks(kill, every=False),
            "rank-hung": lambda _: self._ranks(stop, every=False),
        }

    def follow(self) -> None:
        """Break what is told, for ever."""
        file = self._kubelet.folder / paths.DAMAGE
        while True:
            lines = file.read_text().splitlines() if file.exists() else []
            for line in lines[self._read :]:
                said = json.loads(line)
                self._kubelet.log(f"broken by command: {line}")
                self._acts[said["kind"]](said)
            self._read = len(lines)
            time.sleep(LOOK_SECONDS)

    def conditions(self) -> list[Object]:
        """Those of the agent, while its pod runs. False stays until there is another pod."""
        agent = _daemon(self._kubelet, AGENT)
        if agent != self._agent:
            self._latched, self._agent, self._agent_since = {}, agent, time.monotonic()
        if not agent:
            return []
        alone = self._kubelet.devices.get(GPU) and not _daemon(self._kubelet, DCGM)
        if alone and time.monotonic() - self._agent_since > DCGM_SECONDS:
            self._latch("DCGMError", "the agent reaches no server of DCGM")
        return [self._condition(name) for name in CONDITIONS]

    def _condition(self, name: str) -> Object:
        subsystem = name.removesuffix("Ready")
        reason, message, since = self._latched.get(
            name, (f"{subsystem}IsReady", f"Monitoring for the {subsystem} system is active", "")
        )
        seen = {"lastTransitionTime": since} if since else {}
        status = "False" if since else "True"
        return {"type": name, "status": status, "reason": reason, "message": message, **seen}

    def _latch(self, reason: str, message: str) -> None:
        self._latched.setdefault(GPU_CONDITION, (reason, message, now()))

    def _xid(self, number: int) -> None:
        """A GPU reports it: the driver to the ranks, DCGM to the agent, the driver to the device
        plugin."""
        if number in FATAL_XIDS:
            reason = f"NvidiaXID{number}Error"
            if self._agent:
                self._latch(reason, f"a GPU reported Xid {number}")
            if reason in AT_END:
                return
        elif self._agent:
            self._event(f"NvidiaXID{number}Warning: a GPU reported Xid {number}")
        if number not in APPLICATION:
            self._kubelet.unhealthy_gpus = 1
        self._ranks(stop if number in HANGS else kill, every=False)

    def _ranks(self, act: Callable[[Sandboxed], None], *, every: bool) -> None:
        """The containers of Jobs that run here, or the first of them."""
        running = [
            container.process
            for pod in list(self._kubelet.pods.values())
            if trains(pod)
            for container in pod.containers
            if isinstance(container.process, Sandboxed)
        ]
        for process in running if every else running[:1]:
            act(process)

    def _event(self, message: str) -> None:
        """Of type Warning, whose reason is the condition's type."""
        name = self._kubelet.name
        try:
            self._kubelet.api.request(
                "POST",
                "/api/v1/namespaces/default/events",
                {
                    "metadata": {"generateName": f"{name}.", "namespace": "default"},
                    "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": name},
                    "type": "Warning",
                    "reason": GPU_CONDITION,
                    "message": message,
                    "firstTimestamp": now(),
                    "lastTimestamp": now(),
                    "count": 1,
                    "source": {"component": AGENT, "host": name},
                },
            )
        except TROUBLE as error:
            self._kubelet.log(f"event: {error}")


def trains(pod: Pod) -> bool:
    """Whether it is of a training job."""
    return any(images.belongs_to(pod.obj, kind) for kind in ("Job", "PyTorchJob"))


def kill(process: Sandboxed) -> None:
    """As the kernel does: all of the container at once."""
    process.kill()


def stop(process: Sandboxed) -> None:
    """All of the container stands still."""
    for pid in reversed(_below(process.pid)):
        os.kill(pid, signal.SIGSTOP)


def _below(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    found = [int(each) for each in children.read_text().split()] if children.exists() else []
    return [one for child in found for one in (child, *_below(child))]


def _daemon(kubelet: Kubelet, name: str) -> str:
    """Uid of a DaemonSet's pod that runs here, by its label k8s-app; empty where none does."""
    for uid, pod in list(kubelet.pods.items()):
        runs = any(container.process is not None for container in pod.containers)
        if runs and pod.meta.get("labels", {}).get("k8s-app") == name:
            return uid
    return ""
