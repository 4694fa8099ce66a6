"""What a cluster says about its jobs right now, read with kubectl: the raw material of a diagnosis."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

Object = dict[str, Any]

KINDS = ("trainjobs.trainer.kubeflow.org", "jobsets.jobset.x-k8s.io", "pods", "events", "nodes",
         "nodeclaims.karpenter.sh", "nodepools.karpenter.sh", "ec2nodeclasses.karpenter.k8s.aws", "deployments.apps",
         "daemonsets.apps", "persistentvolumeclaims")


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """Objects by kind (the plural's first word), and the ends of logs that matter."""

    objects: dict[str, list[Object]]
    unserved: frozenset[str] = frozenset()
    """Kinds that the API server does not know: their chart is not installed."""
    logs: dict[str, str] = field(default_factory=dict)
    """"namespace/pod" → the last lines of controllers and ranks."""

    def of(self, kind: str) -> list[Object]:
        return self.objects.get(kind, [])


def take() -> Snapshot:
    """Read everything through the current kubeconfig. Raises RuntimeError with kubectl's complaint."""
    served = set(_kubectl("api-resources", "--output=name").split())
    kinds = [kind for kind in KINDS if kind in served]
    objects: dict[str, list[Object]] = {kind.partition(".")[0]: [] for kind in kinds}
    for obj in json.loads(_kubectl("get", ",".join(kinds), "--all-namespaces", "--output=json"))["items"]:
        objects[_plural(obj["kind"], objects)].append(obj)
    unserved = frozenset(kind.partition(".")[0] for kind in KINDS if kind not in served)
    return Snapshot(objects=objects, unserved=unserved, logs=_logs(objects["pods"]))


def _plural(kind: str, plurals: Iterable[str]) -> str:
    """Which of the plurals a kind has."""
    return next(plural for plural in plurals if plural in (f"{kind.lower()}s", f"{kind.lower()}es"))


def _logs(pods: list[Object]) -> dict[str, str]:
    """Controllers and ranks; device plugins and the like have nothing to say about a job."""
    wanted = [pod for pod in pods if pod["metadata"].get("labels", {}).keys() & {
        "jobset.sigs.k8s.io/jobset-name", "app.kubernetes.io/name", "control-plane"}
        and not any(owner["kind"] == "DaemonSet" for owner in pod["metadata"].get("ownerReferences", []))]
    names = [(pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in wanted]
    with ThreadPoolExecutor(8) as pool:  # half a second each, for the token alone
        return dict(zip((f"{space}/{name}" for space, name in names), pool.map(_log, names), strict=True))


def _log(pod: tuple[str, str]) -> str:
    try:
        return _kubectl("logs", pod[1], f"--namespace={pod[0]}", "--all-containers", "--tail=60")
    except RuntimeError as error:
        return str(error)


def _kubectl(*words: str) -> str:
    done = subprocess.run(["kubectl", *words, "--request-timeout=10s"], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip() or f"kubectl {words[0]} failed")
    return done.stdout
