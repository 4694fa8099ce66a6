"""Differences of two runs of a job that its spec only points at: files, and the directory for checkpoints."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from tests.support.stackfile import Edit, at, environment_plan
from tests.trainyard.replacing.test_new_runs import JOB
from trainyard.catalog.job_kinds import ENGINE_TYPES
from trainyard.plan import EnvironmentPlan
from trainyard.replacing.changes import CONFIG_MAP, differences
from trainyard.replacing.deployed import Deployed
from trainyard.replacing.new_runs import TYPES, run_warnings

SCRIPTS = {"lab/train.py": "print(1)\n", "lab/data.py": "print(2)\n"}
FILES = {"sources": [*SCRIPTS]}


@pytest.fixture(autouse=True)
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for path, text in SCRIPTS.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _job(**more: Any) -> Edit:
    return at("jobs", {"t5": {**copy.deepcopy(JOB), **more}})


def _plan(**more: Any) -> EnvironmentPlan:
    return environment_plan(_job(**more), folder=Path())


def _deployed(plan: EnvironmentPlan) -> Deployed:
    found: dict[tuple[str, str], Any] = {}
    for name, job in plan.jobs.items():
        run = {"annotations": {"trainyard.io/run": job.run}}
        found[ENGINE_TYPES[job.kind], name] = {
            "metadata": run,
            "spec": copy.deepcopy(dict(job.spec)),
        }
        if job.files:
            found[CONFIG_MAP, f"{name}-files"] = {"data": dict(job.files.data)}
    return Deployed(resources={key: it for key, it in found.items() if key[0] in TYPES})


def _said(was: EnvironmentPlan, now: EnvironmentPlan) -> str:
    [warning] = run_warnings(now, _deployed(was), {})
    return str(warning).partition("starts another one: ")[2]


def test_a_changed_script_is_said_by_its_path_in_the_checkout(checkout: Path) -> None:
    was = _plan(files=FILES)
    (checkout / "lab/train.py").write_text("print(3)\n")
    assert _said(was, _plan(files=FILES)) == "`lab/train.py` changed"


def test_a_file_that_came_and_one_that_went_are_said(checkout: Path) -> None:
    one, two = ({"sources": [path]} for path in SCRIPTS)
    said = _said(_plan(files=one), _plan(files=two))
    assert said == "`lab/data.py` is new, `train.py` is gone"


def test_all_files_that_a_job_gets_or_loses_are_said_without_their_volume() -> None:
    none, both = _plan(), _plan(files=FILES)
    assert _said(none, both) == "`lab/data.py` is new, `lab/train.py` is new"
    assert _said(both, none) == "`data.py` is gone, `train.py` is gone"


def test_another_folder_for_the_same_files_is_said_as_such() -> None:
    said = _said(_plan(files=FILES), _plan(files={**FILES, "path": "/code"}))
    assert said == "`files.mountPath` `/workspace` → `/code`"


@pytest.mark.parametrize("storage", [JOB["storage"], {}])
def test_a_run_that_begins_afresh_is_said_to_begin_in_a_directory_of_its_own(
    storage: dict[str, Any],
) -> None:
    """With and without the store among those that the job mounts: the directory is in a variable, or in the mount."""
    saves = {"checkpoints": {**JOB["checkpoints"], "when_changed": "afresh"}, "storage": storage}
    was, now = _plan(**saves), _plan(**saves, run=1, image="train:2")
    directory = now.jobs["t5"].checkpoints
    said = "`image` `train:1` → `train:2`, the run begins in a directory of its own, "
    assert _said(was, now) == f"{said}`{directory}`"


@pytest.mark.parametrize("storage", [JOB["storage"], {}])
def test_another_directory_for_checkpoints_is_said_by_its_setting(storage: dict[str, Any]) -> None:
    then = {"checkpoints": {"store": "scratch", "directory": "t5-2"}, "storage": storage}
    said = _said(_plan(storage=storage), _plan(**then))
    assert said == "`checkpoints.directory` `t5` → `t5-2`"


def test_one_field_of_an_object_without_a_name_is_said_alone() -> None:
    old, new = ({"tolerations": [{"key": "a", "for": each}]} for each in (30, 60))
    assert differences(old, new) == "`tolerations.for` `30` → `60`"


def test_two_mounts_of_one_volume_are_both_compared() -> None:
    old, new = (
        {"mounts": [{"name": "a", "at": each}, {"name": "a", "at": "/z"}]} for each in ("/x", "/y")
    )
    assert differences(old, new) == "`mounts.at` `/x` → `/y`"


def test_a_run_of_a_sweep_is_said_at_the_entry_that_the_file_has() -> None:
    torchrun = {**JOB["torchrun"], "arguments": ["--lr={lr}"]}
    sweep = {"sweep": {"over": {"lr": [1, 2]}}, "torchrun": torchrun}
    places = {"checkpoints": {"store": "scratch", "directory": "t5/{lr}"}}
    was, now = _plan(**sweep, **places), _plan(**sweep, **places, image="train:2")
    said = [*run_warnings(now, _deployed(was), {})]
    assert [each.path for each in said] == ["environment.jobs.t5"] * 2
    assert said[0].text == (
        "this update ends run t5-1 of its sweep and starts another one: `image` `train:1` → `train:2`"
    )
