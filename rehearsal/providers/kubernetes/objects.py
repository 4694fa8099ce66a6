"""Objects of a cluster, as Pulumi resources: made and updated with server-side apply, awaited
(waiting.py).

After provider.go and await.go of pulumi-kubernetes 4.34.2, with its messages. One difference: an
object is made by applying it where there is none, and not by POST, so that its fields are the
applier's from the start.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass

from rehearsal.kube import ApiError, Object
from rehearsal.providers.call import Call
from rehearsal.providers.kubernetes import kinds, waiting
from rehearsal.providers.kubernetes.differences import IDENTITY, differences, pruned, replacing
from rehearsal.providers.kubernetes.kubeconfig import Cluster
from rehearsal.providers.plugin import Diff, Found
from rehearsal.providers.problems import NotReady, Refused
from rehearsal.providers.wire import Properties, unknown

SERVER_FILLED = {
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "uid",
}
MANAGER = "pulumi-kubernetes"
RETRIES = (1, 2, 4, 8, 16)
"""Seconds between the attempts to create an object whose kind or namespace does not exist yet."""
CONFLICTS = (
    "server-side apply field conflict detected, see"
    " https://www.pulumi.com/registry/packages/kubernetes/how-to-guides/managing-resources-with-server-side-apply/#handle-field-conflicts-on-existing-resources"
    " for troubleshooting help"
)
NOT_OURS = "this rehearsal's kubernetes plugin does not implement"


@dataclass(frozen=True, kw_only=True)
class Objects:
    """The objects of one cluster."""

    cluster: Cluster

    def check(self, call: Call, old: Properties, new: Properties) -> Properties:
        kinds.of(new)
        if not call.type.endswith(f":{new['kind']}"):
            raise Refused(f"{NOT_OURS} {call.type}")
        for key in waiting.annotated(new):
            if key.startswith("pulumi.com/") and key not in waiting.KNOWN:
                raise Refused(f"{NOT_OURS} the annotation {key}")
        if isinstance(meta := new.get("metadata") or {}, dict) and not meta.get("name"):
            raise Refused(f"{NOT_OURS} names of its own: give {call.name} a metadata.name")
        return new

    def diff(self, call: Call, old: Properties, new: Properties, state: Properties) -> Diff:
        found = differences(state, old, new, call.ignored)
        replaces = replacing(new, found)
        return Diff(
            changes=found,
            replaces=replaces,
            delete_before_replace=not replaces & {"metadata", *IDENTITY},
        )

    def create(self, call: Call, inputs: Properties) -> tuple[str, Properties]:
        if call.preview and (unknown(inputs) or not self._served(inputs)):
            return "", inputs
        waiting.asked_for(inputs)
        try:
            live = self._created(call, inputs)
        except ApiError as error:
            if call.preview and _cannot_preview(error):
                return "", inputs
            raise Refused(
                f'resource "{call.urn}" was not successfully created by the Kubernetes API server: '
                f"{error}"
            ) from None
        if call.preview:
            return "", _state({key: value for key, value in live.items() if key != "status"})
        said = (
            f'resource "{call.urn}" was successfully created, but the Kubernetes API server'
            " reported that it failed to fully initialize or become live"
        )
        live = self._awaited(call, inputs, live, said)
        return _id(live), _state(live)

    def update(self, call: Call, old: Properties, new: Properties, state: Properties) -> Properties:
        if call.preview and (unknown(new) or not self._served(new)):
            return new
        said = (
            f'the Kubernetes API server reported that "{call.id}" failed to fully initialize or'
            " become live"
        )
        live: Object | None = None
        try:
            live = self.cluster.api.get(_target(call, new))
            if not live:
                gone = f'{new["kind"]} "{call.id}" not found'
                raise Refused(f'update of resource "{call.urn}" failed: {gone}')
            live = self._applied(call, _keeping(live, new, call.ignored))
        except ApiError as error:
            if call.preview and error.reason == "Forbidden":
                return new  # whoever may only look sees the inputs (pulumi-kubernetes#2419)
            if not error.code or not live:
                raise
            reason = f"{CONFLICTS}\n{error}" if error.reason == "Conflict" else str(error)
            raise NotReady(call.id, _state(live), new, f"{said}: {reason}") from None
        return _state(live if call.preview else self._awaited(call, new, live, said))

    def read(self, call: Call, inputs: Properties, state: Properties) -> Found | None:
        live = self.cluster.api.get(_target(call, inputs or state))
        if not live:
            return None
        known = bool(inputs.get("kind") or state.get("kind"))
        own, shown = pruned(live, inputs) if known else _importable(live), _state(live)
        if known and (faults := waiting.faults_on_read(self.cluster.api, live)):
            raise NotReady(call.id, shown, own, *faults)
        return Found(own, shown)

    def delete(self, call: Call, state: Properties) -> None:
        target = _target(call, state)
        try:
            self.cluster.api.delete(target, policy=waiting.deletion_policy(state))
            if not waiting.skipped(state):
                waiting.until_gone(call, self.cluster.api, target)
        except ApiError as error:
            if error.code != 404:
                raise

    def _served(self, obj: Object) -> bool:
        """True where the API server is there and knows the kind: else a preview shows the inputs
        only."""
        try:
            return bool(
                self.cluster.access and self.cluster.api.resource(obj["apiVersion"], obj["kind"])
            )
        except ApiError as error:
            if error.code == 404:
                return False
            raise

    def _created(self, call: Call, inputs: Object) -> Object:
        """The new object; what it needs may come a little later than it does."""
        for seconds in RETRIES:
            try:
                return self._new(call, inputs)
            except ApiError as error:
                if error.code != 404 or (call.preview and _no_namespace(error)):
                    raise
                call.report(f"Retry; creation failed: {error}")
                call.pause(seconds)
        return self._new(call, inputs)

    def _new(self, call: Call, inputs: Object) -> Object:
        api = self.cluster.api
        if not self._served(inputs):
            unknown_kind = (
                f'no matches for kind "{inputs["kind"]}" in version "{inputs["apiVersion"]}"'
            )
            raise ApiError(404, {"reason": "NoMatch", "message": unknown_kind})
        if api.get(inputs):
            said = (
                f'{inputs["kind"]} "{inputs["metadata"]["name"]}" already exists. To adopt it, use'
                " `pulumi import`."
            )
            raise ApiError(409, {"reason": "AlreadyExists", "message": said})
        return self._applied(call, inputs)

    def _applied(self, call: Call, wanted: Object) -> Object:
        how = {"force": self.cluster.force, "dry_run": call.preview}
        return self.cluster.api.apply(wanted, manager=MANAGER, **how)

    def _awaited(self, call: Call, inputs: Object, live: Object, said: str) -> Object:
        live, faults = waiting.until_ready(call, self.cluster.api, live)
        if faults:
            raise NotReady(_id(live), _state(live), inputs, f"{said}: {faults[0]}", *faults[1:])
        return live


def _id(live: Object) -> str:
    meta = live["metadata"]
    return "/".join(filter(None, (meta.get("namespace"), meta["name"])))


def _target(call: Call, known: Properties) -> Object:
    """The object an id stands for; the kind is that of the state, or of the type while there is
    none (import)."""
    namespace, _, name = call.id.rpartition("/")
    _, version, kind = call.type.split(":")
    kind_ = {
        "apiVersion": known.get("apiVersion") or version.removeprefix("core/"),
        "kind": known.get("kind") or kind,
    }
    return kind_ | {"metadata": {"name": name} | ({"namespace": namespace} if namespace else {})}


def _state(live: Object) -> Properties:
    meta = {key: value for key, value in live["metadata"].items() if key != "managedFields"}
    return live | {"metadata": meta}


def _importable(live: Object) -> Properties:
    """Inputs that would make the object; of a custom resource the genuine plugin knows the identity
    only."""
    meta = {key: value for key, value in live["metadata"].items() if key not in SERVER_FILLED}
    if not kinds.builtin(live["apiVersion"].rpartition("/")[0]):
        meta = {key: value for key, value in meta.items() if key in ("name", "namespace")}
        return {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": meta}
    return {key: value for key, value in live.items() if key != "status"} | {"metadata": meta}


def _no_namespace(error: ApiError) -> bool:
    return error.code == 404 and error.status.get("details", {}).get("kind") == "namespaces"


def _cannot_preview(error: ApiError) -> bool:
    """Failures of a dry run that say nothing about the update itself."""
    return (
        error.reason in ("Forbidden", "AlreadyExists")
        or _no_namespace(error)
        or (error.code == 400 and "does not support dry run" in str(error))
    )


def _keeping(live: Object, new: Object, ignored: tuple[str, ...]) -> Object:
    """The inputs with the live values of what ignoreChanges names, as the inputs of an import may not
    have."""
    for path in ignored:
        if not path.isalpha():
            raise Refused(f"{NOT_OURS} ignoreChanges of {path}, of whole fields of an object only")
    return deepcopy(new) | {path: live[path] for path in ignored if path in live}
