"""Lines that the ranks of a run have printed about its checkpoints and its steps.

Checkpoints lie on Lustre and EFS, which only pods can read. So what is known from outside is what the
script says: trainyard/catalog/logs/log_words.py has the sentences. Of runs whose pods are gone, and of steps, the
history knows it that follows what runs print (trainyard/in_cluster/history/follow.py).
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime

from trainyard.catalog.logs.log_words import figure_named, nothing_done, resumed_from, saved
from trainyard.catalog.logs.share_done import Reached, done, epochs_said
from trainyard.operations.reach.kubectl import Kubectl, Object
from trainyard.operations.reach.pods import TIMESTAMP
from trainyard.operations.reach.snapshot import Job, Snapshot
from trainyard.operations.runs.logs import node_number
from trainyard.operations.runs.sweeps import sweep_of

AGAIN_SECONDS = 30.0
FIRST_BYTES, LAST_LINES = 256 * 1024, 2000
"""Parts of rank 0's log that are read: a run says in the first what it resumed from, and in the
last what it saved."""


@dataclass(frozen=True, kw_only=True)
class Printed:
    """Figures that a run prints about itself; None where it prints none."""

    resumed_from: str | None = None
    nothing_done: str | None = None
    """The checkpoint from which it resumed, if it has printed no step and saved nothing after that."""
    saved: str | None = None
    saved_at: datetime | None = None
    step: int | None = None
    step_seconds: float | None = None
    goodput: float | None = None
    """Measured, 0 to 1."""
    metric: float | None = None
    """The last figure of the metric by which its sweep is compared."""
    reached: Reached | None = None
    """Part of the training that is done."""


def recorded(kept: Iterable[Object]) -> Mapping[str, Printed]:
    """Figures from the records of a history, by uid of the job."""
    found: dict[str, Printed] = {}
    for record in kept:
        if said := record.get("measured"):
            at = said["saved_at"]
            found[record["job"]["metadata"]["uid"]] = Printed(
                **said | {"saved_at": datetime.fromtimestamp(at, UTC) if at else None},
                nothing_done=None if said["step"] or said["saved"] else said["resumed_from"],
            )
    return found


def together(first: Mapping[str, Printed], then: Mapping[str, Printed]) -> Mapping[str, Printed]:
    """Both; where both know something, it is that of `first`."""
    return {**then, **{uid: _filled(one, then.get(uid, Printed())) for uid, one in first.items()}}


def _filled(one: Printed, other: Printed) -> Printed:
    missing = [each.name for each in fields(one) if getattr(one, each.name) is None]
    return replace(one, **{name: getattr(other, name) for name in missing})


def printed(kubectl: Kubectl, snapshot: Snapshot, *, ended: bool = True) -> Mapping[str, Printed]:
    """By uid of the job; two calls for each job that has pods. `ended`: also of those that have ended."""
    jobs = [job for job in snapshot.jobs() if job.pods and (ended or not job.ended)]
    with ThreadPoolExecutor(8) as pool:
        found = [*pool.map(lambda job: _of_job(kubectl, job), jobs)]
    return {job.body["metadata"].get("uid", ""): one for job, one in zip(jobs, found, strict=True)}


def _of_job(kubectl: Kubectl, job: Job) -> Printed:
    pods = [*job.pods]
    first = min(pods, key=lambda pod: node_number(pod, pods))["metadata"]["name"]
    asked = ("logs", first, f"--namespace={job.namespace}", "--all-containers", "--timestamps")
    head = _lines(kubectl, *asked, f"--limit-bytes={FIRST_BYTES}")
    tail = _lines(kubectl, *asked, f"--tail={LAST_LINES}")
    began = [said for _, line in [*head, *tail] if (said := resumed_from(line))]
    written = [(at, said) for at, line in tail if (said := saved(line))]
    at, last = written[-1] if written else (None, None)
    return Printed(
        resumed_from=began[0] if began else None,
        nothing_done=nothing_done(line for _, line in [*head, *tail]),
        saved=last,
        saved_at=at,
        metric=_metric(job, [line for _, line in [*head, *tail]]),
        reached=reached(job.body["spec"], [*head, *tail]),
    )


def reached(spec: object, lines: Sequence[tuple[datetime | None, str]]) -> Reached | None:
    """Part of the training that is done; None where no line says it. Of bars of progress the longest is that of the
    training. `spec`: of the job, whose arguments can say the number of epochs."""
    epochs = epochs_said([_words(spec), *(line for _, line in lines)])
    said = [(at, part) for at, line in lines if at and (part := done(line, epochs))]
    longest = max((part.of for _, part in said), default=0)
    found = sorted((at, part.share) for at, part in said if part.of == longest)
    if not found:
        return None
    at, share = found[-1]
    first_at, first = at, share
    for earlier_at, earlier in reversed(found):
        if earlier > first:
            break
        first_at, first = earlier_at, earlier
    seconds = (at - first_at).total_seconds()
    return Reached(
        share=share, at=at, share_a_second=(share - first) / seconds if share > first else None
    )


def _words(part: object) -> str:
    """All texts of an object, as one line."""
    if isinstance(part, Mapping):
        return " ".join(map(_words, part.values()))
    if isinstance(part, list | tuple):
        return " ".join(map(_words, part))
    return part if isinstance(part, str) else ""


def _metric(job: Job, lines: Sequence[str]) -> float | None:
    """The last figure of the metric that the job's sweep names."""
    sweep = sweep_of(job.body)
    if not sweep or not sweep.metric:
        return None
    word = figure_named(sweep.metric)
    found = (match for line in reversed(lines) for match in reversed([*word.finditer(line)]))
    return next((float(match[1]) for match in found), None)


def _lines(kubectl: Kubectl, *arguments: str) -> list[tuple[datetime | None, str]]:
    """Each line with its time; none where the container has not started or its pod is gone."""
    try:
        lines = kubectl(*arguments).splitlines()
    except RuntimeError:
        return []
    return [
        (datetime.fromisoformat(match[1]), line[match.end() :])
        if (match := TIMESTAMP.match(line))
        else (None, line)
        for line in lines
    ]


class ReachedLately:
    """Reader of how far runs are, at most once in AGAIN_SECONDS: whoever looks every few seconds reads their logs
    no more often than that."""

    def __init__(self) -> None:
        self._found: Mapping[str, Reached] = {}
        self._until = -math.inf

    def __call__(self, kubectl: Kubectl, snapshot: Snapshot) -> Mapping[str, Reached]:
        """By uid of the job."""
        if time.monotonic() >= self._until:
            said = printed(kubectl, snapshot, ended=False)
            self._found = {uid: one.reached for uid, one in said.items() if one.reached}
            self._until = time.monotonic() + AGAIN_SECONDS
        return self._found
