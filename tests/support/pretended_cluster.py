"""The kubernetes plugin of tests that have no API server: it compares as the rehearsal's own plugin
does, and every object is there and ready at once. An object that an engine made and forgot is adopted,
so nothing about Kubernetes can be learned from it."""

from __future__ import annotations

from typing import ClassVar

from rehearsal.providers.call import Call
from rehearsal.providers.kubernetes import helm
from rehearsal.providers.kubernetes.kubeconfig import Cluster
from rehearsal.providers.kubernetes.objects import Objects
from rehearsal.providers.kubernetes.provider import Kubernetes
from rehearsal.providers.plugin import Diff, Found, Plugin
from rehearsal.providers.protocol import serve
from rehearsal.providers.wire import Properties


class Pretended(Plugin):
    name: ClassVar[str] = Kubernetes.name
    version: ClassVar[str] = Kubernetes.version

    def diff_config(self, old: Properties, new: Properties) -> Diff:
        return Kubernetes().diff_config(old, new)

    def check(self, call: Call, old: Properties, new: Properties) -> Properties:
        return new if call.type == helm.TYPE else Objects(cluster=Cluster()).check(call, old, new)

    def diff(self, call: Call, old: Properties, new: Properties, state: Properties) -> Diff:
        if call.type == helm.TYPE:
            return helm.Releases(cluster=Cluster()).diff(call, old, new, state)
        return Objects(cluster=Cluster()).diff(call, old, new, state)

    def create(self, call: Call, inputs: Properties) -> tuple[str, Properties]:
        if call.preview:
            return "", inputs
        if call.type == helm.TYPE:
            return f"{inputs['namespace']}/{inputs['name']}", {
                **inputs,
                "status": {"revision": 1},
            }
        meta = inputs["metadata"]
        return "/".join(filter(None, (meta.get("namespace"), meta["name"]))), inputs

    def read(self, call: Call, inputs: Properties, state: Properties) -> Found | None:
        return Found(inputs, state)

    def update(self, call: Call, old: Properties, new: Properties, state: Properties) -> Properties:
        return {**state, **new}

    def delete(self, call: Call, state: Properties) -> None:
        """Gone at once."""


if __name__ == "__main__":
    serve(Pretended())
