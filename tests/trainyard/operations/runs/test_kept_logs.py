"""What `trainyard logs --past` prints of pods that are gone."""

from __future__ import annotations

import time
from typing import Any

import boto3
import moto
import pytest

from tests.support.tool import run_word
from trainyard.objects.programs.pod_logs import stream
from trainyard.operations.runs import kept_logs

GROUP = "/trainyard/pods/dev-pod-logs-0"
LINES = {
    ("training", "seen-node-0-1-bbbbb", "node"): ["again 1"],
    ("training", "seen-node-0-0-aaaaa", "node"): ["first 0", "second 0"],
    ("training", "seen-again-node-0-0-ccccc", "node"): ["of another"],
    ("vision", "seen-node-0-0-ddddd", "node"): ["of a team"],
    ("vision", "old-worker-0", "pytorch"): ["worker"],
    ("vision", "old-master-0", "pytorch"): ["master"],
    ("vision", "shell", "main"): ["no pod of a run"],
}
"""Namespace, pod and container → its lines. The later in the list, the earlier it was written."""


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch) -> Any:
    entry = {"kind": "TrainJob", "namespace": "training", "name": "seen"}
    told = {"log_group": GROUP, "jobs": {"entry": entry}}
    monkeypatch.setattr(kept_logs, "outputs", lambda stack: told)
    monkeypatch.setattr(kept_logs, "deployment", lambda stack: {})
    session = boto3.Session(region_name="us-east-1")
    monkeypatch.setattr(kept_logs, "session_of", lambda state: session)
    with moto.mock_aws():
        client: Any = session.client("logs")
        client.create_log_group(logGroupName=GROUP)
        now = int(time.time() * 1000)
        for number, ((namespace, pod, container), lines) in enumerate(LINES.items()):
            name = f"{stream(namespace, pod)}.{container}"
            client.create_log_stream(logGroupName=GROUP, logStreamName=name)
            events = [{"timestamp": now - number * 1000, "message": line} for line in lines]
            client.put_log_events(logGroupName=GROUP, logStreamName=name, logEvents=events)
        yield told


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert run_word("logs", ["--stack", "dev", "--past", *words]) == 0
    return capsys.readouterr().out.splitlines()


def test_pods_that_are_gone_are_printed_by_entry_the_first_to_begin_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert printed(capsys, "--job", "entry") == [
        "[pod/seen-node-0-0-aaaaa/node] first 0",
        "[pod/seen-node-0-0-aaaaa/node] second 0",
        "[pod/seen-node-0-1-bbbbb/node] again 1",
    ]


def test_a_job_of_a_team_is_named_with_its_namespace(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "--job", "vision/seen") == ["[pod/seen-node-0-0-ddddd/node] of a team"]


def test_one_node_of_a_job_is_chosen_as_make_logs_counts_nodes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert printed(capsys, "--job", "old", "--rank", "1") == ["[pod/old-worker-0/pytorch] worker"]
    assert printed(capsys, "--job", "old", "--rank", "0") == ["[pod/old-master-0/pytorch] master"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--job", "seen"),
            "logs of seen are kept of 2 jobs. Fix: name one by --job: training/seen,",
        ),
        (
            ("--job", "none"),
            "logs of none are kept of 0 jobs. Fix: name one by --job: training/seen,",
        ),
        (
            ("--job", "old", "--rank", "7"),
            "vision/old has no node 7. Fix: name one by --rank: 0, 1",
        ),
        (("--follow",), "Fix: leave out --follow"),
    ],
)
def test_what_is_not_kept_is_answered_with_what_is(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    assert run_word("logs", ["--stack", "dev", "--past", *words]) == 1
    assert said in capsys.readouterr().err


def test_a_stack_that_keeps_no_logs_says_how_to(
    capsys: pytest.CaptureFixture[str], kept: dict[str, Any]
) -> None:
    del kept["log_group"]
    assert run_word("logs", ["--stack", "dev", "--past"]) == 1
    assert "Fix: write logs: {} into its environment" in capsys.readouterr().err
