"""What somebody who trains types, one word after the other, on one stack file: check, plan, up that
fails, logs, stop, again, check. Each message must say what to type next."""

from __future__ import annotations

from pathlib import Path

import pytest

from development import engine, steps
from development.engine import Stack
from development.progress import Display, Stages
from rehearsal import paths
from tests.support.recording import CHECKOUT
from tests.support.tool import run_word
from tests.trainyard.operations.test_words import STACK_FILE, Cluster

FAILURE = """\
TrainJob training/mine is Failed: node rank 1 on n1 ended first, with exit code 1: RuntimeError: loss is NaN at step 10
the log of pod mine-node-0-1, up to the line that says why:
Traceback (most recent call last):
RuntimeError: loss is NaN at step 10
the last line of every pod:
[pod/mine-node-0-0/node] Connection closed by peer
"""
"""What components/jobs/wait_for_job.py reports."""


@pytest.fixture
def stack_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Pulumi.dev.yaml of a folder that is the current one."""
    file = tmp_path / "Pulumi.dev.yaml"
    file.write_text(STACK_FILE.partition("      theirs:")[0])
    (tmp_path / "Pulumi.yaml").write_text((CHECKOUT / "Pulumi.yaml").read_text())
    monkeypatch.chdir(tmp_path)
    return file


def test_from_a_failed_run_to_a_fresh_one_every_word_names_the_next(
    stack_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def said() -> str:
        return capsys.readouterr().out

    assert run_word("check", ["dev"]) == 0, said()
    assert "dev: no errors" in said()
    assert run_word("plan", ["dev"]) == 0
    assert "8 GPUs, " in said()

    shown: list[str] = []
    stages = Stages(Display(shown.append))
    stages.consume([{"diagnosticEvent": {"severity": "error", "message": FAILURE}}])
    monkeypatch.setattr(paths, "LOGS", stack_file.parent)
    monkeypatch.setattr(engine, "CHECKOUT", stack_file.parent)
    (stack := Stack(name="dev")).log.touch()
    assert steps.failed(stack, stages, 255) == 1
    up = "\n".join(shown)
    assert (
        "RuntimeError: loss is NaN at step 10" in up
        and "trainyard logs mine  # print the job's logs" in up
    )

    cluster = Cluster(monkeypatch, answer="y")
    assert run_word("logs", ["--stack", "dev", "--job", "mine"]) == 0 and cluster.followed
    said()
    assert run_word("stop", ["--stack", "dev", "--job", "mine"]) == 0
    assert (
        "to go on from its checkpoint in scratch/mine, if it wrote one: trainyard again mine --stack dev, then make up"
        " STACK=dev\nto begin afresh in scratch/mine-2: write checkpoints.directory: mine-2 into jobs.mine,"
        " then make up STACK=dev\n"
    ) in said()
    assert run_word("again", ["--stack", "dev", "--job", "mine"]) == 0
    assert "to begin afresh instead: write another checkpoints.directory, such as mine-2" in said()

    assert run_word("check", ["dev"]) == 0
    assert "run 2 resumes from the checkpoint that the run before it left in scratch/mine" in said()
    fresh = stack_file.read_text().replace("directory: mine}", 'directory: "mine/{run}"}')
    stack_file.write_text(fresh)
    assert run_word("check", ["dev"]) == 0 and "resumes from" not in said()
