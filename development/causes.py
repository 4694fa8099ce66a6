"""Reasons why the jobs of a stack failed, for `up` while it waits for them."""

from __future__ import annotations

import subprocess
import urllib.parse
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from components.jobs.followed import Followed
from rehearsal.kube import Api, ApiError, Object
from trainyard.catalog.job_kinds import JOB_KINDS, resource_of
from trainyard.catalog.logs.cause import Cause, Watched, most_told
from trainyard.catalog.logs.first_end import TAIL, End, ranks
from trainyard.catalog.logs.log_words import STEP_LINES, last_step, nothing_done
from trainyard.catalog.logs.noted import noted, noting
from trainyard.catalog.logs.tries import EVENTS, JOB_SETS, Tries
from trainyard.operations.reach.kubectl import Environment

JOB_SET_API = "/apis/jobset.x-k8s.io/v1alpha2"


class Run(NamedTuple):
    """A job of the stack, from its outputs."""

    entry: str
    """Its name in the stack file."""
    kind: str
    namespace: str
    name: str

    @property
    def api(self) -> str:
        """Path of its API version."""
        return f"/apis/{JOB_KINDS[self.kind].api_version}"

    @property
    def selector(self) -> str:
        """Selects its pods."""
        return f"{JOB_KINDS[self.kind].pod_label}={self.name}"


class Causes:
    """Reasons why jobs failed, read while their pods are there: some runtimes delete them."""

    def __init__(self, api: Api, kubectl: Environment | None = None, *, stack: str = "") -> None:
        """`kubectl`: environment in which logs are followed; None: they are not. `stack`: named in advice."""
        self._api, self._kubectl, self._stack = api, kubectl, stack
        self._followed: dict[Run, Followed] = {}
        self._watched: dict[Run, Watched] = {}
        self._tries: dict[Run, Tries] = {}
        self._ended: set[Run] = set()
        self._first_logs: dict[Run, list[list[str]]] = {}
        """Logs of rank 0 of jobs that have ended: they change no more."""

    def look(self, pods: Mapping[Run, list[Object]], ended: Iterable[Run]) -> list[str]:
        """Look at the pods of jobs that go on, and once more at those of jobs that have ended. Returns lines about
        gangs that have begun again."""
        last = {job: pods_of(self._api, job) for job in ended if job not in self._ended}
        self._ended |= {*last}
        for job, of_job in {**pods, **last}.items():
            watched = self._watched.setdefault(job, Watched())
            watched.look(of_job, lambda end, job=job: self._log(job, end))
        return [line for job, of_job in pods.items() for line in self._begun_again(job, of_job)]

    def _begun_again(self, job: Run, pods: list[Object]) -> list[str]:
        followed = self._followed_of(job)
        tries = self._tries.setdefault(
            job,
            Tries(
                *(job.kind, job.namespace, job.name),
                lambda *asked: self._selected(job, *asked),
                followed.take if followed else lambda: None,
                stack=self._stack,
            ),
        )
        lines = tries.look(pods, self._watched[job])
        if lines and tries.why:
            self._note(job, tries.why)
        if followed:
            followed.look(pods)
        return lines

    def _followed_of(self, job: Run) -> Followed | None:
        if self._kubectl is None:
            return None
        words = ("kubectl", f"--namespace={job.namespace}")
        return self._followed.setdefault(job, Followed(words, job.selector, self._kubectl))

    def close(self) -> None:
        """Follow no log any more."""
        for each in self._followed.values():
            each.close()

    def _selected(self, job: Run, resource: str, fields: str) -> list[Object] | None:
        """Objects that a field selector selects; None where the API server does not answer."""
        root = {EVENTS: "/api/v1", JOB_SETS: JOB_SET_API, resource_of(job.kind): job.api}[resource]
        query = urllib.parse.urlencode({"fieldSelector": fields})
        path = f"{root}/namespaces/{job.namespace}/{resource.partition('.')[0]}?{query}"
        try:
            return self._api.request("GET", path)["items"]
        except ApiError:
            return None

    def seen(self, job: Run) -> Cause | None:
        """The reason that the pods of a job say."""
        return self._watched[job].known if job in self._watched else None

    def of(self, job: Run) -> Cause | None:
        """The reason why a job failed: what its pods say, or what they wrote before they were gone, or what an
        update has noted that saw it."""
        followed = self._followed[job].take() if job in self._followed else None
        if found := most_told(self.seen(job), followed):
            self._note(job, found)
        return most_told(found, self._noted(job))

    def _noted(self, job: Run) -> Cause | None:
        [made] = self._selected(job, resource_of(job.kind), f"metadata.name={job.name}") or [None]
        return noted(made) if made else None

    def _note(self, job: Run, cause: Cause) -> None:
        """Write the reason on the job, as an update with `wait` does. Somebody may have deleted it."""
        if self._kubectl is not None and cause.is_told:
            subprocess.run(
                ("kubectl", f"--namespace={job.namespace}", *noting(job.kind, job.name, cause)),
                env=self._kubectl,
                capture_output=True,
                timeout=60,
            )

    def nothing_done(self, job: Run) -> str | None:
        """The checkpoint from which a job resumed that was complete without a step; None for others."""
        return next(filter(None, map(nothing_done, self._logs_of_rank_0(job))), None)

    def last_step(self, job: Run) -> str | None:
        """The line of the last step that rank 0 has printed; None where there is none."""
        return next(filter(None, map(last_step, self._logs_of_rank_0(job))), None)

    def _logs_of_rank_0(self, job: Run) -> list[list[str]]:
        if job not in self._first_logs:
            first = [pod for pod, number in ranks(pods_of(self._api, job)) if number == 0]
            self._first_logs[job] = [
                self._text(job, pod["metadata"]["name"], f"tailLines={STEP_LINES}").splitlines()
                for pod in first
            ]
        return self._first_logs[job]

    def _log(self, job: Run, end: End) -> str:
        wanted = {"container": end.container, "tailLines": TAIL}
        previous = {"previous": "true"} if end.previous else {}
        return self._text(job, end.pod, urllib.parse.urlencode({**wanted, **previous}))

    def _text(self, job: Run, pod: str, query: str) -> str:
        """A log; empty where its pod is gone."""
        try:
            return self._api.text(f"/api/v1/namespaces/{job.namespace}/pods/{pod}/log?{query}")
        except ApiError:
            return ""


def pods_of(api: Api, job: Run) -> list[Object]:
    """Pods of a job that are there."""
    selector = job.selector.replace("=", "%3D")
    return api.request("GET", f"/api/v1/namespaces/{job.namespace}/pods?labelSelector={selector}")[
        "items"
    ]
