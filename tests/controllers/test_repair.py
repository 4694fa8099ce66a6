"""The program that replaces sick nodes at a real API server, with the rights that the environment gives it
and no others."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from components.cluster.program import SETTINGS
from rehearsal.kube import ApiError, Object, absent_is_none
from tests.rehearsal.api_server import ApiServer
from tests.support.patience import until
from tests.support.programs import repairing
from tests.support.team_server import As
from trainyard.objects.programs.repair import APP, NOTE, TAINT

CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
PODS = "/api/v1/namespaces/default/pods"
NODES, EVENTS = "/api/v1/nodes", "/api/v1/namespaces/default/events"


@dataclass(frozen=True, kw_only=True)
class Cluster:
    server: ApiServer
    module: ModuleType
    files: Path

    def program(self) -> Any:
        settings = self.module.Settings.read(self.files / SETTINGS)
        instances = self.module.Instances(lambda ids: {})
        return self.module.Repair(self.module.Api(), settings, instances)

    def look(self, program: Any) -> None:
        """The program sees what was written until now, and acts."""
        self.server.until_listed(NODES, CLAIMS, "/api/v1/pods", EVENTS)
        program.step()

    def look_until_noted(self, program: Any, node: str, words: str) -> None:
        """The node controller may write to the node between the program's look and its write, which the API
        server then refuses: the next look writes."""

        def noted() -> str:
            self.look(program)
            return (self.get(f"{NODES}/{node}")["metadata"].get("annotations") or {}).get(NOTE, "")

        assert until(lambda: words in noted())

    def get(self, path: str) -> Object:
        return self.server.admin.request("GET", path)

    def there(self, path: str) -> bool:
        try:
            return bool(self.get(path))
        except ApiError as error:
            if error.code != 404:
                raise
            return False


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("repair")
    with repairing(folder) as (server, module):
        yield Cluster(server=server, module=module, files=folder)


@pytest.fixture
def node(cluster: Cluster) -> Iterator[str]:
    """A healthy node with a claim that a finalizer holds, and a pod of a gang."""
    api, name = cluster.server.admin, "n0"
    api.apply(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {"trainyard.io/nodes": "training", "trainyard.io/pool": "h100"},
            },
            "spec": {"taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]},
        },
        manager="tests",
    )
    claim = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "c0", "finalizers": ["karpenter.sh/termination"]},
        "spec": {
            "requirements": [
                {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
            ],
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "h100"},
        },
    }
    api.request("POST", CLAIMS, claim)
    _status(cluster, f"{CLAIMS}/c0", {"nodeName": name})
    for number in range(2):
        pod = {
            "metadata": {"name": f"p{number}", "labels": {"training.kubeflow.org/job-name": "j"}},
            "spec": {
                "nodeName": name if number == 0 else "elsewhere",
                "automountServiceAccountToken": False,
                "containers": [{"name": "c", "image": "a:1"}],
            },
        }
        api.request("POST", PODS, pod)
    yield name
    _status(cluster, f"{CLAIMS}/c0", {})
    body = {"metadata": {"finalizers": None}}
    api.request("PATCH", f"{CLAIMS}/c0", body, content_type="application/merge-patch+json")
    for path in (f"{CLAIMS}/c0", f"{NODES}/{name}", f"{PODS}/p0", f"{PODS}/p1"):
        absent_is_none(lambda at=path: api.request("DELETE", at, {"gracePeriodSeconds": 0}))
    memory = f"/api/v1/namespaces/{APP}/configmaps/history"
    absent_is_none(lambda: api.request("DELETE", memory))


def _status(cluster: Cluster, path: str, status: Object) -> None:
    cluster.server.admin.request(
        "PATCH", f"{path}/status", {"status": status}, content_type="application/merge-patch+json"
    )


def _sicken(cluster: Cluster, node: str, reason: str) -> None:
    condition = {
        "type": "AcceleratedHardwareReady",
        "status": "False",
        "reason": reason,
        "message": "a GPU reported it",
    }
    _status(cluster, f"{NODES}/{node}", {"conditions": [condition]})


def test_a_sick_node_is_replaced_with_the_rights_that_the_program_has(
    cluster: Cluster, node: str
) -> None:
    program = cluster.program()
    cluster.look(program)
    assert not cluster.get(f"{CLAIMS}/c0")["metadata"].get("deletionTimestamp")
    _sicken(cluster, node, "NvidiaXID79Error")
    cluster.look_until_noted(program, node, "NvidiaXID79Error")
    seen = cluster.get(f"{NODES}/{node}")
    assert {"nvidia.com/gpu", TAINT} <= {taint["key"] for taint in seen["spec"]["taints"]}
    claim = cluster.get(f"{CLAIMS}/c0")["metadata"]
    assert (
        claim["deletionTimestamp"]
        and "karpenter.sh/nodeclaim-termination-timestamp" in (claim["annotations"])
    )
    for pod in ("p0", "p1"):
        gone = not cluster.there(f"{PODS}/{pod}")
        assert gone or cluster.get(f"{PODS}/{pod}")["metadata"].get("deletionTimestamp"), pod
    events = cluster.get(EVENTS)["items"]
    assert "RepairReplaced" in {each["reason"] for each in events}
    cluster.look(program)
    history = cluster.get(f"/api/v1/namespaces/{APP}/configmaps/history")["data"]["history"]
    assert [each["claim"] for each in json.loads(history)] == ["c0"]


def test_a_node_is_replaced_for_an_event_of_the_agent(cluster: Cluster, node: str) -> None:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    event = {
        "metadata": {"generateName": "n0."},
        "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": node},
        "type": "Warning",
        "reason": "StorageReady",
        "message": "BlockDeviceIOError: I/O error detected on block device nvme1n1 at sector 2048",
        "firstTimestamp": now,
        "lastTimestamp": now,
    }
    made = cluster.server.admin.request("POST", EVENTS, event)
    cluster.look_until_noted(cluster.program(), node, "BlockDeviceIOError")
    cluster.server.admin.request("DELETE", f"{EVENTS}/{made['metadata']['name']}")
    assert cluster.get(f"{CLAIMS}/c0")["metadata"]["deletionTimestamp"]


def test_a_log_that_nobody_can_read_is_told_apart_from_one_without_lines(
    cluster: Cluster, node: str
) -> None:
    """No kubelet serves the pods of this API server."""
    api = cluster.module.Api()
    assert api.text("/healthz", "nobody") == "ok"
    assert api.text(f"{PODS}/p0/log", "nobody") == "nobody"


def test_the_taint_is_not_set_from_an_old_sight_of_the_node(cluster: Cluster, node: str) -> None:
    """The list of taints is written as a whole."""
    program = cluster.program()
    old = cluster.get(f"{NODES}/{node}")
    cluster.server.admin.request(
        "PATCH",
        f"{NODES}/{node}",
        {"metadata": {"labels": {"changed": "since"}}},
        content_type="application/merge-patch+json",
    )
    with pytest.raises(cluster.module.ApiError, match="409"):
        program._taint(old, cluster.module.Sick("NvidiaXID79Error", "it broke"))


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/secrets"),
        ("GET", "/api/v1/namespaces/kube-system/configmaps"),
        ("DELETE", "/api/v1/nodes/n0"),
        ("POST", PODS),
    ],
)
def test_it_may_do_nothing_else(cluster: Cluster, method: str, path: str) -> None:
    api = As(cluster.server, f"system:serviceaccount:{APP}:{APP}")
    body = {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "c", "image": "a"}]}}
    with pytest.raises(ApiError, match="forbidden"):
        api.request(method, path, body if method == "POST" else None)
