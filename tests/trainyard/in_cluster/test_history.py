"""trainyard/in_cluster/history against an API server that is a dictionary: what it keeps of runs."""

from __future__ import annotations

import copy
import json
from types import ModuleType
from typing import Any
from urllib.parse import parse_qsl

import pytest

from tests.support.programs import program_fixture
from tests.trainyard.operations.finished import BEGAN, at, node, pod, train_job
from trainyard.objects.programs.history import APP, HistoryPlan, settings
from trainyard.operations.reach.snapshot import Snapshot
from trainyard.operations.runs.node_time import AT_LEAST, EXACT
from trainyard.operations.runs.records import KEPT, records, runs_of

Object = dict[str, Any]
PLACE = f"/api/v1/namespaces/{APP}/configmaps"
JOBS = "/apis/trainer.kubeflow.org/v1alpha1/trainjobs"
MPI_JOBS = "/apis/kubeflow.org/v1/mpijobs"
SECRET = "hunter2"
program = program_fixture("history")


class Server:
    """Lists, and the ConfigMaps that the program writes."""

    def __init__(self, program: ModuleType) -> None:
        self.program = program
        self.there: dict[str, list[Object]] = {JOBS: [], "/api/v1/pods": [], "/api/v1/nodes": []}
        self.went: list[tuple[Object, float]] = []
        """Pods that were deleted since the last look, and when."""
        self.kept: dict[str, Object] = {}
        self.writes = 0

    def items(self, path: str, **query: str) -> list[Object]:
        found = self.there.get(path, [])
        if path == "/api/v1/pods":
            found = [one for one in found if query["labelSelector"] in one["metadata"]["labels"]]
        return copy.deepcopy(found)

    def gone(self, path: str, **query: str) -> list[tuple[Object, float]]:
        assert path == "/api/v1/pods"
        found = [
            each for each in self.went if query["labelSelector"] in each[0]["metadata"]["labels"]
        ]
        self.went = [each for each in self.went if each not in found]
        return copy.deepcopy(found)

    def ask(self, method: str, path: str, body: Any = None, kind: str = "json") -> Object:
        if method == "GET":
            at, _, asked = path.partition("?")
            assert at == PLACE
            query = dict(parse_qsl(asked))
            first, every = int(query.get("continue", 0)), [*self.kept.values()]
            last = first + int(query["limit"])
            more = {"continue": str(last)} if last < len(every) else {}
            return {"items": every[first:last], "metadata": more}
        name = path.rpartition("/")[2]
        if method == "DELETE":
            return self.kept.pop(name)
        if method == "PATCH" and name not in self.kept:
            raise self.program.ApiError(404, "not found")
        self.writes += 1
        self.kept[body["metadata"]["name"]] = body
        return {}

    def known(self) -> Any:
        kept, history = records(lambda *_: json.dumps({"items": [*self.kept.values()]}))
        return runs_of(Snapshot(objects={}), kept, history)


@pytest.fixture
def server(program: ModuleType) -> Server:
    return Server(program)


def history(server: Server, days: int = 30, **more: Any) -> Any:
    said = json.loads(settings(HistoryPlan(image="python", files={}, days=days, **more)))
    return server.program.History(server, server.program.Settings(**said))


def begin(server: Server) -> None:
    """A run of two pods whose job has a secret in its variables."""
    job = train_job(ended=None)
    job["spec"]["trainer"]["env"] = [{"name": "TOKEN", "value": SECRET}]
    job["spec"]["trainer"]["command"] = ["train", f"--token={SECRET}"]
    pods = [pod(0), pod(1)]
    for each in pods:
        each["status"] |= {"phase": "Running", "containerStatuses": []}
        each["spec"]["containers"][0]["env"] = [{"name": "TOKEN", "value": SECRET}]
    server.there |= {JOBS: [job], "/api/v1/pods": pods, "/api/v1/nodes": [node(0), node(1)]}


def minutes(count: float) -> float:
    return BEGAN.timestamp() + count * 60


def test_a_job_of_another_kind_of_the_operator_is_recorded_where_the_stack_has_the_kind(
    server: Server,
) -> None:
    labels = {
        "training.kubeflow.org/job-name": "t5",
        "training.kubeflow.org/replica-type": "worker",
    }
    pods = [pod(0), pod(1)]
    for number, each in enumerate(pods):
        each["metadata"]["labels"] = labels | {"training.kubeflow.org/replica-index": str(number)}
    made = {**train_job(), "kind": "MPIJob", "spec": {"mpiReplicaSpecs": {}}}
    made["status"]["conditions"][0]["type"] = "Succeeded"
    server.there |= {MPI_JOBS: [made], "/api/v1/pods": pods, "/api/v1/nodes": [node(0), node(1)]}
    history(server).step(minutes(71))
    assert server.kept == {}
    history(server, more_kinds=("MPIJob",)).step(minutes(71))
    [run] = server.known().finished
    assert (run.job.kind, run.job.name, run.job.state) == ("MPIJob", "t5", "Succeeded")
    assert [time.hours for time in run.times] == [1, 1]


def test_a_run_that_it_saw_from_its_beginning_is_exact_when_all_of_it_is_gone(
    server: Server,
) -> None:
    program = history(server)
    begin(server)
    program.step(minutes(0.5))
    server.there = {JOBS: [train_job()], "/api/v1/pods": [pod(0), pod(1)]}
    program.step(minutes(71))
    server.there = {}
    program.step(minutes(100))
    known = server.known()
    [run] = known.finished
    assert known.history == KEPT and (run.job.state, run.known) == ("Complete", EXACT)
    assert [time.hours for time in run.times] == [1, 1]
    assert run.times[0].instance_type == "g6e.48xlarge", "its nodes were gone at the end"


def test_a_pod_of_a_try_between_two_looks_counts_to_the_moment_of_its_end(server: Server) -> None:
    """Five tries of seconds were counted to the looks behind them: a run of 53 s cost 73 s of its nodes."""
    program = history(server)
    begin(server)
    program.step(minutes(0.5))
    seen, unseen = server.there["/api/v1/pods"][0], pod(2, node="node-0", created=7, scheduled=7)
    unseen["status"]["containerStatuses"] = []
    # The list still had the first of them, a moment before it went.
    server.went = [(seen, minutes(6.5)), (unseen, minutes(7.5))]
    program.step(minutes(10))
    server.there["/api/v1/pods"] = server.there["/api/v1/pods"][1:]
    program.step(minutes(10.5))
    server.there = {JOBS: [train_job(ended=11)], "/api/v1/pods": [pod(1, ended=11)]}
    program.step(minutes(12))
    [run] = server.known().finished
    assert sorted(float(each.hours) * 60 for each in run.times) == [0.5, 1.5, 6]
    assert run.known == EXACT


def test_a_pod_of_another_job_of_the_same_name_is_of_no_run(server: Server) -> None:
    program = history(server)
    begin(server)
    server.went = [(pod(2, created=-1), minutes(-0.5)), (pod(3, job="other"), minutes(0.2))]
    program.step(minutes(0.5))
    assert [len(each.pods) for each in program._records.values()] == [2]


def test_pods_of_a_job_that_is_deleted_too_count_to_their_end(server: Server) -> None:
    program = history(server)
    begin(server)
    program.step(minutes(0.5))
    server.went = [(each, minutes(8)) for each in server.there["/api/v1/pods"]]
    server.there = {}
    program.step(minutes(10))
    [run] = server.known().finished
    assert [float(each.hours) * 60 for each in run.times] == [3, 3]


def test_no_variable_and_no_command_is_kept(server: Server) -> None:
    program = history(server)
    begin(server)
    program.step(minutes(0.5))
    [kept] = program._records.values()
    assert SECRET not in json.dumps(vars(kept))
    assert kept.job["spec"]["trainer"]["image"] == "ghcr.io/team/train:1"


def test_a_look_at_which_nothing_has_changed_writes_nothing(server: Server) -> None:
    program = history(server)
    begin(server)
    program.step(minutes(0.5))
    program.step(minutes(1))
    assert server.writes == 1


def test_a_pod_that_somebody_deletes_counts_until_it_was_missed(server: Server) -> None:
    program = history(server)
    begin(server)
    program.step(minutes(0.5))
    server.there["/api/v1/pods"] = []
    program.step(minutes(35))
    program.step(minutes(50))
    server.there[JOBS] = [train_job()]
    program.step(minutes(71))
    [run] = server.known().finished
    assert [float(time.hours) for time in run.times] == [0.5, 0.5]


@pytest.mark.parametrize("way", ["kubelet has lost its container", "its sidecar has ended"])
def test_a_pod_that_goes_without_saying_when_it_ended_counts_until_then(
    server: Server, way: str
) -> None:
    """Kubelet says no moment of a container that it has lost. Its pod counted to the end of the run."""
    program = history(server)
    begin(server)
    lost = {"exitCode": 137, "finishedAt": None, "reason": "ContainerStatusUnknown"}
    for each in server.there["/api/v1/pods"]:
        if way == "its sidecar has ended":
            over = {"name": "side", "state": {"terminated": {"exitCode": 0, "finishedAt": at(6)}}}
            each["status"]["containerStatuses"] = [{"name": "node", "state": {"running": {}}}, over]
        else:
            state = {"terminated": lost}
            each["status"] |= {
                "phase": "Failed",
                "containerStatuses": [{"name": "node", "state": state}],
            }
    program.step(minutes(0.5))
    seen, other = server.there["/api/v1/pods"]
    server.went = [(seen, minutes(35))]
    server.there["/api/v1/pods"] = [other]
    program.step(minutes(35))
    server.there["/api/v1/pods"] = []
    program.step(minutes(65))
    server.there[JOBS] = [train_job(ended=600)]
    program.step(minutes(600))
    [run] = server.known().finished
    assert [float(time.hours) for time in run.times] == [0.5, 1]


def test_a_job_that_is_deleted_while_it_runs_ends_then(server: Server) -> None:
    program = history(server)
    begin(server)
    program.step(minutes(0.5))
    server.there = {}
    program.step(minutes(35))
    [run] = server.known().finished
    assert run.job.state == "Deleted" and [float(time.hours) for time in run.times] == [0.5, 0.5]


def test_a_run_costs_nothing_of_the_pods_of_an_earlier_job_of_its_name(server: Server) -> None:
    program = history(server)
    begin(server)
    program.step(minutes(0.5))
    second = train_job(ended=None)
    second["metadata"] |= {"uid": "second", "creationTimestamp": at(30)}
    server.there[JOBS] = [second]
    program.step(minutes(31))
    younger = [pod(number, created=31, scheduled=32, ended=42) for number in (0, 1)]
    server.there["/api/v1/pods"] = younger
    program.step(minutes(41))
    server.there[JOBS] = [train_job(ended=43) | {"metadata": second["metadata"]}]
    program.step(minutes(44))
    [first, then] = server.known().finished
    assert first.job.state == "Deleted" and then.job.state == "Complete"
    assert [round(time.hours * 60) for time in then.times] == [10, 10]


def test_a_list_that_lacked_the_job_for_a_moment_ends_no_run(server: Server) -> None:
    program = history(server)
    begin(server)
    program.step(minutes(0.5))
    there, server.there = server.there, {}
    program.step(minutes(5))
    server.there = there
    program.step(minutes(6))
    known = server.known()
    assert known.finished == () and len(known.going) == 1
    [kept] = program._records.values()
    assert not kept.deleted


def test_a_new_pod_of_the_program_goes_on_and_knows_that_it_was_not_looking(
    server: Server,
) -> None:
    begin(server)
    history(server).step(minutes(0.5))
    server.there[JOBS] = [train_job()]
    server.there["/api/v1/pods"] = [pod(0), pod(1)]
    history(server).step(minutes(71))
    [run] = server.known().finished
    assert len(run.times) == 2 and run.job.state == "Complete"
    [kept] = records(lambda *_: json.dumps({"items": [*server.kept.values()]}))[0]
    assert kept["complete"] is False


def test_a_job_that_was_old_when_it_was_first_seen_is_not_complete(server: Server) -> None:
    begin(server)
    program = history(server)
    program.step(minutes(30))
    again = [pod(0, created=40, scheduled=41, ended=60), pod(1, created=40, scheduled=41, ended=60)]
    server.there |= {JOBS: [train_job()], "/api/v1/pods": again}
    program.step(minutes(71))
    [run] = server.known().finished
    assert run.known == AT_LEAST


def test_runs_that_ended_long_ago_are_forgotten(server: Server) -> None:
    begin(server)
    program = history(server, days=30)
    server.there[JOBS] = [train_job()]
    program.step(minutes(71))
    program.step(minutes(71) + 29 * 86400)
    assert len(server.kept) == 1
    server.there = {}
    program.step(minutes(71) + 31 * 86400)
    assert server.kept == {}


def test_a_record_that_cannot_be_written_keeps_no_other_waiting(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = history(server)
    begin(server)
    server.there[JOBS].append(train_job("other", ended=30))
    ask = server.ask

    def refuses(method: str, path: str, body: Any = None, kind: str = "json") -> Object:
        if "uid-of-training-t5" in path or "t5" in json.dumps((body or {}).get("data")):
            raise server.program.ApiError(413, "too large")
        return ask(method, path, body, kind)

    monkeypatch.setattr(server, "ask", refuses)
    program.step(minutes(71))
    assert [each["data"]["job"] for each in server.kept.values()] == ["training/other"]
    monkeypatch.setattr(server, "ask", ask)
    server.there = {}
    program.step(minutes(72))
    assert len(server.kept) == 2, "it was tried again, though its job is gone"


def test_a_record_that_cannot_be_read_is_passed_over(server: Server) -> None:
    server.kept["run-x"] = {
        "metadata": {"name": "run-x"},
        "data": {"job": "x/y", "ended": ""},
        "binaryData": {"record": "AAAA"},
    }
    begin(server)
    history(server).step(minutes(0.5))
    assert len(server.kept) == 2


def test_of_too_many_runs_the_oldest_are_forgotten(server: Server) -> None:
    program = history(server)
    for number in range(3):
        job = train_job(f"run-{number}", ended=10 + number)
        server.there[JOBS].append(job)
    said = json.loads(settings(HistoryPlan(image="", files={}, days=30))) | {"most_runs": 2}
    program = server.program.History(server, server.program.Settings(**said))
    program.step(minutes(71))
    assert sorted(each["data"]["job"] for each in server.kept.values()) == [
        "training/run-1",
        "training/run-2",
    ]


def test_of_runs_that_are_over_it_reads_no_record_at_its_start(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands of them had no room in its memory."""
    server.there |= {JOBS: [train_job()], "/api/v1/pods": [pod(0), pod(1)]}
    history(server).step(minutes(71))
    [(name, one)] = server.kept.items()
    over = {f"run-{number}": copy.deepcopy(one) for number in range(250)}
    for other, kept in over.items():
        kept["metadata"]["name"] = other
    server.kept |= over
    read, unpacked = list[str](), server.program.Record.unpacked
    monkeypatch.setattr(
        server.program.Record, "unpacked", lambda text: read.append(text) or unpacked(text)
    )
    history(server).step(minutes(72))
    assert read == [one["binaryData"]["record"]], "its job is there"
    assert len(server.kept) == 251 and name in server.kept


def test_kept_runs_on_all_pages_are_pruned(server: Server) -> None:
    server.there |= {JOBS: [train_job()], "/api/v1/pods": [pod(0), pod(1)]}
    history(server).step(minutes(71))
    [one] = server.kept.values()
    for number in range(250):
        kept = copy.deepcopy(one)
        kept["metadata"]["name"] = f"run-{number}"
        kept["data"]["ended"] = "2020-01-01T00:00:00Z"
        server.kept[f"run-{number}"] = kept
    history(server).step(minutes(72))
    assert len(server.kept) == 1
