"""pulumi-resource-kubernetes: the provider's configuration, and who handles a resource.

Objects are in objects.py, Helm releases in helm.py.
"""

from __future__ import annotations

import os

from yaml import YAMLError

from rehearsal.kube import ApiError
from rehearsal.providers.call import Call
from rehearsal.providers.kubernetes import helm, kubeconfig
from rehearsal.providers.kubernetes.kubeconfig import Cluster
from rehearsal.providers.kubernetes.objects import NOT_OURS, Objects
from rehearsal.providers.plugin import Diff, Found, Plugin
from rehearsal.providers.problems import Invalid, Refused
from rehearsal.providers.protocol import serve
from rehearsal.providers.wire import Properties, changes

PATCH_FORCE = "enablePatchForce"
CONFIG = {"kubeconfig", "clusterIdentifier", "version", "pluginDownloadURL", PATCH_FORCE}
"""Provider settings; any other is refused by name."""
IDENTIFIER = "clusterIdentifier"
FORGET, FORCE = "PULUMI_K8S_DELETE_UNREACHABLE", "PULUMI_K8S_ENABLE_PATCH_FORCE"
"""Set to "true": what is in a cluster that cannot be reached leaves the state; an update takes fields that
somebody else has changed."""
GONE = (
    "If the cluster was deleted, you can remove this resource from Pulumi state by rerunning the operation"
    f' with the {FORGET} environment variable set to "true"'
)
UNREADABLE = (OSError, ApiError, Refused, KeyError, TypeError, ValueError, YAMLError)


class Kubernetes(Plugin):
    """The package kubernetes."""

    name, version = "kubernetes", "4.34.2"

    def __init__(self) -> None:
        self._cluster = Cluster()

    def check_config(self, inputs: Properties) -> Properties:
        for option in sorted(
            key for key, value in inputs.items() if value is not None and key not in CONFIG
        ):
            raise Invalid(option, f"{NOT_OURS} this provider setting")
        return inputs

    def diff_config(self, old: Properties, new: Properties) -> Diff:
        """With identifiers only they tell clusters apart; without, every other kubeconfig is
        another cluster."""
        found = changes(old, new)
        pointer = IDENTIFIER if old.get(IDENTIFIER) and new.get(IDENTIFIER) else "kubeconfig"
        return Diff(changes=found, replaces=frozenset({pointer} & found.keys()))

    def configure(self, config: Properties) -> None:
        """Find out, once, whether the cluster can be reached, as the genuine plugin does."""
        try:
            access = kubeconfig.access(kubeconfig.load(config.get("kubeconfig")))
            access.api.resource("v1", "Namespace")
            # A setting of the provider comes before the variable (pulumi-kubernetes#4242).
            said = config.get(PATCH_FORCE)
            force = os.environ.get(FORCE) if said is None else said
            self._cluster = Cluster(access=access, force=str(force).lower() == "true")
        except UNREADABLE as error:
            why = f"unable to load schema information from the API server: {error}"
            self._cluster = Cluster(reason=why)

    def check(self, call: Call, old: Properties, new: Properties) -> Properties:
        return self._of(call).check(call, old, new)

    def diff(self, call: Call, old: Properties, new: Properties, state: Properties) -> Diff:
        return self._of(call).diff(call, old, new, state)

    def create(self, call: Call, inputs: Properties) -> tuple[str, Properties]:
        return self._of(call).create(call, inputs)

    def read(self, call: Call, inputs: Properties, state: Properties) -> Found | None:
        if self._cluster.access:
            return self._of(call).read(call, inputs, state)
        call.report(f"configured Kubernetes cluster is unreachable: {self._cluster.reason}")
        if _forgets():
            return None
        raise Refused(f"failed to read resource state due to unreachable cluster. {GONE}")

    def update(self, call: Call, old: Properties, new: Properties, state: Properties) -> Properties:
        return self._of(call).update(call, old, new, state)

    def delete(self, call: Call, state: Properties) -> None:
        """The genuine plugin forgets objects of a cluster that cannot be reached, but not releases."""
        if self._cluster.access:
            return self._of(call).delete(call, state)
        if call.type == helm.TYPE:
            why = f'Reason: "{self._cluster.reason}"'
            raise Refused(f"can't delete Helm Release with unreachable cluster. {why}")
        call.report(f"configured Kubernetes cluster is unreachable: {self._cluster.reason}")
        if not _forgets():
            raise Refused(f"configured Kubernetes cluster is unreachable. {GONE}")

    def _of(self, call: Call) -> Objects | helm.Releases:
        handler = helm.Releases if call.type == helm.TYPE else Objects
        return handler(cluster=self._cluster)


def _forgets() -> bool:
    return os.environ.get(FORGET) == "true"


if __name__ == "__main__":
    serve(Kubernetes())
