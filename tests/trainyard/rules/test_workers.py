"""Which environments cannot hand their jobs to others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.dispatching import MANAGER, WORKER, checkout, nothing, planned
from tests.support.existing_vpc import EXISTING_VPC
from tests.support.recording import stack_values
from tests.support.stackfile import ENVIRONMENT, TEAM, Edit, at, without
from tests.support.sweep import lines_not_reached
from tests.support.teams import both, by_name
from trainyard.rules import workers

AT, REGION = "queues.workers", "ap-northeast-2"
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
    "an urgency that the worker does not admit": (
        at("teams.nlp.max_urgency", "high"),
        at("teams.nlp.max_urgency", "low"),
        AT,
        "must have the same max_urgency of team nlp: a job arrives there as it is written here; got tokyo:"
        " there: low, here: high",
    ),
    "images that the worker does not admit": (
        nothing,
        at("teams.nlp.image_prefixes", ["registry.example.com/nlp/"]),
        AT,
        "must have the same image_prefixes of team nlp: a job arrives there as it is written here; got tokyo:"
        " there: registry.example.com/nlp/, here: any",
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


@pytest.mark.parametrize(
    ("tokyo", "osaka", "warned"),
    [
        (nothing, nothing, True),
        (at("queues.preemption", "guarantees"), nothing, True),
        (nothing, at("queues.preemption", "never"), False),
    ],
)
def test_workers_that_all_stop_jobs_for_the_same_one_are_a_warning(
    tokyo: Edit, osaka: Edit, warned: bool, tmp_path: Path
) -> None:
    """Kueue sends a job to all workers at once, and takes it back from all but one when that has started it."""
    folder = checkout(tmp_path, at(AT, [WORKER, "osaka"]), tokyo)
    values: dict[str, Any] = yaml.safe_load((folder / f"Pulumi.{WORKER}.yaml").read_text())
    values["config"][ENVIRONMENT]["queues"].pop("preemption", None)
    osaka(values["config"][ENVIRONMENT])
    (folder / "Pulumi.osaka.yaml").write_text(yaml.safe_dump(values, sort_keys=False))
    found = planned(MANAGER, folder)
    assert found.errors == ()
    said = [each for each in found.warnings if "queues.preemption" in each.text]
    assert [each.path for each in said] == [f"environment.{AT}"] * warned
    assert all("stops jobs in tokyo, osaka" in each.text for each in said)


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


TWO_NODES, FOUR_NODES = at("pools.g6e.max_nodes", 2), at("jobs.vit-base.nodes", 4)


def with_a_large_gang(
    folder: Path,
    worker: Edit = TWO_NODES,
    job: Edit = FOUR_NODES,
) -> Path:
    """A checkout with two workers, by default of two nodes each, and a job, by default of four."""
    with_files(folder)
    (folder / "Pulumi.osaka.yaml").write_text((folder / f"Pulumi.{WORKER}.yaml").read_text())
    for stack, edit in (
        (WORKER, worker),
        ("osaka", worker),
        (MANAGER, at(AT, [WORKER, "osaka"])),
        ("team-vision", both(without("jobs.vit-base.files"), job)),
    ):
        file = folder / f"Pulumi.{stack}.yaml"
        values: dict[str, Any] = yaml.safe_load(file.read_text())
        edit(values["config"][TEAM if stack == "team-vision" else ENVIRONMENT])
        file.write_text(yaml.safe_dump(values, sort_keys=False))
    return folder


@pytest.mark.parametrize(
    "worker",
    [
        TWO_NODES,
        at("pools.g6e.replicas", 2),
        at("teams.vision.max_nodes", {"g6e": 2}),
        both(
            at("teams.nlp.guaranteed_nodes", {"g6e": 2}),
            at("teams.nlp.lends_nodes", False),
        ),
    ],
    ids=["nodes", "nodes that stand", "the team's own limit", "nodes that others keep"],
)
def test_a_gang_that_no_worker_has_the_nodes_for_is_refused(worker: Edit, tmp_path: Path) -> None:
    """Kueue would hand it to none of them: it would wait for ever, and keep the quota of the manager."""
    assert planned(MANAGER, with_a_large_gang(tmp_path, worker)).errors == ()
    [error] = planned("team-vision", tmp_path).errors
    assert "must have at most 2 nodes, as many as the team can have in one worker of g6e" in str(
        error
    )


def test_a_gang_on_parts_of_nodes_needs_fewer(tmp_path: Path) -> None:
    """Queues count GPUs: four pods with half of the GPUs of a node have the quota of two nodes."""
    half = both(
        FOUR_NODES,
        at("jobs.vit-base.gpus_per_node", 4),
        at("jobs.vit-base.script", "torchrun --nproc_per_node=4 train.py"),
    )
    assert planned("team-vision", with_a_large_gang(tmp_path, job=half)).errors == ()


@pytest.mark.parametrize(
    ("manager", "worker"),
    [
        (nothing, at("teams.vision.max_urgency", "high")),
        (
            at("teams.nlp.image_prefixes", ["registry.example.com/nlp/"]),
            at("teams.nlp.image_prefixes", ["registry.example.com/"]),
        ),
        (at("teams.nlp.image_prefixes", ["registry.example.com/nlp/"]), nothing),
    ],
    ids=["a higher urgency", "a shorter beginning", "any image"],
)
def test_a_worker_that_admits_more_than_the_manager_is_not_refused(
    manager: Edit, worker: Edit, tmp_path: Path
) -> None:
    assert planned(MANAGER, checkout(tmp_path, manager, worker)).errors == ()


def isolated(region: str = REGION) -> Edit:
    """An edit: an environment without a way to the internet."""
    return both(
        at("network", {"internet": "none", "endpoints": "private"}),
        at("artifacts.images", registry(region)),
    )


def registry(region: str) -> str:
    return f"123456789012.dkr.ecr.{region}.amazonaws.com/mirror"


@pytest.mark.parametrize(
    ("manager", "worker", "says"),
    [
        (nothing, isolated(), "that it has here: another image starts nodes"),
        (nothing, isolated("us-west-2"), "nodes of tokyo pull from ECR of us-west-2 alone"),
        (
            at("artifacts.images", registry(REGION)),
            isolated("us-west-2"),
            f"renamed to {registry('ap-northeast-2')}",
        ),
        (at("artifacts.images", registry(REGION)), isolated(), ""),
        (nothing, nothing, ""),
    ],
)
def test_a_worker_that_pulls_from_its_own_registry_alone_is_a_warning(
    manager: Edit, worker: Edit, says: str, tmp_path: Path
) -> None:
    """Whether images of teams are there is known where their jobs are."""
    found = planned(MANAGER, checkout(tmp_path, manager, worker))
    said = [each.text for each in found.warnings if each.path.endswith(".artifacts.images")]
    assert found.errors == () and len(said) == bool(says)
    assert says in "".join(said)


def with_a_job(
    folder: Path, manager: Edit = nothing, image: str = "registry.example.com/a:1"
) -> Path:
    """A checkout with an isolated worker, and a job that brings nothing beside itself."""
    with_files(folder)
    any_image = without("teams.vision.image_prefixes")
    checkout(folder, both(manager, any_image), both(isolated(), any_image))
    file = folder / "Pulumi.team-vision.yaml"
    values: dict[str, Any] = yaml.safe_load(file.read_text())
    del values["config"][TEAM]["jobs"]["vit-base"]["files"]
    values["config"][TEAM]["jobs"]["vit-base"]["image"] = image
    file.write_text(yaml.safe_dump(values))
    return folder


def test_a_job_whose_image_an_isolated_worker_cannot_pull_is_refused(tmp_path: Path) -> None:
    """Its nodes would start, wait for the image, be given up, and start again."""
    [error] = planned("team-vision", with_a_job(tmp_path)).errors
    assert error.path == "team.jobs.vit-base" and "registry.example.com/a:1" in error.got
    assert "from which alone nodes of tokyo pull: Kueue copies the job" in str(error)
    assert "write images of ECR in ap-northeast-2" in error.fix


@pytest.mark.parametrize(
    ("manager", "image"),
    [
        (at("artifacts.images", registry(REGION)), "registry.example.com/a:1"),
        (nothing, f"{registry('ap-northeast-2')}/a:1"),
    ],
)
def test_a_job_with_images_in_ecr_of_an_isolated_worker_is_not_refused(
    manager: Edit, image: str, tmp_path: Path
) -> None:
    assert planned("team-vision", with_a_job(tmp_path, manager, image)).errors == ()


SHARED = both(
    EXISTING_VPC, at("network.internet", "none"), at("artifacts.images", registry(REGION))
)
"""An edit: an isolated environment in a VPC that others use, too."""


@pytest.mark.parametrize(
    ("manager", "worker", "warned"),
    [
        (isolated(), nothing, True),
        (SHARED, nothing, True),
        (SHARED, EXISTING_VPC, False),
        (isolated(), at("cluster.endpoint", "private"), False),
        (isolated(), at("cluster.name", "theirs"), False),
    ],
)
def test_an_isolated_manager_reaches_private_endpoints_alone(
    manager: Edit, worker: Edit, warned: bool, tmp_path: Path
) -> None:
    """Names of another endpoint lead to public addresses, but in its own VPC."""
    found = planned(MANAGER, checkout(tmp_path, manager, worker))
    said = str(found.warnings)
    assert found.errors == ()
    assert ("this environment has no way to the internet, where the Kubernetes" in said) == warned


def test_every_line_of_the_rules_is_reached_by_a_case_above(tmp_path: Path) -> None:
    def run() -> None:
        for manager, worker, _, _ in CASES.values():
            planned(MANAGER, checkout(tmp_path, manager, worker))
        planned("team-vision", with_files(tmp_path))
        planned("team-vision", with_a_large_gang(tmp_path))
        planned("team-vision", with_a_job(tmp_path))

    assert lines_not_reached((workers,), run) == []
