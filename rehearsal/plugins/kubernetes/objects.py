"""Objects of a cluster, as Pulumi resources: created with POST, updated with server-side apply, awaited (waiting.py).

After provider.go and await.go of pulumi-kubernetes 4.34.2, with its messages.
"""

from __future__ import annotations

import base64
import re
import secrets
import time
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from rehearsal.kube import MERGE, ApiError, Object
from rehearsal.plugins.base import Call, Diff, Found, NotReady, Refused
from rehearsal.plugins.kubernetes import waiting
from rehearsal.plugins.kubernetes.differences import MUTABLE, builtin, differences, pruned, replacing
from rehearsal.plugins.kubernetes.kubeconfig import Client, Cluster
from rehearsal.plugins.wire import SECRET, SIGNATURE, Properties, unknown

SERVER_FILLED = {"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields",
                 "resourceVersion", "uid"}
CREATOR = "pulumi-kubernetes"
TAKEN_OVER = {CREATOR, "kubectl", "before-first-apply"}
"""Field managers whose fields an update makes its own."""
MANAGER = "__fieldManager"
AUTONAMED = "pulumi.com/autonamed"
RETRIES = (1, 2, 4, 8, 16)
"""Seconds between the attempts to create an object whose kind or namespace does not exist yet."""
CONFLICTS = ("server-side apply field conflict detected, see https://www.pulumi.com/registry/packages/kubernetes/"
             "how-to-guides/managing-resources-with-server-side-apply/#handle-field-conflicts-on-existing-resources "
             "for troubleshooting help")
EXISTS = ("The resource already exists in the cluster. To adopt it, use `pulumi import`, or set upsertExistingObjects "
          "on the provider; to keep a renamed Pulumi resource, use an alias.")


@dataclass(frozen=True, kw_only=True)
class Objects:
    """The objects of one cluster."""

    cluster: Cluster

    def check(self, call: Call, old: Properties, new: Properties) -> Properties:
        if call.type.endswith(f":{new.get('kind')}Patch"):
            raise Refused(f"this rehearsal's kubernetes plugin does not implement Patch resources ({call.type})")
        inputs = _in_clear_data(_cleaned(new))
        if isinstance(meta := inputs.setdefault("metadata", {}), dict):
            _choose_name(call, old.get("metadata") or {}, meta)
            if self.cluster.access and not meta.get("namespace") and self._namespaced(inputs):
                meta["namespace"] = self.cluster.access.namespace
        return _hidden(inputs)

    def diff(self, call: Call, old: Properties, new: Properties, state: Properties) -> Diff:
        found = differences(state, old, new, call.ignored)
        option = MUTABLE.get(new["kind"])
        replaces = replacing(new, found, bool(option and self.cluster.flag(option)))
        moves = replaces & {"metadata.name", "metadata.namespace", "metadata"}
        return Diff(changes=found, replaces=replaces, delete_before_replace=not moves and not _autonamed(new))

    def create(self, call: Call, inputs: Properties) -> tuple[str, Properties]:
        if call.preview and (unknown(inputs) or not self._served(inputs)):
            return "", _hidden(inputs)
        waiting.asked_for(inputs)
        manager = _manager(inputs, {})
        try:
            live = self._created(call, inputs, manager)
        except ApiError as error:
            if call.preview and _cannot_preview(error):
                return "", _hidden(inputs)
            raise Refused(_creation_failed(call, error)) from None
        if call.preview:
            return "", _state({key: value for key, value in live.items() if key != "status"}, manager)
        said = (f'resource "{call.urn}" was successfully created, but the Kubernetes API server reported that it '
                f"failed to fully initialize or become live")
        live = self._awaited(call, inputs, live, manager, said)
        return _id(live), _state(live, manager)

    def update(self, call: Call, old: Properties, new: Properties, state: Properties) -> Properties:
        if call.preview and (unknown(new) or not self._served(new)):
            return _hidden(new)
        manager, said = _manager(new, state), (f'the Kubernetes API server reported that "{call.id}" failed to fully '
                                               f"initialize or become live")
        live = self._existing(call, new)
        try:
            live = self._applied(call, new, live, manager)
        except ApiError as error:
            if call.preview and error.code == 403:
                return _hidden(new)
            if not error.code:
                raise
            conflict = f'{CONFLICTS}\nThe resource managed by field manager "{manager}" had an apply conflict: {error}'
            reason = conflict if error.reason == "Conflict" else str(error)
            raise NotReady(call.id, _state(live, manager), _hidden(new), f"{said}: {reason}") from None
        return _state(live if call.preview else self._awaited(call, new, live, manager, said), manager)

    def read(self, call: Call, inputs: Properties, state: Properties) -> Found | None:
        live = self.cluster.api.get(_target(call, inputs or state))
        if not live:
            return None
        known = bool(inputs.get("kind") or state.get("kind"))
        own = _hidden(pruned(live, inputs) if known else _importable(live))
        shown = _state(live, _manager(inputs, state))
        if known and (faults := waiting.faults_on_read(self.cluster.api, live)):
            raise NotReady(call.id, shown, own, *faults)
        return Found(own, shown)

    def delete(self, call: Call, state: Properties) -> None:
        target = _target(call, state)
        policy = waiting.annotation(target, "deletionPropagationPolicy").capitalize()
        try:
            self.cluster.api.delete(target, policy=policy if policy in ("Orphan", "Background") else "Foreground")
            waiting.until_gone(call, self.cluster.api, target)
        except ApiError as error:
            if error.code != 404:
                raise

    def _served(self, obj: Object) -> bool:
        """Whether the API server is there and knows the kind: else a preview shows the inputs only."""
        try:
            return bool(self.cluster.access and self.cluster.api.resource(*waiting.kind_of(obj)))
        except ApiError as error:
            if error.code == 404:
                return False
            raise

    def _namespaced(self, obj: Object) -> bool:
        """A kind the API server does not know (yet) is taken for one."""
        return not self._served(obj) or self.cluster.api.resource(*waiting.kind_of(obj))[1]

    def _created(self, call: Call, inputs: Object, manager: str) -> Object:
        """The new object; what it needs may come a little later than it does."""
        for seconds in RETRIES:
            try:
                return self._post(call, inputs, manager)
            except ApiError as error:
                if error.code != 404 or (call.preview and _no_namespace(error)):
                    raise
                call.report(f"Retry; creation failed: {error}")
                call.pause(seconds)
        return self._post(call, inputs, manager)

    def _post(self, call: Call, inputs: Object, manager: str) -> Object:
        api = self.cluster.api
        if not self._served(inputs):
            raise _no_match(inputs)
        if self.cluster.flag("upsertExistingObjects"):
            return api.apply(inputs, manager=manager, force=call.preview or self._forced(inputs), dry_run=call.preview)
        return api.request("POST", api.path(inputs, collection=True) + _query(call, CREATOR), inputs)

    def _existing(self, call: Call, new: Object) -> Object:
        failed = f'update of resource "{call.urn}" failed'
        if self.cluster.access and not self._served(new):
            raise Refused(f"{failed} because the Kubernetes API server reported that the apiVersion for this resource "
                          f"does not exist. Verify that any required CRDs have been created: {_no_match(new)}")
        live = self.cluster.api.get(_target(call, new))
        if not live:
            raise Refused(f'{failed}: {new["kind"]} "{call.id}" not found')
        return live

    def _applied(self, call: Call, new: Object, live: Object, manager: str) -> Object:
        api, entries = self.cluster.api, live["metadata"].get("managedFields") or []
        if new["kind"] == "CustomResourceDefinition":
            meta = new["metadata"] | {"resourceVersion": live["metadata"]["resourceVersion"]}
            return api.request("PUT", api.path(new) + _query(call, manager), new | {"metadata": meta})
        force = self._forced(new) or not entries or (call.preview and any(map(_ours, entries)))
        if not call.preview:
            _take_over(api, live, manager)
        return api.apply(_keeping(live, new, call.ignored), manager=manager, force=force, dry_run=call.preview)

    def _forced(self, inputs: Object) -> bool:
        return waiting.annotation(inputs, "patchForce") == "true" or self.cluster.flag("enablePatchForce")

    def _awaited(self, call: Call, inputs: Object, live: Object, manager: str, said: str) -> Object:
        live, faults = waiting.until_ready(call, self.cluster.api, inputs, live)
        if faults:
            raise NotReady(_id(live), _state(live, manager), _hidden(inputs), f"{said}: {faults[0]}", *faults[1:])
        return live


def _id(live: Object) -> str:
    meta = live["metadata"]
    return "/".join(filter(None, (meta.get("namespace"), meta["name"])))


def _target(call: Call, known: Properties) -> Object:
    """The object an id stands for; the kind is that of the state, or of the type while there is none (import)."""
    namespace, _, name = call.id.rpartition("/")
    _, version, kind = call.type.split(":")
    kinds = {"apiVersion": known.get("apiVersion") or version.removeprefix("core/"), "kind": known.get("kind") or kind}
    meta = {"name": name, "annotations": (known.get("metadata") or {}).get("annotations") or {}}
    return kinds | {"metadata": meta | ({"namespace": namespace} if namespace else {})}


def _query(call: Call, manager: str) -> str:
    return f"?fieldManager={manager}" + ("&dryRun=All" if call.preview else "")


def _manager(inputs: Properties, state: Properties) -> str:
    """The field manager of an object: the program's, that of the state, or a random one."""
    given = waiting.annotation(inputs, "patchFieldManager")
    return given or state.get(MANAGER) or f"{CREATOR}-{secrets.token_hex(4)}"


def _choose_name(call: Call, before: Properties, meta: Properties) -> None:
    """The name the program gives, or that of the last time, or a new one; a chosen one is marked as such."""
    if meta.get("generateName") and not meta.get("name"):
        raise Refused("the `.metadata.generateName` field is not supported in Server-Side Apply mode")
    if meta.get("name") or (before and not _autonamed({"metadata": before})):
        return
    meta["name"] = before.get("name") or f"{call.name}-{call.suffix(8)}"
    meta["annotations"] = (meta.get("annotations") or {}) | {AUTONAMED: "true"}


def _autonamed(obj: Properties) -> bool:
    meta = obj.get("metadata")
    return isinstance(meta, dict) and AUTONAMED in (meta.get("annotations") or {})


def _cleaned(new: Properties) -> Properties:
    """The inputs without what only the API server writes."""
    inputs = deepcopy(new)
    if isinstance(meta := inputs.get("metadata"), dict):
        inputs["metadata"] = {key: value for key, value in meta.items() if key not in SERVER_FILLED}
    return inputs


def _in_clear_data(inputs: Properties) -> Properties:
    """A Secret's stringData as data, which is what the API server makes of it."""
    if inputs.get("kind") != "Secret" or not inputs.get("stringData") or unknown(inputs["stringData"]):
        return inputs
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in inputs.pop("stringData").items()}
    return inputs | {"data": (inputs.get("data") or {}) | encoded}


def _hidden(obj: Properties) -> Properties:
    """The same, with the data of a Secret marked as secret."""
    if obj.get("kind") != "Secret":
        return obj
    return {key: {SIGNATURE: SECRET, "value": value} if key in ("data", "stringData") else value
            for key, value in obj.items()}


def _state(live: Object, manager: str) -> Properties:
    meta = {key: value for key, value in live["metadata"].items() if key != "managedFields"}
    return _hidden(live | {"metadata": meta, MANAGER: manager})


def _importable(live: Object) -> Properties:
    """Inputs that would make the object; of a custom resource the genuine plugin knows the identity only."""
    meta = {key: value for key, value in live["metadata"].items() if key not in SERVER_FILLED}
    if not builtin(live["apiVersion"]):
        meta = {key: value for key, value in meta.items() if key in ("name", "namespace")}
        return {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": meta}
    return {key: value for key, value in live.items() if key != "status"} | {"metadata": meta}


def _no_match(obj: Object) -> ApiError:
    message = f'no matches for kind "{obj["kind"]}" in version "{obj["apiVersion"]}"'
    return ApiError(404, {"reason": "NoMatch", "message": message})


def _no_namespace(error: ApiError) -> bool:
    return error.code == 404 and error.status.get("details", {}).get("kind") == "namespaces"


def _cannot_preview(error: ApiError) -> bool:
    """Failures of a dry run that say nothing about the update itself."""
    return (error.reason in ("Forbidden", "AlreadyExists") or _no_namespace(error)
            or (error.code == 400 and "does not support dry run" in str(error)))


def _creation_failed(call: Call, error: ApiError) -> str:
    if error.reason == "NoMatch":
        kind = call.type.split(":", 1)[1].replace(":", "/")
        return (f'creation of resource "{call.urn}" with kind {kind} failed because the Kubernetes API server reported '
                f"that the apiVersion for this resource does not exist. Verify that any required CRDs have been "
                f"created: {error}")
    advice = f"\n\n{EXISTS}" if error.reason == "AlreadyExists" else ""
    return f'resource "{call.urn}" was not successfully created by the Kubernetes API server: {error}{advice}'


def _ours(entry: Object) -> bool:
    return entry["manager"] in TAKEN_OVER and entry["operation"] == "Update" and not entry.get("subresource")


def _take_over(api: Client, live: Object, manager: str) -> None:
    """Make the fields of the create those of the applier: else a field that leaves the program stays in the object."""
    entries = live["metadata"].get("managedFields") or []
    if not any(map(_ours, entries)):
        return
    own = [entry for entry in entries if _ours(entry) or (entry["manager"], entry["operation"]) == (manager, "Apply")]
    fields: Object = {}
    for entry in own:
        fields = _merged(fields, entry["fieldsV1"])
    applied = own[0] | {"manager": manager, "operation": "Apply", "fieldsV1": fields,
                        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    meta = {"resourceVersion": live["metadata"]["resourceVersion"],
            "managedFields": [applied, *(entry for entry in entries if entry not in own)]}
    api.request("PATCH", api.path(live), {"metadata": meta}, content_type=MERGE)


def _merged(one: Object, other: Object) -> Object:
    return one | {key: _merged(one[key], value) if isinstance(one.get(key), dict) else value
                  for key, value in other.items()}


def _keeping(live: Object, new: Object, ignored: tuple[str, ...]) -> Object:
    """The inputs with the live values of the paths that ignoreChanges names."""
    wanted = deepcopy(new)
    for path in ignored:
        *way, last = [quoted or plain for quoted, plain in re.findall(r'\["([^"]*)"\]|([^.\[\]]+)', path)]
        source: Any = live
        place: Any = wanted
        for step in way:
            source = source.get(step) if isinstance(source, dict) else None
            place = place.setdefault(step, {}) if isinstance(place, dict) else None
        if isinstance(source, dict) and isinstance(place, dict) and last in source:
            place[last] = source[last]
    return wanted
