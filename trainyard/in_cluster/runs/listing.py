"""Lists jobs with their pods, nodes and restarts. For the programs that look at runs, in the folders beside
this one."""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from api_server import NOT_FOUND, Api, ApiError
from pods import training
from record import JOB_LABELS, TRAIN_JOB, Gangs, Object, gangs, of_gang
from watching import PAGE, Watching

KINDS = (TRAIN_JOB, "PyTorchJob")
"""Kinds that each environment has or can have."""
JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2/jobsets"


@dataclass(frozen=True)
class Listed:
    """Everything of runs that is there."""

    jobs: list[Object]
    pods: Gangs
    nodes: Mapping[str, Object]
    """By name."""
    restarts: Mapping[str, int]
    """Namespace/name of a TrainJob's JobSet → restarts of the gang."""


def api_version_of(kind: str) -> str:
    """The apiVersion of jobs of a kind."""
    return "trainer.kubeflow.org/v1alpha1" if kind == TRAIN_JOB else "kubeflow.org/v1"


def path_of(kind: str) -> str:
    """Path of all jobs of a kind."""
    return f"/apis/{api_version_of(kind)}/{kind.lower()}s"


def listed(api: Api, nodes_label: str, more_kinds: Iterable[str]) -> Listed:
    """What the API server's cache has. Raises ApiError. `nodes_label`: label of the nodes that jobs run
    on, as key=value. `more_kinds`: kinds beside KINDS that the training-operator runs."""
    # Jobs first: the pods of a job that has ended are then as it left them.
    jobs = [
        {"apiVersion": api_version_of(kind), "kind": kind, **job}
        for kind in (*KINDS, *more_kinds)
        for job in _served(api, path_of(kind))
    ]
    pods = training(api)
    nodes = api.items("/api/v1/nodes", labelSelector=nodes_label)
    sets = _served(api, JOBSETS)
    return Listed(
        jobs,
        gangs(pods),
        {node["metadata"]["name"]: node for node in nodes},
        {full_name(each): (each.get("status") or {}).get("restarts") or 0 for each in sets},
    )


def gone_pods(api: Watching) -> list[tuple[Object, float]]:
    """The pods of jobs that were deleted since this was asked last, as they were then, and when."""
    return [each for label in JOB_LABELS for each in api.gone("/api/v1/pods", labelSelector=label)]


def own_pods(jobs: Iterable[Object], pods: Gangs) -> Gangs:
    """The pods of each job. Those of an earlier job of its name end while the new one begins."""
    return {
        of_gang(job): [
            pod
            for pod in pods.get(of_gang(job), [])
            if pod["metadata"]["creationTimestamp"] >= job["metadata"]["creationTimestamp"]
        ]
        for job in jobs
    }


def kept_runs(api: Api, place: str, record: str) -> Iterator[Object]:
    """The ConfigMaps with runs, as they are now: they are read seldom, so nothing watches them. They come page by page:
    thousands at once have no room. `place`: path of the ConfigMaps of the program. `record`: their label."""
    wanted: dict[str, str | int] = {"labelSelector": f"{record}=run", "limit": PAGE}
    while True:
        page = api.ask("GET", f"{place}?{urllib.parse.urlencode(wanted)}")
        yield from page["items"]
        if not (more := (page.get("metadata") or {}).get("continue")):
            return
        wanted["continue"] = more


def full_name(obj: Object) -> str:
    """namespace/name."""
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"


def _served(api: Api, path: str) -> list[Object]:
    """All objects of a kind; none of one that the API server does not serve."""
    try:
        return api.items(path)
    except ApiError as error:
        if error.code != NOT_FOUND:
            raise
        return []
