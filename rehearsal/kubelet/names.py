"""Names a pod can resolve: kubelet's /etc/hosts and the answers of CoreDNS, in one file a pod.

A pod has a record while CoreDNS has an endpoint and the pod's headless service is there, or a
service with an address of its own, for which kube-proxy is needed. Its namespace knows it by a short
name, the others by one with the namespace.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rehearsal import paths
from rehearsal.kube import Object
from rehearsal.kubelet.host import Host
from rehearsal.kubelet.images import belongs_to
from rehearsal.kubelet.network import locked

REGISTER, VIEWS = paths.NODES / "names.json", paths.NODES / "hosts"
"""Every pod's names, and a folder with what each pod can resolve."""
DOMAINS = ("", ".svc", ".svc.cluster.local")
"""Endings of a name after its namespace: a pod's search list (kubelet, dns.go) completes each."""


@dataclass(kw_only=True)
class Record:
    """The names of a pod."""

    owner: str
    """The machine and the pod's uid."""
    namespace: str
    address: str
    own: list[str]
    """Names of the pod in its own /etc/hosts."""
    told: list[str]
    """Names of the pod in its namespace, by DNS: none without DNS, or without a service."""


class Names:
    """Names that one pod can resolve."""

    def __init__(self, pod: Object, kubelet: Host) -> None:
        self._pod, self._kubelet = pod, kubelet
        self._owner = f"{kubelet.id} {pod['metadata']['uid']}"
        self._told: list[str] = []

    @property
    def hosts(self) -> Path:
        """The file that is its /etc/hosts. It is rewritten in place, since it is bind-mounted."""
        return _view(self._owner)

    def admit(self, address: str) -> None:
        """It knows its own names."""
        space, own = self._pod["metadata"]["namespace"], own_names(self._pod)
        made = Record(owner=self._owner, namespace=space, address=address, own=own, told=[])
        change(lambda records: [*records, made])
        self.tell()

    def tell(self) -> None:
        """The others know it, as long as DNS does."""
        space = self._pod["metadata"]["namespace"]
        if found := record_of(self._pod):
            wanted = [found[1]] if self._kubelet.names_pods(space, found[0]) else []
        else:
            wanted = services_of(self._pod, self._kubelet.services(space))
        if wanted != self._told:
            self._told = wanted
            change(lambda records: [self._with(one, wanted) for one in records])

    def _with(self, record: Record, told: list[str]) -> Record:
        return replace(record, told=told) if record.owner == self._owner else record

    def forget(self) -> None:
        """It has ended."""
        self._told = []
        forget(self._owner)


def forget(owner: str) -> None:
    """The names of a pod, or of every pod of a machine, are gone."""
    change(lambda records: [one for one in records if not one.owner.startswith(owner)])


def _view(owner: str) -> Path:
    return VIEWS / owner.replace(" ", "-")


def change(edit: Callable[[list[Record]], list[Record]]) -> None:
    """Write the register anew, and what each pod can resolve."""
    with locked(REGISTER) as file:
        before = [Record(**one) for one in json.loads(os.read(file, 1 << 24) or b"[]")]
        after = edit(before)
        _rewrite(file, json.dumps([asdict(one) for one in after]))
        for gone in {one.owner for one in before} - {one.owner for one in after}:
            _view(gone).unlink(missing_ok=True)
        for one in after:
            _show(one, after)


def _show(to: Record, records: list[Record]) -> None:
    """Write what a pod can resolve."""
    lines = ["127.0.0.1 localhost", " ".join([to.address, *to.own])]
    for one in records:
        short = one.told if one.namespace == to.namespace else []
        long = [f"{name}.{one.namespace}{end}" for name in one.told for end in DOMAINS]
        lines += [" ".join([one.address, *short, *long])] * bool(long)
    text, file = "\n".join(lines) + "\n", _view(to.owner)
    file.parent.mkdir(exist_ok=True)
    if not file.exists() or file.read_text() != text:
        with os.fdopen(os.open(file, os.O_RDWR | os.O_CREAT, 0o644), "r+b") as opened:
            _rewrite(opened.fileno(), text)


def _rewrite(file: int, text: str) -> None:
    """In place; readers never meet an empty file."""
    data = text.encode()
    os.pwrite(file, data, 0)
    os.ftruncate(file, len(data))


def record_of(pod: Object) -> tuple[str, str] | None:
    """The service that gives a pod a record of its own, and that record: by hostname and subdomain, or,
    for a PyTorchJob, the service that has the pod's name. None for any other pod."""
    spec, name = pod["spec"], pod["metadata"]["name"]
    host, domain = spec.get("hostname"), spec.get("subdomain")
    if host and domain:
        return domain, f"{host}.{domain}"
    return (name, name) if belongs_to(pod, "PyTorchJob") else None


def services_of(pod: Object, services: list[Object]) -> list[str]:
    """The services of other pods' calls that arrive at this one. Their addresses are those of their
    pods here, so a service that changes the port is not among them."""
    labels = pod["metadata"].get("labels", {}).items()
    return [
        service["metadata"]["name"]
        for service in services
        if (selector := service["spec"].get("selector"))
        and selector.items() <= labels
        and all(port["port"] == port["targetPort"] for port in service["spec"]["ports"])
    ]


def own_names(pod: Object) -> list[str]:
    """Names that kubelet writes into a pod's /etc/hosts."""
    spec, name = pod["spec"], pod["metadata"]["name"]
    host, domain = spec.get("hostname") or name, spec.get("subdomain")
    whole = f"{host}.{domain}.{pod['metadata']['namespace']}{DOMAINS[-1]}"
    return [whole, host] if domain else [host]
