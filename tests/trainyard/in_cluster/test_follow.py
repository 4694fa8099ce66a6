"""trainyard/in_cluster/history/follow.py against an API server that is a dictionary: what runs print becomes part
of their records, and metrics."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from types import ModuleType
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support.metrics import RECORDED
from tests.support.programs import program_fixture
from tests.trainyard.in_cluster.test_history import JOBS, Server, minutes
from tests.trainyard.operations.finished import pod, train_job
from trainyard.objects.programs.history import HistoryPlan, settings
from trainyard.operations.runs.rank_lines import Printed, recorded, together
from trainyard.operations.runs.records import records
from trainyard.plans.jobs import GOODPUT, INTERVAL

Object = dict[str, Any]
program = program_fixture("history")


class Talking(Server):
    """A cluster whose ranks print: pod → (minutes, line)."""

    def __init__(self, program: ModuleType) -> None:
        super().__init__(program)
        self.said: dict[str, list[tuple[float, str]]] = {}
        self.asked: list[dict[str, list[str]]] = []
        self.read: list[str] = []
        """Pods whose logs were read."""
        said = json.loads(settings(HistoryPlan(image="", files={}, days=30, progress=True)))
        self.history = program.History(self, program.Settings(**said))

    def text(self, path: str, otherwise: str) -> str:
        asked = urlsplit(path)
        query = parse_qs(asked.query)
        self.asked.append(query)
        self.read.append(asked.path.split("/")[-2])
        since = query.get("sinceTime", ["1970-01-01T00:00:00Z"])[0]
        lines = [
            (datetime.fromtimestamp(minutes(at), UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z"), line)
            for at, line in self.said.get(asked.path.split("/")[-2], ())
        ]
        return "".join(f"{at} {line}\n" for at, line in lines if at[:19] >= since[:19])

    def begin(self) -> None:
        job = train_job(ended=None)
        job["metadata"]["annotations"] |= {INTERVAL: "600", GOODPUT: "0.95"}
        pods = [pod(0), pod(1)]
        for each in pods:
            each["status"] |= {"phase": "Running", "containerStatuses": []}
        self.there |= {JOBS: [job], "/api/v1/pods": pods}

    @property
    def measured(self) -> Object:
        [kept], _ = records(lambda *_: json.dumps({"items": [*self.kept.values()]}))
        return kept["measured"]


@pytest.fixture
def server(program: ModuleType) -> Talking:
    made = Talking(program)
    made.begin()
    return made


FIRST, LAST = "t5-node-0-0-x7k2p", "t5-node-0-1-x7k2p"


def test_its_metrics_are_those_that_queries_ask_for(server: Talking) -> None:
    server.said = {FIRST: [*((5.0 + step, f"step {step} loss 1") for step in range(25))]}
    server.said[FIRST].insert(21, (25.5, "saved step-00000020.pt"))
    server.history.step(minutes(30))
    served = (RECORDED / "trainyard-history.prom").read_text().splitlines()[1:]
    assert server.history.metrics().splitlines() == served


def test_of_a_script_that_says_nothing_of_checkpoints_nobody_knows_their_age(
    server: Talking,
) -> None:
    server.said = {FIRST: [(6, "step 0 loss 1"), (7, "step 10 loss 1")]}
    server.history.step(minutes(60))
    assert "trainyard_run_unsaved_since_seconds{" not in server.history.metrics()
    server.said[FIRST] += [(61, "saved step-00000010.pt")]
    server.history.step(minutes(62))
    assert "trainyard_run_unsaved_since_seconds{" in server.history.metrics()


def test_a_line_is_read_once_and_of_both_ends_of_a_gang(server: Talking) -> None:
    server.said = {LAST: [(6, " iteration        1/     100 | consumed samples: 640 |")]}
    server.history.step(minutes(7))
    server.said[LAST] += [(8, " iteration        2/     100 | consumed samples: 1280 |")]
    server.said[FIRST] = [(8.5, "  successfully saved checkpoint from iteration     2 to /ckpt")]
    server.history.step(minutes(9))
    [run] = server.history._followed._runs.values()
    assert (run.step, run.seconds, run.saved_step) == (2, [120], 2)
    assert [query.get("sinceTime") for query in server.asked] == [
        None,
        None,
        None,
        [datetime.fromtimestamp(minutes(6), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")],
    ]


def test_a_run_that_goes_on_is_written_once_a_minute_and_at_its_end(server: Talking) -> None:
    server.said = {FIRST: [(6, "step 0 loss 1"), (7, "step 10 loss 1")]}
    server.history.step(minutes(7))
    writes = server.writes
    server.said[FIRST] += [(7.2, "step 12 loss 1")]
    server.history.step(minutes(7.5))
    assert (server.writes, server.measured["step"]) == (writes, 10)
    server.history.step(minutes(8.5))
    assert server.measured["step"] == 12
    server.said[FIRST] += [(60, "step 540 loss 1")]
    server.there[JOBS] = [train_job(ended=65)]
    server.history.step(minutes(71))
    assert server.measured["step"] == 540
    assert server.measured["goodput"] == pytest.approx(540 * 6 / 3600, rel=0.02)
    assert "t5" not in server.history.metrics(), "it has ended"


def test_a_new_pod_of_the_program_goes_on_where_the_record_was(
    server: Talking, program: ModuleType
) -> None:
    server.said = {FIRST: [(6, "step 0 loss 1"), (7, "step 10 loss 1")]}
    server.history.step(minutes(7))
    again = Talking(program)
    again.kept, again.there, again.said = server.kept, server.there, server.said
    again.said[FIRST] += [(8, "step 20 loss 1")]
    again.history.step(minutes(9))
    [run] = again.history._followed._runs.values()
    assert (run.first, run.step, run.seconds) == (0, 20, [6, 6])


def test_of_many_runs_a_few_are_read_at_each_look_and_all_in_turn(server: Talking) -> None:
    names = [f"run-{number:02}" for number in range(12)]
    jobs = [train_job(name, ended=None) for name in names]
    pods = [pod(number, name) for name in names for number in range(2)]
    server.there |= {JOBS: jobs, "/api/v1/pods": pods}
    looks: list[set[str]] = []
    for look in range(3):
        server.read.clear()
        server.history.step(minutes(7 + look))
        looks.append({pod.partition("-node")[0] for pod in server.read})
    assert [len(look) for look in looks] == [5, 5, 5]
    assert set.union(*looks) == {*names}, "those first that were not read for longest"


def test_the_end_of_a_run_is_read_at_once_however_many_there_are(server: Talking) -> None:
    names = [f"run-{number:02}" for number in range(12)]
    jobs = [train_job(name, ended=None) for name in names]
    server.there |= {JOBS: jobs, "/api/v1/pods": [pod(0, name) for name in names]}
    server.history.step(minutes(7))
    ended = [train_job(name, ended=8) for name in names]
    server.there |= {JOBS: ended}
    server.read.clear()
    server.history.step(minutes(9))
    assert len(server.read) == 12


def test_no_log_is_read_without_the_setting(program: ModuleType) -> None:
    made = Talking(program)
    made.begin()
    said = json.loads(settings(HistoryPlan(image="", files={}, days=30)))
    quiet = program.History(made, program.Settings(**said))
    quiet.step(minutes(7))
    assert made.asked == [] and quiet.metrics() == ""


def test_an_initializer_and_a_pod_without_a_node_print_for_no_rank(server: Talking) -> None:
    first = pod(0)
    first["metadata"]["name"] = "t5-dataset-initializer-0-0-abcde"
    first["spec"]["nodeSelector"] = {}
    server.there["/api/v1/pods"][0]["spec"]["nodeName"] = ""
    server.there["/api/v1/pods"].append(first)
    server.history.step(minutes(7))
    assert len(server.asked) == 1


def test_make_runs_has_what_is_measured_and_prefers_what_pods_say_now(server: Talking) -> None:
    server.said = {FIRST: [(6, "step 0 loss 1"), (7, "step 10 loss 1"), (7.1, "saved step-10.pt")]}
    server.history.step(minutes(8))
    kept, _ = records(lambda *_: json.dumps({"items": [*server.kept.values()]}))
    [(uid, said)] = recorded(kept).items()
    assert (said.step, said.step_seconds, said.saved) == (10, 6, "step-10.pt")
    assert said.saved_at == datetime.fromtimestamp(minutes(7.1), UTC) and said.goodput
    now = together({uid: Printed(saved="step-12.pt")}, recorded(kept))[uid]
    assert (now.saved, now.step) == ("step-12.pt", 10)


@pytest.mark.parametrize("written", ["95%", "", "nan", "1e999"])
def test_a_note_of_a_person_that_is_no_number_is_left_out(server: Talking, written: str) -> None:
    server.there[JOBS][0]["metadata"]["annotations"][GOODPUT] = written
    server.said = {FIRST: [(5, "step 1 loss 1"), (6, "step 2 loss 1")]}
    server.history.step(minutes(7))
    assert 'trainyard_run_step{namespace="training",run="t5"} 2.0' in server.history.metrics()
    assert "trainyard_run_goodput_planned{" not in server.history.metrics()


def test_a_line_that_cannot_be_read_keeps_no_other_run_from_its_record(server: Talking) -> None:
    """Python reads no number of more than 4,300 digits."""
    other = train_job(ended=None)
    other["metadata"] |= {"name": "bert", "uid": "b"}
    server.there[JOBS].append(other)
    server.said = {FIRST: [(5, f"step {'9' * 5000} loss 1")]}
    server.history.step(minutes(7))
    assert sorted(server.kept) == ["run-b", f"run-{server.there[JOBS][0]['metadata']['uid']}"]
