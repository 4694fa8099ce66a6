"""Which queues cannot work, and which jobs no queue can start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.stackfile import Edit, at
from tests.support.sweep import lines_not_reached
from tests.support.teams import both, by_name, checkout, listed, planned, with_queues
from trainyard.rules import queues

JOB = "jobs.vit-base"
ONE_NODE = {"instance_types": ["p5.48xlarge"], "max_nodes": 1}
CPU_JOB = {"runtime": "torch-distributed", "nodes": 1, "pool": "g6e", "image": "registry/a:1"}


def nothing(settings: dict[str, Any]) -> None:
    """No edit."""


def legacy(settings: dict[str, Any]) -> None:
    """The job as a PyTorchJob whose pods go on."""
    job = settings["jobs"]["vit-base"]
    del job["runtime"]
    job["pytorch_job"] = {"clean_pods": "none"}


NEAR = both(
    with_queues,
    at("queues.topology", "preferred"),
    at("pools.g6e.replicas", 4),
    at("pools.h100.replicas", 2),
    at("pools.cpu", {"instance_types": ["m7i.4xlarge"], "max_nodes": 2}),
    at("training_operator", {"version": "1.8.1"}),
)
"""Kueue chooses the nodes of jobs by their place in the network."""
NEWEST = at("trainer.version", "2.3.0")
COUNTS = {
    "nodes": 1,
    "pool": "cpu",
    "image": "public.ecr.aws/deep-learning-containers/a:1",
    "script": "python3 count.py",
    "processes_per_node": 1,
}
RECIPE = {
    "nodes": 1,
    "pool": "g6e",
    "image": "public.ecr.aws/deep-learning-containers/a:1",
    "runtime": "torchtune-qwen2.5-1.5b",
    "command": ["tune", "run"],
    "allow_no_checkpoint": True,
}
COUNTS_WITH_TRAINER = COUNTS | {"runtime": "torch-distributed"}
COUNTS_WITH_OPERATOR = COUNTS | {"pytorch_job": {}}
_PLACED = (
    "must have GPUs requested in all its pods, because the environment has queues.topology: Kueue 0.19.2 never"
    " starts another job there; got none in "
)


ENVIRONMENTS: dict[str, tuple[Edit, str, str]] = {
    "a guarantee without queues": (
        both(listed, at("teams.nlp.guaranteed_nodes", {"g6e": 1})),
        "teams.nlp.guaranteed_nodes",
        "must be set only where the environment has queues; got {'g6e': 1}. Fix: add"
        " environment.queues: {}, or delete it",
    ),
    "an urgency without queues": (
        at("jobs.t5-large.urgency", "high"),
        "jobs.t5-large.urgency",
        "must be set only for a job of a team that environment.teams lists, beside queues; got high",
    ),
    "places in the network of nodes that are not there yet": (
        both(with_queues, at("queues.topology", "preferred"), at("pools.h100.replicas", 2)),
        "queues.topology",
        "must be set only where all pools with GPUs have replicas, of types for which EC2 names the"
        " parts of the network: g6e, g7e, p4d, p4de, p5, p5e, p5en, p6e-gb200, p6-b200, p6-b300; got"
        " pool g6e without replicas. Fix: set environment.pools.g6e.replicas: 4, or delete it",
    ),
    "places in the network of types for which EC2 names none": (
        both(
            with_queues,
            at("queues.topology", "preferred"),
            at("pools.h100.replicas", 2),
            at("pools.g6e", {"instance_types": ["g6.48xlarge"], "max_nodes": 4, "replicas": 4}),
        ),
        "queues.topology",
        "got pool g6e of g6.48xlarge. Fix: delete it",
    ),
    "queues for nobody": (
        at("queues", {}),
        "queues",
        "must have teams whose jobs wait in them; got no entry under environment.teams",
    ),
    "a job that the queues do not count": (
        both(with_queues, at("jobs.own", CPU_JOB)),
        "jobs.own.pool",
        "must not be a pool with GPUs where the environment has queues, which hand out its nodes to jobs of teams",
    ),
    "more guarantees than nodes": (
        both(
            with_queues,
            at("teams.nlp", {"deployer": "arn:aws:iam::111122223333:role/n"}),
            at("teams.nlp.guaranteed_nodes", {"g6e": 3}),
        ),
        "teams",
        "must be guaranteed at most the 4 nodes that jobs can have of pool g6e; got 5: vision 2, nlp 3."
        " Fix: lower guaranteed_nodes, or raise the nodes of environment.pools.g6e",
    ),
    "a pool that the environment lacks": (
        both(with_queues, at("teams.nlp.max_nodes", {"a100": 1})),
        "teams.nlp.max_nodes",
        "must name pools with GPUs of environment.pools; got a100. Fix: write one of g6e, h100",
    ),
    "a maximum below the guarantee": (
        both(with_queues, at("teams.vision.max_nodes", {"g6e": 1})),
        "teams.vision.max_nodes.g6e",
        "must be at least the 2 nodes in guaranteed_nodes; got 1. Fix: write 2",
    ),
    "a quota below what the queue starts": (
        both(with_queues, at("teams.vision.max_gpus", 8)),
        "teams.vision.max_gpus",
        "must be at least the 48 GPUs that its queue can give it: beyond it, a started job gets a part"
        " of its pods; got 8. Fix: write 48 or delete it",
    ),
    "priorities beside urgencies": (
        both(with_queues, at("teams.vision.allowed_priorities", ["high"])),
        "teams.vision.allowed_priorities",
        "must be empty where environment.queues decide whose job goes first; got high",
    ),
    "an unknown preemption": (
        both(with_queues, at("queues.preemption", "always")),
        "queues.preemption",
        "urgency_and_guarantees",
    ),
    "an unknown urgency": (
        both(with_queues, at("teams.vision.max_urgency", "urgent")),
        "teams.vision.max_urgency",
        "low",
    ),
}
"""What is wrong → edit of the environment, path of the error, part of its text."""


def test_a_pool_of_an_unknown_type_is_no_error_about_the_shares_of_teams(tmp_path: Path) -> None:
    """One typing error led to the advice to delete what the team is guaranteed."""
    wrong = at("pools.g6e.instance_types", ["g6e.50xlarge"])
    folder = checkout(tmp_path, both(with_queues, wrong), by_name)
    found = [error.path for error in planned("dev", folder).errors]
    assert found == ["environment.pools.g6e.instance_types"]


@pytest.mark.parametrize("case", ENVIRONMENTS)
def test_queues_that_cannot_work_are_refused(case: str, tmp_path: Path) -> None:
    edit, path, says = ENVIRONMENTS[case]
    found = planned("dev", checkout(tmp_path, edit, nothing)).errors
    errors = [str(error) for error in found if error.path == f"environment.{path}"]
    assert errors and says in errors[0], list(map(str, found))


STACKS: dict[str, tuple[Edit, Edit, str, str]] = {
    "a job of more nodes than there are": (
        with_queues,
        both(by_name, at(f"{JOB}.nodes", 5)),
        f"team.{JOB}.nodes",
        "must be at most 4, the max_nodes of pool g6e; got 5",
    ),
    "a job of more nodes than the team may have": (
        both(with_queues, at("teams.vision.max_nodes", {"g6e": 3})),
        both(by_name, at(f"{JOB}.nodes", 4)),
        f"team.{JOB}.nodes",
        "must need at most the 24 GPUs of pool g6e",
    ),
    "nodes that another team keeps for itself": (
        both(
            with_queues,
            at("teams.nlp.guaranteed_nodes", {"g6e": 2}),
            at("teams.nlp.lends_nodes", False),
        ),
        both(by_name, at(f"{JOB}.nodes", 3)),
        f"team.{JOB}.nodes",
        "must need at most the 16 GPUs of pool g6e",
    ),
    "an urgency above the team's": (
        both(with_queues, at("teams.vision.max_urgency", "normal")),
        both(by_name, at(f"{JOB}.urgency", "high")),
        f"team.{JOB}.urgency",
        "must be at most the max_urgency in the environment's entry of the team; got high. Fix: write"
        " normal",
    ),
    "pods that keep GPUs when their job has ended": (
        both(with_queues, at("training_operator", {"version": "1.8.1"})),
        both(by_name, legacy),
        f"team.{JOB}.pytorch_job.clean_pods",
        "must be running or all in a queue, which gives the GPUs of a job that has ended to others: pods that go on"
        " keep them; got none. Fix: write running",
    ),
    "pods without GPUs, for which Kueue finds no place": (
        both(NEAR, NEWEST),
        both(by_name, at("jobs.counts", COUNTS_WITH_TRAINER)),
        "team.jobs.counts",
        f"{_PLACED}those that train. Fix: request GPUs in them",
    ),
    "roles without GPUs, for which Kueue finds no place": (
        both(NEAR, NEWEST),
        both(by_name, at("jobs.counts", COUNTS_WITH_OPERATOR)),
        "team.jobs.counts",
        f"{_PLACED}Master",
    ),
    "pods that fetch a model, for which Kueue finds no place": (
        both(NEAR, NEWEST),
        both(by_name, at("jobs.recipe", RECIPE)),
        "team.jobs.recipe",
        f"{_PLACED}those of runtime torchtune-qwen2.5-1.5b that fetch its model",
    ),
    "a team past the queues": (
        both(with_queues, at("teams.vision.namespace", "vision")),
        nothing,
        "team",
        "must be listed by the environment, because it has queues; got namespace team-vision",
    ),
    "an urgency of a team without a queue": (
        listed,
        both(by_name, at(f"{JOB}.urgency", "low")),
        f"team.{JOB}.urgency",
        "must be set only for a job of a team that environment.teams lists, beside queues; got low",
    ),
}
"""What is wrong → edits of the environment and of the team, path of the error, part of its text."""


@pytest.mark.parametrize("case", STACKS)
def test_a_job_that_no_queue_starts_is_refused(case: str, tmp_path: Path) -> None:
    environment, team, path, says = STACKS[case]
    found = planned("team-vision", checkout(tmp_path, environment, team)).errors
    errors = [str(error) for error in found if error.path == path]
    assert any(says in error for error in errors), list(map(str, found))


@pytest.mark.parametrize(
    "edit",
    [
        nothing,
        at("queues", {"preemption": "never", "fair_sharing": True}),
        at("teams.vision.max_gpus", 48),
        at("teams.vision.lends_nodes", False),
        at("teams.nlp.guaranteed_nodes", {"g6e": 2}),
    ],
)
def test_sound_queues_are_not_refused(edit: Edit, tmp_path: Path) -> None:
    folder = checkout(tmp_path, both(with_queues, edit), by_name)
    assert planned("dev", folder).errors == ()
    assert planned("team-vision", folder).errors == ()


@pytest.mark.parametrize(
    ("environment", "job"),
    [
        (NEAR, COUNTS_WITH_TRAINER),
        (NEAR, COUNTS_WITH_OPERATOR),
        (both(NEAR, NEWEST, at("queues.topology", None)), COUNTS_WITH_TRAINER),
        (both(NEAR, NEWEST), COUNTS_WITH_TRAINER | {"pool": "g6e", "gpus_per_node": 1}),
    ],
    ids=["Kueue 0.16", "a PyTorchJob of Kueue 0.16", "any nodes", "GPUs"],
)
def test_a_job_that_kueue_places_or_need_not_place_is_not_refused(
    environment: Edit, job: dict[str, Any], tmp_path: Path
) -> None:
    folder = checkout(tmp_path, environment, both(by_name, at("jobs.counts", job)))
    assert planned("team-vision", folder).errors == ()


def without_shares(settings: dict[str, Any]) -> None:
    """Teams that are guaranteed nothing."""
    for entry in settings["teams"].values():
        entry.pop("guaranteed_nodes", None)
        entry.pop("max_nodes", None)


OWN_RECIPE = {
    "image": "registry.example.com/train:1",
    "kind": "torchtune",
    "torchtune": {"model": "llama3.2-1b", "store": "scratch", "directory": "tune"},
}


@pytest.mark.parametrize(
    ("edit", "warned"),
    [
        (with_queues, True),
        (both(with_queues, at("trainer.runtimes", ["torch-distributed"])), False),
        (both(with_queues, at("trainer.own_runtimes.recipe", OWN_RECIPE)), False),
        (both(with_queues, at("pools", {"h100": ONE_NODE}), without_shares), False),
        (listed, False),
    ],
    ids=["recipes", "no recipes", "an own recipe", "no gangs", "no queues"],
)
def test_recipes_for_which_every_gang_holds_its_nodes_longer_are_a_warning(
    edit: Edit, warned: bool, tmp_path: Path
) -> None:
    """The stack file of the repository installs three that no job names."""
    found = planned("dev", checkout(tmp_path, edit, nothing))
    said = [each.text for each in found.warnings if each.path == "environment.trainer.runtimes"]
    assert found.errors == ()
    assert len(said) == warned
    assert all("for 78 minutes, and not for 18," in each for each in said)


def test_gangs_in_queues_get_no_part_of_their_nodes(tmp_path: Path) -> None:
    """The warning contradicted docs/teams.md: Kueue starts a job when all its nodes are free."""

    def two(settings: dict[str, Any]) -> None:
        by_name(settings)
        first = settings["jobs"]["vit-base"] | {"nodes": 3}
        saves = first["checkpoints"] | {"directory": "other"}
        settings["jobs"] = {"vit-base": first, "other": first | {"checkpoints": saves}}

    def parts(environment: Edit) -> list[str]:
        found = planned("team-vision", checkout(tmp_path, environment, two)).warnings
        return [each.text for each in found if "get a part of its nodes" in each.text]

    assert parts(with_queues) == [] and len(parts(both(listed, without_limit))) == 1


def without_limit(settings: dict[str, Any]) -> None:
    """The team may have any number of GPUs."""
    settings["jobs"] = {}
    del settings["teams"]["vision"]["max_gpus"]


HALF = both(
    by_name,
    at(f"{JOB}.gpus_per_node", 4),
    at(f"{JOB}.script", "torchrun --nproc_per_node=4 train.py"),
)


@pytest.mark.parametrize(
    ("environment", "team", "warned"),
    [
        (with_queues, HALF, True),
        (with_queues, both(by_name, at(f"{JOB}.gpus_per_node", 8)), False),
        (with_queues, by_name, False),
        (
            both(
                with_queues,
                at("pools.g6e.max_nodes", 1),
                at("teams.vision.guaranteed_nodes", {}),
                at("teams.nlp.max_nodes", {}),
            ),
            HALF,
            False,
        ),
        (listed, HALF, False),
    ],
    ids=["half a node", "all its GPUs", "a whole node", "a pool of one node", "no queues"],
)
def test_a_job_on_a_part_of_a_node_takes_whole_nodes_from_others(
    environment: Edit, team: Edit, warned: bool, tmp_path: Path
) -> None:
    """Two halves on two nodes: the quota of a third job is free, and no node is."""
    found = planned("team-vision", checkout(tmp_path, environment, team))
    assert found.errors == ()
    said = [str(each) for each in found.warnings if "count the GPUs of a pool" in each.text]
    assert [each.startswith("team.jobs.vit-base") for each in said] == [True] * warned
    assert all("4 of the 8 GPUs of a node" in each and "nodes of g6e." in each for each in said)


LARGE = both(by_name, at(f"{JOB}.image_gb", 60))
STANDS = both(
    with_queues,
    at("pools.g6e.replicas", 4),
    at("pools.h100.replicas", 2),
    at("trainer.runtimes", ["torch-distributed"]),
)
IMAGE = "public.ecr.aws/deep-learning-containers/pytorch:2.11.0-cu130-amzn2023"


@pytest.mark.parametrize(
    ("environment", "team", "warned"),
    [
        (STANDS, LARGE, True),
        (STANDS, by_name, False),
        (both(STANDS, at("pools.g6e.prefetch", [IMAGE])), LARGE, False),
        (with_queues, LARGE, False),
        (listed, LARGE, False),
    ],
    ids=["nodes that stand", "a usual image", "pulled before", "time for nodes", "no queues"],
)
def test_an_image_that_takes_longer_than_kueue_waits_is_said(
    environment: Edit, team: Edit, warned: bool, tmp_path: Path
) -> None:
    found = planned("team-vision", checkout(tmp_path, environment, team))
    assert found.errors == ()
    said = [each.text for each in found.warnings if each.path == f"team.{JOB}.image_gb"]
    assert len(said) == warned
    assert all("60 GB takes 7 minutes, and Kueue" in each and "after 5:" in each for each in said)


def test_every_line_of_the_rules_is_reached_by_a_case_above(tmp_path: Path) -> None:
    def run() -> None:
        for edit, _, _ in ENVIRONMENTS.values():
            planned("dev", checkout(tmp_path, edit, nothing))
        for environment, team, _, _ in STACKS.values():
            planned("team-vision", checkout(tmp_path, environment, team))
        planned("team-vision", checkout(tmp_path, with_queues, HALF))
        planned("team-vision", checkout(tmp_path, STANDS, LARGE))

    assert lines_not_reached((queues,), run) == []


@pytest.mark.parametrize(("most", "warned"), [(5, True), (4, False)])
def test_a_maximum_that_limits_nothing_is_said(most: int, warned: bool, tmp_path: Path) -> None:
    edited = both(with_queues, at("teams.vision.max_nodes", {"g6e": most}))
    found = planned("dev", checkout(tmp_path, edited, nothing)).warnings
    said = [each for each in found if each.path == "environment.teams.vision.max_nodes.g6e"]
    assert [each.text for each in said] == (
        ["jobs can have at most 4 nodes of pool g6e, so 5 limits nothing"] if warned else []
    )
