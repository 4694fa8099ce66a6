"""Which environments cannot hand their jobs to others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.dispatching import MANAGER, WORKER, checkout, nothing, planned
from tests.support.recording import stack_values
from tests.support.stackfile import ENVIRONMENT, TEAM, Edit, at, without
from tests.support.sweep import lines_not_reached
from tests.support.teams import both, by_name
from trainyard.rules import workers

AT = "queues.workers"
CASES: dict[str, tuple[Edit, Edit, str, str]] = {
    "a Trainer that runs the job in both": (
        at("trainer.version", "2.1.0"),
        nothing,
        AT,
        "must be set only with trainer.version 2.3.0 or newer: before it, two clusters run one job; got"
        " trainer.version 2.1.0. Fix: set environment.trainer.version: 2.3.0, or delete it",
    ),
    "a manager of a manager": (
        at("queues.manager", "arn:aws:iam::111122223333:role/other-queues"),
        nothing,
        "queues.manager",
        "must not be set beside environment.queues.workers: a job is handed on once",
    ),
    "PyTorchJobs": (
        at("training_operator", {"version": "1.8.1"}),
        nothing,
        "training_operator",
        "it runs a PyTorchJob in both clusters; got 1.8.1",
    ),
    "itself": (at(AT, [MANAGER]), nothing, AT, "must name other environments; got"),
    "one twice": (at(AT, [WORKER, WORKER]), nothing, AT, "got tokyo, tokyo"),
    "more than Kueue takes": (
        at(AT, [f"region-{number}" for number in range(21)]),
        nothing,
        AT,
        "must be at most 20 environments; got 21. Fix: delete 1 of them",
    ),
    "nodes that stand idle": (
        at("pools.h100.replicas", 1),
        nothing,
        "pools.h100.replicas",
        "must not be set beside environment.queues.workers: the jobs run in other clusters, and the"
        " nodes would stand idle; got h100",
    ),
    "no stack file": (at(AT, ["osaka"]), nothing, AT, "got osaka: it has none"),
    "a worker without queues": (
        nothing,
        without("queues"),
        AT,
        "must be environments with queues; got tokyo: it has none. Fix: change Pulumi.tokyo.yaml",
    ),
    "a team that the worker lacks": (
        nothing,
        without("teams.nlp"),
        AT,
        "must have the same team nlp: a job arrives there as it is written here; got tokyo: it has none",
    ),
    "a team in another namespace": (
        nothing,
        at("teams.nlp.namespace", "nlp"),
        AT,
        "same team nlp: a job arrives there as it is written here; got tokyo: there: nlp, here: team-nlp",
    ),
    "a pool of other types": (
        nothing,
        at("pools.g6e.instance_types", ["g6.48xlarge"]),
        AT,
        "got tokyo: there: g6.48xlarge, here: g6e.48xlarge",
    ),
    "a runtime that the worker lacks": (
        at("trainer.own_runtimes.ours", {"kind": "torch-distributed-resilient"}),
        nothing,
        AT,
        "must have the same runtime ours",
    ),
    "a guarantee of nodes that exist nowhere": (
        nothing,
        at("pools.g6e.max_nodes", 3),
        "pools.g6e.max_nodes",
        "must be at most 3, which the workers have together; got 4. Fix: write 3",
    ),
    "a store in another zone": (
        nothing,
        both(at("zone", "ap-northeast-2c"), at("storage.scratch.lustre.capacity_gib", 4800)),
        AT,
        "must have the same claim for team vision of store scratch",
    ),
}
"""What is wrong → edits of the manager and of the worker, path of the error, part of its text."""


@pytest.mark.parametrize("case", CASES)
def test_environments_that_do_not_fit_are_refused(case: str, tmp_path: Path) -> None:
    manager, worker, path, says = CASES[case]
    found = planned(MANAGER, checkout(tmp_path, manager, worker)).errors
    errors = [str(error) for error in found if error.path == f"environment.{path}"]
    assert any(says in error for error in errors), list(map(str, found))


def test_environments_that_fit_are_not_refused(tmp_path: Path) -> None:
    folder = checkout(tmp_path, worker=at("pools.g6e.max_nodes", 9))
    assert planned(MANAGER, folder).errors == () == planned(WORKER, folder).errors


def test_a_worker_that_admits_nobody_yet_is_a_warning(tmp_path: Path) -> None:
    """Its line names a role that exists after the manager's first update."""
    found = planned(MANAGER, checkout(tmp_path, worker=without("queues.manager")))
    assert found.errors == ()
    assert "no job runs in tokyo before Pulumi.tokyo.yaml has" in str(found.warnings)


def test_a_worker_needs_the_newer_trainer_too(tmp_path: Path) -> None:
    found = planned(WORKER, checkout(tmp_path, worker=at("trainer.version", "2.1.0"))).errors
    assert [error.path for error in found] == ["environment.queues.manager"]


def with_files(folder: Path) -> Path:
    """A checkout with a job that brings files."""
    checkout(folder)
    values: dict[str, Any] = stack_values("team-vision")
    by_name(values[TEAM])
    job = values[TEAM]["jobs"]["vit-base"]
    job.pop("checkpoints", None)
    (folder / "train.py").write_text("print()\n")
    job |= {
        "allow_no_checkpoint": True,
        "image": "registry.example.com/vision/a:1",
        "files": {"sources": ["train.py"], "path": "/code"},
    }
    (folder / "Pulumi.team-vision.yaml").write_text(yaml.safe_dump({"config": values}))
    return folder


def test_a_job_that_brings_files_is_refused(tmp_path: Path) -> None:
    found = planned("team-vision", with_files(tmp_path)).errors
    assert [error.path for error in found] == ["team.jobs.vit-base"], list(map(str, found))
    assert "must have nothing beside itself" in str(found[0]) and "got files" in str(found[0])


def with_a_large_gang(folder: Path) -> Path:
    """A checkout with two workers of two nodes each, and a job of four."""
    with_files(folder)
    worker = (folder / f"Pulumi.{WORKER}.yaml").read_text()
    for name in (WORKER, "osaka"):
        (folder / f"Pulumi.{name}.yaml").write_text(worker.replace("max_nodes: 4", "max_nodes: 2"))
    for stack, edit in (
        (MANAGER, at(AT, [WORKER, "osaka"])),
        ("team-vision", both(without("jobs.vit-base.files"), at("jobs.vit-base.nodes", 4))),
    ):
        file = folder / f"Pulumi.{stack}.yaml"
        values: dict[str, Any] = yaml.safe_load(file.read_text())
        edit(values["config"][ENVIRONMENT if stack == MANAGER else TEAM])
        file.write_text(yaml.safe_dump(values, sort_keys=False))
    return folder


def test_a_gang_that_no_worker_has_the_nodes_for_is_refused(tmp_path: Path) -> None:
    """Kueue would hand it to none of them, and it would wait for ever."""
    assert planned(MANAGER, with_a_large_gang(tmp_path)).errors == ()
    [error] = planned("team-vision", tmp_path).errors
    assert "must have at most 2 nodes, as many as one worker has in g6e" in str(error)


def test_every_line_of_the_rules_is_reached_by_a_case_above(tmp_path: Path) -> None:
    def run() -> None:
        for manager, worker, _, _ in CASES.values():
            planned(MANAGER, checkout(tmp_path, manager, worker))
        planned("team-vision", with_files(tmp_path))
        planned("team-vision", with_a_large_gang(tmp_path))

    assert lines_not_reached((workers,), run) == []
