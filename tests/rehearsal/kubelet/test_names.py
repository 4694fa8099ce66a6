"""What a pod can resolve, and of whom."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rehearsal.kube import ApiError
from rehearsal.kubelet import names
from rehearsal.kubelet.kubelet import Kubelet
from rehearsal.kubelet.names import Names


@pytest.fixture(autouse=True)
def register(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "REGISTER", tmp_path / "names.json")
    monkeypatch.setattr(names, "VIEWS", tmp_path / "hosts")


class Node:
    """Its kubelet."""

    def __init__(self, name: str = "i-1") -> None:
        self.id, self.dns, self.found = name, True, list[Any]()

    def names_pods(self, namespace: str, service: str) -> bool:
        return self.dns

    def services(self, namespace: str) -> list[Any]:
        return self.found


def a_pod(space: str, host: str, address: str, node: Any, *, domain: str = "t5") -> Names:
    spec = {"hostname": host, "subdomain": domain} if domain else {}
    meta = {"namespace": space, "name": f"{host}-x", "uid": f"{space}-{host}"}
    made = Names({"metadata": meta, "spec": spec}, node)
    made.admit(address)
    return made


def answers(pod: Names) -> dict[str, str]:
    """Name → address, as the pod's resolver finds them: the first line that has the name."""
    found: dict[str, str] = {}
    for line in pod.hosts.read_text().splitlines():
        address, *known = line.split()
        for name in known:
            found.setdefault(name, address)
    return found


def test_jobs_of_one_name_of_two_teams_do_not_meet() -> None:
    """Both look for `t5-node-0-0.t5`: each finds its own team's."""
    node = Node()
    for space, address in (("nlp", "10.244.1.1"), ("vision", "10.244.1.2")):
        a_pod(space, "t5-node-0-0", address, node)
    worker = a_pod("vision", "t5-node-0-1", "10.244.1.3", node)
    assert answers(worker)["t5-node-0-0.t5"] == "10.244.1.2"
    assert answers(worker)["t5-node-0-0.t5.nlp"] == "10.244.1.1"
    assert answers(worker)["t5-node-0-0.t5.nlp.svc.cluster.local"] == "10.244.1.1"
    of_nlp = a_pod("nlp", "t5-node-0-1", "10.244.1.4", node)
    assert answers(of_nlp)["t5-node-0-0.t5"] == "10.244.1.1"


def test_a_hostname_alone_is_known_to_its_own_pod_only() -> None:
    node = Node()
    first = a_pod("nlp", "a-0", "10.244.1.1", node)
    second = a_pod("nlp", "a-1", "10.244.1.2", node)
    assert answers(first)["a-0"] == "10.244.1.1"
    assert "a-0" not in answers(second)


def test_without_dns_a_pod_knows_itself_and_nobody_else() -> None:
    node = Node()
    first = a_pod("nlp", "a-0", "10.244.1.1", node)
    second = a_pod("nlp", "a-1", "10.244.1.2", node)
    assert answers(second)["a-0.t5"] == "10.244.1.1"
    node.dns = False
    first.tell()
    assert set(answers(second)) == {"localhost", "a-1", "a-1.t5", *of_service("a-1")}
    second.tell()
    own = {"localhost", "a-1", "a-1.t5.nlp.svc.cluster.local"}
    assert set(answers(second)) == own
    node.dns = True
    first.tell()
    assert answers(second)["a-0.t5"] == "10.244.1.1"


def of_service(host: str) -> set[str]:
    return {f"{host}.t5.nlp{end}" for end in names.DOMAINS}


def test_a_pod_of_a_pytorchjob_has_the_name_of_its_own_service() -> None:
    meta = {"name": "v1-master-0", "namespace": "nlp"}
    owned = {"metadata": {**meta, "ownerReferences": [{"kind": "PyTorchJob"}]}, "spec": {}}
    assert names.record_of(owned) == ("v1-master-0", "v1-master-0")
    assert names.record_of({"metadata": meta, "spec": {}}) is None, "no service is asked for"


def service(name: str, port: int, target: int, **selector: str) -> dict[str, Any]:
    ports = [{"port": port, "targetPort": target}]
    return {"metadata": {"name": name}, "spec": {"selector": selector, "ports": ports}}


def test_a_service_has_the_address_of_its_pod_where_it_keeps_the_port() -> None:
    node = Node()
    node.found = [
        service("prometheus", 9090, 9090, app="prometheus"),
        service("other", 9090, 9090, app="other"),
        service("webhook", 443, 9443, app="prometheus"),
        {"metadata": {"name": "by-hand"}, "spec": {"ports": []}},
    ]
    labels = {"app": "prometheus", "hash": "1"}
    meta = {"namespace": "metrics", "name": "p-1", "uid": "p-1", "labels": labels}
    served = Names({"metadata": meta, "spec": {}}, node)  # pyright: ignore[reportArgumentType]
    served.admit("10.244.1.1")
    known = answers(a_pod("nlp", "a-0", "10.244.1.2", Node()))
    assert known["prometheus.metrics"] == "10.244.1.1" and "prometheus" not in known
    assert not {"other.metrics", "webhook.metrics", "by-hand.metrics"} & {*known}
    node.found = []
    served.tell()
    assert "prometheus.metrics" not in answers(a_pod("nlp", "a-1", "10.244.1.3", Node()))


def test_names_of_a_machine_are_forgotten_together() -> None:
    """i-10 is another machine than i-1."""
    gone, kept = (
        a_pod("n", "a", "10.244.1.1", Node("i-1")),
        a_pod("n", "b", "10.244.1.2", Node("i-10")),
    )
    names.forget("i-1 ")
    assert not gone.hosts.exists() and "a.t5" not in answers(kept)
    kept.forget()
    assert not kept.hosts.exists()


class Api:
    """A cluster with these objects."""

    def __init__(self, **objects: Any) -> None:
        self.objects = objects

    def request(self, method: str, path: str) -> Any:
        kind, name = path.split("/")[-2:]
        if (found := self.objects.get(f"{kind}_{name}".replace("-", "_"))) is None:
            raise ApiError(404, {"message": f"no {path}"})
        return found


READY = {"subsets": [{"addresses": [{"ip": "10.244.1.9"}]}]}
HEADLESS = {"spec": {"clusterIP": "None"}}


@pytest.mark.parametrize(
    ("objects", "known"),
    [
        ({"endpoints_kube_dns": READY, "services_t5": HEADLESS}, True),
        ({"services_t5": HEADLESS}, False),
        ({"endpoints_kube_dns": {"subsets": []}, "services_t5": HEADLESS}, False),
        ({"endpoints_kube_dns": {"subsets": [{"notReadyAddresses": [{}]}]}}, False),
        ({"endpoints_kube_dns": READY}, False),
        (
            {"endpoints_kube_dns": READY, "services_t5": {"spec": {"clusterIP": "172.20.0.9"}}},
            False,
        ),
    ],
)
def test_dns_needs_coredns_and_a_headless_service(objects: Any, known: bool) -> None:
    kubelet = Kubelet(
        **dict.fromkeys(("account", "world", "instance", "config", "capacity", "devices"), None),  # pyright: ignore
        api=Api(**objects),  # pyright: ignore
        address="",
    )
    assert kubelet.names_pods("nlp", "t5") is known
