"""GPUs and EFA devices of a node: which pod holds which."""

from __future__ import annotations

import threading

from rehearsal.kube import Object

GPU, EFA = "nvidia.com/gpu", "vpc.amazonaws.com/efa"
FILES = {GPU: "/dev/nvidia{}", EFA: "/dev/infiniband/uverbs{}"}
SHARED_FILES = {GPU: ("/dev/nvidiactl", "/dev/nvidia-uvm"), EFA: ()}
"""What every container with at least one such device also finds."""


class NoDevices(RuntimeError):
    """The kubelet refuses a pod that asks for more devices than are free."""


class Devices:
    """The node's devices, each held by at most one (pod, container)."""

    def __init__(self, count: dict[str, int]) -> None:
        self.count = count
        self._held: dict[str, dict[int, tuple[str, str]]] = {kind: {} for kind in count}
        self._lock = threading.Lock()

    def take(self, pod: str, containers: list[Object]) -> None:
        """Reserve what the pod's containers ask for, all or nothing."""
        with self._lock:
            chosen = {kind: self._choose(kind, pod, containers) for kind in self.count}
            for kind, given in chosen.items():
                self._held[kind] |= given

    def _choose(self, kind: str, pod: str, containers: list[Object]) -> dict[int, tuple[str, str]]:
        wanted = [(pod, c["name"]) for c in containers for _ in range(requested(c, kind))]
        free = [i for i in range(self.count[kind]) if i not in self._held[kind]]
        if len(wanted) > len(free):
            raise NoDevices(f"Allocate failed due to requested number of devices unavailable for {kind}. "
                            f"Requested: {len(wanted)}, Available: {len(free)}, which is unexpected")
        return dict(zip(free, wanted, strict=False))

    def release(self, pod: str) -> None:
        """The pod is gone."""
        with self._lock:
            for kind, held in self._held.items():
                self._held[kind] = {i: owner for i, owner in held.items() if owner[0] != pod}

    def held(self, pod: str, container: str) -> dict[str, list[int]]:
        """Indices by kind."""
        return {kind: sorted(i for i, owner in held.items() if owner == (pod, container))
                for kind, held in self._held.items()}


def requested(container: Object, kind: str) -> int:
    """How many devices of a kind a container asks for."""
    return int(container.get("resources", {}).get("limits", {}).get(kind, 0))


def files(held: dict[str, list[int]]) -> list[str]:
    """Device files a container sees; plain empty files, since there is no driver behind them."""
    own = [FILES[kind].format(i) for kind, indices in held.items() for i in indices]
    return own + [f for kind, indices in held.items() if indices for f in SHARED_FILES[kind]]


def variables(held: dict[str, list[int]]) -> dict[str, str]:
    """What the NVIDIA device plugin injects."""
    gpus = ",".join(map(str, held.get(GPU, [])))
    return {"NVIDIA_VISIBLE_DEVICES": gpus} if gpus else {}
