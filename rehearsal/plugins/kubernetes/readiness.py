"""When an object of a kind is ready: RULES. Namespaces, CRDs and every other kind that is not there are ready at once.

After provider/pkg/await of pulumi-kubernetes 4.34.2. Another kind is another line in RULES.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rehearsal.kube import Api, Object
from rehearsal.plugins.base import Refused

Unmet = Callable[[Object, Api], list[str]]
"""What is missing for an object to be ready; nothing if it is."""


class Hopeless(Refused):
    """The object will never be ready."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """How one kind becomes ready."""

    unmet: Unmet
    limit: float | None = None
    """Seconds of a wait that no timeout of the program changes."""
    read: bool = False
    """Whether a refresh, too, finds fault with an object that is not ready."""


def condition(obj: Object, type_: str) -> Object:
    """A condition of the status, {} where it is missing."""
    return next((c for c in status(obj, "conditions", []) if c["type"].lower() == type_.lower()), {})


def status(obj: Object, key: str, default: Any = 0) -> Any:
    return (obj.get("status") or {}).get(key, default)


def stale(obj: Object, part: Object | None = None) -> bool:
    """Whether the status, or a condition of it, was written for an older generation of the object."""
    observed = (part or {}).get("observedGeneration", status(obj, "observedGeneration", None))
    return observed is not None and observed < obj["metadata"].get("generation", 0)


def unless(met: bool, reason: str) -> list[str]:
    return [] if met else [reason]


def _deployment(obj: Object, api: Api) -> list[str]:
    wanted = obj["spec"].get("replicas", 1)
    if condition(obj, "Available").get("status") != "True" or stale(obj):
        return ["Minimum number of live Pods was not attained", *_pods(obj, api)]
    rolled_out = status(obj, "updatedReplicas") == status(obj, "replicas") == wanted <= status(obj, "readyReplicas")
    if rolled_out and not status(obj, "unavailableReplicas"):
        return []
    return ["Minimum number of Pods to consider the application live was not attained", *_pods(obj, api)]


def _stateful_set(obj: Object, api: Api) -> list[str]:
    wanted = obj["spec"].get("replicas", 1)
    current = {status(obj, key) for key in ("replicas", "currentReplicas", "readyReplicas")}
    if current == {wanted} and not stale(obj) and status(obj, "currentRevision") == status(obj, "updateRevision"):
        return []
    return [f"{status(obj, 'readyReplicas')} out of {wanted} replicas succeeded readiness checks", *_pods(obj, api)]


def _daemon_set(obj: Object, api: Api) -> list[str]:
    wanted = status(obj, "desiredNumberScheduled", None)
    if wanted is None or stale(obj):
        return ["Missing .status.desiredNumberScheduled"]
    counted = ("currentNumberScheduled", "updatedNumberScheduled", "numberAvailable", "numberReady")
    short = [f"{key}: {status(obj, key)}/{wanted}" for key in counted if status(obj, key) < wanted]
    return [*short, *_pods(obj, api)] if short else []


def _pods(owner: Object, api: Api) -> list[str]:
    """What the pods of a workload wait for."""
    labels = (owner["spec"].get("selector") or {}).get("matchLabels") or {}
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    path = api.path({"apiVersion": "v1", "kind": "Pod", "metadata": owner["metadata"]}, collection=True)
    pods = api.request("GET", f"{path}?labelSelector={selector}")["items"]
    return [reason for pod in pods for reason in _pod(pod, api)]


def _pod(obj: Object, api: Api) -> list[str]:
    if status(obj, "phase", "") == "Succeeded" or condition(obj, "Ready").get("status") == "True":
        return []
    waiting = [c["state"]["waiting"] for c in status(obj, "containerStatuses", []) if "waiting" in c.get("state", {})]
    unmet = [c for c in status(obj, "conditions", []) if c.get("status") != "True" and c.get("message")]
    said = next(iter([*waiting, *unmet]), {})
    name = f"{obj['metadata'].get('namespace')}/{obj['metadata']['name']}"
    return [f"[Pod {name}]: {said.get('reason') or status(obj, 'phase', '')}: {said.get('message', 'not ready')}"]


def _job(obj: Object, api: Api) -> list[str]:
    failed = condition(obj, "Failed")
    if failed.get("status") == "True":
        raise Hopeless(f"[Job {obj['metadata']['name']}] {failed.get('reason')}: {failed.get('message')}")
    complete = status(obj, "startTime", None) and condition(obj, "Complete").get("status") == "True"
    return [] if complete else ["Job is still running", *_pods(obj, api)]


def _service(obj: Object, api: Api) -> list[str]:
    spec = obj["spec"]
    if spec.get("type") == "LoadBalancer" and not status(obj, "loadBalancer", {}).get("ingress"):
        return ["Service was not allocated an IP address; does your cloud provider support this?"]
    if spec.get("type") == "ExternalName" or spec.get("clusterIP") == "None" or not spec.get("selector"):
        return []
    endpoints = api.get({"apiVersion": "v1", "kind": "Endpoints", "metadata": obj["metadata"]})
    settled = endpoints and not any("notReadyAddresses" in subset for subset in endpoints.get("subsets") or [])
    return unless(bool(settled), "Service does not target any Pods. Selected Pods may not be ready, or field "
                                 "'.spec.selector' may not match labels on any Pods")


def _ingress(obj: Object, api: Api) -> list[str]:
    return unless(bool(status(obj, "loadBalancer", {}).get("ingress")),
                  "Ingress .status.loadBalancer field was not updated with a hostname/IP address.")


def _volume(obj: Object, api: Api) -> list[str]:
    phase = status(obj, "phase", "Pending")
    return unless(phase in ("Available", "Bound"), f"PersistentVolume is {phase}")


def _claim(obj: Object, api: Api) -> list[str]:
    phase, name = status(obj, "phase", ""), obj["spec"].get("storageClassName")
    of_class = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}}
    lazy = phase == "Pending" and name and (api.get(of_class) or {}).get("volumeBindingMode") == "WaitForFirstConsumer"
    return unless(phase == "Bound" or bool(lazy), f"PersistentVolumeClaim is {phase or 'Pending'}")


def _quota(obj: Object, api: Api) -> list[str]:
    return unless(obj["spec"].get("hard") == status(obj, "hard", None), "Quotas don't match after creation")


RULES: dict[tuple[str, str], Rule] = {
    ("apps/v1", "Deployment"): Rule(unmet=_deployment, read=True),
    ("apps/v1", "StatefulSet"): Rule(unmet=_stateful_set, read=True),
    ("apps/v1", "DaemonSet"): Rule(unmet=_daemon_set, read=True),
    ("batch/v1", "Job"): Rule(unmet=_job, read=True),
    ("networking.k8s.io/v1", "Ingress"): Rule(unmet=_ingress, read=True),
    ("v1", "Pod"): Rule(unmet=_pod, read=True),
    ("v1", "Service"): Rule(unmet=_service, read=True),
    ("v1", "PersistentVolume"): Rule(unmet=_volume, limit=300),
    ("v1", "PersistentVolumeClaim"): Rule(unmet=_claim, limit=300),
    ("v1", "ResourceQuota"): Rule(unmet=_quota, limit=60),
}
DELETE_MAY_SKIP_AWAIT = {("v1", "Namespace"), ("v1", "Pod"), ("v1", "ReplicationController"), ("apps/v1", "DaemonSet"),
                         ("apps/v1", "Deployment"), ("apps/v1", "StatefulSet"), ("batch/v1", "Job")}
