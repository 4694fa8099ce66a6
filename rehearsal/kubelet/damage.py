"""Damage to a machine, by command, and what the EKS node monitoring agent says of it.

`python -m rehearsal fault break` appends to a file in the machine's folder, one JSON object a line,
which its process reads. The agent's words: aws/eks-node-monitoring-agent 1.7.0, pkg/manager and
dcgm_policies.go (2026-08).
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable

from rehearsal import paths
from rehearsal.kube import Object
from rehearsal.kubelet import broken_stores, ranks
from rehearsal.kubelet.aws import TROUBLE
from rehearsal.kubelet.kubelet import Kubelet
from rehearsal.kubelet.node import GPU, now
from rehearsal.kubelet.process import Sandboxed
from trainyard.catalog.logs.xids import XID_CLASSES
from trainyard.catalog.repair import AT_END, CONDITIONS, FATAL_XIDS

DAMAGE_LOOK_SECONDS = 0.3
"""Between two looks for new commands that break the node."""
AGENT, DCGM = "eks-node-monitoring-agent", "dcgm-server"
"""Names of the add-on's DaemonSets: their label k8s-app."""
DCGM_SECONDS = 20.0
"""For which the agent waits for its server of DCGM; on AWS 60."""
GPU_CONDITION = "AcceleratedHardwareReady"
APPLICATION = next(kind.xids for kind in XID_CLASSES if kind.name == "Application")
HANGS = next(kind.xids for kind in XID_CLASSES if kind.name == "NVLink")
"""Xids with which ranks wait for each other; with other fatal ones they die."""
EFA_EVENT = (
    "EFAErrorMetric: unresponsive_remote_events increased from 0 to 4096 for device:port"
    " [rdmap79s0:1]"
)
"""Message of the agent about counters of EFA: monitors/networking/efa/efa.go."""
EFA_SECONDS = 60.0
"""The agent reads those counters each minute."""
NO_EFA = (
    "NET/OFI Request completed with error. RC: 4107. Error: 15 (Unresponsive receiver (reachable by"
    " EFA device but handshake failed)). Completed length: 0"
)
"""Message of aws-ofi-nccl and libfabric in the ranks (aws/aws-ofi-nccl#663)."""
NVME_EVENT = (
    "BlockDeviceIOError: I/O error detected on block device nvme1n1 at sector 2048, indicating a"
    " failed physical drive or EBS volume"
)
"""monitors/storage/monitor.go."""
NO_DISK = "OSError: [Errno 5] Input/output error"
SLOWNESS = 5
"""A slow node computes in one look of so many."""
Latched = dict[str, tuple[str, str, str]]
"""Condition that is False → reason, message, since when."""


class Damage:
    """Damage on one machine."""

    def __init__(self, kubelet: Kubelet) -> None:
        self._kubelet, self._read = kubelet, 0
        self._latched: Latched = {}
        self._agent, self._agent_since = "", 0.0
        self._lasting: dict[str, Callable[[Sandboxed], None]] = {}
        """Kind of a damage that lasts → its effect on each rank, until it is mended."""
        self._looks = 0
        self._acts: dict[str, Callable[[Object], None]] = {
            "xid": lambda said: self._xid(int(said["xid"])),
            "efa-down": lambda _: self._efa_down(),
            "nvme-gone": lambda _: self._nvme_gone(),
            "kubelet-dead": lambda _: self._kubelet.die(),
            "kubelet-silent": lambda said: self._kubelet.fall_silent(float(said["seconds"])),
            "node-lost": lambda _: os.kill(os.getpid(), signal.SIGKILL),
            "node-slow": lambda _: self._lasting.update(slow=self._slow),
            "rank-killed": lambda _: self._first(ranks.kill),
            "rank-hung": lambda _: self._first(ranks.stop),
            "rank-out-of-memory": lambda _: self._first(ranks.run_out_of_memory),
            "checkpoint-damaged": lambda _: self._damage_checkpoint(),
            "store-full": lambda _: self._break_stores(broken_stores.FULL),
            "store-away": lambda _: self._break_stores(broken_stores.AWAY),
            "mended": lambda _: self._mend(),
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
            self._read, self._looks = len(lines), self._looks + 1
            for act in self._lasting.values():
                self._each(act)
            time.sleep(DAMAGE_LOOK_SECONDS)

    def conditions(self) -> list[Object]:
        """Conditions that the agent sets while its pod runs. False stays until the next pod."""
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
        """A GPU reports it: the driver to the ranks, DCGM to the agent, the driver to the device plugin."""
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
        self._first(ranks.stop if number in HANGS else ranks.kill)

    def _efa_down(self) -> None:
        """An EFA device sends no more: every rank that starts here finds no way to the others. The agent
        says so in an event only, when it has read the counters."""
        told = threading.Timer(EFA_SECONDS, self._warn, ("NetworkingReady", EFA_EVENT))
        told.daemon = True
        told.start()
        self._lasting["efa"] = lambda process: ranks.fail(process, NO_EFA)

    def _nvme_gone(self) -> None:
        """The disks on which containers lie. The kernel's lines become events of the agent; whatever
        runs or starts here cannot read its files."""
        self._warn("StorageReady", NVME_EVENT)
        self._lasting["nvme"] = lambda process: ranks.fail(process, NO_DISK)

    def _damage_checkpoint(self) -> None:
        """And kill the rank, so that its gang reads it."""
        for pod, container, process in ranks.training(list(self._kubelet.pods.values())):
            name = broken_stores.damage_checkpoint(pod.plan_file(container.name))
            self._kubelet.log(f"damaged checkpoint: {name or 'there is none'}")
            ranks.kill(process)
            return

    def _break_stores(self, state: str) -> None:
        broken_stores.break_down(self._kubelet.folder, state)
        if state == broken_stores.AWAY:  # a hard mount: whoever reads or writes stands still
            self._lasting["away"] = ranks.stop
            return
        for pod, container, process in ranks.training(list(self._kubelet.pods.values())):
            broken_stores.fill_under(process, pod.plan_file(container.name))

    def _mend(self) -> None:
        """Mend what can be mended from outside: stores, and a node that was slow."""
        full = broken_stores.state(self._kubelet.folder) == broken_stores.FULL
        broken_stores.mend(self._kubelet.folder)
        for name in ("away", "slow"):
            if self._lasting.pop(name, None):
                self._each(ranks.go_on)
        if full:
            for pod, container, process in ranks.training(list(self._kubelet.pods.values())):
                broken_stores.empty_under(process, pod.plan_file(container.name))

    def _slow(self, process: Sandboxed) -> None:
        """It computes in one look of SLOWNESS."""
        (ranks.stop if self._looks % SLOWNESS else ranks.go_on)(process)

    def _each(self, act: Callable[[Sandboxed], None]) -> None:
        for _, _, process in ranks.training(list(self._kubelet.pods.values())):
            act(process)

    def _first(self, act: Callable[[Sandboxed], None]) -> None:
        for _, _, process in [*ranks.training(list(self._kubelet.pods.values()))][:1]:
            act(process)

    def _warn(self, condition: str, message: str) -> None:
        if self._agent:
            self._event(message, condition)

    def _event(self, message: str, condition: str = GPU_CONDITION) -> None:
        """An event of type Warning, whose reason is the condition's type."""
        name = self._kubelet.name
        try:
            self._kubelet.api.request(
                "POST",
                "/api/v1/namespaces/default/events",
                {
                    "metadata": {"generateName": f"{name}.", "namespace": "default"},
                    "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": name},
                    "type": "Warning",
                    "reason": condition,
                    "message": message,
                    "firstTimestamp": now(),
                    "lastTimestamp": now(),
                    "count": 1,
                    "source": {"component": AGENT, "host": name},
                },
            )
        except TROUBLE as error:
            self._kubelet.log(f"event: {error}")


def _daemon(kubelet: Kubelet, name: str) -> str:
    """Uid of a DaemonSet's pod that runs here, by its label k8s-app; empty where none does."""
    for uid, pod in list(kubelet.pods.items()):
        runs = any(container.process is not None for container in pod.containers)
        if runs and pod.meta.get("labels", {}).get("k8s-app") == name:
            return uid
    return ""
