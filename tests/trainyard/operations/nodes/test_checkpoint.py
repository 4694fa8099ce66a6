"""`trainyard checkpoint`: the newest checkpoint of a job that is whole, looked for in a pod without a GPU."""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.recording import CHECKOUT
from tests.support.tool import run_word
from tests.test_whole import by_torch
from tests.trainyard.operations.nodes.test_shell import Cluster
from trainyard.operations.nodes import checkpoint
from trainyard.operations.nodes.checkpoint import command, place_of, plan_jobs, pod_of
from trainyard.operations.nodes.shell_job import ShellError
from trainyard.operations.reach.stack import read_stack

Object = dict[str, Any]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The dev file with a pool without GPUs, a changed job that begins afresh, a sweep and a schedule."""
    (tmp_path / "Pulumi.yaml").write_text((CHECKOUT / "Pulumi.yaml").read_text())
    (tmp_path / "workloads").symlink_to(CHECKOUT / "workloads")
    values = yaml.safe_load((CHECKOUT / "Pulumi.dev.yaml").read_text())
    settings = next(it for key, it in values["config"].items() if key.endswith(":environment"))
    settings["pools"]["cpu"] = {"instance_types": ["m7i.4xlarge"], "max_nodes": 1}
    job = settings["jobs"]["t5-large"]

    def saving(directory: str, **more: Any) -> Object:
        saved = {"store": "scratch", "directory": directory, **more.pop("saved", {})}
        return {**job, "checkpoints": saved, **more}

    settings["jobs"] |= {
        "fresh": saving("fresh", saved={"when_changed": "afresh"}),
        "tune": saving("tune/{x}", env={"X": "{x}"}, sweep={"over": {"x": [1, 2]}}),
        "nightly": saving("nightly/{scheduled_time}", schedule={"cron": "@daily"}),
    }
    (tmp_path / "Pulumi.dev.yaml").write_text(yaml.safe_dump(values))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_it_looks_where_a_run_saves_that_is_planned_now() -> None:
    jobs = plan_jobs(read_stack("dev"))
    saved = jobs["t5-large"].checkpoints
    assert saved and place_of(jobs, "t5-large")[1] == saved
    fresh = place_of(jobs, "fresh")[1]
    assert fresh.startswith("scratch/fresh/") and len(fresh) > len("scratch/fresh/")
    assert place_of(jobs, "tune-2")[1] == "scratch/tune/2"
    assert place_of(jobs, "nightly-20261130-0300")[1] == "scratch/nightly/20261130-0300"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("job", "said"),
    [
        ("nightly", "Fix: --job nightly-<time>, as `trainyard runs` lists its runs"),
        ("mien", "no job mien saves to a store. Fix: name one by --job:"),
        (None, "no job is named. Fix: name one by --job:"),
    ],
)
def test_a_job_that_is_not_clear_is_refused_with_a_fix(job: str | None, said: str) -> None:
    with pytest.raises(ShellError) as refused:
        place_of(plan_jobs(read_stack("dev")), job)
    assert said in str(refused.value)


@pytest.mark.usefixtures("folder")
def test_its_pod_has_no_gpu_the_image_of_the_job_and_the_pool_without_gpus() -> None:
    options = argparse.Namespace(job="t5-large", pool=None, image=None, minutes=5)
    stack = read_stack("dev")
    shell = pod_of(stack, options)
    assert (shell.pool, shell.gpus, shell.image) == ("cpu", 0, stack.jobs["t5-large"].image)
    assert "/stores/scratch/" in shell.body["spec"]["trainer"]["command"][-1]
    other = argparse.Namespace(
        job="t5-large", pool="g6e", image="registry.example.com/a:1", minutes=5
    )
    assert (pod_of(stack, other).pool, pod_of(stack, other).image) == ("g6e", other.image)


def test_its_command_names_the_newest_whole_one_and_needs_only_a_shell_and_python(
    tmp_path: Path,
) -> None:
    for number in (5, 10, 15):
        by_torch(tmp_path / f"checkpoint-{number}")
    [file] = [it for it in (tmp_path / "checkpoint-15").rglob("*") if it.is_file()]
    file.write_bytes(file.read_bytes()[:-9])
    words = ["/bin/sh", "-c", command(CHECKOUT, str(tmp_path))]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"{tmp_path / 'checkpoint-10'}\n")
    assert "checkpoint-15 is not whole" in done.stderr and file.exists()
    gone = subprocess.run(
        ["/bin/sh", "-c", command(CHECKOUT, str(tmp_path / "no"))], capture_output=True, text=True
    )
    assert gone.returncode == 1 and "Traceback" not in gone.stderr and "is no folder" in gone.stderr


def test_the_path_is_all_of_standard_output_and_the_pod_is_deleted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Cluster(
        monkeypatch, folder, "/stores/scratch/t5/step-40\n[ended with 0]\n", module=checkpoint
    )
    assert run_word("checkpoint", ["t5-large", "--stack", "dev", "--yes"]) == 0
    said = capsys.readouterr()
    assert said.out == "/stores/scratch/t5/step-40\n" and cluster.deleted
    assert "no GPU on pool cpu" in said.err and "USD an hour" in said.err
    assert json.loads(cluster.sent)["metadata"]["name"].startswith("checkpoint-")


def test_nothing_starts_where_the_job_is_not_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Cluster(monkeypatch, folder, "", module=checkpoint)
    assert run_word("checkpoint", ["mien", "--stack", "dev", "--yes"]) == 1
    assert capsys.readouterr().err.endswith("Nothing was started.\n") and not cluster.calls
