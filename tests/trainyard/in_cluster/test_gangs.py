"""trainyard/in_cluster/gangs against an API server that is a dictionary: which gangs give their nodes back, when, and
when they are tried again."""

from __future__ import annotations

import calendar
import json
import time
from types import ModuleType
from typing import Any

import pytest

from tests.support.programs import program_fixture
from trainyard.catalog.limits import BACKOFF_SECONDS, LONGEST_BACKOFF_SECONDS
from trainyard.catalog.program_intervals import LOOK_SECONDS
from trainyard.objects.programs.gangs import AGAIN, TRIES, GangsPlan, settings

Object = dict[str, Any]
MINUTES = 19
JOB = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "bert", "uid": "j"}
ADMITTED = "2026-11-23T10:00:00Z"
program = program_fixture("gangs")


class Server:
    """One PyTorchJob of a Master and 3 Workers, which its queue has started, with its pods."""

    def __init__(self, program: ModuleType) -> None:
        self.program = program
        self.workload: Object = {
            "metadata": {
                "name": "w",
                "namespace": "t",
                "uid": "u",
                "resourceVersion": "1",
                "ownerReferences": [JOB],
            },
            "spec": {
                "active": True,
                "podSets": [{"name": "master", "count": 1}, {"name": "worker", "count": 3}],
            },
            "status": {},
        }
        self.hear(QuotaReserved=True, Admitted=True, PodsReady=True)
        self.pods: dict[str, Object] = {}
        self.runs("m", "w0", "w1")
        self.runs("w2", phase="Pending")
        self.events: list[Object] = []
        self.patches: list[Object] = []
        self.away = self.changed = False
        self.restart()

    def hear(self, **conditions: bool) -> None:
        """What Kueue says of the job."""
        self.workload["status"]["conditions"] = [
            {"type": name, "status": str(true), "lastTransitionTime": ADMITTED}
            for name, true in conditions.items()
        ]

    def runs(self, *names: str, phase: str = "Running", nodes: str = "4", **meta: Any) -> None:
        """Pods of the job. `nodes`: what the operator tells torchrun."""
        env = [{"name": "PET_NNODES", "value": "1"}, {"name": "PET_NNODES", "value": nodes}]
        for name in names:
            self.pods[name] = {
                "metadata": {"name": name, "namespace": "t", "ownerReferences": [JOB], **meta},
                "spec": {"containers": [{"name": "pytorch", "env": env}]},
                "status": {"phase": phase},
            }

    def restart(self) -> None:
        """The program begins anew."""
        plan = GangsPlan(
            image="",
            files={},
            ready_minutes=MINUTES,
            longest_backoff_seconds=LONGEST_BACKOFF_SECONDS,
        )
        said = self.program.Settings(**json.loads(settings(plan)))
        self.gangs, self.now = self.program.Gangs(self, said), 0.0

    def look(self, minutes: float = 0) -> None:
        """As often as it looks in so many minutes, and once more."""
        end = self.now + minutes * 60
        while self.now < end:
            self.gangs.look(self.now)
            self.now += LOOK_SECONDS["gangs"]
        self.gangs.look(self.now)

    @property
    def active(self) -> bool:
        return self.workload["spec"]["active"]

    @property
    def notes(self) -> dict[str, str]:
        return self.workload["metadata"].get("annotations", {})

    def items(self, path: str, **query: str) -> list[Object]:
        """A list."""
        if self.away:
            raise self.program.ApiError(0, "away")
        if path == "/api/v1/pods":
            assert query["labelSelector"] == "training.kubeflow.org/job-name"
        return [*self.pods.values()] if path == "/api/v1/pods" else [self.workload]

    def ask(self, method: str, path: str, body: Object | None = None, kind: str = "json") -> Object:
        assert body is not None
        if method == "POST":
            assert path == "/api/v1/namespaces/t/events"
            self.events.append(body)
            return {}
        assert (method, kind) == ("PATCH", "merge-patch+json")
        assert path == "/apis/kueue.x-k8s.io/v1beta2/namespaces/t/workloads/w"
        if self.changed:
            raise self.program.ApiError(409, "the object has been modified")
        assert body["metadata"].pop("resourceVersion") == "1"
        self.patches.append(body)
        notes = self.workload["metadata"].setdefault("annotations", {})
        notes |= body["metadata"]["annotations"]
        self.workload["metadata"]["annotations"] = {k: v for k, v in notes.items() if v is not None}
        self.workload["spec"] |= body.get("spec", {})
        return {}


@pytest.fixture
def server(program: ModuleType) -> Server:
    return Server(program)


def seconds_until_again(server: Server) -> float:
    at = calendar.timegm(time.strptime(server.notes[AGAIN], "%Y-%m-%dT%H:%M:%SZ"))
    return at - time.time()


def test_half_a_gang_gives_its_nodes_back_when_its_queue_has_waited_long_enough(
    server: Server,
) -> None:
    server.look(MINUTES)
    assert server.active and not server.patches
    server.look(0.2)
    assert not server.active and server.notes[TRIES] == "1"
    assert seconds_until_again(server) == pytest.approx(BACKOFF_SECONDS, abs=3)


def test_the_job_gets_an_event_with_what_it_lacks_and_when_it_is_tried_again(
    server: Server,
) -> None:
    server.look(MINUTES + 1)
    [event] = server.events
    assert event["involvedObject"] == {**JOB, "namespace": "t"}
    assert event["message"] == (
        "3 of 4 pods run after 19 minutes: the gang gives its nodes back, and waits in its queue"
        f" again from {server.notes[AGAIN]}"
    )


@pytest.mark.parametrize("phase", ["Running", "Succeeded"])
def test_a_whole_gang_keeps_its_nodes_and_forgets_its_tries(server: Server, phase: str) -> None:
    server.workload["metadata"]["annotations"] = {TRIES: "3"}
    server.runs("w2", phase=phase)
    server.look(MINUTES * 2)
    assert server.active and server.notes == {} and len(server.patches) == 1


def test_a_gang_that_becomes_whole_and_lacks_a_pod_later_has_all_its_time_again(
    server: Server,
) -> None:
    server.look(MINUTES - 1)
    server.runs("w2")
    server.look(1)
    server.runs("w2", phase="Pending")
    server.look(MINUTES - 1)
    assert server.active
    server.look(2)
    assert not server.active


@pytest.mark.parametrize(
    "pod",
    [
        {"phase": "Failed"},
        {"phase": "Pending"},
        {"phase": "Running", "deletionTimestamp": "now"},
        {"phase": "Running", "ownerReferences": [JOB | {"uid": "of an older job of that name"}]},
    ],
)
def test_a_pod_that_failed_waits_leaves_or_is_of_another_job_is_missing(
    server: Server, pod: Any
) -> None:
    server.runs("w2", **pod)
    server.look(MINUTES + 1)
    assert not server.active


def test_a_gang_of_which_no_pod_exists_any_more_is_half(server: Server) -> None:
    server.pods = {}
    server.look(MINUTES + 1)
    assert not server.active and "0 of 4 pods run" in server.events[0]["message"]


@pytest.mark.parametrize(("fewest", "kept"), [("2", True), ("3", True), ("4", False), ("0", False)])
def test_an_elastic_gang_is_half_below_its_fewest_pods(
    server: Server, fewest: str, kept: bool
) -> None:
    """What the operator tells torchrun counts, and not what the container says before it."""
    server.runs("m", "w0", "w1", nodes=f"{fewest}:8")
    server.runs("w2", phase="Pending", nodes=f"{fewest}:8")
    server.look(MINUTES + 1)
    assert server.active is kept


@pytest.mark.parametrize(
    "said",
    [
        {"QuotaReserved": True, "Admitted": True, "PodsReady": False},
        {"QuotaReserved": True, "Admitted": True, "PodsReady": True, "Evicted": True},
        {"QuotaReserved": True, "Admitted": True, "PodsReady": True, "Finished": True},
        {"QuotaReserved": False, "Admitted": False, "PodsReady": True},
        {},
    ],
)
def test_what_kueue_stops_itself_what_waits_and_what_ended_is_left_to_it(
    server: Server, said: dict[str, bool]
) -> None:
    server.hear(**said)
    server.look(MINUTES * 2)
    assert server.active and not server.patches


def test_jobs_of_other_kinds_are_left_alone(server: Server) -> None:
    server.workload["metadata"]["ownerReferences"] = [JOB | {"kind": "TrainJob"}]
    server.look(MINUTES * 2)
    assert server.active
    server.workload["metadata"]["ownerReferences"] = []
    server.look(MINUTES * 2)
    assert server.active


def test_a_gang_that_was_admitted_again_has_all_its_time_again(server: Server) -> None:
    server.look(MINUTES - 1)
    for each in server.workload["status"]["conditions"]:
        each["lastTransitionTime"] = "2026-11-23T10:18:00Z"
    server.look(MINUTES - 1)
    assert server.active


def test_each_try_waits_twice_as_long_up_to_an_hour(server: Server) -> None:
    waits: list[float] = []
    for _ in range(8):
        server.look(MINUTES + 1)
        waits.append(round(seconds_until_again(server), -1))
        server.workload["metadata"]["annotations"][AGAIN] = "2026-01-01T00:00:00Z"
        server.hear(QuotaReserved=False)
        server.pods = {}
        server.look()
        assert server.active and AGAIN not in server.notes
        server.hear(QuotaReserved=True, Admitted=True, PodsReady=True)
    assert waits == [*(BACKOFF_SECONDS * 2**n for n in range(6)), *[LONGEST_BACKOFF_SECONDS] * 2]


def test_a_gang_waits_until_its_time_and_until_its_pods_have_ended(server: Server) -> None:
    server.look(MINUTES + 1)
    server.hear(QuotaReserved=False)
    server.look(5)
    assert not server.active
    server.workload["metadata"]["annotations"][AGAIN] = "2026-01-01T00:00:00Z"
    server.hear(QuotaReserved=True, Admitted=True, Evicted=True)
    server.look(5)
    assert not server.active, "Kueue has not stopped it yet"
    server.hear(QuotaReserved=False)
    server.pods = {}
    server.runs("m", deletionTimestamp="now")
    server.look(5)
    assert not server.active, "its Master still ends"
    server.pods = {}
    server.look()
    assert server.active and server.notes == {TRIES: "1"}


def test_what_a_person_deactivates_stays_as_it_is(server: Server) -> None:
    for notes in ({}, {TRIES: "2"}):
        server.workload["spec"]["active"] = False
        server.workload["metadata"]["annotations"] = dict(notes)
        server.hear(QuotaReserved=False)
        server.look(5)
        assert not server.active and not server.patches


def test_what_a_person_activates_before_its_time_and_deactivates_again_stays(
    server: Server,
) -> None:
    server.look(MINUTES + 1)
    server.workload["spec"]["active"] = True
    server.look()
    server.workload["spec"]["active"] = False
    server.hear(QuotaReserved=False)
    server.look(5)
    assert not server.active and server.notes == {TRIES: "1"}


def test_a_program_that_starts_anew_has_patience_anew_and_remembers_who_waits(
    server: Server,
) -> None:
    server.look(MINUTES - 1)
    server.restart()
    server.look(MINUTES - 1)
    assert server.active
    server.look(2)
    server.restart()
    server.workload["metadata"]["annotations"][AGAIN] = "2026-01-01T00:00:00Z"
    server.hear(QuotaReserved=False)
    server.pods = {}
    server.runs("m", deletionTimestamp="now")
    server.look(5)
    assert not server.active, "its Master still ends"
    server.pods = {}
    server.look()
    assert server.active and server.notes == {TRIES: "1"}


def test_an_api_server_that_was_away_makes_no_gang_half(server: Server) -> None:
    """Kubelets could not say either which pods have started."""
    server.look(MINUTES - 1)
    server.away = True
    server.look(5)
    server.away = False
    server.look(MINUTES - 1)
    assert server.active
    server.look(2)
    assert not server.active


def test_a_workload_that_changed_since_it_was_seen_is_looked_at_again(server: Server) -> None:
    server.changed = True
    server.look(MINUTES + 1)
    assert server.active and not server.events
    server.changed = False
    server.look()
    assert not server.active and len(server.events) == 1


def test_a_number_of_nodes_that_is_none_stops_no_program(server: Server) -> None:
    """A pod of a team can have any label and any variable."""
    for said in ("²", "९", "1" * 5000, ""):
        server.runs("m", "w0", "w1", nodes=said)
        server.look(MINUTES + 1)
    assert not server.active
