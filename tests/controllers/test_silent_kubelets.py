"""Kubelets whose connections freeze, at a real API server with its real node controller: that one taints
silent nodes and ends their pods, and the program that replaces sick nodes must keep both from gangs that
are well. Nothing here stands in for time."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event, Thread
from types import ModuleType
from typing import Any

import pytest

from components.cluster.program import SETTINGS
from rehearsal.kube import Api, Object
from tests.support.programs import repairing
from trainyard.objects.jobs.pod_template import TOLERATIONS
from trainyard.objects.programs.repair import NOTE

pytestmark = pytest.mark.apart

CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
NODES, PODS = "/api/v1/nodes", "/api/v1/namespaces/default/pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
MERGE = "application/merge-patch+json"
NAMES = ("n0", "n1", "n2", "n3", "n4", "n5")
HALF, DEAD = {"n0", "n1", "n2"}, "n5"
RENEW_SECONDS, NOTICES_SECONDS = 10, 45
"""Between two renewals of a lease; after which a kubelet notices that its connection is dead."""
EC2_SECONDS = 150
"""After which EC2 calls an instance impaired that died."""


@dataclass
class Kubelets:
    """They renew their leases and say that their nodes are ready, unless they are frozen."""

    api: Api
    frozen: set[str] = field(default_factory=set)
    died: float | None = None
    ended: Event = field(default_factory=Event)

    def run(self) -> None:
        while not self.ended.wait(RENEW_SECONDS / 2):
            for name in NAMES:
                if name not in self.frozen and not (self.died and name == DEAD):
                    self.speak(name)

    def speak(self, name: str) -> None:
        at = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
        lease = {"spec": {"renewTime": at}}
        self.api.request("PATCH", f"{LEASES}/{name}", lease, content_type=MERGE)
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}
        status = {"conditions": [{**ready, "lastHeartbeatTime": f"{at[:19]}Z"}]}
        self.api.request("PATCH", f"{NODES}/{name}/status", {"status": status}, content_type=MERGE)

    def words(self, module: ModuleType, ids: Sequence[str]) -> Mapping[str, Any]:
        """What EC2 says of their instances."""
        found = self.died is not None and time.monotonic() - self.died > EC2_SECONDS
        bad = module.Word(works=False, words="EC2 says that its instance status is impaired")
        good = module.Word(works=True, words="EC2 says that its instance runs")
        return {id_: bad if found and id_ == f"i-{DEAD[1:]}" else good for id_ in ids}


@pytest.fixture(scope="module")
def kubelets(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Kubelets, ModuleType, Path]]:
    folder = tmp_path_factory.mktemp("silent")
    with ExitStack() as stack:
        server, module = stack.enter_context(repairing(folder))
        for name in NAMES:
            _made(server.admin, name)
        made = Kubelets(server.admin)
        stack.callback(made.ended.set)
        Thread(target=made.run, daemon=True).start()
        yield made, module, folder


def _made(api: Api, name: str) -> None:
    """A node with its claim, its lease, and a pod of a gang, as jobs of this program have them."""
    number = name[1:]
    labels = {
        "trainyard.io/nodes": "training",
        "trainyard.io/pool": "h100",
        "topology.kubernetes.io/region": "us-east-2",
        "topology.kubernetes.io/zone": "us-east-2a",
    }
    spec = {"providerID": f"aws:///us-east-2a/i-{number}"}
    api.request("POST", NODES, {"metadata": {"name": name, "labels": labels}, "spec": spec})
    lease = {
        "metadata": {"name": name},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 40},
    }
    api.request("POST", LEASES, lease)
    claim = {
        "metadata": {"name": f"c{number}", "finalizers": ["karpenter.sh/termination"]},
        "spec": {
            "requirements": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}],
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "h100"},
        },
    }
    api.request("POST", CLAIMS, {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", **claim})
    api.request(
        "PATCH", f"{CLAIMS}/c{number}/status", {"status": {"nodeName": name}}, content_type=MERGE
    )
    pod = {
        "metadata": {"name": f"p{number}", "labels": {"jobset.sigs.k8s.io/jobset-name": "j"}},
        "spec": {
            "nodeName": name,
            "automountServiceAccountToken": False,
            "tolerations": TOLERATIONS,
            "containers": [{"name": "c", "image": "a:1"}],
        },
    }
    api.request("POST", PODS, pod)
    running = {"status": {"phase": "Running"}}
    api.request("PATCH", f"{PODS}/p{number}/status", running, content_type=MERGE)


def _looks(program: Any, seconds: float) -> None:
    """As its own loop does."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        program.step()
        time.sleep(3)


def _ended(api: Api) -> set[str]:
    """Gangs' pods that are gone or end."""
    pods = api.request("GET", PODS)["items"]
    stay = {p["metadata"]["name"] for p in pods if "deletionTimestamp" not in p["metadata"]}
    return {f"p{name[1:]}" for name in NAMES} - stay


def _leaving(api: Api) -> set[str]:
    claims = api.request("GET", CLAIMS)["items"]
    return {c["metadata"]["name"] for c in claims if "deletionTimestamp" in c["metadata"]}


def test_frozen_connections_end_no_gang_and_a_dead_node_beside_them_goes(
    kubelets: tuple[Kubelets, ModuleType, Path],
) -> None:
    them, module, folder = kubelets
    instances = module.Instances(partial(them.words, sys.modules["silence"]))
    program = module.Repair(module.Api(), module.Settings.read(folder / SETTINGS), instances)
    _looks(program, RENEW_SECONDS)
    them.frozen = {*HALF}
    _looks(program, NOTICES_SECONDS)
    them.frozen = set()
    _looks(program, 2 * RENEW_SECONDS)
    assert (_ended(them.api), _leaving(them.api)) == (set(), set())

    them.frozen, them.died = {*HALF}, time.monotonic()
    gone = 0.0
    while time.monotonic() - them.died < 240:
        _looks(program, 3)
        gone = gone or (time.monotonic() - them.died if _leaving(them.api) else 0.0)
    assert _leaving(them.api) == {"c5"} and _ended(them.api) == {"p5"}
    assert EC2_SECONDS < gone < EC2_SECONDS + 20
    them.frozen = set()
    _looks(program, 45)
    assert _leaving(them.api) == {"c5"} and _ended(them.api) == {"p5"}
    nodes: list[Object] = them.api.request("GET", NODES)["items"]
    noted = {n["metadata"]["name"] for n in nodes if NOTE in n["metadata"].get("annotations", {})}
    assert noted == {DEAD}, "nothing is said any more of those that speak again"
