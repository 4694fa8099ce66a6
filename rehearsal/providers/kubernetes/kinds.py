"""Kubernetes's own kinds that the program makes: what takes a new object, and when an object is
ready.

After provider/pkg/provider/diff.go and provider/pkg/await of pulumi-kubernetes 4.34.2; whatever
else the API server calls immutable fails the update there, and here. Another kind is another line
in KINDS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rehearsal.kube import Api, Object
from rehearsal.providers.problems import Refused

Unmet = Callable[[Object, Api], list[str]]
"""Function that names what an object lacks to be ready; nothing where it is."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Rules for objects of a kind."""

    replaces: tuple[str, ...] = ()
    """Fields that never change in place."""
    unmet: Unmet = lambda obj, api: []
    limit: float | None = None
    """Seconds of a wait that no timeout of the program changes."""
    read: bool = False
    """True where a refresh, too, finds fault with an object that is not ready."""


def of(obj: Object) -> Kind:
    """The object's kind. Custom resources are ready at once, and change in place."""
    group = obj["apiVersion"].rpartition("/")[0]
    name = (obj["apiVersion"], obj["kind"])
    if name not in KINDS and builtin(group):
        raise Refused(f"this rehearsal's kubernetes plugin does not implement {name[0]}:{name[1]}")
    return KINDS.get(name, Kind())


def builtin(group: str) -> bool:
    """True where the group is one of Kubernetes's own."""
    return "." not in group or group.endswith(".k8s.io")


def condition(obj: Object, type_: str) -> Object:
    """A condition of the status, {} where it is missing."""
    return next(
        (c for c in status(obj, "conditions", []) if c["type"].lower() == type_.lower()), {}
    )


def status(obj: Object, key: str, default: Any = 0) -> Any:
    return (obj.get("status") or {}).get(key, default)


def stale(obj: Object, part: Object | None = None) -> bool:
    """True where the status, or a condition of it, was written for an older generation of the
    object."""
    observed = (part or {}).get("observedGeneration", status(obj, "observedGeneration", None))
    return observed is not None and observed < obj["metadata"].get("generation", 0)


def unless(met: bool, reason: str) -> list[str]:
    return [] if met else [reason]


def _daemon_set(obj: Object, api: Api) -> list[str]:
    wanted = status(obj, "desiredNumberScheduled", None)
    if wanted is None or stale(obj):
        return ["Missing .status.desiredNumberScheduled"]
    counted = ("currentNumberScheduled", "updatedNumberScheduled", "numberAvailable", "numberReady")
    short = [f"{key}: {status(obj, key)}/{wanted}" for key in counted if status(obj, key) < wanted]
    return [*short, *_pods(obj, api)] if short else []


def _pods(owner: Object, api: Api) -> list[str]:
    """Causes for which the pods of a workload wait."""
    selector = ",".join(
        f"{key}={value}" for key, value in owner["spec"]["selector"]["matchLabels"].items()
    )
    path = api.path(
        {"apiVersion": "v1", "kind": "Pod", "metadata": owner["metadata"]}, collection=True
    )
    pods = api.request("GET", f"{path}?labelSelector={selector}")["items"]
    return [
        f"[Pod {pod['metadata']['namespace']}/{pod['metadata']['name']}]: {_waits_for(pod)}"
        for pod in pods
        if condition(pod, "Ready").get("status") != "True"
    ]


def _waits_for(pod: Object) -> str:
    waiting = [
        c["state"]["waiting"]
        for c in status(pod, "containerStatuses", [])
        if "waiting" in c.get("state", {})
    ]
    unmet = [
        c for c in status(pod, "conditions", []) if c.get("status") != "True" and c.get("message")
    ]
    said = next(iter([*waiting, *unmet]), {})
    return f"{said.get('reason') or status(pod, 'phase', '')}: {said.get('message', 'not ready')}"


def _deployment(obj: Object, api: Api) -> list[str]:
    if stale(obj) or condition(obj, "Available").get("status") != "True":
        return ["Minimum number of live Pods was not attained", *_pods(obj, api)]
    wanted = obj["spec"].get("replicas", 1)
    return unless(status(obj, "updatedReplicas") >= wanted, "Pods of an older template are left")


def _job(obj: Object, api: Api) -> list[str]:
    if condition(obj, "Complete").get("status") == "True":
        return []
    failed = condition(obj, "Failed").get("message", "it has not completed")
    return [f"Job: {failed}", *_pods(obj, api)]


def _pod(obj: Object, api: Api) -> list[str]:
    done = condition(obj, "Ready").get("status") == "True" or status(obj, "phase") == "Succeeded"
    return unless(done, _waits_for(obj))


def _volume(obj: Object, api: Api) -> list[str]:
    phase = status(obj, "phase", "Pending")
    return unless(phase in ("Available", "Bound"), f"PersistentVolume is {phase}")


def _claim(obj: Object, api: Api) -> list[str]:
    phase = status(obj, "phase", "Pending")
    return unless(phase == "Bound", f"PersistentVolumeClaim is {phase}")


def _quota(obj: Object, api: Api) -> list[str]:
    return unless(
        obj["spec"].get("hard") == status(obj, "hard", None), "Quotas don't match after creation"
    )


KINDS: dict[tuple[str, str], Kind] = {
    ("apps/v1", "Deployment"): Kind(replaces=("spec.selector",), unmet=_deployment),
    ("apps/v1", "DaemonSet"): Kind(replaces=("spec.selector",), unmet=_daemon_set, read=True),
    **{
        ("admissionregistration.k8s.io/v1", kind): Kind()
        for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
    },
    ("batch/v1", "CronJob"): Kind(),
    ("batch/v1", "Job"): Kind(replaces=("spec.selector", "spec.template"), unmet=_job),
    ("networking.k8s.io/v1", "NetworkPolicy"): Kind(),
    ("scheduling.k8s.io/v1", "PriorityClass"): Kind(),
    **{("rbac.authorization.k8s.io/v1", kind): Kind() for kind in ("ClusterRole", "Role")},
    **{
        ("rbac.authorization.k8s.io/v1", kind): Kind(replaces=("roleRef",))
        for kind in ("ClusterRoleBinding", "RoleBinding")
    },
    ("v1", "LimitRange"): Kind(),
    ("v1", "ServiceAccount"): Kind(),
    ("v1", "Service"): Kind(replaces=("spec.clusterIP",)),
    ("v1", "ConfigMap"): Kind(replaces=("binaryData", "data")),
    ("v1", "Namespace"): Kind(),
    ("v1", "Pod"): Kind(replaces=("spec",), unmet=_pod),
    ("v1", "PersistentVolume"): Kind(
        replaces=tuple(f"spec.{source}" for source in ("csi", "hostPath", "local", "nfs")),
        unmet=_volume,
        limit=300,
    ),
    ("v1", "PersistentVolumeClaim"): Kind(
        replaces=("spec.accessModes", "spec.selector", "spec.storageClassName", "spec.volumeName"),
        unmet=_claim,
        limit=300,
    ),
    ("v1", "ResourceQuota"): Kind(replaces=("spec.scopes",), unmet=_quota, limit=60),
}
