"""Lines about a gang that failed and begins again, for `up` while it waits for a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from trainyard.catalog.job_kinds import JOB_KINDS, RESTARTING, resource_of
from trainyard.catalog.logs.cause import Cause, Watched, most_told
from trainyard.catalog.logs.first_end import Object
from trainyard.catalog.logs.known_failures import NO_LOG
from trainyard.catalog.logs.waiting import restarts

Ask = Callable[[str, str], Sequence[Object] | None]
"""Asks the API server for the objects of a resource, as kubectl calls it, that a field selector selects, in the
namespace of the run. None: it does not answer."""
Heard = Callable[[], Cause | None]
"""Says why the pods of a try ended that were gone before anybody looked; None where their logs do not tell."""
JOB_SETS, EVENTS = "jobsets.jobset.x-k8s.io", "events"
"""Resources that are asked for beside jobs."""
UNSEEN = (
    "its pods were gone before `up` could read why: a rank has failed, or a node left; `trainyard logs --follow`"
    " reads the try that goes on"
)


STOP = "    `trainyard stop {name}{of_stack}` ends the tries that are left, and what they cost"
"""Said with advice: the next try is likely to end in the same way."""


@dataclass(frozen=True)
class _Begun:
    """The try that goes on."""

    restarts: int
    said: str
    """Its number, and after how many the run fails."""


class Tries:
    """The tries of one run, from look to look."""

    def __init__(
        self,
        kind: str,
        namespace: str,
        name: str,
        ask: Ask,
        heard: Heard = lambda: None,
        *,
        stack: str = "",
    ) -> None:
        self._kind, self._namespace, self._name = kind, namespace, name
        self._of_stack = f" --stack {stack}" if stack else ""
        self._ask, self._heard = ask, heard
        self._restarts = 0
        self._seen: frozenset[tuple[str, int]] | None = None
        """Uid of each pod, with the restarts of its containers."""
        self._cause: Cause | None = None
        """The reason why a rank of the try that goes on has failed; None where none has."""
        self.why: Cause | None = None
        """The reason why the try failed that was said last; None where nobody knows it."""
        self._at = self._said_at = ""
        """When that rank ended, and when the one did that was said last."""

    def look(self, pods: Sequence[Object], watched: Watched) -> list[str]:
        """Lines, where the gang has begun again since the last look. `watched`: has looked at the same pods.
        The API server is asked only where the pods are others, or have restarted."""
        if watched.end and watched.cause and watched.end.at > self._said_at:
            self._cause, self._at = watched.cause, watched.end.at
        seen = frozenset((pod["metadata"].get("uid", ""), _restarts_of(pod)) for pod in pods)
        if seen == self._seen:
            return []
        begun = self._of_job_set() if self._as_job_set else self._of_pods(pods)
        if begun is None:
            return []
        self._seen = seen
        if begun.restarts <= self._restarts:
            return []
        self._restarts, self.why = begun.restarts, self._why()
        said = self.why.sentence if self.why else UNSEEN
        line = f"{self._namespace}/{self._name} has failed and begins again, {begun.said}: {said}"
        return [line, *(self._advice(self.why) if self.why else ())]

    def _advice(self, cause: Cause) -> Iterator[str]:
        # A log that is not there yet is read at a later look: the ways to have one are for runs that have ended.
        if not cause.do or NO_LOG in cause.do:
            return
        yield f"    Fix: {cause.do}"
        if not cause.is_loss:
            yield STOP.format(name=self._name, of_stack=self._of_stack)

    def _why(self) -> Cause | None:
        """The reason why the last try failed, once."""
        heard = self._heard()
        found = most_told(self._cause, heard)
        self._cause, self._said_at = None, self._at
        return found

    @property
    def _as_job_set(self) -> bool:
        return JOB_KINDS[self._kind].restarts_as_job_set

    def _of_job_set(self) -> _Begun | None:
        """JobSet counts. Some restarts, such as those after the loss of a node, can be free of its limit."""
        found = self._ask(JOB_SETS, f"metadata.name={self._name}")
        if found is None:
            return None
        job_set = found[0] if found else {}
        status = job_set.get("status") or {}
        number = status.get("restarts") or 0
        free = number - (status.get("restartsCountTowardsMax") or 0)
        most = ((job_set.get("spec") or {}).get("failurePolicy") or {}).get("maxRestarts") or 0
        return _Begun(number, f"try {number + 1} of {most + 1 + max(free, 0)}")

    def _of_pods(self, pods: Sequence[Object]) -> _Begun | None:
        """Containers restart in their pods, or the training-operator makes a failed pod again."""
        found = self._ask(resource_of(self._kind), f"metadata.name={self._name}")
        events = self._ask(EVENTS, f"involvedObject.name={self._name},reason={RESTARTING}")
        if found is None or events is None:
            return None
        job = found[0] if found else {"metadata": {}, "spec": {}}
        uid = job["metadata"].get("uid")
        made = sum(
            each.get("count") or 1 for each in events if each["involvedObject"].get("uid") == uid
        )
        number = max(map(_restarts_of, pods), default=0) or made
        limit = (job["spec"].get("runPolicy") or {}).get("backoffLimit")
        every = sum(restarts(pods))
        fails = f" ({every} restart{'s' * (every != 1)} of containers; the job fails at {limit})"
        return _Begun(number, f"try {number + 1}{fails if limit else ''}")


def _restarts_of(pod: Object) -> int:
    """Restarts of the container of the pod that has restarted most often."""
    return max(restarts([pod]), default=0)
