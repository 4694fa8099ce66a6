"""Pods of jobs and of controllers, and their logs.

Every question for a log goes to the kubelet of its node. So of a gang that does well, one rank is asked.
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from trainyard.catalog.job_kinds import ENTRY_KINDS, JOB_KINDS
from trainyard.catalog.limits import TORCH_SECONDS
from trainyard.catalog.logs.first_end import container_statuses, ranks
from trainyard.operations.reach.kubectl import Kubectl, Object

JOB_LABELS = {name: kind.pod_label for name, kind in ENTRY_KINDS.items()}
"""Kind of job → label of its pods with the job's name. The other kinds of the training-operator have that of
PyTorchJob."""
CONTROLLER_LABELS = {"app.kubernetes.io/name", "control-plane"}
TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\dT\S+) ")
"""Text that the kubelet writes before a line, if it is asked for timestamps."""
LINES = 60
"""Last lines of each container."""
AT_ONCE = 8
"""Questions that are asked at the same time."""
MEETING = timedelta(seconds=TORCH_SECONDS["timeout"])
"""For so long after its start a rank may be looking for the others."""
KUBELET = ":10250"
"""Port of a kubelet. The API server names it where it cannot reach the one of a node."""
Gang = list[Object]
Gangs = Mapping[tuple[str, str, str], Gang]
"""Kind, namespace and name of a job → its pods."""


@dataclass(frozen=True, kw_only=True)
class Log:
    """The last lines of a pod."""

    text: str
    """Without the times of its lines."""
    last: datetime | None
    """Time of the last line; None where there is no line."""
    unread: bool = False
    """The kubelet of its node did not answer."""


def full_name(obj: Object) -> str:
    """namespace/name."""
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"


def gangs(pods: Iterable[Object]) -> Gangs:
    """The pods of each job that has some."""
    found: dict[tuple[str, str, str], Gang] = {}
    for pod in pods:
        labels = pod["metadata"].get("labels", {})
        for kind, label in JOB_LABELS.items():
            if label in labels:
                key = (_owner(pod) or kind, pod["metadata"]["namespace"], labels[label])
                found.setdefault(key, []).append(pod)
    return found


def _owner(pod: Object) -> str | None:
    """Kind of the job that owns a pod itself, as those of the training-operator do."""
    owners = pod["metadata"].get("ownerReferences") or []
    return next((each["kind"] for each in owners if each["kind"] in JOB_KINDS), None)


def read_logs(
    kubectl: Kubectl, pods: Sequence[Object], of_jobs: Gangs, recent: timedelta
) -> Mapping[str, Log]:
    """ "namespace/pod" → the log of each controller, of the first rank of each gang, and of all other ranks
    of a gang that may be in trouble. `of_jobs`: the gangs of the pods."""
    firsts = {key: _first(gang) for key, gang in of_jobs.items()}
    heard = _read(kubectl, [*_controllers(pods), *firsts.values()])
    now = datetime.now(UTC)
    rest = [
        pod
        for key, gang in of_jobs.items()
        if not _does_well(gang, heard[full_name(firsts[key])], recent, now)
        for pod in gang
        if pod is not firsts[key]
    ]
    return {**heard, **_read(kubectl, rest)}


def _does_well(gang: Gang, first: Log, recent: timedelta, now: datetime) -> bool:
    """True where all ranks have met, none was started again, and the first one has written a line
    lately."""
    statuses = [status for pod in gang for status in pod["status"].get("containerStatuses", [])]
    starts = [status.get("state", {}).get("running", {}).get("startedAt") for status in statuses]
    return (
        first.last is not None
        and now - first.last < recent
        and all(pod["status"].get("phase") == "Running" for pod in gang)
        and not any(status.get("restartCount") for status in statuses)
        and all(start and now - datetime.fromisoformat(start) > MEETING for start in starts)
    )


def _first(gang: Gang) -> Object:
    """The pod of node 0."""
    pod, _ = min(ranks(gang), key=lambda each: (each[1], each[0]["metadata"]["name"]))
    return pod


def _controllers(pods: Iterable[Object]) -> list[Object]:
    """Pods of controllers. Pods of DaemonSets, such as device plugins, log nothing about a job."""
    labelled = [pod for pod in pods if pod["metadata"].get("labels", {}).keys() & CONTROLLER_LABELS]
    return [pod for pod in labelled if not is_of_daemon_set(pod)]


def is_of_daemon_set(pod: Object) -> bool:
    """True of a pod that a node has beside what runs on it, such as a device plugin."""
    owners = pod["metadata"].get("ownerReferences", [])
    return any(owner["kind"] == "DaemonSet" for owner in owners)


def _read(kubectl: Kubectl, pods: Sequence[Object]) -> dict[str, Log]:
    """ "namespace/pod" → its log; empty where no container has started, or its pod is gone."""

    def log(pod: Object) -> Log:
        answers = [_lines(kubectl, pod, name) for name in _started(pod)]
        lines = [line for answer in answers for line in answer or ()]
        times = [match[1] for line in lines if (match := TIMESTAMP.match(line))]
        return Log(
            text="\n".join(TIMESTAMP.sub("", line, count=1) for line in lines),
            last=max(map(datetime.fromisoformat, times), default=None),
            unread=None in answers,
        )

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(map(full_name, pods), pool.map(log, pods), strict=True))


def _started(pod: Object) -> list[str]:
    """Names of its containers that can have a log."""
    return [each["name"] for each in container_statuses(pod) if "waiting" not in each["state"]]


def _lines(kubectl: Kubectl, pod: Object, container: str) -> list[str] | None:
    """None where the kubelet of the node does not answer."""
    meta = pod["metadata"]
    wanted = {"container": container, "tailLines": LINES, "timestamps": "true"}
    path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/log"
    try:
        return kubectl("get", "--raw", f"{path}?{urllib.parse.urlencode(wanted)}").splitlines()
    except RuntimeError as error:
        return None if KUBELET in str(error) else []
