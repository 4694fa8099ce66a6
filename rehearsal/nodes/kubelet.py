"""A node's kubelet: watches the pods bound to it and gives each a Pod; heartbeats; shows devices while plugins run."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

from rehearsal import paths
from rehearsal.kube import Api, ApiError, Object
from rehearsal.nodes import images, node
from rehearsal.nodes.aws import TROUBLE, Account
from rehearsal.nodes.devices import EFA, GPU, Devices
from rehearsal.nodes.pod import STRATEGIC, Pod

HEARTBEAT_SECONDS, LOOK_SECONDS = 8.0, 0.5
"""Under the 40 s after which a node is lost."""
WATCH_SECONDS, RETRY_SECONDS = 60, 0.5
NO_NETWORK = "container runtime network not ready: cni plugin not initialized"
PLUGINS = {GPU: images.NVIDIA_PLUGIN, EFA: images.EFA_PLUGIN}
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "AccessKeyId", "AWS_SECRET_ACCESS_KEY": "SecretAccessKey",
               "AWS_SESSION_TOKEN": "SessionToken"}


@dataclass(kw_only=True)
class Kubelet:
    """One node's kubelet."""

    api: Api
    account: Account
    world: paths.World
    instance: str
    name: str
    zone: str
    cluster: str
    address: str
    folder: Path
    devices: Devices
    allocatable: dict[str, str]
    status: Callable[[dict[str, int], Object], Object]
    """(devices that plugins show, Ready condition) → the node's status."""
    pods: dict[str, Pod] = field(default_factory=dict)
    _shown: dict[str, int] = field(default_factory=dict)
    _ready_since: tuple[bool, str] = (False, "")
    _last_line: str = ""

    def log(self, line: str) -> None:
        """One line on standard error, not twice in a row."""
        if line != self._last_line:
            self._last_line = line
            print(time.strftime("%H:%M:%S"), line, file=sys.stderr, flush=True)

    def has_daemon(self, image: str) -> bool:
        """Whether a DaemonSet's pod of this image runs here."""
        return any(images.is_daemon(pod.obj) and pod.uses(image) for pod in list(self.pods.values()))

    def find(self, namespace: str, name: str) -> Pod | None:
        """A pod by name."""
        return next((p for p in list(self.pods.values()) if p.name == f"{namespace}/{name}"), None)

    def pod_identity(self, pod: Object) -> dict[str, str]:
        """Credentials of the pod's association, if there is one and the agent that hands them out runs here."""
        if not self.has_daemon(images.POD_IDENTITY_AGENT):
            return {}
        query = urlencode({"cluster": self.cluster, "namespace": pod["metadata"]["namespace"],
                           "service_account": pod["spec"].get("serviceAccountName", "default")})
        found = self.account.private(f"/pod-identity?{query}")
        return {variable: found[key] for variable, key in CREDENTIALS.items()} if found else {}

    # ---- pods ------------------------------------------------------------------------------------------------------

    def watch(self) -> None:
        """Follow the pods of this node for ever."""
        while True:
            try:
                self._follow()
            except TROUBLE as error:
                self.log(f"pods: {error}")
                time.sleep(RETRY_SECONDS)

    def _follow(self) -> None:
        path = f"/api/v1/pods?{urlencode({'fieldSelector': f'spec.nodeName={self.name}'})}"
        listed = self.api.request("GET", path)
        known = {pod["metadata"]["uid"]: pod for pod in listed["items"]}
        for uid in set(self.pods) - set(known):
            self._forget(uid)
        for pod in known.values():
            self._see(pod)
        version = listed["metadata"]["resourceVersion"]
        for event in self.api.watch(f"{path}&resourceVersion={version}", timeout_seconds=WATCH_SECONDS):
            if event["type"] == "ERROR":
                raise ApiError(event["object"].get("code", 500), event["object"])
            if event["type"] == "DELETED":
                self._forget(event["object"]["metadata"]["uid"])
            else:
                self._see(event["object"])

    def _see(self, obj: Object) -> None:
        uid = obj["metadata"]["uid"]
        if uid in self.pods:
            return self.pods[uid].update(obj)
        self.pods[uid] = Pod(obj, self)
        threading.Thread(target=self.pods[uid].run, name=self.pods[uid].name, daemon=True).start()

    def _forget(self, uid: str) -> None:
        if pod := self.pods.pop(uid, None):
            pod.update(None)

    # ---- the node --------------------------------------------------------------------------------------------------

    def heartbeat(self) -> None:
        """Renew lease and status for ever; a change is told at once."""
        told, beaten = None, 0.0
        while True:
            state = self.network_ready(), self.shown_devices()
            if state != told or time.monotonic() - beaten > HEARTBEAT_SECONDS:
                try:
                    self._beat(*state)
                    told, beaten = state, time.monotonic()
                except TROUBLE as error:
                    self.log(f"heartbeat: {error}")
            time.sleep(LOOK_SECONDS)

    def network_ready(self) -> bool:
        """Without the VPC CNI's pod a node is not ready."""
        return self.has_daemon(images.NETWORK)

    def shown_devices(self) -> dict[str, int]:
        """What device plugins registered: 0 where the plugin's pod went away again."""
        running = {kind: self.devices.count[kind] for kind, image in PLUGINS.items() if self.has_daemon(image)}
        self._shown = dict.fromkeys(self._shown, 0) | running
        return self._shown

    def _beat(self, ready: bool, shown: dict[str, int]) -> None:
        if self._ready_since[0] != ready or not self._ready_since[1]:
            self._ready_since = ready, node.now()
        message = "kubelet is posting ready status" if ready else NO_NETWORK
        condition = node.condition("Ready", ready, "KubeletReady" if ready else "KubeletNotReady", message,
                                   self._ready_since[1])
        self.api.apply({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                        "metadata": {"name": self.name, "namespace": "kube-node-lease"},
                        "spec": {"holderIdentity": self.name, "leaseDurationSeconds": 40,
                                 "renewTime": node.now()[:-1] + ".000000Z"}}, manager="kubelet")
        self.api.request("PATCH", f"/api/v1/nodes/{self.name}/status", {"status": self.status(shown, condition)},
                         content_type=STRATEGIC)
