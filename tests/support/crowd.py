"""An API server with the objects of a whole company, and without controllers: nodes, runs, queued jobs,
pods as large as real ones. For benchmarks that look at what grows.
"""

from __future__ import annotations

import http.server
import re
import ssl
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from rehearsal.kube import MERGE, ApiError, Object
from tests.rehearsal.api_server import ApiServer, start
from tests.support.crds import FILES, KARPENTER, upstream
from tests.support.patience import until
from tests.support.team_server import CRDS
from trainyard.objects.jobs.pod_template import NODES_FOR, POOL

GANG = 8
"""Nodes of each run."""
KUEUE = "sigs.k8s.io/kueue@v0.16.2/config/components/crd/bases/kueue.x-k8s.io_workloads.yaml"
KARPENTERS = tuple(
    f"{KARPENTER}/{name}.yaml"
    for name in (
        "karpenter.sh_nodeclaims",
        "karpenter.sh_nodepools",
        "karpenter.k8s.aws_ec2nodeclasses",
    )
)
AT_ONCE = 8
NODE_IMAGES = 50
"""Images that a kubelet lists (its nodeStatusMaxImages)."""
NOW = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
LINE = "step 100 loss 2.31 tokens/s 11212"


RENEWS = re.compile(r'(?=.*resource="leases").*verb="PATCH"')
"""A counter of renewals of leases."""
RENEW_SECONDS = 10
"""Between two renewals of a lease."""


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """A cluster with so many GPU nodes."""

    server: ApiServer
    nodes: int

    def requests(self) -> float:
        """Requests that the API server has answered since it began, but for renewals of leases."""
        lines = self.server.admin.text("/metrics").splitlines()
        counted = (line for line in lines if line.startswith("apiserver_request_total{"))
        return sum(float(line.rpartition(" ")[2]) for line in counted if not RENEWS.match(line))


@contextmanager
def crowd(folder: Path, nodes: int) -> Iterator[Crowd]:
    """A tenth as many teams as nodes, half as many queued jobs, two pods on each node."""
    with ExitStack() as stack:
        server = start(stack, folder, controllers=False)
        port = _kubelets(stack, folder)
        crds = [*_crds()]
        for crd in crds:
            server.admin.apply(crd, manager="crowd")
        teams, runs = max(nodes // 10, 1), max(nodes // GANG, 1)
        _put(server, [_namespace(number) for number in range(teams)])
        _put(server, [_account(space) for space in ("kube-system", *map(_team, range(teams)))])
        _put(server, [_node(number, port) for number in range(nodes)])
        _put(server, [_lease(number) for number in range(nodes)])
        until(lambda: all(_serves(server, crd) for crd in crds))
        _put(server, [_claim(number) for number in range(nodes)])
        _put(server, [each for number in range(runs) for each in _run(number, teams)])
        _put(server, [each for number in range(nodes // 2) for each in _queued(number, teams)])
        _put(server, [_pod(number, teams, nodes) for number in range(nodes)])
        _put(server, [_of_daemon(number) for number in range(nodes)])
        _beat(stack, server, nodes)
        yield Crowd(server=server, nodes=nodes)


def _beat(stack: ExitStack, server: ApiServer, nodes: int) -> None:
    """Renew the lease of each node, as its kubelet does."""
    ends = threading.Event()

    def renew() -> None:
        number = 0
        while not ends.wait(RENEW_SECONDS / nodes):
            number = (number + 1) % nodes
            at = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{_name(number)}"
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            server.admin.request("PATCH", at, {"spec": {"renewTime": now}}, content_type=MERGE)

    beats = threading.Thread(target=renew, daemon=True)
    beats.start()
    stack.callback(beats.join)
    stack.callback(ends.set)


def _crds() -> Iterator[Object]:
    for file in (*CRDS, *map(upstream, (*KARPENTERS, FILES["JobSet"], KUEUE))):
        crd = yaml.load(file.read_text(), yaml.CSafeLoader)
        crd["spec"].pop("conversion", None)
        yield crd


def _serves(server: ApiServer, crd: Object) -> bool:
    spec = crd["spec"]
    version = next(each["name"] for each in spec["versions"] if each["storage"])
    try:
        server.admin.resource(f"{spec['group']}/{version}", spec["names"]["kind"])
    except ApiError:
        return False
    return True


def _put(server: ApiServer, objects: Sequence[Object]) -> None:
    """Create them, with their status."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for _ in pool.map(lambda each: _create(server, each), objects):
            pass


def _create(server: ApiServer, obj: Object) -> None:
    collection = server.admin.path(obj, collection=True)
    made = server.admin.request("POST", collection, obj)
    if "status" in obj and obj["kind"] != "Node":
        made["status"] = obj["status"]
        path = f"{collection}/{made['metadata']['name']}/status"
        server.admin.request("PUT", path, made)


def _team(number: int) -> str:
    return f"team-{number:03}"


def _namespace(number: int) -> Object:
    labels = {"trainyard.io/team": f"t{number:03}"}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": _team(number), "labels": labels},
    }


def _account(namespace: str) -> Object:
    """Its controller would make it."""
    meta = {"name": "default", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}


def _node(number: int, port: int) -> Object:
    conditions = (
        *("MemoryPressure", "DiskPressure", "PIDPressure", "Ready", "AcceleratedHardwareReady"),
        *("ContainerRuntimeReady", "KernelReady", "NetworkingReady", "StorageReady"),
    )
    size = {
        "cpu": "192",
        "memory": "2097152Ki",
        "ephemeral-storage": "1000Gi",
        "pods": "100",
        "nvidia.com/gpu": "8",
        "vpc.amazonaws.com/efa": "32",
        "hugepages-2Mi": "0",
    }
    image = "111122223333.dkr.ecr.us-east-2.amazonaws.com/eks/image-with-a-usual-name"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": _name(number),
            "labels": {
                POOL: f"h100-{number % 4}",
                NODES_FOR: "training",
                "karpenter.sh/nodepool": "h100",
                "node.kubernetes.io/instance-type": "p5.48xlarge",
                "topology.kubernetes.io/zone": "us-east-2a",
                "karpenter.sh/capacity-type": "on-demand",
                "topology.kubernetes.io/region": "us-east-2",
                "kubernetes.io/os": "linux",
                **{f"karpenter.k8s.aws/instance-{each}": "some-value" for each in range(20)},
            },
            "annotations": {
                f"example.com/annotation-{each}": "some value" * 3 for each in range(5)
            },
        },
        "spec": {
            "providerID": f"aws:///us-east-2a/i-{number:017x}",
            "taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}],
        },
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": "127.0.0.1"},
                {"type": "Hostname", "address": "127.0.0.1"},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
            "capacity": size,
            "allocatable": size,
            "conditions": [
                {
                    "type": each,
                    "status": "True" if each.endswith("Ready") else "False",
                    "reason": "KubeletHasNothingToSay",
                    "message": "kubelet has nothing to say about it",
                    "lastHeartbeatTime": NOW,
                    "lastTransitionTime": NOW,
                }
                for each in conditions
            ],
            "images": [
                {
                    "names": [f"{image}-{each}@sha256:{each:064x}", f"{image}-{each}:v1.2.{each}"],
                    "sizeBytes": 50_000_000,
                }
                for each in range(NODE_IMAGES)
            ],
        },
    }


def _name(number: int) -> str:
    return f"ip-10-0-{number // 250}-{number % 250}.us-east-2.compute.internal"


def _lease(number: int) -> Object:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": _name(number), "namespace": "kube-node-lease"},
        "spec": {
            "holderIdentity": _name(number),
            "leaseDurationSeconds": 40,
            "renewTime": "2026-11-26T00:00:00.000000Z",
        },
    }


def _claim(number: int) -> Object:
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "h100"}
    wanted = [
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["p5.48xlarge"]}
    ]
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": f"h100-{number:05}", "labels": {"karpenter.sh/nodepool": "h100"}},
        "spec": {"nodeClassRef": reference, "requirements": wanted},
        "status": {
            "nodeName": _name(number),
            "conditions": [
                {
                    "type": each,
                    "status": "True",
                    "reason": each,
                    "message": "",
                    "lastTransitionTime": NOW,
                }
                for each in ("Launched", "Registered", "Initialized", "Ready")
            ],
        },
    }


def _space(number: int, teams: int) -> str:
    return _team(number % teams)


def _job(name: str, space: str, status: Object) -> Object:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {
            "name": name,
            "namespace": space,
            "annotations": {"trainyard.io/run": f"{name}-1"},
        },
        "spec": {
            "runtimeRef": {
                "name": "torch-distributed",
                "kind": "ClusterTrainingRuntime",
                "apiGroup": "trainer.kubeflow.org",
            },
            "trainer": {
                "numNodes": GANG,
                "image": "ghcr.io/team/train:1",
                "command": ["sh", "-c", "torchrun train.py " + "--option value " * 60],
                "env": [{"name": f"VARIABLE_{each}", "value": "some value"} for each in range(20)],
            },
        },
        "status": status,
    }


def _run(number: int, teams: int) -> Iterator[Object]:
    name, space = f"run-{number:04}", _space(number, teams)
    yield _job(name, space, {"conditions": []})
    template = _pod_spec()
    job = {"name": "node", "template": {"spec": {"template": {"spec": template}}}}
    yield {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name, "namespace": space},
        "spec": {"replicatedJobs": [job]},
        "status": {"restarts": 1},
    }
    yield _workload(name, space, "Admitted")


def _queued(number: int, teams: int) -> Iterator[Object]:
    name, space = f"queued-{number:04}", _space(number, teams)
    waits = {
        "type": "Suspended",
        "status": "True",
        "reason": "Suspended",
        "message": "suspended",
        "lastTransitionTime": NOW,
    }
    yield _job(name, space, {"conditions": [waits]})
    yield _workload(name, space, "QuotaReserved")


def _workload(name: str, space: str, condition: str) -> Object:
    owner = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "name": name,
        "uid": f"uid-{name}",
        "controller": True,
    }
    status = "True" if condition == "Admitted" else "False"
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": f"trainjob-{name}", "namespace": space, "ownerReferences": [owner]},
        "spec": {
            "queueName": "queue",
            "podSets": [{"name": "node", "count": GANG, "template": {"spec": _pod_spec()}}],
        },
        "status": {
            "conditions": [
                {
                    "type": condition,
                    "status": status,
                    "reason": "Pending",
                    "message": "it waits",
                    "lastTransitionTime": NOW,
                }
            ]
        },
    }


def _pod_spec() -> Object:
    size = {"nvidia.com/gpu": "8", "vpc.amazonaws.com/efa": "32", "memory": "1000Gi", "cpu": "180"}
    return {
        "restartPolicy": "Never",
        "nodeSelector": {POOL: "h100-0"},
        "containers": [
            {
                "name": "node",
                "image": "ghcr.io/team/train:1",
                "command": ["sh", "-c", "torchrun train.py " + "--option value " * 60],
                "env": [{"name": f"VARIABLE_{each}", "value": "some value"} for each in range(40)],
                "resources": {"limits": size, "requests": size},
                "volumeMounts": [
                    {"name": f"v{each}", "mountPath": f"/mnt/{each}"} for each in range(4)
                ],
            }
        ],
        "tolerations": [{"key": f"k{each}", "operator": "Exists"} for each in range(4)],
        "volumes": [{"name": f"v{each}", "emptyDir": {}} for each in range(4)],
    }


def _pod(number: int, teams: int, nodes: int) -> Object:
    run, rank = divmod(number, GANG)
    run = min(run, max(nodes // GANG, 1) - 1)
    name = f"run-{run:04}"
    labels = {
        "jobset.sigs.k8s.io/jobset-name": name,
        "batch.kubernetes.io/job-completion-index": str(rank),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{name}-node-0-{number}-x7k2p",
            "namespace": _space(run, teams),
            "labels": labels,
        },
        "spec": {**_pod_spec(), "nodeName": _name(number)},
        "status": _running("node"),
    }


def _running(container: str) -> Object:
    return {
        "phase": "Running",
        "conditions": [
            {"type": each, "status": "True", "lastTransitionTime": NOW}
            for each in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
        ],
        "containerStatuses": [
            {
                "name": container,
                "restartCount": 0,
                "ready": True,
                "started": True,
                "image": "ghcr.io/team/train:1",
                "imageID": f"sha256:{0:064x}",
                "state": {"running": {"startedAt": "2026-11-26T00:00:00Z"}},
            }
        ],
    }


def _of_daemon(number: int) -> Object:
    owner = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "name": "device-plugin",
        "uid": "uid-1",
        "controller": True,
    }
    spec = _pod_spec()
    spec["containers"][0] |= {"name": "plugin", "resources": {}, "command": ["plugin"], "env": []}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"device-plugin-{number:05}",
            "namespace": "kube-system",
            "ownerReferences": [owner],
            "labels": {"app.kubernetes.io/name": "device-plugin"},
        },
        "spec": {**spec, "nodeSelector": {}, "nodeName": _name(number)},
        "status": _running("plugin"),
    }


def _kubelets(stack: ExitStack, folder: Path) -> int:
    """The kubelets of all nodes, which know one line of each log; their port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            said = f"{datetime.now(UTC).isoformat().replace('+00:00', 'Z')} " * (
                "timestamps=true" in self.path
            )
            text = f"{said}{LINE}\n".encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "apiserver.crt", folder / "apiserver.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    stack.callback(server.shutdown)
    return server.server_address[1]
