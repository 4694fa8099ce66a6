"""The job of a stack that somebody names: by its entry in the stack file, or as the cluster calls it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.operations.reach.kubectl import Kubectl, Object
from trainyard.operations.reach.made import made_jobs
from trainyard.operations.reach.place import Place, every_job, title
from trainyard.operations.reach.pods import full_name
from trainyard.operations.reach.pulumi import deployment
from trainyard.operations.reach.snapshot import entry_of
from trainyard.plans.jobs import RUN, SCHEDULE, entry_of_sweep
from trainyard.problems import by_option


class NoSuchJob(RuntimeError):
    """The name means no job, or several; the message lists what there is."""


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """A job on the cluster of a stack."""

    kind: str
    """Kind and group, as kubectl takes them."""
    body: Object
    entry: str
    """Its entry in the stack file; empty for a job that no entry describes."""

    def __str__(self) -> str:
        return title(self.body)

    @property
    def namespace(self) -> str:
        return self.body["metadata"]["namespace"]

    @property
    def name(self) -> str:
        return self.body["metadata"]["name"]

    @property
    def selector(self) -> str:
        """Selects the job's pods."""
        return f"{JOB_KINDS[self.body['kind']].pod_label}={self.name}"


def choose(
    kubectl: Kubectl,
    place: Place,
    entries: Mapping[str, Mapping[str, Any]],
    name: str | None,
    *,
    word: str = "logs",
) -> Chosen:
    """The job of this name, of a schedule its newest run; without a name the only job there is. The name of an entry
    means that entry alone: a team may have a job of the same name. `entries`: the output `jobs` of the stack. `word`:
    what somebody has typed. Raises NoSuchJob."""
    jobs = [*every_job(kubectl, place)]
    if any(_is_of_an_update(body) and not entry_of(body, entries) for _, body in jobs):
        entries = {**made_jobs(deployment(place.stack)), **entries}
    found = [Chosen(kind=kind, body=body, entry=entry_of(body, entries)) for kind, body in jobs]
    named = _meant(found, name, entries)
    if len(named) == 1:
        return named[0]
    if not found:
        raise NoSuchJob(f"no training job in {place}")
    if name and not named:
        raise _unknown(name, found, entries, place, word)
    every = _names(named)
    raise NoSuchJob(
        f"there are {len(named)} jobs in {place}: {', '.join(every)}. Fix: name one, as in trainyard {word} {every[0]}"
        f" --stack {place.stack}"
    )


def _meant(
    found: list[Chosen], name: str | None, entries: Mapping[str, Mapping[str, Any]]
) -> list[Chosen]:
    """Jobs that a name can mean; all of them without one."""
    of_entry = [each for each in found if name in (None, each.entry)]
    if of_entry or name in entries:
        return _newest(of_entry)
    return [each for each in found if name in (each.name, full_name(each.body))]


def _is_of_an_update(body: Object) -> bool:
    """True for a job that an update has made; while one goes on no output names it yet."""
    return RUN in body["metadata"].get("annotations", {})


def _unknown(
    name: str,
    found: list[Chosen],
    entries: Mapping[str, Mapping[str, Any]],
    place: Place,
    word: str,
) -> NoSuchJob:
    """The error of a name that no job has: a sweep has a name, and its runs are jobs."""
    if runs := [each for each in found if entry_of_sweep(each.body) == name]:
        names = [each.entry or each.name for each in runs]
        return NoSuchJob(
            f"{name} is a sweep, and its runs in {place} are {', '.join(names)}. Fix: name one, as in trainyard"
            f" {word} {names[0]} --stack {place.stack}"
        )
    if name in entries:
        return NoSuchJob(
            f"jobs.{name} has no job in {place}: it has been stopped, or has not started. trainyard status --stack"
            f" {place.stack} lists the jobs that there are"
        )
    return NoSuchJob(
        f"there is no job {name} in {place}. Fix: {by_option('--job', _names(found), 'a job')}"
    )


def _names(jobs: list[Chosen]) -> list[str]:
    """The names of jobs, as somebody chooses one."""
    return list(dict.fromkeys(each.entry or full_name(each.body) for each in jobs))


def _newest(named: list[Chosen]) -> list[Chosen]:
    """The newest run, where all are runs of one schedule: they have one entry."""
    schedules = {each.body["metadata"].get("labels", {}).get(SCHEDULE) for each in named}
    if len(schedules) != 1 or None in schedules:
        return named
    return [max(named, key=lambda each: each.body["metadata"]["creationTimestamp"])]
