"""What a cluster says about its jobs right now, read with kubectl: the raw material of a diagnosis."""

from __future__ import annotations

import json
import subprocess
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
    objects: dict[str, list[Object]] = {}
    unserved: set[str] = set()
    for kind in KINDS:
        done = _kubectl("get", kind, "--all-namespaces", "--output=json")
        short = kind.partition(".")[0]
        if done.returncode == 0:
            objects[short] = json.loads(done.stdout)["items"]
        elif "doesn't have a resource type" in done.stderr:
            unserved.add(short)
        else:
            raise RuntimeError(done.stderr.strip())
    return Snapshot(objects=objects, unserved=frozenset(unserved), logs=_logs(objects["pods"]))


def _logs(pods: list[Object]) -> dict[str, str]:
    """Controllers and ranks; device plugins and the like have nothing to say about a job."""
    wanted = [pod for pod in pods if pod["metadata"].get("labels", {}).keys() & {
        "jobset.sigs.k8s.io/jobset-name", "app.kubernetes.io/name", "control-plane"}
        and not any(owner["kind"] == "DaemonSet" for owner in pod["metadata"].get("ownerReferences", []))]
    found = {}
    for pod in wanted:
        space, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        done = _kubectl("logs", name, f"--namespace={space}", "--all-containers", "--tail=60")
        found[f"{space}/{name}"] = done.stdout
    return found


def _kubectl(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["kubectl", *words, "--request-timeout=10s"], capture_output=True, text=True)
