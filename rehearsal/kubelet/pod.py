"""The life of one pod on its node: mounted, started, served, ended. Each pod has a thread of its
own."""

from __future__ import annotations

import itertools
import math
import shutil
import threading
import time
from pathlib import Path

from rehearsal import paths
from rehearsal.kube import ApiError, Object
from rehearsal.kubelet import images, log_lines, network, process
from rehearsal.kubelet.aws import PEERS, TROUBLE
from rehearsal.kubelet.container import Container, refused
from rehearsal.kubelet.environment import NotReady, environment, expand
from rehearsal.kubelet.host import Host
from rehearsal.kubelet.names import Names
from rehearsal.kubelet.node import DEVICE_FILES, EFA, now
from rehearsal.kubelet.volumes import Volumes

TICK, REFRESH_SECONDS = 0.2, 1.0
QUIET_ATTEMPTS = 5
"""A node may learn of a pod before the API server lets it read the pod's secrets: no event for what
passes in 1 s."""
TOO_LONG = "Pod was active on the node longer than the specified deadline"
SHORTEST_GRACE = 3.0
"""A grace period is divided by the world's speed, but nothing that needs no longer than this is cut
short."""
NO_SERVICES = "dial tcp: kubernetes.default.svc: i/o timeout: kube-proxy does not run on this node"
STRATEGIC = "application/strategic-merge-patch+json"
FINAL = ("Succeeded", "Failed")


class Deleted(Exception):
    """Somebody wants the pod gone."""


class Pod:
    """One pod, by uid. The kubelet calls update(); everything else happens in run(), in the pod's
    thread."""

    def __init__(self, obj: Object, kubelet: Host) -> None:
        self.obj, self.kubelet = obj, kubelet
        self.meta, self.spec = obj["metadata"], obj["spec"]
        self.name = f"{self.meta['namespace']}/{self.meta['name']}"
        self.folder = kubelet.folder / "pods" / self.meta["uid"]
        self.address = ""
        self._of_job = any(images.belongs_to(obj, kind) for kind in ("Job", "PyTorchJob"))
        full_name = f"{self.meta['name']}_{self.meta['namespace']}({self.meta['uid']})"
        policy = self.spec["restartPolicy"]
        self.containers = [
            Container(
                c, pod=full_name, policy=policy, start=self._start, address=lambda: self.address
            )
            for c in self.spec["containers"]
        ]
        again = "Never" if policy == "Never" else "OnFailure"
        self.init = [
            Container(
                c, pod=full_name, policy=again, start=self._start, address=lambda: self.address
            )
            for c in self.spec.get("initContainers", [])
        ]
        self._path = f"/api/v1/namespaces/{self.meta['namespace']}/pods/{self.meta['name']}"
        self._gone, self._changed = False, threading.Event()
        self._volumes, self._names = Volumes(obj, self.folder, kubelet), Names(obj, kubelet)
        self._sandbox: process.Sandbox | None = None
        self._phase, self._start_time, self._refreshed = "Pending", now(), 0.0
        self._conditions: tuple[dict[str, bool], str] = ({}, "")
        """Type to value, and since when."""
        self._reported: Object = {}
        self._why: dict[str, str] = {}
        self._webhooks = images.webhook_ports(self.spec)
        self._unreached = ""
        """Reason why the API server does not get to the pod's webhook; empty where it does."""
        self._told: set[str] = set()

    # ---- what the kubelet sees
    # ----------------------------------------------------------------------------------------------

    def uses(self, image: str) -> bool:
        """True where the pod runs an image whose repository ends with this word."""
        return any(
            images.repository(c.spec["image"]).rpartition("/")[2] == image and c.process is not None
            for c in self.containers
        )

    def update(self, obj: Object | None) -> None:
        """The object has changed; None when it was removed."""
        self._gone = obj is None
        self.obj = obj or self.obj
        if obj and self._overwritten(obj):
            self._reported = {}  # the next report writes the status again, as a real kubelet does
        self._changed.set()

    def log_file(self, container: str, run: int) -> Path:
        """Output of the n-th run of a container."""
        return self.folder / f"{container}.{run}.log"

    def plan_file(self, container: str) -> Path:
        """File that tells the pod's sandbox about a container."""
        return self.folder / container / process.PLAN

    # ---- its life
    # ----------------------------------------------------------------------------------------------

    def run(self) -> None:
        """From arrival to deletion."""
        try:
            self._nap(0)
            if self.obj.get("status", {}).get("phase") not in FINAL:
                self._live()
            while True:
                self._nap(60)
        except Deleted:
            self._end()
        finally:
            self._release()
            shutil.rmtree(self.folder, ignore_errors=True)

    def _live(self) -> None:
        self._prepare()
        deadline = time.monotonic() + self.spec.get("activeDeadlineSeconds", math.inf)
        while self._phase not in FINAL:
            self._tick()
            codes = [c.exit_code for c in self.containers]
            if None not in codes or any(c.exit_code for c in self.init):
                self._phase = "Failed" if any(codes) else "Succeeded"
            elif any(c.runs for c in self.containers):
                self._phase = "Running"
            if self._phase not in FINAL and time.monotonic() > deadline:
                self._stop(self.spec["terminationGracePeriodSeconds"])
                self._phase, self._why = (
                    "Failed",
                    {"reason": "DeadlineExceeded", "message": TOO_LONG},
                )
            self._report()
            if self._phase not in FINAL:
                self._nap(TICK)
        self._release()
        self._report_for_sure()

    def _nap(self, seconds: float) -> None:
        self._changed.wait(seconds)
        self._changed.clear()
        if self._gone or self.obj["metadata"].get("deletionTimestamp"):
            raise Deleted

    def _prepare(self) -> None:
        """Try until network and volumes are there; an event tells what is missing."""
        for attempt in itertools.count():
            try:
                return self._connect()
            except (NotReady, *TROUBLE) as missing:
                self._release()
                if attempt >= QUIET_ATTEMPTS:
                    self._event("FailedMount", str(missing))
            self._report()
            self._nap(TICK)

    def _connect(self) -> None:
        own = not self.spec.get("hostNetwork")
        if own and not self.kubelet.has_daemon(images.NETWORK):
            raise NotReady("network is not ready: cni plugin not initialized")
        address = network.pod_address() if own else self.kubelet.address
        program = any(images.program(c["image"]) for c in self.spec["containers"])
        if program and not self.kubelet.has_daemon(images.SERVICES):
            raise NotReady(NO_SERVICES)
        if any(map(self._has_program, self.spec["containers"])):
            if fields := refused(self.spec):
                raise NotReady(f"the rehearsal's kubelet does not know {', '.join(fields)}")
            self._volumes.prepare()
            self._sandbox = process.Sandbox()
            network.connect(self._sandbox.pid, address)
            self._names.admit(address)
        self.address = address

    def _tick(self) -> None:
        if self._sandbox and time.monotonic() - self._refreshed > REFRESH_SECONDS:
            self._refreshed = time.monotonic()
            try:
                self._knock()
                self._names.tell()
                self._volumes.prepare(again=True)
            except (NotReady, *TROUBLE) as error:
                self.kubelet.log(f"{self.name}: {error}")
        before = [c for c in self.init if c.exit_code != 0]
        for container in before[:1] or self.containers:
            if trouble := container.tick():
                self._event(*trouble)

    def _knock(self) -> None:
        """Ask whether the API server reaches the pod's webhook. On AWS the pod would be Ready, and
        each call of it would time out. Here it has no endpoint."""
        walls = (self.kubelet.unreached(port) for port in self._webhooks)
        self._unreached = next(filter(None, walls), "")
        if self._unreached:
            self._event("Unhealthy", f"webhook: context deadline exceeded: {self._unreached}")

    def _end(self) -> None:
        """Deleted: stop what runs, tell, let the object go."""
        grace = self.obj["metadata"].get("deletionGracePeriodSeconds") or 0
        self._stop(0 if self._gone else grace)
        self._release()
        if self._phase not in FINAL and self.obj.get("status", {}).get("phase") not in FINAL:
            self._phase = "Failed" if any(c.exit_code for c in self.containers) else "Succeeded"
            self._report_for_sure()
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": self.meta["uid"]}}
        while not self._gone and not self._ask("DELETE", self._path, options):
            time.sleep(TICK)

    def _stop(self, grace: float) -> None:
        for container in [*self.init, *self.containers]:
            container.stop(min(grace, max(SHORTEST_GRACE, grace / self.kubelet.world.speed)))

    def _release(self) -> None:
        if self._sandbox:
            self._sandbox.close()
            self._sandbox = None
            self._names.forget()

    # ---- its containers
    # ----------------------------------------------------------------------------------------------

    def _has_program(self, spec: Object) -> bool:
        """True where something of a container runs here: the program of its image, or a command of
        its own in a Job or an interpreter."""
        own = self._of_job or images.interprets(spec["image"])
        return bool(images.entrypoint(spec["image"]) or (own and spec.get("command")))

    def _start(self, container: Container) -> process.Process:
        place, log = self.folder / container.name, self.log_file(container.name, container.runs)
        place.mkdir(parents=True, exist_ok=True)
        try:
            if (
                self._of_job
            ):  # of the platform's images every registry has those that the charts name
                self.kubelet.pull(container.spec["image"])
            if not self._sandbox or not self._has_program(container.spec):
                words = f"simulated by the rehearsal: nothing of {container.spec['image']} runs"
                log.write_bytes(log_lines.entry(words.encode()))
                return process.Simulated(process.SIMULATED_JOB_SECONDS if self._of_job else None)
            return self._sandbox.start(self._plan(container.spec, place), place, log)
        except TROUBLE as error:
            raise NotReady(str(error)) from None

    def _plan(self, spec: Object, place: Path) -> process.Plan:
        program, hostname = (
            images.program(spec["image"]),
            self.spec.get("hostname") or self.meta["name"],
        )
        base = self._base() | {
            "HOSTNAME": hostname,
            "PATH": "/usr/bin:/bin" if program else images.training_path(),
        }
        seen = self.obj | {"status": {"podIP": self.address, "hostIP": self.kubelet.address}}
        env = environment(seen, spec, base, self.kubelet.allocatable, self._volumes.data)
        own = images.at_hand(spec.get("command", []))
        command = own or images.entrypoint(spec["image"])
        return process.Plan(
            root=str(place / "root"),
            hostname=hostname,
            env=env,
            folder=spec.get("workingDir", "/"),
            argv=[expand(word, env) for word in (*command, *spec.get("args", []))],
            mounts=process.mounts(
                program,
                self._volumes.mounts(spec),
                images.files(spec["image"]),
                hosts=str(self._names.hosts),
            ),
            links={} if program else images.training_tools(spec["image"]),
            files=self._devices(spec) | {"/etc/resolv.conf": process.RESOLVER},
        )

    def _devices(self, spec: Object) -> dict[str, str]:
        """Files that stand for devices. Those of EFA say what keeps packets from the peers."""
        limits = spec.get("resources", {}).get("limits", {})
        fabric = int(limits.get(EFA, 0)) and self.kubelet.account.blocked(self.kubelet.id, PEERS)
        return {
            file.format(i): str(fabric) if kind == EFA and fabric else ""
            for kind, file in DEVICE_FILES.items()
            for i in range(int(limits.get(kind, 0)))
        }

    def _base(self) -> dict[str, str]:
        """Environment variables that the cluster and Pod Identity set."""
        world, port = self.kubelet.world, str(self.kubelet.world.api_port)
        return {
            "HOME": "/root",
            "KUBERNETES_SERVICE_HOST": paths.BRIDGE,
            "KUBERNETES_SERVICE_PORT": port,
            "KUBERNETES_SERVICE_PORT_HTTPS": port,
            "AWS_REGION": self.kubelet.zone[:-1],
            "AWS_ENDPOINT_URL": world.account_url_for_pods,
            "AWS_EC2_METADATA_DISABLED": "true",
        } | self.kubelet.pod_identity(self.obj)

    # ---- what it tells the API server
    # ----------------------------------------------------------------------------------------------

    @property
    def _serves(self) -> bool:
        return all(c.ready for c in self.containers) and not self._unreached

    def _status(self) -> Object:
        started, ready = bool(self.address), all(c.ready for c in self.containers)
        first = {"initContainerStatuses": [c.status() for c in self.init]} if self.init else {}
        values = {
            "PodReadyToStartContainers": started and self._phase not in FINAL,
            "Initialized": started and all(c.exit_code == 0 for c in self.init),
            "ContainersReady": ready,
            "Ready": self._serves,
        }
        if values != self._conditions[0]:
            self._conditions = values, now()
        reason = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(
            self._phase, "ContainersNotReady"
        )
        return {
            "phase": self._phase,
            **self._why,
            "startTime": self._start_time,
            "conditions": [
                {
                    "type": kind,
                    "status": str(value),
                    "lastTransitionTime": self._conditions[1],
                    "reason": "" if value else reason,
                }
                for kind, value in values.items()
            ],
            "hostIP": self.kubelet.address,
            "hostIPs": [{"ip": self.kubelet.address}],
            **({"podIP": self.address, "podIPs": [{"ip": self.address}]} if self.address else {}),
            "containerStatuses": [c.status() for c in self.containers],
            **first,
        }

    def _report(self) -> bool:
        """Send the status if it changed; whether the API server knows it."""
        status = self._status()
        if status != self._reported:
            patch = {"metadata": {"uid": self.meta["uid"]}, "status": status}
            if self._ask("PATCH", f"{self._path}/status", patch, STRATEGIC):
                self._reported = status
        return self._reported == status

    def _overwritten(self, obj: Object) -> bool:
        """True where somebody else changed a reported condition: the node controller says that pods
        of an unreachable node are not ready, and takes nothing back when the node returns."""
        found = {each["type"]: each["status"] for each in obj["status"].get("conditions", [])}
        told = {each["type"]: each["status"] for each in self._reported.get("conditions", [])}
        return any(found.get(kind, value) != value for kind, value in told.items())

    def _report_for_sure(self) -> None:
        while not self._gone and not self._report():
            time.sleep(TICK)

    def _event(self, reason: str, message: str) -> None:
        if message in self._told:
            return
        self._told.add(message)
        self.kubelet.log(f"{self.name}: {reason}: {message}")
        about = {"kind": "Pod", "apiVersion": "v1"} | {
            k: self.meta[k] for k in ("namespace", "name", "uid")
        }
        self._ask(
            "POST",
            f"/api/v1/namespaces/{self.meta['namespace']}/events",
            {
                "metadata": {"generateName": f"{self.meta['name']}."},
                "involvedObject": about,
                "type": "Warning",
                "reason": reason,
                "message": message[:1000],
                "firstTimestamp": now(),
                "lastTimestamp": now(),
                "count": 1,
                "source": {"component": "kubelet", "host": self.spec["nodeName"]},
            },
        )

    def _ask(
        self, method: str, path: str, body: Object, content_type: str = "application/json"
    ) -> bool:
        """True where the API server carried the request out, or the pod is gone anyway."""
        try:
            self.kubelet.api.request(method, path, body, content_type=content_type)
            return True
        except TROUBLE as error:
            absent = isinstance(error, ApiError) and error.code in (404, 409) and method != "POST"
            self._gone = self._gone or absent
            if not self._gone:
                self.kubelet.log(f"{self.name}: {method}: {error}")
            return self._gone
