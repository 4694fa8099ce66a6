"""The pods of runs: pure. For the programs that look at runs, in the folders beside this one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Object = dict[str, Any]

PYTORCH_JOB, JOBSET = "training.kubeflow.org/job-name", "jobset.sigs.k8s.io/jobset-name"
"""Labels of pods that train."""
ENDED = ("Succeeded", "Failed")


def labels(obj: Object) -> Mapping[str, str]:
    return obj["metadata"].get("labels") or {}


def trains(pod: Object) -> bool:
    """Whether it is a pod of a run that has not ended."""
    mine = PYTORCH_JOB in labels(pod) or JOBSET in labels(pod)
    return mine and pod.get("status", {}).get("phase") not in ENDED


def gangs(pods: Iterable[Object]) -> dict[tuple[str, str], list[Object]]:
    """Namespace and name of a run → its pods."""
    found: dict[tuple[str, str], list[Object]] = {}
    for pod in pods:
        run = labels(pod).get(JOBSET) or labels(pod).get(PYTORCH_JOB) or ""
        found.setdefault((pod["metadata"]["namespace"], run), []).append(pod)
    return found
