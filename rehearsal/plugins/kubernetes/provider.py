"""pulumi-resource-kubernetes: the provider's configuration, and who handles a resource.

Objects are in objects.py, Helm releases in helm.py. Another handler is another line in _of.
"""

from __future__ import annotations

from yaml import YAMLError

from rehearsal.kube import ApiError
from rehearsal.plugins.base import Call, Diff, Found, Plugin, Refused, serve
from rehearsal.plugins.kubernetes import helm, kubeconfig
from rehearsal.plugins.kubernetes.kubeconfig import Cluster
from rehearsal.plugins.kubernetes.objects import Objects
from rehearsal.plugins.wire import UNKNOWN, Properties, changes

NOT_IMPLEMENTED = ("renderYamlToDirectory", "cluster")
IDENTIFIER = "clusterIdentifier"
POINTERS = {"kubeconfig", "context", "cluster"}
UNREADABLE = (OSError, ApiError, Refused, KeyError, TypeError, ValueError, YAMLError)
ADVICE = ("If the cluster was deleted, you can remove this resource from Pulumi state by rerunning the operation with "
          'the PULUMI_K8S_DELETE_UNREACHABLE environment variable set to "true"')


class Kubernetes(Plugin):
    """The package kubernetes."""

    name, version = "kubernetes", "4.34.2"

    def __init__(self) -> None:
        self._cluster = Cluster(config={})

    def diff_config(self, old: Properties, new: Properties) -> Diff:
        """With identifiers only they tell clusters apart; without, the kubeconfig's cluster entry does."""
        found = changes(old, new)
        if old.get(IDENTIFIER) and new.get(IDENTIFIER):
            return Diff(changes=found, replaces=frozenset({IDENTIFIER} & found.keys()))
        return Diff(changes=found, replaces=frozenset(POINTERS & found.keys() if _other_cluster(old, new) else ()))

    def configure(self, config: Properties) -> None:
        """Whether the cluster can be reached is found out here, once, as the genuine plugin does."""
        self._cluster = Cluster(config=config)
        for option in filter(config.get, NOT_IMPLEMENTED):
            raise Refused(f"this rehearsal's kubernetes plugin does not implement the provider's {option}")
        if not self._cluster.flag("enableServerSideApply", default=True):
            raise Refused("this rehearsal's kubernetes plugin does not implement enableServerSideApply=false")
        try:
            found = kubeconfig.load(config.get("kubeconfig"))
            access = kubeconfig.access(found, context=config.get("context"), namespace=config.get("namespace"))
            access.api.resource("v1", "Namespace")
            self._cluster = Cluster(config=config, access=access)
        except UNREADABLE as error:
            reason = f"unable to load schema information from the API server: {error}"
            self._cluster = Cluster(config=config, reason=reason)

    def check(self, call: Call, old: Properties, new: Properties) -> Properties:
        if not self._cluster.access and self._cluster.flag("skipUpdateUnreachable"):
            return old
        return self._of(call).check(call, old, new)

    def diff(self, call: Call, old: Properties, new: Properties, state: Properties) -> Diff:
        return self._of(call).diff(call, old, new, state)

    def create(self, call: Call, inputs: Properties) -> tuple[str, Properties]:
        return self._of(call).create(call, inputs)

    def read(self, call: Call, inputs: Properties, state: Properties) -> Found | None:
        if self._cluster.access:
            return self._of(call).read(call, inputs, state)
        if self._cluster.flag("deleteUnreachable"):
            return None
        if self._cluster.flag("skipUpdateUnreachable"):
            return Found(inputs, state)
        raise Refused(f"failed to read resource state due to unreachable cluster. {ADVICE}\n{self._cluster.reason}")

    def update(self, call: Call, old: Properties, new: Properties, state: Properties) -> Properties:
        return self._of(call).update(call, old, new, state)

    def delete(self, call: Call, state: Properties) -> None:
        if self._cluster.access:
            return self._of(call).delete(call, state)
        if call.type == helm.TYPE:
            raise Refused(f"can't delete Helm Release with unreachable cluster. Reason: {self._cluster.reason}")
        if not self._cluster.flag("deleteUnreachable"):
            raise Refused(f"configured Kubernetes cluster is unreachable. {ADVICE}\n{self._cluster.reason}")

    def _of(self, call: Call) -> Objects | helm.Releases:
        return helm.Releases(cluster=self._cluster) if call.type == helm.TYPE else Objects(cluster=self._cluster)


def _other_cluster(old: Properties, new: Properties) -> bool:
    if any(new.get(pointer) == UNKNOWN for pointer in POINTERS):
        return True
    try:
        before, after = (kubeconfig.cluster_entry(kubeconfig.load(config.get("kubeconfig")), config.get("context"))
                         for config in (old, new))
    except UNREADABLE:
        return False
    return before != after


if __name__ == "__main__":
    serve(Kubernetes())
