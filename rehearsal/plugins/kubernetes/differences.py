"""What differs between a Kubernetes object and what the program wants of it, and what a replacement takes.

FORCE_NEW is provider/pkg/provider/diff.go of pulumi-kubernetes 4.34.2; whatever else the API server calls immutable
fails the update there, and here.
"""

from __future__ import annotations

import re
from copy import deepcopy
from decimal import Decimal
from typing import Any

from rehearsal.kube import Object
from rehearsal.plugins.wire import Changes, Properties, changes

FORCE_NEW = {
    ("apps", "DaemonSet"): ("spec.selector",),
    ("apps", "Deployment"): ("spec.selector",),
    ("apps", "StatefulSet"): ("spec.podManagementPolicy", "spec.revisionHistoryLimit", "spec.selector",
                              "spec.serviceName", "spec.volumeClaimTemplates"),
    ("batch", "Job"): ("spec.completions", "spec.parallelism", "spec.selector", "spec.template"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): ("roleRef",),
    ("rbac.authorization.k8s.io", "RoleBinding"): ("roleRef",),
    ("storage.k8s.io", "StorageClass"): ("parameters", "provisioner"),
    ("", "ConfigMap"): ("binaryData", "data"),
    ("", "PersistentVolume"): tuple(f"spec.{source}" for source in ("awsElasticBlockStore", "csi", "fc", "hostPath",
                                                                    "iscsi", "local", "nfs")),
    ("", "PersistentVolumeClaim"): ("spec.accessModes", "spec.selector", "spec.storageClassName", "spec.volumeName"),
    ("", "Pod"): ("spec",),
    ("", "ResourceQuota"): ("spec.scopes",),
    ("", "Secret"): ("type", "stringData", "data"),
    ("", "Service"): ("spec.clusterIP",),
}
"""Group and kind → fields that never change in place."""
MUTABLE = {"ConfigMap": "enableConfigMapMutable", "Secret": "enableSecretMutable"}
"""Kind → the provider's option that lets its data change in place."""
IDENTITY = ("metadata.name", "metadata.namespace")
QUANTITIES = {"capacity", "hard", "limits", "requests"}
_UNITS = {"n": "1e-9", "u": "1e-6", "m": "1e-3", "k": "1e3", "M": "1e6", "G": "1e9", "T": "1e12", "P": "1e15"} | {
    f"{letter}i": str(1024 ** power) for power, letter in enumerate("KMGTPE", 1)}


def builtin(api_version: str) -> bool:
    """Whether it is a version of Kubernetes's own kinds."""
    group = api_version.rpartition("/")[0]
    return "." not in group or group.endswith(".k8s.io")


def pruned(live: Any, own: Any) -> Any:
    """What the live object says about the fields the program gave."""
    if isinstance(live, dict) and isinstance(own, dict):
        return {key: pruned(value, own[key]) for key, value in live.items() if key in own}
    if isinstance(live, list) and isinstance(own, list):
        return [pruned(a, b) for a, b in zip(live, own, strict=False)]
    return live


def differences(live: Object, old: Properties, new: Properties, ignored: tuple[str, ...]) -> Changes:
    """Between the live object, in the fields the program gave last time, and what it gives now."""
    before, wanted = pruned(live, old), deepcopy(new)
    if isinstance(meta := wanted.get("metadata"), dict):
        _same_place(live.get("metadata") or {}, before.setdefault("metadata", {}), meta)
    if builtin(new["apiVersion"]):
        wanted = _without_empty(wanted, before)
    found = changes(_comparable(before), _comparable(wanted))
    return {path: kind for path, kind in found.items() if not any(covers(outer, path) for outer in ignored)}


def replacing(new: Object, found: Changes, mutable: bool) -> frozenset[str]:
    """The changes among those found that need a new object."""
    fields = FORCE_NEW.get((new["apiVersion"].rpartition("/")[0], new["kind"]), ())
    if mutable and not new.get("immutable"):
        fields = tuple(field for field in fields if field == "type")
    return frozenset(path for path, kind in found.items() if _forces_new(path, kind, (*IDENTITY, *fields)))


def covers(outer: str, path: str) -> bool:
    """Whether a property path is the other, or lies in it."""
    return path == outer or path.startswith((f"{outer}.", f"{outer}["))


def _forces_new(path: str, kind: str, fields: tuple[str, ...]) -> bool:
    if kind == "delete" and path == "metadata":
        return True
    return any(covers(field, path) or (kind == "add" and covers(path, field)) for field in fields)


def _same_place(live: Object, before: Properties, wanted: Properties) -> None:
    """An object is where it is even if the program does not say; a cluster-wide one's namespace means nothing."""
    if live.get("namespace"):
        before["namespace"] = live["namespace"]
        wanted["namespace"] = wanted.get("namespace") or "default"
    else:
        wanted.pop("namespace", None)
    if wanted.get("name"):
        before["name"] = live.get("name")


def _without_empty(wanted: Any, live: Any) -> Any:
    """The wanted value without the empty ones that the API server drops from its own kinds, such as a class of ""."""
    if isinstance(wanted, dict) and isinstance(live, dict):
        return {key: _without_empty(value, live.get(key)) for key, value in wanted.items() if value or key in live}
    if isinstance(wanted, list) and isinstance(live, list) and len(wanted) == len(live):
        return [_without_empty(a, b) for a, b in zip(wanted, live, strict=True)]
    return wanted


def _comparable(value: Any) -> Any:
    """The same object with its resource quantities as numbers, so that 1000m is 1."""
    if isinstance(value, list):
        return [_comparable(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    return {key: {name: _quantity(amount) for name, amount in inner.items()}
            if key in QUANTITIES and isinstance(inner, dict) else _comparable(inner) for key, inner in value.items()}


def _quantity(value: Any) -> Any:
    parts = re.fullmatch(r"(-?[\d.]+(?:[eE][+-]?\d+)?)([numkMGTP]|[KMGTPE]i)?", str(value))
    return Decimal(parts[1]) * Decimal(_UNITS.get(parts[2], "1")) if parts else value
