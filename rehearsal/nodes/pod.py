"""The life of one pod on its node: admitted, mounted, initialised, served, ended. Each pod has a thread of its own."""

from __future__ import annotations

import itertools
import shutil
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rehearsal import paths
from rehearsal.kube import ApiError, Object
from rehearsal.nodes import devices, images, network, process
from rehearsal.nodes.aws import TROUBLE
from rehearsal.nodes.container import Container
from rehearsal.nodes.environment import NotReady, environment, expand
from rehearsal.nodes.node import now
from rehearsal.nodes.volumes import Volumes

if TYPE_CHECKING:
    from rehearsal.nodes.kubelet import Kubelet

TICK, REFRESH_SECONDS = 0.2, 1.0
QUIET_ATTEMPTS = 5
"""A node may learn of a pod before the API server lets it read the pod's secrets: no event for what passes in 1 s."""
SHORTEST_GRACE = 3.0
"""A grace period is divided by the world's speed, but nothing that needs no longer than this is cut short."""
STRATEGIC = "application/strategic-merge-patch+json"
FINAL = ("Succeeded", "Failed")


class Deleted(Exception):
    """Somebody wants the pod gone."""


class Pod:
    """One pod, by uid. The kubelet calls update(); everything else happens in run(), in the pod's thread."""

    def __init__(self, obj: Object, kubelet: Kubelet) -> None:
        self.obj, self.kubelet = obj, kubelet
        self.meta, self.spec = obj["metadata"], obj["spec"]
        self.folder = kubelet.folder / "pods" / self.meta["uid"]
        self.address = ""
        self.gone = False
        self._changed = threading.Event()
        self._volumes = Volumes(obj, self.folder, api=kubelet.api, account=kubelet.account, zone=kubelet.zone,
                                host=kubelet.folder / "host", has_daemon=kubelet.has_daemon)
        self._init = [self._container(c, init=True) for c in self.spec.get("initContainers", [])]
        self._main = [self._container(c, init=False) for c in self.spec["containers"]]
        self._sandbox: process.Sandbox | None = None
        self._phase, self._refusal, self._initialised = "Pending", "", False
        self._reported: Object = {}
        self._since: dict[str, tuple[bool, str]] = {}
        self._told: set[str] = set()
        self._start_time, self._refreshed = now(), 0.0

    # ---- what the kubelet sees -------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """namespace/name."""
        return f"{self.meta['namespace']}/{self.meta['name']}"

    @property
    def containers(self) -> list[Container]:
        """All of them, init containers first."""
        return self._init + self._main

    @property
    def ready(self) -> bool:
        """Whether the pod serves."""
        return self._initialised and all(c.ready for c in self._main)

    def uses(self, image: str) -> bool:
        """Whether it runs an image whose repository ends with this word."""
        return any(images.repository(c.spec["image"]).rpartition("/")[2] == image and c.running for c in self._main)

    def update(self, obj: Object | None) -> None:
        """The object has changed; None when it was removed."""
        self.gone = obj is None
        self.obj = obj or self.obj
        self._changed.set()

    def log_file(self, container: str, run: int) -> Path:
        """Output of the n-th run of a container."""
        return self.folder / f"{container}.{run}.log"

    # ---- its life --------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """From admission to deletion."""
        try:
            self._nap(0)
            if self.obj.get("status", {}).get("phase") not in FINAL:
                self._try_to_live()
            while True:
                self._nap(60)
        except Deleted:
            self._end()
        finally:
            self._release()
            shutil.rmtree(self.folder, ignore_errors=True)

    def _try_to_live(self) -> None:
        try:
            self._live()
        except OSError as error:
            self._event("FailedCreatePodSandBox", str(error))
            self._report()

    def _live(self) -> None:
        try:
            self.kubelet.devices.take(self.meta["uid"], self.spec["containers"])
        except devices.NoDevices as refusal:
            self._phase, self._refusal = "Failed", str(refusal)
            self._event("UnexpectedAdmissionError", self._refusal)
            return self._report_for_sure()
        self._wait_for_mounts()
        self._connect()
        for container in self._init:
            self._initialise(container)
        self._initialised = self._phase == "Pending"
        while self._phase not in FINAL:
            self._tick(self._main)
            self._phase = self._conclusion()
            self._report()
            if self._phase not in FINAL:
                self._nap(TICK)
        self._close_up()
        self._report_for_sure()

    def _nap(self, seconds: float) -> None:
        self._changed.wait(seconds)
        self._changed.clear()
        if self.gone or self.obj["metadata"].get("deletionTimestamp"):
            raise Deleted

    def _wait_for_mounts(self) -> None:
        for attempt in itertools.count():
            try:
                if not self.spec.get("hostNetwork") and not self.kubelet.has_daemon(images.NETWORK):
                    raise NotReady("network is not ready: cni plugin not initialized")
                return self._volumes.prepare()
            except (NotReady, *TROUBLE) as missing:
                reason = "NetworkNotReady" if str(missing).startswith("network") else "FailedMount"
                if attempt >= QUIET_ATTEMPTS:
                    self._event(reason, str(missing))
            self._report()
            self._nap(TICK)

    def _connect(self) -> None:
        own = not self.spec.get("hostNetwork")
        self.address = network.pod_address() if own else self.kubelet.address
        if all(self._is_simulated(c.spec) for c in self.containers):
            return
        self._sandbox = process.Sandbox.create(self.address if own else None)
        names = network.host_names(self.spec, self.meta["namespace"]) or [self.meta["name"]]
        network.add_hosts(self._owner, self.address, names)

    def _initialise(self, container: Container) -> None:
        while self._phase == "Pending" and container.exit_code is None:
            self._tick([container])
            self._report()
            self._nap(TICK / 4)
        if container.exit_code:
            self._phase = "Failed"

    def _tick(self, containers: list[Container]) -> None:
        self._refresh()
        for container in containers:
            if trouble := container.tick():
                self._event("Unhealthy" if "probe" in trouble else "BackOff", trouble)

    def _refresh(self) -> None:
        """Project changed ConfigMaps, Secrets and tokens again."""
        if not self._sandbox or time.monotonic() - self._refreshed < REFRESH_SECONDS:
            return
        self._refreshed = time.monotonic()
        try:
            self._volumes.prepare(again=True)
        except (NotReady, *TROUBLE) as error:
            self.kubelet.log(f"{self.name}: {error}")

    def _conclusion(self) -> str:
        codes = [c.exit_code for c in self._main]
        if None in codes:
            return "Running" if any(c.runs for c in self._main) else self._phase
        return "Failed" if any(codes) else "Succeeded"

    def _end(self) -> None:
        """Deleted: stop what runs, tell, let the object go."""
        grace = self.obj["metadata"].get("deletionGracePeriodSeconds") or 0
        if any(c.spec.get("lifecycle", {}).get("preStop") for c in self._main):
            self.kubelet.log(f"{self.name}: preStop is not run by the rehearsal")
        self._close_up(0 if self.gone else min(grace, max(SHORTEST_GRACE, grace / self.kubelet.world.speed)))
        if self.gone:
            return
        if self._phase not in FINAL and self.obj.get("status", {}).get("phase") not in FINAL:
            self._phase = "Failed" if any(c.exit_code for c in self._main) else "Succeeded"
            self._report_for_sure()
        self._delete()

    def _close_up(self, grace: float = 0) -> None:
        stops = [threading.Thread(target=c.stop, args=(grace,)) for c in self.containers]
        for stop in stops:
            stop.start()
        for stop in stops:
            stop.join()
        self._release()

    def _release(self) -> None:
        self.kubelet.devices.release(self.meta["uid"])
        if self._sandbox:
            self._sandbox.close()
            self._sandbox = None
            network.remove_hosts(self._owner)

    # ---- its containers --------------------------------------------------------------------------------------------

    @property
    def _owner(self) -> str:
        return f"{self.kubelet.instance} {self.meta['uid']}"

    def _container(self, spec: Object, *, init: bool) -> Container:
        policy = self.spec.get("restartPolicy", "Always")
        if init and policy == "Always":
            policy = "OnFailure"
        return Container(spec, policy=policy, start=self._start, address=lambda: self.address)

    def _is_simulated(self, spec: Object) -> bool:
        return not images.program(spec["image"]) and not (images.is_training(self.obj) and spec.get("command"))

    def _start(self, container: Container) -> process.Process:
        if container in self._init and container.spec.get("restartPolicy"):
            raise NotReady("the rehearsal does not run init containers with a restartPolicy (sidecars)")
        self.folder.mkdir(parents=True, exist_ok=True)
        log = self.log_file(container.name, container.runs)
        if self._is_simulated(container.spec) or not self._sandbox:
            log.write_text(f"simulated by the rehearsal: nothing of {container.spec['image']} runs\n")
            seconds = process.SIMULATED_JOB_SECONDS if images.is_training(self.obj) else None
            return process.Simulated(0 if container in self._init else seconds)
        place = self.folder / container.name
        place.mkdir(exist_ok=True)
        try:
            return self._sandbox.start(self._plan(container.spec, place), place, log)
        except TROUBLE as error:
            raise NotReady(str(error)) from None

    def _plan(self, spec: Object, place: Path) -> process.Plan:
        program, held = images.program(spec["image"]), self.kubelet.devices.held(self.meta["uid"], spec["name"])
        seen = self.obj | {"status": {"podIP": self.address, "hostIP": self.kubelet.address}}
        env = environment(seen, spec, self._base(spec) | devices.variables(held), self.kubelet.allocatable,
                          self._volumes.get)
        command = spec.get("command") or ([program.entrypoint] if program else [])
        return process.Plan(
            root=str(place / "root"), hostname=self.spec.get("hostname") or self.meta["name"], env=env,
            argv=[expand(word, env) for word in [*command, *spec.get("args", [])]], folder=spec.get("workingDir", "/"),
            mounts=process.mounts(program, self._volumes.mounts(spec)),
            links={} if program else images.training_tools(),
            files=dict.fromkeys(devices.files(held), "") | {"/etc/resolv.conf": process.RESOLVER})

    def _base(self, spec: Object) -> dict[str, str]:
        """What image, cluster and Pod Identity set."""
        world, port = self.kubelet.world, str(self.kubelet.world.api_port)
        program = images.program(spec["image"])
        return {"PATH": "/usr/bin:/bin" if program else images.training_path(), "HOME": "/root",
                "HOSTNAME": self.spec.get("hostname") or self.meta["name"], "KUBERNETES_SERVICE_HOST": paths.BRIDGE,
                "KUBERNETES_SERVICE_PORT": port, "KUBERNETES_SERVICE_PORT_HTTPS": port,
                "AWS_REGION": self.kubelet.zone[:-1], "AWS_ENDPOINT_URL": world.account_url_for_pods,
                "AWS_EC2_METADATA_DISABLED": "true"} | self.kubelet.pod_identity(self.obj)

    # ---- what it tells the API server ------------------------------------------------------------------------------

    def _conditions(self) -> list[Object]:
        values = {"PodReadyToStartContainers": bool(self.address) and self._phase not in FINAL,
                  "Initialized": self._initialised, "ContainersReady": self.ready, "Ready": self.ready}
        reason = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(self._phase, "ContainersNotReady")
        for kind, value in values.items():
            if self._since.get(kind, (None, ""))[0] != value:
                self._since[kind] = (value, now())
        return [{"type": kind, "status": str(value), "lastTransitionTime": self._since[kind][1],
                 "reason": "" if value else reason} for kind, value in values.items()]

    def _status(self) -> Object:
        status = {"phase": self._phase, "conditions": self._conditions(), "startTime": self._start_time,
                  "hostIP": self.kubelet.address, "hostIPs": [{"ip": self.kubelet.address}],
                  "containerStatuses": [c.status() for c in self._main]}
        if self._init:
            status["initContainerStatuses"] = [c.status(init=True) for c in self._init]
        if self.address:
            status |= {"podIP": self.address, "podIPs": [{"ip": self.address}]}
        if self._refusal:
            status |= {"reason": "UnexpectedAdmissionError", "message": self._refusal}
        return status

    def _report(self) -> bool:
        """Send the status if it changed; whether the API server knows it."""
        status = self._status()
        if status == self._reported:
            return True
        patch = {"metadata": {"uid": self.meta["uid"]}, "status": status}
        if self._ask("PATCH", f"{self._path}/status", patch, STRATEGIC):
            self._reported = status
        return self._reported == status

    def _report_for_sure(self) -> None:
        while not self.gone and not self._report():
            time.sleep(TICK)

    def _delete(self) -> None:
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": self.meta["uid"]}}
        while not self.gone and not self._ask("DELETE", self._path, options):
            time.sleep(TICK)

    def _event(self, reason: str, message: str) -> None:
        if message in self._told:
            return
        self._told.add(message)
        self.kubelet.log(f"{self.name}: {reason}: {message}")
        about = {"kind": "Pod", "apiVersion": "v1"} | {k: self.meta[k] for k in ("namespace", "name", "uid")}
        self._ask("POST", f"/api/v1/namespaces/{self.meta['namespace']}/events", {
            "metadata": {"generateName": f"{self.meta['name']}."}, "involvedObject": about, "type": "Warning",
            "reason": reason, "message": message[:1000], "firstTimestamp": now(), "lastTimestamp": now(), "count": 1,
            "source": {"component": "kubelet", "host": self.spec["nodeName"]}})

    @property
    def _path(self) -> str:
        return f"/api/v1/namespaces/{self.meta['namespace']}/pods/{self.meta['name']}"

    def _ask(self, method: str, path: str, body: Object, content_type: str = "application/json") -> bool:
        """Whether the API server did it, or the pod is gone anyway."""
        try:
            self.kubelet.api.request(method, path, body, content_type=content_type)
        except ApiError as error:
            self.gone = self.gone or (error.code in (404, 409) and method != "POST")
            if not self.gone:
                self.kubelet.log(f"{self.name}: {method}: {error}")
            return self.gone
        except TROUBLE as error:
            self.kubelet.log(f"{self.name}: {error}")
            return False
        return True
