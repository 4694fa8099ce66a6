"""An API server that is a dictionary, and an EC2 that is one, for trainyard/in_cluster/repair."""

from __future__ import annotations

import copy
import json
import time
import urllib.parse
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from trainyard.objects.programs.repair import RepairPlan, settings

Object = dict[str, Any]
POOL = "trainyard.io/pool"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
UNREACHABLE = "node.kubernetes.io/unreachable"
TRAINS = {"jobset.sigs.k8s.io/jobset-name": "j"}


class Server:
    """Nodes n0, n1, … of one pool, each with a claim, a lease, and pods of `gang` jobs."""

    def __init__(self, program: ModuleType, nodes: int = 4) -> None:
        self.program = program
        self.nodes = {f"n{i}": node_object(f"n{i}") for i in range(nodes)}
        self.claims = {f"c{i}": claim_object(f"c{i}", f"n{i}") for i in range(nodes)}
        self.leases = dict.fromkeys(self.nodes, 0)
        self.pods: dict[str, Object] = {}
        self.history: Object | None = None
        self.writes: list[tuple[str, str]] = []
        self.graces: dict[str, int] = {}
        self.events: list[str] = []
        self.warnings: list[Object] = []
        self.logs: dict[str, str] = {}
        self.ages: dict[str, float] = {}
        """Of the last line of a log, in seconds."""
        self.asked: list[str] = []
        self.lines: dict[str, list[tuple[float, str]]] = {}
        """Pod → the newest lines of its log, each with the seconds since it was written. One without an end of the line
        goes on in the next."""
        self.deaf = False
        self.slow: dict[str, Callable[[], object]] = {}
        """Node that gives no log → what passes meanwhile."""
        self.away = False
        self.ec2: dict[str, Any] = {}
        """Id of an instance → what EC2 says of it; nothing of others."""
        self.asked_ec2: list[str] = []

    def run(self, name: str, node: str, **labels: str) -> None:
        self.pods[name] = {
            "metadata": {"name": name, "namespace": "t", "uid": name, "labels": labels},
            "spec": {"nodeName": node, "containers": [{"name": "node"}]},
            "status": {"phase": "Running"},
        }

    def started(self, ago: float, *, runs: bool = True) -> None:
        """Containers of all pods, so many seconds ago."""
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - ago))
        state = {"running": {"startedAt": at}} if runs else {"waiting": {}}
        for pod in self.pods.values():
            pod["status"]["containerStatuses"] = [{"state": state}]

    def text(self, path: str, otherwise: str) -> str:
        """The log of a pod, as far as the path asks for it."""
        self.asked.append(path)
        if self.deaf:
            return otherwise
        at = urllib.parse.urlsplit(path)
        pod = at.path.removesuffix("/log").rpartition("/")[2]
        if waits := self.slow.get(self.pods[pod]["spec"]["nodeName"]):
            waits()
            return otherwise
        asked = urllib.parse.parse_qs(at.query)
        if "timestamps" in asked:
            return self._tail(pod, int(asked["tailLines"][0]))
        since = int(asked["sinceSeconds"][0])
        return self.logs.get(pod, "") if self.ages.get(pod, 0) < since else ""

    def _tail(self, pod: str, count: int) -> str:
        """The last lines with one time for each line of the container, as a kubelet prints them."""
        said = ""
        for ago, line in self.lines.get(pod, [])[-count:]:
            at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() - ago))
            said += line if said and not said.endswith("\n") else f"{at}.123456789Z {line}"
        return said

    def sicken(self, node: str, reason: str, kind: str = "AcceleratedHardwareReady") -> None:
        condition = {"type": kind, "status": "False", "reason": reason, "message": "it broke"}
        self.nodes[node]["status"]["conditions"] = [condition]

    def warn(self, node: str, message: str, at: str, reason: str = "StorageReady") -> None:
        """An event of the agent, which makes no condition False; with `reason` one of Karpenter."""
        about = {"kind": "Node", "name": node}
        said = {"reason": reason, "message": message, "lastTimestamp": at}
        self.warnings.append({"involvedObject": about, **said})

    def taint(self, node: str) -> None:
        """As the node controller does after 50 s of silence: both taints, each once."""
        taints = self.nodes[node]["spec"]["taints"]
        for effect in ("NoSchedule", "NoExecute"):
            one = {"key": UNREACHABLE, "effect": effect}
            taints += [] if one in taints else [one]

    def beat(self, *silent: str) -> None:
        self.leases = {n: v + (n not in silent) for n, v in self.leases.items()}

    def items(self, path: str, **query: str) -> list[Object]:
        if self.away:
            raise self.program.ApiError(0, "nobody answers")
        if path == LEASES:
            return [
                {"metadata": {"name": n}, "spec": {"renewTime": str(v)}}
                for n, v in self.leases.items()
            ]
        if path == self.program.EVENTS:
            return self.warnings
        held = {"/api/v1/nodes": self.nodes, CLAIMS: self.claims, "/api/v1/pods": self.pods}[path]
        label = query.get("labelSelector") if path == "/api/v1/pods" else None
        found = [one for one in held.values() if not label or label in one["metadata"]["labels"]]
        return copy.deepcopy(found)

    def ask(self, method: str, path: str, body: Any = None, kind: str = "json") -> Object:
        if self.away:
            raise self.program.ApiError(0, "nobody answers")
        name = path.rpartition("/")[2]
        if "configmaps" in path:
            return self._memory(method, body)
        self.writes.append((method, path.removeprefix("/api/v1/")))
        if path.endswith("/events"):
            self.events.append(body["message"])
        elif path.startswith("/api/v1/nodes/"):
            notes = self.nodes[name]["metadata"]["annotations"]
            notes.update(body.get("metadata", {}).get("annotations", {}))
            for key in [key for key, value in notes.items() if value is None]:
                del notes[key]
            self.nodes[name]["spec"].update(body.get("spec", {}))
        elif path.startswith(CLAIMS):
            meta = self.claims[name]["metadata"]
            if method == "DELETE":
                meta.setdefault("deletionTimestamp", now())
            else:
                meta["annotations"] = body["metadata"]["annotations"]
        elif method == "DELETE":
            self.graces[name] = body.get("gracePeriodSeconds", 30)
            self.pods[name]["metadata"]["deletionTimestamp"] = now()
            if not self.graces[name]:
                del self.pods[name]
        return {}

    def _memory(self, method: str, body: Any) -> Object:
        if self.history is None and method != "POST":
            raise self.program.ApiError(404, "no history")
        self.history = self.history if method == "GET" else body
        assert self.history
        return self.history


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def node_object(name: str) -> Object:
    return {
        "metadata": {
            "name": name,
            "uid": name,
            "creationTimestamp": "2026-11-23T08:00:00Z",
            "resourceVersion": "1",
            "labels": {POOL: "h100"},
            "annotations": {},
        },
        "spec": {
            "providerID": f"aws:///us-east-2a/i-{name[1:]}",
            "taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}],
        },
        "status": {"conditions": [{"type": "AcceleratedHardwareReady", "status": "True"}]},
    }


def claim_object(name: str, node: str) -> Object:
    return {"metadata": {"name": name, "uid": name}, "spec": {}, "status": {"nodeName": node}}


def repair(
    server: Server, nodes_an_hour: int | None = None, hung_minutes: int | None = None
) -> Any:
    plan = RepairPlan(
        image="python",
        role_name="r",
        region="us-east-2",
        files={},
        nodes_an_hour=nodes_an_hour,
        hung_minutes=hung_minutes,
    )
    told = server.program.Settings.of(json.loads(settings(plan)))
    return server.program.Repair(server, told, Ec2(server))


class Ec2:
    """Answers of EC2, as far as the server's table has them."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def ask(self, ids: Iterable[str], now: float) -> None:
        self._server.asked_ec2 += ids

    def says(self, instance: str, now: float) -> Any:
        return self._server.ec2.get(instance)


def leaving(server: Server) -> list[str]:
    return [n for n, c in server.claims.items() if "deletionTimestamp" in c["metadata"]]
