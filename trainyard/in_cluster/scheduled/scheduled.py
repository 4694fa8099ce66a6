"""Makes a run of a schedule, and ends as the run ends.

It is the pod of a Job that a CronJob makes at each time. The run belongs to that Job: whoever deletes the Job, as
the CronJob does with one that it replaces or no longer keeps, deletes the run. A pod in the place of a lost one
finds the run of its Job, and goes on.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from api_server import NOT_FOUND, Api, ApiError, Object, say

SECONDS = 5.0
"""Between two looks."""
THERE = "AlreadyExists"
"""Reason of a refusal. Kubernetes answers 409 as well where two requests use up a quota at once (k8s.io/apiserver
v0.35.8, pkg/admission/plugin/resourcequota/controller.go, checkQuotas)."""
UNKNOWN, FORBIDDEN, CONFLICT, TOO_MANY, ERRORS = 401, 403, 409, 429, 500
"""An API server that has just started can answer 401 and 403 to whom it does not know yet."""
MAY_PASS = ("exceeded quota", "status unknown for quota", "is forbidden: User ")
"""Parts of refusals that may pass: a job of the team can end (the same file), and an API server that has just started
learns who has which right (kubernetes/kubernetes#121635). Admission names no user there."""
NOT_ENDED = "status.phase!=Succeeded,status.phase!=Failed"
"""Selects pods: those of all kept runs, more than 1,000, have no room in 64 MiB."""
SUCCESS = ("Complete", "Succeeded")
REFUSED = 3
"""Exit code where no further try can help, or where the run has failed."""
_TIME = "{scheduled_time}"
_RUN = "{scheduled_run}"


class Refused(Exception):
    """No further try can help; the message says why."""


@dataclass(frozen=True)
class Settings:
    """What trainyard/objects/jobs/schedule.py writes."""

    schedule: str
    """Entry of the stack file."""
    label: str
    """Label of the runs of schedules, and of their pods."""
    pods: str
    """Path of the pods of the namespace."""
    jobs: str
    """Path of the jobs of the run's kind."""
    other_jobs: list[str]
    """Paths of the jobs of other kinds: a run that goes on is of the kind that its entry had."""
    objects: list[dict[str, Any]]
    """Path and object of everything that a run is; the job is the last one."""
    deadline_minutes: int
    """Minutes after its time in which a run can still be made."""

    @staticmethod
    def read(path: Path) -> Settings:
        """The file of the ConfigMap."""
        return Settings(**json.loads(path.read_text()))


def seconds_of(job: str, schedule: str) -> float | None:
    """Time of a run, from the name of its Job, which a CronJob calls after the minute; None of a Job that somebody
    else has made."""
    minutes = re.fullmatch(rf"{re.escape(schedule)}-(\d+)", job)
    return int(minutes[1]) * 60.0 if minutes else None


def time_of(job: str, schedule: str) -> str:
    """Time of a run in UTC, as its name has it; of a Job that somebody else has made, its name."""
    seconds = seconds_of(job, schedule)
    if seconds is None:
        return job.removeprefix(f"{schedule}-")
    return time.strftime("%Y%m%d-%H%M", time.gmtime(seconds))


def filled(settings: Settings, job: str, uid: str) -> list[dict[str, Any]]:
    """The objects of the run of a Job, which own nothing of it and end with it."""
    moment = time_of(job, settings.schedule)
    name = f"{settings.schedule}-{moment}"
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": uid}
    found = _with_values(settings.objects, {_TIME: moment, _RUN: name})
    for each in found:
        each["object"]["metadata"]["ownerReferences"] = [owner]
    return found


def _with_values(value: Any, values: dict[str, str]) -> Any:
    """An object with the values in all its texts. `${…}` is a variable of a shell, and stays."""
    if isinstance(value, dict):
        return {key: _with_values(each, values) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_values(each, values) for each in value]
    if isinstance(value, str) and "{scheduled_" in value:
        return re.sub(r"(?<!\$)\{scheduled_(?:time|run)\}", lambda match: values[match[0]], value)
    return value


def outcome(job: Object) -> str:
    """Condition with which a job ended; empty while it goes on."""
    conditions = (job.get("status") or {}).get("conditions") or []
    true = [each["type"] for each in conditions if each["status"] == "True"]
    return next((name for name in (*SUCCESS, "Failed") if name in true), "")


def others(api: Api, settings: Settings, name: str) -> list[str]:
    """Runs of the schedule that go on; without one, pods of runs that are not gone. Raises ApiError."""
    of_schedule = {"labelSelector": f"{settings.label}={settings.schedule}"}
    query = urllib.parse.urlencode(of_schedule)
    lists = [_seen(api, f"{path}?{query}") for path in (settings.jobs, *settings.other_jobs)]
    jobs = [each for found in lists if found for each in found["items"]]
    names = {each["metadata"]["name"] for each in jobs}
    going = [each["metadata"]["name"] for each in jobs if not outcome(each)]
    if any(each != name for each in going):
        return [each for each in going if each != name]
    query = urllib.parse.urlencode(of_schedule | {"fieldSelector": NOT_ENDED})
    pods = api.ask("GET", f"{settings.pods}?{query}")["items"]
    left = [
        each["metadata"]["name"]
        for each in pods
        if not any(each["metadata"]["name"].startswith(f"{run}-") for run in names)
    ]
    return [each for each in left if each != name]


def _may_pass(error: ApiError) -> bool:
    """True where another try can help."""
    if error.code == FORBIDDEN:
        return any(words in str(error) for words in MAY_PASS)
    return not 0 < error.code < ERRORS or error.code in (UNKNOWN, CONFLICT, TOO_MANY)


def _always(_: ApiError) -> bool:
    """Of a run that is made, or may be: where its Job ended as failed, the CronJob would delete the run later, which
    trains."""
    return True


def tried(
    what: str,
    ask: Callable[[], Any],
    pause: Callable[[float], object] = time.sleep,
    may_pass: Callable[[ApiError], bool] = _may_pass,
) -> Any:
    """The answer of the API server, however long it takes. Raises Refused where it refuses. `may_pass`: which errors
    another try can help."""
    while True:
        try:
            return ask()
        except ApiError as error:
            if not may_pass(error):
                raise Refused(f"{what}: {error}") from None
            say(f"{what}: {error}; tries again")
            pause(SECONDS)


def make(api: Api, one: dict[str, Any], uid: str) -> Object:
    """Make an object of a run, or find it. Raises ApiError, and Refused where another one has its name."""
    named = f"{one['path']}/{one['object']['metadata']['name']}"
    try:
        return api.ask("POST", one["path"], one["object"])
    except ApiError as error:
        if error.reason != THERE:
            raise
    if one["object"]["kind"] == "ConfigMap":
        return one["object"]  # it may be made and not read
    return _own(api.ask("GET", named), named, uid)


def _own(there: Object, path: str, uid: str) -> Object:
    """A run of this Job. Raises Refused for another one."""
    if uid not in [each["uid"] for each in there["metadata"].get("ownerReferences") or []]:
        raise Refused(f"{path} is there, and no run of this Job")
    return there


def run(
    api: Api,
    settings: Settings,
    job: str,
    uid: str,
    pause: Callable[[float], object] = time.sleep,
    now: Callable[[], float] = time.time,
) -> str:
    """Make the run of a Job, and return how it ended. Raises Refused, also where it cannot be made in time."""
    objects = filled(settings, job, uid)
    name = objects[-1]["object"]["metadata"]["name"]
    began = seconds_of(job, settings.schedule)
    last = (now() if began is None else began) + settings.deadline_minutes * 60

    def in_time(seconds: float) -> None:
        if now() > last:
            minutes = settings.deadline_minutes
            raise Refused(f"{name} could not begin in {minutes} minutes: it is left out")
        pause(seconds)

    at, there = tried(name, lambda: _found(api, settings, name), pause, _always)
    if there:
        _own(there, at, uid)  # made by a pod that was lost
    else:
        while going := tried("runs", lambda: others(api, settings, name), in_time):
            say(f"{name} begins when {', '.join(going)} has ended")
            in_time(SECONDS)
        for one in objects:
            tried(f"{one['object']['kind']} {name}", lambda one=one: make(api, one, uid), in_time)
        say(f"{name} is made")
    while True:
        found = tried(name, lambda: _seen(api, at), pause, _always)
        if found is None:
            return "Deleted"
        if end := outcome(found):
            return end
        pause(SECONDS)


def _found(api: Api, settings: Settings, name: str) -> tuple[str, Object | None]:
    """A run and its path, whichever kind its entry had when it was made; no run and the path of one to be made."""
    paths = [f"{jobs}/{name}" for jobs in (settings.jobs, *settings.other_jobs)]
    found = ((path, _seen(api, path)) for path in paths)
    return next((each for each in found if each[1]), (paths[0], None))


def _seen(api: Api, path: str) -> Object | None:
    """A job; None where it is gone. The jobs of a kind; None where the cluster does not serve it."""
    try:
        return api.ask("GET", path)
    except ApiError as error:
        if error.code == NOT_FOUND:
            return None
        raise


def main() -> int:
    """Exit code: 0 where the run is complete."""
    settings = Settings.read(Path(sys.argv[1]))
    try:
        end = run(Api(), settings, os.environ["JOB_NAME"], os.environ["JOB_UID"])
    except Refused as error:
        say(str(error))
        return REFUSED
    say(f"the run is {end}")
    return 0 if end in SUCCESS else REFUSED


if __name__ == "__main__":
    sys.exit(main())
