"""What a pod needs of its node and of AWS before it runs and is Ready."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rehearsal.kube import ApiError
from rehearsal.kubelet import images, kubelet
from rehearsal.kubelet.environment import NotReady
from rehearsal.kubelet.kubelet import NO_NETWORK, Kubelet
from rehearsal.kubelet.node import EFA, GPU
from rehearsal.kubelet.pod import Pod

MANAGER = "registry.k8s.io/jobset/jobset:v0.10.1"
WALL = "no rule of sg-1 lets TCP 9443 in from sg-2"


class Node:
    """A kubelet on which these DaemonSets run. `walls`: what keeps whom from where."""

    def __init__(self, *daemons: str, walls: Mapping[Any, str] | None = None) -> None:
        self.daemons, self.walls, self.told = daemons, walls or {}, list[str]()
        self.id, self.address, self.folder = "i-1", "10.244.255.1", Path("/nowhere")
        self.account = SimpleNamespace(blocked=lambda _, to: self.walls.get(to, ""))
        self.api = SimpleNamespace(request=self._request)

    def has_daemon(self, image: str) -> bool:
        return image in self.daemons

    def unreached(self, port: int) -> str:
        return self.walls.get(port, "")

    def log(self, line: str) -> None:
        self.told.append(line)

    def _request(self, *_: Any, **__: Any) -> None:
        raise ApiError(404, {"message": "gone"})


def a_pod(node: Node, image: str = MANAGER, **container: Any) -> Any:
    main = {"name": "main", "image": image, **container}
    spec = {"restartPolicy": "Always", "nodeName": "n0", "containers": [main]}
    meta = {"namespace": "n", "name": "p", "uid": "u"}
    made: Any = Pod({"metadata": meta, "spec": spec}, node)  # pyright: ignore[reportArgumentType]
    for one in made.containers:
        one.process = object()
    return made


def test_a_controller_finds_the_api_server_only_where_kube_proxy_runs() -> None:
    with pytest.raises(NotReady, match="kubernetes.default.svc: i/o timeout: kube-proxy does not"):
        a_pod(Node(images.NETWORK))._connect()
    a_pod(Node(images.NETWORK), "busybox")._connect()


WEBHOOK = {"name": "webhook-server", "containerPort": 9443}
METRICS = {"name": "metrics", "containerPort": 8080}


@pytest.mark.parametrize(
    ("ports", "walls", "serves"),
    [
        ([WEBHOOK], {}, True),
        ([METRICS, WEBHOOK], {9443: WALL}, False),
        ([METRICS], {8080: WALL}, True),
        ([], {9443: WALL}, True),
    ],
)
def test_a_webhook_has_an_endpoint_where_the_api_server_reaches_it(
    ports: list[dict[str, Any]], walls: Mapping[Any, str], serves: bool
) -> None:
    node = Node(walls=walls)
    pod = a_pod(node, ports=ports)
    pod._knock()
    ready = {one["type"]: one["status"] for one in pod._status()["conditions"]}
    assert (ready["ContainersReady"], ready["Ready"]) == ("True", str(serves))
    assert any(f"context deadline exceeded: {WALL}" in line for line in node.told) is not serves


def test_devices_of_efa_say_what_keeps_their_packets_from_the_peers() -> None:
    """The stand-in torchrun reads it where NCCL would wait for an answer."""
    wanted = {"resources": {"limits": {GPU: "2", EFA: "1"}}}
    closed, opened = (a_pod(Node(walls=walls)) for walls in ({"peers": "no rule"}, {}))
    gpus = {"/dev/nvidia0": "", "/dev/nvidia1": ""}
    assert closed._devices(wanted) == {**gpus, "/dev/infiniband/uverbs0": "no rule"}
    assert opened._devices(wanted) == {**gpus, "/dev/infiniband/uverbs0": ""}
    assert closed._devices({"resources": {"limits": {GPU: "2"}}}) == gpus


class Cni(Kubelet):
    """One on whose node the VPC CNI runs, or does not."""

    running = True

    def daemon(self, image: str) -> Any:
        return {"metadata": {}} if self.running and image == images.NETWORK else None

    def pod_identity(self, pod: Any) -> dict[str, str]:
        return {"AWS_ACCESS_KEY_ID": "k"}


def test_a_node_has_a_network_once_its_cni_may_assign_addresses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = ["UnauthorizedOperation", ""]
    asked: list[tuple[Any, ...]] = []

    def assigns(*given: Any) -> str:
        asked.append(given)
        return answers.pop(0)

    named = ("api", "world", "config", "capacity", "devices")
    instance = {"instanceId": "i-1", "networkInterfaceSet": [{"networkInterfaceId": "eni-1"}]}
    node = Cni(
        **dict.fromkeys(named),  # pyright: ignore[reportArgumentType]
        account=SimpleNamespace(assigns=assigns),  # pyright: ignore[reportArgumentType]
        instance=instance,
        address="",
    )
    monkeypatch.setattr(Cni, "running", False)
    assert node._no_network() == NO_NETWORK and not asked
    monkeypatch.setattr(Cni, "running", True)
    assert node._no_network() == f"{kubelet.NO_NETWORK}: UnauthorizedOperation"
    assert node._no_network() == node._no_network() == ""
    assert asked == [("i-1", "eni-1", {"AWS_ACCESS_KEY_ID": "k"})] * 2, "it then holds addresses"
