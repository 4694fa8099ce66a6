"""The program that makes a run of a schedule, against an API server that is a dictionary."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any
from urllib.parse import parse_qsl

import pytest

from tests.support.programs import program_fixture
from tests.support.stackfile import environment_plan
from tests.trainyard.derive.test_schedule import nightly
from trainyard.objects.jobs.schedule import settings, starts_now

scheduled = program_fixture("scheduled")
JOB, UID = "nightly-29672340", "u1"
"""2026-06-01 09:00 in minutes since 1970, by hand: 29,672,340 x 60 = 1,780,340,400."""
RUN = "nightly-20260601-1900"
Object = dict[str, Any]


class Server:
    """An API server. `acts`: what happens at each pause, in turn."""

    def __init__(self, error: type[Exception], *acts: Callable[[Server], object]) -> None:
        self.now = 1780340400.0  # the time of JOB
        self.refusals: list[Exception] = []
        """Of objects that are to be made, in turn."""
        self.errors: list[Exception] = []
        """Of questions about a run that is made, in turn."""
        self.objects: dict[str, Object] = {}
        self.pods: list[Object] = []
        self.pods_asked: list[Mapping[str, str]] = []
        self.has_pytorch = False
        """False: the cluster does not serve PyTorchJobs."""
        self._error, self._acts = error, [*acts]
        self.asked: list[tuple[str, str]] = []

    def ask(self, method: str, path: str, body: Object | None = None) -> Object:
        self.asked.append((method, path.partition("?")[0]))
        if method == "POST":
            assert body
            if self.refusals:
                raise self.refusals.pop(0)
            named = f"{path}/{body['metadata']['name']}"
            if named in self.objects:
                raise self._error(409, "there", "AlreadyExists")
            self.objects[named] = body
            return body
        if path.partition("?")[0].endswith("/pods"):
            self.pods_asked.append(dict(parse_qsl(path.partition("?")[2])))
            return {"items": self.pods}
        listed, _, _ = path.partition("?")
        if listed.endswith("/trainjobs") or (self.has_pytorch and listed.endswith("/pytorchjobs")):
            return {"items": [it for at, it in self.objects.items() if at.startswith(f"{listed}/")]}
        if path in self.objects and self.errors:
            raise self.errors.pop(0)
        if path not in self.objects:
            raise self._error(404, "gone")
        return self.objects[path]

    def pause(self, _: float) -> None:
        assert self._acts, "it would wait for ever"
        self._acts.pop(0)(self)

    def run(self, name: str = RUN) -> Object:
        [found] = [it for at, it in self.objects.items() if at.endswith(f"jobs/{name}")]
        return found


def ends(kind: str, name: str = RUN) -> Callable[[Server], object]:
    def act(server: Server) -> None:
        server.run(name)["status"] = {"conditions": [{"type": kind, "status": "True"}]}

    return act


@pytest.fixture
def given(scheduled: ModuleType) -> Any:
    job = environment_plan(nightly()).jobs["nightly"]
    assert job.schedule
    return scheduled.Settings(**settings(job, job.schedule))


def test_a_run_is_called_after_its_time_and_belongs_to_its_job(
    scheduled: ModuleType, given: Any
) -> None:
    server = Server(scheduled.ApiError, ends("Complete"))
    assert scheduled.run(server, given, JOB, UID, server.pause, lambda: server.now) == "Complete"
    made = server.run()
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": JOB, "uid": UID}
    assert made["metadata"]["ownerReferences"] == [owner]
    assert "nightly/20260601-1900" in str(made["spec"]) and "{scheduled" not in str(made)
    assert "${PET_MASTER_ADDR}" in str(made["spec"]), "a variable of the shell stays"


def test_a_job_that_somebody_makes_by_hand_has_a_run_of_its_name(scheduled: ModuleType) -> None:
    assert scheduled.time_of("nightly-29672340", "nightly") == "20260601-1900"
    assert scheduled.time_of("try-1", "nightly") == "try-1"


def test_the_command_that_starts_a_run_now_gives_it_a_time_of_its_own(
    scheduled: ModuleType,
) -> None:
    """With `now` for its time a second use went on from the finished run of the first one, and ended at once."""
    name = starts_now("kubectl", "nightly").rpartition("/nightly ")[2]
    job = subprocess.run(["sh", "-c", f"echo {name}"], capture_output=True, text=True).stdout
    assert re.fullmatch(r"20\d{6}-\d{4}", scheduled.time_of(job.strip(), "nightly"))


def test_a_pod_in_the_place_of_a_lost_one_goes_on_with_the_run(
    scheduled: ModuleType, given: Any
) -> None:
    server = Server(scheduled.ApiError)
    first = scheduled.filled(given, JOB, UID)[-1]
    server.ask("POST", first["path"], first["object"])
    server._acts.append(ends("Failed"))
    assert scheduled.run(server, given, JOB, UID, server.pause, lambda: server.now) == "Failed"
    assert len([at for at in server.objects if "/trainjobs/" in at]) == 1


def test_a_run_of_another_job_is_not_taken_for_its_own(scheduled: ModuleType, given: Any) -> None:
    server = Server(scheduled.ApiError)
    other = scheduled.filled(given, JOB, "u2")[-1]
    other["object"]["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}
    server.ask("POST", other["path"], other["object"])
    with pytest.raises(scheduled.Refused, match="no run of this Job"):
        scheduled.run(server, given, JOB, UID, server.pause, lambda: server.now)


def test_a_run_begins_when_the_one_before_has_ended_and_its_pods_are_gone(
    scheduled: ModuleType, given: Any
) -> None:
    """As where the CronJob replaces a run, or where somebody has deleted its Job."""
    server = Server(scheduled.ApiError)
    before = scheduled.filled(given, "nightly-29672339", "u0")[-1]
    server.ask("POST", before["path"], before["object"])
    pod = {"metadata": {"name": "nightly-20260601-1859-node-0-0-x"}, "status": {"phase": "Running"}}
    server.pods = [pod]
    made: list[bool] = []

    def looks(then: Callable[[Server], object]) -> Callable[[Server], object]:
        def act(server: Server) -> None:
            made.append(any(at.endswith(RUN) for at in server.objects))
            then(server)

        return act

    server._acts += [
        looks(lambda it: it.objects.clear()),
        looks(lambda it: it.pods.clear()),
        looks(ends("Complete")),
    ]
    assert scheduled.run(server, given, JOB, UID, server.pause, lambda: server.now) == "Complete"
    assert made == [False, False, True]


@pytest.fixture
def of_pytorch(scheduled: ModuleType, given: Any) -> Any:
    """The same schedule after its entry has become a PyTorchJob."""
    [other] = given.other_jobs
    job = {"path": other, "object": {"kind": "PyTorchJob", "metadata": {"name": "{scheduled_run}"}}}
    return replace(given, jobs=other, other_jobs=[given.jobs], objects=[job])


def test_a_pod_in_the_place_of_a_lost_one_finds_a_run_of_the_kind_that_its_entry_had(
    scheduled: ModuleType, given: Any, of_pytorch: Any
) -> None:
    """It made a second run of the same time beside it."""
    server = Server(scheduled.ApiError, ends("Complete"))
    server.has_pytorch = True
    first = scheduled.filled(given, JOB, UID)[-1]
    server.ask("POST", first["path"], first["object"])
    ended = scheduled.run(server, of_pytorch, JOB, UID, server.pause, lambda: server.now)
    assert ended == "Complete" and [*server.objects] == [f"{given.jobs}/{RUN}"]


def test_a_run_waits_for_one_of_the_kind_that_its_entry_had(
    scheduled: ModuleType, given: Any, of_pytorch: Any
) -> None:
    """While that one waits in a queue it has no pods to wait for."""
    server = Server(scheduled.ApiError)
    server.has_pytorch = True
    before = scheduled.filled(given, "nightly-29672339", "u0")[-1]
    server.ask("POST", before["path"], before["object"])
    assert scheduled.others(server, of_pytorch, RUN) == ["nightly-20260601-1859"]


def test_it_tries_again_where_nobody_answers_and_not_where_it_is_refused(
    scheduled: ModuleType,
) -> None:
    answers = [scheduled.ApiError(code, "no") for code in (0, 500, 503, 429, 409, 401)]
    answers.append(scheduled.ApiError(403, "trainjobs is forbidden: exceeded quota: team"))
    pauses: list[float] = []

    def ask() -> str:
        if answers:
            raise answers.pop(0)
        return "yes"

    assert scheduled.tried("it", ask, pauses.append) == "yes" and len(pauses) == 7
    answers.append(scheduled.ApiError(403, "denied by trainyard-jobs"))
    with pytest.raises(scheduled.Refused, match="trainyard-jobs"):
        scheduled.tried("it", ask, pauses.append)


def test_a_run_that_somebody_deletes_ends_its_job(scheduled: ModuleType, given: Any) -> None:
    server = Server(scheduled.ApiError, lambda it: it.objects.clear())
    assert scheduled.run(server, given, JOB, UID, server.pause, lambda: server.now) == "Deleted"


def test_the_files_of_a_run_are_there_before_its_job(scheduled: ModuleType, given: Any) -> None:
    """A team has a quota of ConfigMaps: two requests at once can end in a conflict, with which nothing is made."""
    server = Server(scheduled.ApiError, lambda _: None, ends("Complete"))
    server.refusals = [scheduled.ApiError(409, "resourcequotas", "Conflict")]
    files = {
        "path": "/api/v1/x/configmaps",
        "object": {"kind": "ConfigMap", "metadata": {"name": "f"}},
    }
    given = replace(given, objects=[files, *given.objects])
    assert scheduled.run(server, given, JOB, UID, server.pause, lambda: server.now) == "Complete"
    assert "/api/v1/x/configmaps/f" in server.objects


def late(server: Server) -> None:
    """An hour and a minute after the time: starting_deadline_minutes is 60."""
    server.now += 61 * 60


def test_a_run_for_which_a_quota_has_no_room_in_time_is_left_out(
    scheduled: ModuleType, given: Any
) -> None:
    server = Server(scheduled.ApiError, lambda _: None, late)
    server.refusals = [scheduled.ApiError(403, "exceeded quota: team")] * 3
    with pytest.raises(scheduled.Refused, match=f"{RUN} could not begin in 60 minutes"):
        scheduled.run(server, given, JOB, UID, server.pause, lambda: server.now)


def test_a_run_before_which_another_does_not_end_in_time_is_left_out(
    scheduled: ModuleType, given: Any
) -> None:
    server = Server(scheduled.ApiError, lambda _: None, late)
    before = scheduled.filled(given, "nightly-by-hand", "u0")[-1]
    server.ask("POST", before["path"], before["object"])
    with pytest.raises(scheduled.Refused, match="is left out"):
        scheduled.run(server, given, JOB, UID, server.pause, lambda: server.now)
    assert not any(at.endswith(RUN) for at in server.objects)


def test_a_run_that_is_made_goes_on_after_the_deadline_with_another_pod(
    scheduled: ModuleType, given: Any
) -> None:
    server = Server(scheduled.ApiError, ends("Complete"))
    made = scheduled.filled(given, JOB, UID)[-1]
    server.ask("POST", made["path"], made["object"])
    late(server)
    assert scheduled.run(server, given, JOB, UID, server.pause, lambda: server.now) == "Complete"


def test_a_run_that_is_made_goes_on_whatever_the_api_server_refuses(
    scheduled: ModuleType, given: Any
) -> None:
    """Its Job would count as failed, and the CronJob deletes failed Jobs, with their runs."""
    server = Server(scheduled.ApiError, *[lambda _: None] * 3, ends("Complete"))
    server.errors = [scheduled.ApiError(code, "no") for code in (401, 403, 400)]
    assert scheduled.run(server, given, JOB, UID, server.pause, lambda: server.now) == "Complete"
    assert server.errors == []


NOT_KNOWN_YET = 'trainjobs is forbidden: User "system:serviceaccount:x:nightly" cannot get resource'
"""Said of a right, and not by admission: an API server that has just started may not know the RoleBinding yet."""


@pytest.mark.parametrize("is_there", [True, False])
def test_no_answer_to_the_first_look_for_its_run_ends_the_job(
    scheduled: ModuleType, given: Any, is_there: bool
) -> None:
    """A pod in the place of a lost one ended its Job while the run trained, and the CronJob deleted both later."""
    server = Server(scheduled.ApiError, *[lambda _: None] * 3, ends("Complete"))
    made = scheduled.filled(given, JOB, UID)[-1]
    if is_there:
        server.ask("POST", made["path"], made["object"])
    looks = [scheduled.ApiError(403, NOT_KNOWN_YET), *map(scheduled.ApiError, (401, 400), "ab")]
    ask = server.ask

    def refusing(method: str, path: str, body: Object | None = None) -> Object:
        if looks and path.endswith(RUN):
            raise looks.pop(0)
        return ask(method, path, body)

    server.ask = refusing  # pyright: ignore[reportAttributeAccessIssue]
    assert scheduled.run(server, given, JOB, UID, server.pause, lambda: server.now) == "Complete"
    assert len([path for method, path in server.asked if method == "POST"]) == 1


def test_a_right_that_is_not_known_yet_is_waited_for_until_the_deadline(
    scheduled: ModuleType, given: Any
) -> None:
    server = Server(scheduled.ApiError, lambda _: None, ends("Complete"))
    server.refusals = [scheduled.ApiError(403, NOT_KNOWN_YET)]
    assert scheduled.run(server, given, JOB, UID, server.pause, lambda: server.now) == "Complete"
    server = Server(scheduled.ApiError, late)
    server.refusals = [scheduled.ApiError(403, NOT_KNOWN_YET)] * 2
    with pytest.raises(scheduled.Refused, match=f"{RUN} could not begin in 60 minutes"):
        scheduled.run(server, given, JOB, UID, server.pause, lambda: server.now)


def test_pods_of_runs_that_have_ended_are_not_asked_for(scheduled: ModuleType, given: Any) -> None:
    """Those of a long history had no room in its memory."""
    server = Server(scheduled.ApiError, ends("Complete"))
    scheduled.run(server, given, JOB, UID, server.pause, lambda: server.now)
    [asked] = server.pods_asked
    assert asked["fieldSelector"] == "status.phase!=Succeeded,status.phase!=Failed"


def test_pods_of_a_run_that_goes_on_are_not_asked_for(scheduled: ModuleType, given: Any) -> None:
    server = Server(scheduled.ApiError)
    before = scheduled.filled(given, "nightly-29672339", "u0")[-1]
    server.ask("POST", before["path"], before["object"])
    assert scheduled.others(server, given, RUN) == ["nightly-20260601-1859"]
    assert server.pods_asked == []
