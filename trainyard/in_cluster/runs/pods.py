"""The pods of runs. For the programs that look at runs, in the folders beside this one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

Object = dict[str, Any]

PYTORCH_JOB, JOBSET = "training.kubeflow.org/job-name", "jobset.sigs.k8s.io/jobset-name"
"""Labels of pods that train, with the name of their job: of one of any kind of the training-operator, and of a
TrainJob."""
ENDED = ("Succeeded", "Failed")


class Lists(Protocol):
    """The API server, as far as it lists."""

    def items(self, path: str, **query: str) -> list[Object]: ...


def training(api: Lists, **only: str) -> list[Object]:
    """The pods of all runs, as far as they are there. Raises ApiError."""
    return [
        pod
        for label in (JOBSET, PYTORCH_JOB)
        for pod in api.items("/api/v1/pods", labelSelector=label, **only)
    ]


def unfinished(api: Lists) -> list[Object]:
    """The pods of all runs but those that have succeeded, which stay for long where nobody deletes a run. Raises
    ApiError."""
    return training(api, fieldSelector="status.phase!=Succeeded")


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
