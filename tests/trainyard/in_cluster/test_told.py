"""trainyard/in_cluster/told against an API server that is a dictionary and an SNS that is a list: what is
said of a run, and that it is said once."""

from __future__ import annotations

import copy
import json
import re
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support.launchers import torchrun
from tests.support.programs import program_fixture
from tests.support.stackfile import Edit, at, environment_plan
from tests.trainyard.operations.finished import BEGAN, node, pod, train_job
from tests.trainyard.operations.finished import at as moment
from trainyard.objects.programs.told import APP, ToldPlan, settings
from trainyard.parts.parts import TOLD
from trainyard.plans.jobs import SHELL, TEAM
from trainyard.plans.program import TOPIC_ARN

Object = dict[str, Any]
MAPS = f"/api/v1/namespaces/{APP}/configmaps"
TRAIN_JOBS = "/apis/trainer.kubeflow.org/v1alpha1/trainjobs"
PYTORCH_JOBS = "/apis/kubeflow.org/v1/pytorchjobs"
MPI_JOBS = "/apis/kubeflow.org/v1/mpijobs"
TOPIC = "arn:aws:sns:us-east-1:123456789012:runs"
TOKEN = "hf_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ"
INDEX = "batch.kubernetes.io/job-completion-index"
MINUTE = 60.0
program = program_fixture("told")


class Killed(BaseException):
    """The program ends here, as by kill -9."""


class Server:
    """What the program lists, the ConfigMaps that it writes, and a topic."""

    def __init__(self, program: ModuleType) -> None:
        self.program = program
        self.there: dict[str, list[Object]] = {TRAIN_JOBS: [], PYTORCH_JOBS: []}
        self.logs: dict[str, str] = {}
        self.read: list[Mapping[str, list[str]]] = []
        """Queries for logs."""
        self.quiet = False
        """No rank has logged anything of late."""
        self.maps: dict[str, Object] = {}
        self.published: list[Mapping[str, str]] = []
        self.refusals: list[Exception] = []
        self.at: Callable[[str], object] = lambda point: None
        """Called before and after whatever the program asks for."""
        self._version = 0

    def items(self, path: str, **query: str) -> list[Object]:
        found = self.there.get(path, [])
        if path == "/api/v1/pods" and (label := query.get("labelSelector")):
            found = [one for one in found if label in one["metadata"]["labels"]]
        return copy.deepcopy(found)

    def text(self, path: str, otherwise: str) -> str:
        url = urlsplit(path)
        asked = parse_qs(url.query)
        self.read.append(asked)
        log = self.logs.get(url.path.split("/")[-2], "" if self.quiet else otherwise)
        return ("" if self.quiet else "a line") if "sinceSeconds" in asked else log

    def ask(self, method: str, path: str, body: Any = None, kind: str = "json") -> Object:
        self.at(f"before {method}")
        answer = self._answer(method, urlsplit(path).path, body)
        self.at(f"after {method}")
        return copy.deepcopy(answer)

    def _answer(self, method: str, path: str, body: Any) -> Object:
        if path.endswith("/events"):
            return {"items": self.there.get("events", [])}
        if path == MAPS and method == "GET":
            return {"items": [one for one in self.maps.values() if "labels" in one["metadata"]]}
        if not path.startswith(MAPS):
            return self._job(path)
        name = path.rpartition("/")[2] if method != "POST" else body["metadata"]["name"]
        if method != "POST" and name not in self.maps:
            raise self.program.ApiError(404, "not found")
        if method == "DELETE":
            return self.maps.pop(name)
        if method == "POST" and name in self.maps:
            raise self.program.ApiError(409, "exists")
        if method != "GET":
            self._write(name, body)
        return self.maps[name]

    def _write(self, name: str, body: Object) -> None:
        kept = self.maps.setdefault(name, {"metadata": {}, "data": {}, "binaryData": {}})
        wanted = body.get("metadata", {}).get("resourceVersion")
        if wanted not in (None, kept["metadata"].get("resourceVersion")):
            raise self.program.ApiError(409, "another version")
        for section in ("metadata", "data", "binaryData"):
            for key, value in body.get(section, {}).items():
                kept[section][key] = value
                if value is None:
                    del kept[section][key]
        self._version += 1
        kept["metadata"]["resourceVersion"] = str(self._version)

    def _job(self, path: str) -> Object:
        """A job by its name: the list may be behind."""
        *_, namespace, plural, name = path.split("/")
        [every] = [jobs for at, jobs in self.there.items() if at.endswith(f"/{plural}")]
        for job in every:
            if (job["metadata"]["namespace"], job["metadata"]["name"]) == (namespace, name):
                return {key: value for key, value in job.items() if key != "kind"}
        raise self.program.ApiError(404, "not found")

    def publish(self, fields: Mapping[str, str]) -> str:
        self.at("before publish")
        if self.refusals:
            raise self.refusals.pop(0)
        self.published.append(dict(fields))
        self.at("after publish")
        return f"sns-{len(self.published)}"

    def subjects(self) -> list[str]:
        return [each["Subject"] for each in self.published]


@pytest.fixture
def server(program: ModuleType) -> Server:
    return Server(program)


def minutes(count: float) -> float:
    return BEGAN.timestamp() + count * MINUTE


def told_plan(*edits: Edit) -> ToldPlan:
    made = TOLD.of(environment_plan(at("told", {"emails": ["a@example.com"]}), *edits))
    assert made
    return made


PRICES = {"g6e": {"g6e.48xlarge": ["30.00", 8]}}


def told(server: Server, topic: str = TOPIC, **more: Any) -> Any:
    """A new pod of the program."""
    said = json.loads(settings(told_plan()).replace(TOPIC_ARN, topic))
    known = {"prices": PRICES, "as_of": "2026-10-01", **more}
    return server.program.Told(server, server.program.Settings(**said | known), server.publish)


def look(program: Any, count: float) -> None:
    program.step(minutes(count), count * MINUTE)


def running(number: int, job: str = "t5", **more: Any) -> Object:
    made = pod(number, job, **more)
    made["metadata"]["labels"][INDEX] = str(number)
    began = {"running": {"startedAt": moment(more.get("scheduled", 5))}}
    made["status"] |= {"phase": "Running", "containerStatuses": [{"name": "node", "state": began}]}
    return made


def failed(number: int, code: int = 1, ended: float = 60, **more: Any) -> Object:
    made = running(number, **more)
    end = {"exitCode": code, "reason": "Error", "finishedAt": moment(ended)}
    made["status"]["phase"] = "Failed"
    made["status"]["containerStatuses"] = [{"name": "node", "state": {"terminated": end}}]
    return made


def ends(job: Object, kind: str, ended: float, **more: str) -> Object:
    condition = {"type": kind, "status": "True", "lastTransitionTime": moment(ended), **more}
    return {**job, "status": {"conditions": [condition]}}


def begin(server: Server) -> Object:
    """A run of two ranks."""
    job = train_job(ended=None)
    server.there |= {
        TRAIN_JOBS: [job],
        "/api/v1/pods": [running(0), running(1)],
        "/api/v1/nodes": [node(0), node(1)],
    }
    return job


def fail(server: Server) -> None:
    """Rank 1 fails, and rank 0 ends because of it."""
    job = train_job(ended=None)
    reason = {"reason": "JobSetFailed", "message": f"jobset failed, PASSWORD=hunter2x {TOKEN}"}
    server.there[TRAIN_JOBS] = [ends(job, "Failed", 61, **reason)]
    server.there["/api/v1/pods"] = [failed(0, 143, 60.5), failed(1, 1, 60)]
    server.logs |= {
        "t5-node-0-1-x7k2p": f"step 7\nlogging in with {TOKEN}\nRuntimeError: CUDA error\n",
        "t5-node-0-0-x7k2p": "Signal 15\n",
    }


def complete(server: Server) -> None:
    server.there |= {TRAIN_JOBS: [train_job()], "/api/v1/pods": [pod(0), pod(1)]}


def test_a_run_that_is_complete_is_told_once_with_what_it_cost(server: Server) -> None:
    program = told(server)
    begin(server)
    look(program, 1)
    complete(server)
    for count in (71, 72, 73):
        look(program, count)
    [said] = server.published
    assert said["Subject"] == "dev: training/t5 is complete" and said["TopicArn"] == TOPIC
    text = said["Message"]
    assert "16.00 GPU-hours, 60.00 USD, at the prices of 2026-10-01" in text
    assert "on node-0, node-1" in text and "at least" not in text
    assert "trainyard again t5 --stack dev, then pulumi up --stack dev" in text


def test_a_run_that_failed_is_told_with_the_last_words_of_the_rank_that_failed_first(
    server: Server,
) -> None:
    program = told(server)
    begin(server)
    look(program, 1)
    fail(server)
    look(program, 62)
    look(program, 63)
    [said] = server.published
    text = said["Message"]
    assert said["Subject"] == "dev: training/t5 failed"
    assert "Node rank 1 ended first, with exit code 1 (Error)" in text and "on node node-1" in text
    assert "    RuntimeError: CUDA error" in text and "Signal 15" not in text
    assert "trainyard logs training/t5 --rank 1 --stack dev" in text
    assert "Reason: JobSetFailed: jobset failed" in text


def test_a_run_that_failed_is_told_with_the_line_that_says_why_and_what_to_do(
    server: Server,
) -> None:
    program = told(server)
    begin(server)
    look(program, 1)
    fail(server)
    server.logs["t5-node-0-1-x7k2p"] = (
        "step 7\nTraceback (most recent call last):\n  File 'train.py', line 3\n"
        f"torch.OutOfMemoryError: CUDA out of memory. {TOKEN}\n{torchrun('1', '0')}"
    )
    look(program, 62)
    text = server.published[0]["Message"]
    assert (
        "Why: node rank 1 on node-1 ended first, with exit code 1: torch.OutOfMemoryError: CUDA out of memory."
        " hidden-secret (a GPU has too little memory for the model and its batch)\n"
        "Fix: lower the batch of a rank, or shard the model over more GPUs\n"
    ) in text
    words = text.partition("Its last words:\n")[2].partition("\n\n")[0]
    assert words.splitlines()[-1].startswith("    torch.OutOfMemoryError: CUDA out of memory.")


def test_a_run_whose_pod_kubelet_ended_or_did_not_admit_is_told_with_what_kubelet_says(
    server: Server,
) -> None:
    program = told(server)
    begin(server)
    look(program, 1)
    fail(server)
    said = (
        "Pod was rejected: Allocate failed due to requested number of devices unavailable for gpu"
    )
    rejected = failed(1)
    rejected["status"] |= {"reason": "UnexpectedAdmissionError", "message": said}
    rejected["status"]["containerStatuses"] = []
    server.there["/api/v1/pods"] = [failed(0, 1, 60), rejected]
    server.logs = {}
    look(program, 62)
    text = server.published[0]["Message"]
    assert (
        f"Why: node rank 1 on node-1 ended: UnexpectedAdmissionError: {said} (kubelet did not"
        in text
    )
    assert "Node rank 1 ended first, at 2026-" in text and "    UnexpectedAdmissionError" in text


def test_a_run_that_is_complete_without_a_step_is_told_to_have_had_nothing_to_do(
    server: Server,
) -> None:
    program = told(server)
    begin(server)
    look(program, 1)
    complete(server)
    server.logs["t5-node-0-0-x7k2p"] = "resumed from step 81\nrank 0: final loss 0.2\n"
    look(program, 71)
    [said] = server.published
    assert said["Subject"] == "dev: training/t5 had nothing to do"
    assert "But it had nothing to do: it resumed from step 81, printed no step" in said["Message"]
    assert [value for key, value in said.items() if key.endswith("1.Value.StringValue")] == [
        "Complete"
    ]


def test_the_log_of_a_complete_run_is_read_once_while_sns_refuses(
    server: Server, program: ModuleType
) -> None:
    running = told(server)
    begin(server)
    look(running, 1)
    complete(server)
    server.logs["t5-node-0-0-x7k2p"] = "resumed from step 81\nrank 0: final loss 0.2\n"
    server.refusals = [refusal(program, refused=False)]
    for minute in (71, 73):
        look(running, minute)
    assert server.subjects() == ["dev: training/t5 had nothing to do"]
    assert [each["tailLines"] for each in server.read].count(["5000"]) == 1


def test_no_secret_of_a_log_or_of_a_condition_is_published_or_kept(server: Server) -> None:
    program = told(server)
    begin(server)
    look(program, 1)
    fail(server)
    server.logs["t5-node-0-1-x7k2p"] += (
        "export DB_PASSWORD=Tr0ub4dor&3x\nhttps://me:s3cr3tpw@host/\nAuthorization: Bearer"
        " abcdefghij0123456789\n" + "Ab9/" * 16 + "\n\x1b[31mlast line\x1b[0m\n"
    )
    look(program, 62)
    everything = json.dumps([server.published, server.maps])
    for secret in (TOKEN, "hunter2x", "Tr0ub4dor", "s3cr3tpw", "abcdefghij0123456789", "Ab9/Ab9/"):
        assert secret not in everything, secret
    text = server.published[0]["Message"]
    assert "logging in with hidden-secret" in text and "    last line" in text


def test_words_are_read_while_the_pod_is_there_and_stay_when_it_is_gone(server: Server) -> None:
    """JobSet or the training-operator deletes it soon."""
    program = told(server)
    begin(server)
    look(program, 1)
    fail(server)
    server.there[TRAIN_JOBS] = [train_job(ended=None)]
    look(program, 60.1)
    fail(server)
    server.there["/api/v1/pods"] = [failed(0, 143, 60.5)]
    look(told(server), 62)
    assert "    RuntimeError: CUDA error" in server.published[0]["Message"]


def test_words_of_an_earlier_attempt_are_not_those_of_the_last_one(server: Server) -> None:
    program = told(server)
    begin(server)
    look(program, 1)
    fail(server)
    server.there[TRAIN_JOBS] = [train_job(ended=None)]
    look(program, 60.1)
    again = [running(each, created=62, scheduled=62) for each in (0, 1)]
    server.there["/api/v1/pods"] = again
    look(program, 63)
    server.there[TRAIN_JOBS] = [ends(train_job(ended=None), "Failed", 90, reason="Deadline")]
    look(program, 90)
    text = server.published[0]["Message"]
    assert "CUDA" not in text and "No rank is known to have ended with an error." in text


def test_a_run_that_is_deleted_is_told_and_the_next_one_of_its_name_is_another_run(
    server: Server,
) -> None:
    program = told(server)
    begin(server)
    look(program, 1)
    second = train_job(ended=None)
    second["metadata"] |= {"uid": "second", "creationTimestamp": moment(30)}
    server.there |= {TRAIN_JOBS: [second], "/api/v1/pods": [running(0), running(1)]}
    look(program, 30)
    assert server.subjects() == ["dev: training/t5 was deleted before it ended"]
    assert "6.67 GPU-hours, 25.00 USD" in server.published[0]["Message"]
    server.there["/api/v1/pods"] = [running(each, created=31, scheduled=31) for each in (0, 1)]
    look(program, 32)
    server.there[TRAIN_JOBS] = [ends(second, "Complete", 40)]
    look(program, 41)
    assert server.subjects()[1:] == ["dev: training/t5 is complete"]
    assert "2.40 GPU-hours" in server.published[1]["Message"], "without the pods of the first run"


def test_a_list_that_lacks_a_job_for_a_moment_deletes_no_run(server: Server) -> None:
    program = told(server)
    begin(server)
    look(program, 1)
    items, behind = server.items, server.there[TRAIN_JOBS]
    server.items = lambda path, **query: [] if path == TRAIN_JOBS else items(path, **query)
    look(program, 2)
    assert server.published == [] and behind == server.there[TRAIN_JOBS]
    server.there[TRAIN_JOBS] = []
    look(program, 3)
    assert len(server.published) == 1


def test_a_run_that_ended_and_is_deleted_later_is_told_once(server: Server) -> None:
    program = told(server)
    begin(server)
    look(program, 1)
    complete(server)
    look(program, 71)
    server.there |= {TRAIN_JOBS: [], "/api/v1/pods": []}
    look(program, 72)
    look(told(server), 73)
    assert server.subjects() == ["dev: training/t5 is complete"]


def test_what_ended_before_the_first_program_began_is_not_told(server: Server) -> None:
    complete(server)
    look(told(server), 100)
    look(told(server), 101)
    assert server.published == []


def test_a_run_that_began_and_ended_while_no_program_looked_is_told(server: Server) -> None:
    look(told(server), 1)
    complete(server)
    look(told(server), 100)
    assert server.subjects() == ["dev: training/t5 is complete"]


def test_a_run_of_a_team_names_the_team_and_no_stack_that_is_not_its_own(server: Server) -> None:
    space = {"metadata": {"name": "training", "labels": {TEAM: "vision"}}}
    server.there["/api/v1/namespaces"] = [space]
    program = told(server)
    begin(server)
    look(program, 1)
    fail(server)
    look(program, 62)
    [said] = server.published
    assert "Run t5 of team vision failed" in said["Message"]
    assert "trainyard again t5 --stack <stack of team vision>" in said["Message"]
    values = {said[key] for key in said if key.endswith("StringValue")}
    assert values == {"Failed", "training", "vision"}


def pytorch_job(**more: Any) -> Object:
    job = train_job("qwen", ended=None)
    return {**job, "kind": "PyTorchJob", "spec": {"pytorchReplicaSpecs": {}}, **more}


def of(number: int, role: str, made: Object) -> Object:
    """The pod as one of the training-operator."""
    labels = {"job-name": "qwen", "replica-type": role, "replica-index": str(number)}
    made["metadata"]["labels"] = {
        f"training.kubeflow.org/{key}": value for key, value in labels.items()
    }
    return made


def test_a_pytorch_job_is_told_with_the_rank_of_its_worker(server: Server) -> None:
    program = told(server)
    both = [of(0, "master", running(0, "qwen")), of(0, "worker", running(1, "qwen"))]
    server.there |= {PYTORCH_JOBS: [pytorch_job()], "/api/v1/pods": both}
    look(program, 1)
    server.there["/api/v1/pods"][1] = of(0, "worker", failed(1, 9, job="qwen"))
    server.logs["qwen-node-0-1-x7k2p"] = "out of patience\n"
    server.there[PYTORCH_JOBS] = [ends(pytorch_job(), "Failed", 61)]
    look(program, 62)
    text = server.published[0]["Message"]
    assert "PyTorchJob qwen" in text and "Node rank 1 ended first, with exit code 9" in text
    assert "    out of patience" in text
    other = pytorch_job()
    other["metadata"] = {**other["metadata"], "uid": "other", "name": "other"}
    server.there[PYTORCH_JOBS] = [ends(other, "Succeeded", 70)]
    look(program, 71)
    assert server.subjects()[1] == "dev: training/other is complete"


def test_a_job_of_another_kind_of_the_operator_is_told_where_the_stack_has_the_kind(
    server: Server,
) -> None:
    made = pytorch_job(kind="MPIJob", spec={"mpiReplicaSpecs": {}})
    both = [of(0, "launcher", running(0, "qwen")), of(0, "worker", running(1, "qwen"))]
    plain, program = told(server), told(server, more_kinds=("MPIJob",))
    server.there |= {MPI_JOBS: [made], "/api/v1/pods": both}
    for each in (plain, program):
        look(each, 1)
    server.there["/api/v1/pods"][0] = of(0, "launcher", failed(0, 9, job="qwen"))
    server.there[MPI_JOBS] = [ends(made, "Failed", 61)]
    look(plain, 62)
    assert server.published == []
    look(program, 62)
    text = server.published[0]["Message"]
    assert "MPIJob qwen" in text and "Node rank 0 ended first, with exit code 9" in text
    server.there[MPI_JOBS] = []
    look(program, 63)
    assert len(server.published) == 1


def test_a_job_that_hangs_is_told_by_its_name_whatever_its_kind(server: Server) -> None:
    made = pytorch_job(kind="MPIJob", spec={"mpiReplicaSpecs": {}})
    program = told(server, more_kinds=("MPIJob",))
    both = [of(0, "launcher", running(0, "qwen")), of(0, "worker", running(1, "qwen"))]
    server.there |= {MPI_JOBS: [made], "/api/v1/pods": both}
    server.quiet = True
    for count in (5, 6, 60, 61):
        look(program, count)
    assert (
        [subject for subject in server.subjects() if "qwen" in subject] == server.subjects() != []
    )


def test_a_container_that_runs_again_did_not_end_the_run(program: ModuleType) -> None:
    first_end = sys.modules["first_end"]
    again = running(0)
    [status] = again["status"]["containerStatuses"]
    end = {"exitCode": 1, "finishedAt": moment(6), "reason": "Error"}
    status["lastState"] = {"terminated": end}
    found = first_end.first_to_fail([again, failed(1, 1, 60)])
    assert found.rank == 1
    assert first_end.first_to_fail([again]).previous
    assert first_end.first_to_fail([running(1)]) is None


def test_a_shell_is_no_run(server: Server) -> None:
    program = told(server)
    begin(server)["metadata"]["labels"] = {SHELL: "true"}
    look(program, 1)
    server.there[TRAIN_JOBS] = []
    look(program, 2)
    assert server.published == []


def hang(server: Server, monkeypatch: pytest.MonkeyPatch, count: float) -> None:
    """From here on the ranks have logged nothing for long."""
    monkeypatch.setattr(sys.modules["hangs"].time, "time", lambda: minutes(count))
    server.quiet = True
    server.logs |= {
        "t5-node-0-0-x7k2p": f"{moment(20)} waiting for rank 1\n",
        "t5-node-0-1-x7k2p": f"{moment(19)} opening the shard\n",
    }


def test_a_run_that_stands_still_is_told_once_and_again_when_its_gang_has_begun_anew(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = told(server)
    begin(server)
    look(program, 6)
    hang(server, monkeypatch, 60)
    look(program, 60)
    look(program, 61)
    look(told(server), 62)
    [said] = server.published
    assert said["Subject"] == "dev: training/t5 stands still"
    text = said["Message"]
    assert f"Node rank 1 is silent for longest, at {moment(19)}, on node node-1" in text
    assert "A bar of progress is no line before it has drawn 16 KiB" in text
    assert "none has logged a line for 15 minutes" in text and "opening the shard" in text
    assert "trainyard stop training/t5 --stack dev" in text
    monkeypatch.setattr(sys.modules["hangs"].time, "time", lambda: minutes(120))
    server.there["/api/v1/pods"] = [running(each, created=70, scheduled=71) for each in (0, 1)]
    program = told(server)
    look(program, 120)
    look(program, 121)
    assert len(server.published) == 2
    complete(server)
    look(program, 130)
    assert server.subjects()[2:] == ["dev: training/t5 is complete"]


def waits(number: int, reason: str, message: str = "", **more: Any) -> Object:
    """A pod that has a node, and one container that waits."""
    made = pod(number, **more)
    state = {"waiting": {"reason": reason, **({"message": message} if message else {})}}
    made["status"] |= {"phase": "Pending", "containerStatuses": [{"name": "node", "state": state}]}
    return made


NO_IMAGE = (
    "ImagePullBackOff",
    'Back-off pulling image "ghcr.io/team/train:9": ErrImagePull: failed to pull and unpack image'
    ' "ghcr.io/team/train:9": ghcr.io/team/train:9: not found',
)


def test_a_gang_that_does_not_start_on_its_nodes_is_told_once_with_the_cause_and_the_cost(
    server: Server,
) -> None:
    program = told(server)
    begin(server)
    server.there["/api/v1/pods"] = [waits(0, *NO_IMAGE), waits(1, *NO_IMAGE)]
    look(program, 19)  # the pods got their nodes at minute 5
    assert server.published == []
    look(program, 21)
    look(program, 22)
    look(told(server), 40)
    [said] = server.published
    assert said["Subject"] == "dev: training/t5 does not start"
    assert said["MessageAttributes.entry.1.Value.StringValue"] == "DoesNotStart"
    text = said["Message"]
    assert (
        "2 of its 2 pods have had a node for 15 minutes and have not started; the first is"
        " t5-node-0-0-x7k2p." in text
    )
    assert "Why: the image cannot be pulled: ghcr.io/team/train:9 does not exist\n" in text
    assert "Fix: aws ecr describe-images --repository-name team/train; push it" in text
    assert "It has waited for 16 min on node-0, node-1" in text
    assert "Cost so far: 4.27 GPU-hours, 16.00 USD" in text
    assert "trainyard status --stack dev" in text and "trainyard stop training/t5" in text
    complete(server)
    look(told(server), 71)
    assert server.subjects()[1:] == ["dev: training/t5 is complete"]


def test_a_gang_that_begins_anew_and_does_not_start_again_is_told_again(server: Server) -> None:
    program = told(server)
    begin(server)
    for created in (0, 30):
        again = {"created": created, "scheduled": created + 1}
        server.there["/api/v1/pods"] = [waits(each, *NO_IMAGE, **again) for each in (0, 1)]
        look(program, created + 20)
    assert server.subjects() == ["dev: training/t5 does not start"] * 2


SECRET = "MountVolume.SetUp failed for volume secrets: Failed fetching secret hf: AccessDenied"
PULLS = 'Pulling image "ghcr.io/team/train:1"'


def event(kind: str, message: str, at: float, component: str = "kubelet") -> Object:
    return {
        "type": kind,
        "message": message,
        "lastTimestamp": moment(at),
        "source": {"component": component},
    }


@pytest.mark.parametrize(
    ("events", "cause", "do"),
    [
        (
            [event("Normal", PULLS, 6), event("Warning", SECRET, 20)],
            "Secrets Manager refuses hf: the role of the pods",
            "aws secretsmanager describe-secret --secret-id hf",
        ),
        (
            [event("Warning", SECRET, 6), event("Normal", PULLS, 7)],
            f"Why: ContainerCreating: {PULLS}",
            "kubectl -n training describe pod t5-node-0-0-x7k2p",
        ),
        (
            [event("Normal", PULLS, 7), event("Normal", "Pod is blocked", 8, "karpenter")],
            f"Why: ContainerCreating: {PULLS}",
            "describe pod",
        ),
        ([], "Why: ContainerCreating\n", "describe pod"),
    ],
    ids=["Secrets Manager", "a long pull", "Karpenter", "no event"],
)
def test_what_keeps_kubelet_from_creating_a_container_is_read_in_its_last_event(
    server: Server, events: list[Object], cause: str, do: str
) -> None:
    begin(server)
    server.there["/api/v1/pods"] = [waits(0, "ContainerCreating"), running(1)]
    server.there["events"] = events
    look(told(server), 21)
    [said] = server.published
    assert "1 of its 2 pods" in said["Message"]
    assert cause in said["Message"] and do in said["Message"]


def init(state: Object) -> Object:
    made = waits(0, "PodInitializing")
    made["status"]["initContainerStatuses"] = [{"name": "init", "state": state}]
    return made


def test_an_init_container_that_waits_is_told_and_one_that_runs_is_not(server: Server) -> None:
    begin(server)
    program = told(server)
    server.there["/api/v1/pods"] = [init({"running": {"startedAt": moment(6)}})]
    look(program, 300)
    assert server.published == []
    server.there["/api/v1/pods"] = [
        init({"waiting": {"reason": NO_IMAGE[0], "message": NO_IMAGE[1]}})
    ]
    look(program, 301)
    assert "the image cannot be pulled" in server.published[0]["Message"]


def test_pods_that_started_once_or_that_end_are_no_such_message(server: Server) -> None:
    begin(server)
    program = told(server)
    crashed, ending, unseen = (waits(each, *NO_IMAGE) for each in range(3))
    crashed["status"]["phase"] = "Running"
    ending["metadata"]["deletionTimestamp"] = moment(6)
    unseen["status"].pop("containerStatuses")
    server.there["/api/v1/pods"] = [crashed, ending, unseen]
    look(program, 300)
    assert server.published == []


def homeless(number: int, **more: Any) -> Object:
    """A pod that has no node."""
    made = pod(number, **more)
    made["spec"].pop("nodeName")
    made["status"] = {"phase": "Pending", "conditions": []}
    return made


FULL = (
    "Failed to schedule pod, all available instance types exceed limits for nodepool (NodePool=g6e)"
)
SCHEDULER = "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector."


@pytest.mark.parametrize(
    ("events", "cause"),
    [
        (
            [
                event("Warning", FULL, 20, "karpenter"),
                event("Warning", SCHEDULER, 21, "default-scheduler"),
                event("Normal", "Pod should schedule on: nodeclaim/g6e-1", 22, "karpenter"),
            ],
            "Why: resources: pool g6e already has max_nodes nodes\n",
        ),
        (
            [event("Warning", "0/2 nodes are available: 2 Insufficient cpu.", 20, "scheduler")],
            "Why: 0/2 nodes are available: 2 Insufficient cpu.\nFix: kubectl -n training describe pod t5",
        ),
        (
            [
                event("Warning", SCHEDULER, 21, "default-scheduler"),
                event("Normal", "Pod should schedule on: nodeclaim/g6e-1", 22, "karpenter"),
            ],
            "Why: Karpenter makes a node for it, which has not joined: nodeclaim/g6e-1\n"
            "Fix: kubectl describe nodeclaim g6e-1\n",
        ),
        ([], "Why: no event tells the reason\nFix: kubectl -n training describe pod t5-node-0-1"),
    ],
    ids=["Karpenter", "the scheduler", "a node on its way", "no event"],
)
def test_a_gang_one_of_whose_pods_has_no_node_while_the_others_are_paid_for_is_told_once(
    server: Server, events: list[Object], cause: str
) -> None:
    begin(server)
    program = told(server)
    server.there["/api/v1/pods"] = [running(0), homeless(1)]
    server.there["events"] = events
    look(program, 19)  # the pod got its node at minute 5
    assert server.published == []
    look(program, 21)
    look(program, 22)
    look(told(server), 40)
    [said] = server.published
    assert said["Subject"] == "dev: training/t5 does not start"
    text = said["Message"]
    assert (
        "1 of its 2 pods have had no node for 15 minutes, while nodes of others are paid for; the first is"
        " t5-node-0-1-x7k2p.\n" in text
    )
    assert cause in text and "have had a node" not in text
    assert "It has waited for 16 min on node-0, with" in text
    assert "2.13 GPU-hours, 8.00 USD" in text


def test_what_to_do_about_a_pod_without_a_node_names_the_stack(server: Server) -> None:
    begin(server)
    server.there["/api/v1/pods"] = [running(0), homeless(1)]
    server.there["events"] = [event("Warning", "VcpuLimitExceeded: more", 20, "karpenter")]
    look(told(server), 21)
    assert "`trainyard plan --stack dev` prints the quota" in server.published[0]["Message"]


def test_pods_without_a_node_and_pods_that_wait_on_theirs_are_one_message(server: Server) -> None:
    begin(server)
    server.there["/api/v1/pods"] = [waits(0, *NO_IMAGE), homeless(1)]
    server.there["events"] = [event("Warning", FULL, 20, "karpenter")]
    look(told(server), 21)
    [said] = server.published
    assert "1 of its 2 pods have had no node" in said["Message"]
    assert (
        "1 of its 2 pods have had a node for 15 minutes and have not started.\n" in said["Message"]
    )


def elastic(made: Object) -> Object:
    made["spec"]["containers"][0]["env"] = [{"name": "PET_NNODES", "value": "1:2"}]
    return made


@pytest.mark.parametrize(
    "pods",
    [
        lambda: [homeless(0), homeless(1)],
        lambda: [running(0), homeless(1, created=290)],
        lambda: [running(0, scheduled=290), homeless(1)],
        lambda: [failed(0), homeless(1)],
        lambda: [running(0, pool="", gpus=0), homeless(1)],
        lambda: [elastic(running(0)), elastic(homeless(1))],
    ],
    ids=["no node", "a new pod", "a new node", "an ended pod", "a launcher", "an elastic job"],
)
def test_pods_without_a_node_are_no_message_where_no_node_waits_for_them(
    server: Server, pods: Callable[[], list[Object]]
) -> None:
    begin(server)
    server.there["/api/v1/pods"] = pods()
    look(told(server), 300)
    assert server.published == []


NUMBER = re.compile(r"^Message (\w{16})\.", re.MULTILINE)
COPY = "a first copy may have come before"


def numbers(server: Server) -> list[str]:
    return [NUMBER.findall(each["Message"])[0] for each in server.published]


def end(server: Server, what: str) -> None:
    if what == "Deleted":
        server.there |= {TRAIN_JOBS: [], "/api/v1/pods": []}
    else:
        {"Failed": fail, "Complete": complete}[what](server)


@pytest.mark.parametrize("what", ["Complete", "Failed", "Deleted"])
def test_a_program_that_is_killed_anywhere_leaves_one_message_or_a_marked_copy_of_it(
    program: ModuleType, what: str
) -> None:
    """A copy comes where it was killed between SNS's answer and its own confirmation, and only there."""
    copies, point = list[str](), 0
    while True:
        server, passed = Server(program), list[str]()
        begin(server)
        first = told(server)
        look(first, 1)
        end(server, what)

        def kill(name: str, passed: list[str] = passed, last: int = point) -> None:
            passed.append(name)
            if len(passed) > last:
                raise Killed

        server.at = kill
        try:
            look(first, 71)
            break
        except Killed:
            server.at = lambda name: None
        second = told(server)
        for count in (72, 72.5, 73.5, 74, 75):
            look(second, count)
        assert len({*numbers(server)}) == 1, passed
        if len(server.published) > 1:
            assert len(server.published) == 2 and COPY in server.published[1]["Message"]
            copies.append(passed[-1])
        point += 1
    assert point > 8 and len(server.published) == 1
    assert copies == ["after publish", "before PATCH"]


def test_a_fifo_topic_is_given_the_number_by_which_it_drops_the_copy(server: Server) -> None:
    program = told(server, topic=f"{TOPIC}.fifo")
    begin(server)
    look(program, 1)
    complete(server)
    look(program, 71)
    [said] = server.published
    assert said["MessageDeduplicationId"] == numbers(server)[0]
    assert said["MessageGroupId"] == "uid-of-training-t5"


class Interruption:
    """At one point of a program another one looks."""

    def __init__(self, server: Server, other: Any, passed: list[str], point: int) -> None:
        self.server, self.other, self.passed, self.point = server, other, passed, point

    def __call__(self, name: str) -> None:
        self.passed.append(name)
        if len(self.passed) == self.point + 1:
            self.server.at = lambda _: None
            look(self.other, 71)
            self.server.at = self


@pytest.mark.parametrize("what", ["Complete", "Failed", "Deleted"])
def test_of_two_programs_one_publishes_wherever_the_other_comes_in_between(
    program: ModuleType, what: str
) -> None:
    """As where the node of the first is not reached and Kubernetes starts a second."""
    point = 0
    while True:
        server, passed = Server(program), list[str]()
        begin(server)
        one, other = told(server), told(server)
        look(one, 1)
        look(other, 1)
        end(server, what)

        server.at = Interruption(server, other, passed, point)
        look(one, 71)
        server.at = lambda name: None
        for count in (71.2, 71.4):
            look(other, count)
            look(one, count)
        assert len(server.published) == 1, passed
        if len(passed) <= point:
            break
        point += 1
    assert point > 8


def test_a_claim_of_another_program_is_left_to_it_for_a_minute(server: Server) -> None:
    begin(server)
    first, second = told(server), told(server)
    look(first, 1)
    look(second, 1)
    complete(server)

    def kill(point: str) -> None:
        if point == "before publish":
            raise Killed

    server.at = kill
    with pytest.raises(Killed):
        look(first, 71)
    server.at = lambda point: None
    for count in (71.1, 71.5, 72):
        look(second, count)
        assert server.published == []
    look(second, 72.2)
    assert len(server.published) == 1


def refusal(program: ModuleType, *, refused: bool) -> Exception:
    return sys.modules["query"].AwsError("Throttled", "not now", refused=refused)


def test_what_sns_refuses_is_published_later_and_is_no_copy(
    server: Server, program: ModuleType
) -> None:
    server.refusals = [refusal(program, refused=True), refusal(program, refused=True)]
    looks = told(server)
    begin(server)
    look(looks, 1)
    complete(server)
    look(looks, 71)
    look(looks, 71.1)
    assert len(server.refusals) == 1, "a topic that refuses is not asked at each look"
    for count in (71.5, 73):
        look(looks, count)
    [said] = server.published
    assert COPY not in said["Message"]


def test_what_sns_may_have_taken_is_published_again_as_a_copy(
    server: Server, program: ModuleType
) -> None:
    server.refusals = [refusal(program, refused=False)]
    looks = told(server)
    begin(server)
    look(looks, 1)
    complete(server)
    for count in (71, 71.1, 71.5, 72):
        look(looks, count)
    [said] = server.published
    assert COPY in said["Message"]


def test_a_confirmation_that_fails_is_written_later_and_nothing_is_published_again(
    server: Server,
) -> None:
    program = told(server)
    begin(server)
    look(program, 1)
    complete(server)

    def away(point: str) -> None:
        if server.published and point == "before PATCH":
            raise server.program.ApiError(0, "no answer")

    server.at = away
    look(program, 71)
    look(program, 72)
    server.at = lambda point: None
    look(program, 73)
    look(told(server), 80)
    assert len(server.published) == 1


def test_a_pod_that_is_to_end_claims_nothing_and_leaves_it_to_the_next(server: Server) -> None:
    program = told(server)
    begin(server)
    look(program, 1)
    complete(server)
    program.messages.ends.set()
    look(program, 71)
    assert server.published == []
    look(told(server), 72)
    assert len(server.published) == 1


def test_a_run_is_forgotten_a_day_after_its_job_is_gone(server: Server) -> None:
    program = told(server)
    begin(server)
    look(program, 1)
    complete(server)
    look(program, 71)
    server.there |= {TRAIN_JOBS: [], "/api/v1/pods": []}
    look(program, 71 + 60)
    assert "run-uid-of-training-t5" in server.maps
    look(program, 71 + 25 * 60)
    assert [*server.maps] == ["began"] and len(server.published) == 1


def test_a_pod_pays_for_its_gpus_of_a_node_and_a_launcher_pays_for_none(server: Server) -> None:
    program = told(server)
    begin(server)
    look(program, 1)
    shares = [pod(0, gpus=2), pod(1, gpus=0, pool="")]
    server.there |= {TRAIN_JOBS: [train_job()], "/api/v1/pods": shares}
    look(program, 71)
    assert "2.00 GPU-hours, 7.50 USD" in server.published[0]["Message"]


def test_a_pod_whose_sidecar_has_ended_is_paid_for_until_it_goes(server: Server) -> None:
    program = told(server)
    begin(server)
    for each in server.there["/api/v1/pods"]:
        over = {"name": "side", "state": {"terminated": {"exitCode": 0, "finishedAt": moment(6)}}}
        each["status"]["containerStatuses"].append(over)
    look(program, 1)
    server.there |= {TRAIN_JOBS: [], "/api/v1/pods": []}
    look(program, 65)
    assert "16.00 GPU-hours" in server.published[0]["Message"]


def test_a_price_that_is_not_known_makes_the_cost_at_least_what_is_known(server: Server) -> None:
    program = told(server, prices={})
    begin(server)
    look(program, 1)
    complete(server)
    look(program, 71)
    assert "16.00 GPU-hours, no price is known" in server.published[0]["Message"]


@pytest.mark.parametrize(("replaced", "dollars"), [(False, " 60.00"), (True, " at least 60.00")])
def test_the_cost_is_exact_unless_the_gang_began_anew_while_nobody_looked(
    server: Server, replaced: bool, dollars: str
) -> None:
    program = told(server)
    begin(server)
    look(program, 1)
    job_set = {"metadata": {"name": "t5", "namespace": "training"}, "status": {"restarts": 1}}
    server.there["/apis/jobset.x-k8s.io/v1alpha2/jobsets"] = [job_set]
    complete(server)
    look(told(server) if replaced else program, 71)
    assert f"GPU-hours,{dollars} USD" in server.published[0]["Message"]


def test_a_subject_is_ascii_and_short_enough_for_sns(server: Server) -> None:
    program = told(server)
    job = begin(server)
    job["metadata"]["name"] = "n" * 120
    look(program, 1)
    server.there[TRAIN_JOBS] = []
    look(program, 2)
    [subject] = server.subjects()
    assert len(subject) == 100 and subject.isascii()
