"""The program that makes a run of a schedule, against an API server that is a dictionary."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tests.support.programs import program_fixture
from tests.support.stackfile import environment_plan
from tests.trainyard.derive.test_schedule import nightly
from trainyard.objects.jobs.schedule import settings

scheduled = program_fixture("scheduled")
JOB, UID = "nightly-29672340", "u1"
"""2026-06-01 09:00 in minutes since 1970, by hand: 29,672,340 x 60 = 1,780,340,400."""
RUN = "nightly-20260601-1900"
Object = dict[str, Any]


class Server:
    """An API server. `acts`: what happens at each pause, in turn."""

    def __init__(self, error: type[Exception], *acts: Callable[[Server], object]) -> None:
        self.objects: dict[str, Object] = {}
        self.pods: list[Object] = []
        self._error, self._acts = error, [*acts]
        self.asked: list[tuple[str, str]] = []

    def ask(self, method: str, path: str, body: Object | None = None) -> Object:
        self.asked.append((method, path.partition("?")[0]))
        if method == "POST":
            assert body
            named = f"{path}/{body['metadata']['name']}"
            if named in self.objects:
                raise self._error(409, "there")
            self.objects[named] = body
            return body
        if path.partition("?")[0].endswith("/pods"):
            return {"items": self.pods}
        if path.partition("?")[0].endswith("/trainjobs"):
            return {"items": [it for at, it in self.objects.items() if "/trainjobs/" in at]}
        if path not in self.objects:
            raise self._error(404, "gone")
        return self.objects[path]

    def pause(self, _: float) -> None:
        assert self._acts, "it would wait for ever"
        self._acts.pop(0)(self)

    def run(self, name: str = RUN) -> Object:
        [found] = [it for at, it in self.objects.items() if at.endswith(f"/trainjobs/{name}")]
        return found


def ends(kind: str, name: str = RUN) -> Callable[[Server], object]:
    def act(server: Server) -> None:
        server.run(name)["status"] = {"conditions": [{"type": kind, "status": "True"}]}

    return act


@pytest.fixture
def given(scheduled: ModuleType) -> Any:
    job = environment_plan(nightly()).jobs["nightly"]
    return scheduled.Settings(**settings(job))


def test_a_run_is_called_after_its_time_and_belongs_to_its_job(
    scheduled: ModuleType, given: Any
) -> None:
    server = Server(scheduled.ApiError, ends("Complete"))
    assert scheduled.run(server, given, JOB, UID, server.pause) == "Complete"
    made = server.run()
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": JOB, "uid": UID}
    assert made["metadata"]["ownerReferences"] == [owner]
    assert "nightly/20260601-1900" in str(made["spec"]) and "{scheduled" not in str(made)
    assert "${PET_MASTER_ADDR}" in str(made["spec"]), "a variable of the shell stays"


def test_a_job_that_somebody_makes_by_hand_has_a_run_of_its_name(scheduled: ModuleType) -> None:
    assert scheduled.time_of("nightly-29672340", "nightly") == "20260601-1900"
    assert scheduled.time_of("try-1", "nightly") == "try-1"


def test_a_pod_in_the_place_of_a_lost_one_goes_on_with_the_run(
    scheduled: ModuleType, given: Any
) -> None:
    server = Server(scheduled.ApiError)
    first = scheduled.filled(given, JOB, UID)[-1]
    server.ask("POST", first["path"], first["object"])
    server._acts.append(ends("Failed"))
    assert scheduled.run(server, given, JOB, UID, server.pause) == "Failed"
    assert len([at for at in server.objects if "/trainjobs/" in at]) == 1


def test_a_run_of_another_job_is_not_taken_for_its_own(scheduled: ModuleType, given: Any) -> None:
    server = Server(scheduled.ApiError)
    other = scheduled.filled(given, JOB, "u2")[-1]
    other["object"]["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}
    server.ask("POST", other["path"], other["object"])
    with pytest.raises(scheduled.Refused, match="no run of this Job"):
        scheduled.run(server, given, JOB, UID, server.pause)


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
    assert scheduled.run(server, given, JOB, UID, server.pause) == "Complete"
    assert made == [False, False, True]


def test_it_tries_again_where_nobody_answers_and_not_where_it_is_refused(
    scheduled: ModuleType,
) -> None:
    answers = [scheduled.ApiError(code, "no") for code in (0, 500, 503, 429)]
    pauses: list[float] = []

    def ask() -> str:
        if answers:
            raise answers.pop(0)
        return "yes"

    assert scheduled.tried("it", ask, pauses.append) == "yes" and len(pauses) == 4
    answers.append(scheduled.ApiError(403, "exceeded quota"))
    with pytest.raises(scheduled.Refused, match="exceeded quota"):
        scheduled.tried("it", ask, pauses.append)


def test_a_run_that_somebody_deletes_ends_its_job(scheduled: ModuleType, given: Any) -> None:
    server = Server(scheduled.ApiError, lambda it: it.objects.clear())
    assert scheduled.run(server, given, JOB, UID, server.pause) == "Deleted"
