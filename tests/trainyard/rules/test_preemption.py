"""Which jobs are warned that Kueue stops them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.stackfile import Edit, at
from tests.support.teams import both, by_name, checkout, listed, planned, with_queues

JOB = "jobs.vit-base"


def without_nlp(settings: dict[str, Any]) -> None:
    """The environment with one team."""
    del settings["teams"]["nlp"]


def without_checkpoints(settings: dict[str, Any]) -> None:
    """The job saves nothing."""
    del settings["jobs"]["vit-base"]["checkpoints"]


NLP_LENDS = both(with_queues, at("teams.nlp.guaranteed_nodes", {"g6e": 1}))
BORROWS = NLP_LENDS, both(by_name, at(f"{JOB}.nodes", 3), without_checkpoints)


def test_a_job_that_borrows_nodes_and_saves_no_checkpoint_is_warned(tmp_path: Path) -> None:
    """vision is guaranteed 2 nodes of g6e."""
    [warning] = borrowing(tmp_path, *BORROWS)
    assert warning.startswith("team.jobs.vit-base [Pulumi.team-vision.yaml") and warning.partition(
        "]: "
    )[2] == (
        "the team is guaranteed 2 nodes of pool g6e, so the job borrows nodes that it is stopped for when a"
        " team wants those that it is guaranteed. The job has no checkpoints, so it begins at its first"
        " step then. Set checkpoints, or let the environment raise the team's guaranteed_nodes of g6e"
    )


def test_with_fair_sharing_the_nodes_that_are_nobodys_guarantee_are_taken_back_too(
    tmp_path: Path,
) -> None:
    """Kueue stops jobs of the team that has borrowed more until the shares are equal."""
    fair = both(with_queues, at("queues.fair_sharing", True))
    [warning] = borrowing(tmp_path, fair, BORROWS[1])
    assert "stopped for when a team that has borrowed less wants some (fair_sharing)." in warning
    [warning] = borrowing(tmp_path, both(NLP_LENDS, at("queues.fair_sharing", True)), BORROWS[1])
    assert "wants those that it is guaranteed, or one that has borrowed less wants some" in warning


def together(**other: Any) -> Edit:
    """Two jobs of two nodes without checkpoints. `other`: settings of the second one."""

    def edit(settings: dict[str, Any]) -> None:
        by_name(settings)
        without_checkpoints(settings)
        first = settings["jobs"]["vit-base"] | {"nodes": 2}
        settings["jobs"] = {"vit-base": first, "other": first | other}

    return edit


@pytest.mark.parametrize(
    ("environment", "other", "warned"),
    [
        (NLP_LENDS, {}, ["vit-base", "other"]),
        (NLP_LENDS, {"urgency": "high"}, ["vit-base"]),
        (NLP_LENDS, {"after": ["vit-base"]}, []),
        (NLP_LENDS, {"pool": "h100"}, []),
        (both(NLP_LENDS, at("teams.vision.guaranteed_nodes", {"g6e": 3})), {"nodes": 1}, []),
        (with_queues, {}, []),
    ],
    ids=["both", "the less urgent", "one after the other", "another pool", "all", "nobody's nodes"],
)
def test_jobs_that_borrow_together_are_warned(
    environment: Edit, other: dict[str, Any], warned: list[str], tmp_path: Path
) -> None:
    """Two jobs of two nodes, and a guarantee of two: Kueue asks whether the team borrows, and not whether the job does,
    and stops the less urgent first, then the newest."""
    found = [each.partition(" ")[0] for each in borrowing(tmp_path, environment, together(**other))]
    assert found == [f"team.jobs.{name}" for name in warned]


@pytest.mark.parametrize(
    ("environment", "other", "warned"),
    [
        (with_queues, {"urgency": "low"}, ["other"]),
        (with_queues, {"urgency": "low", "nodes": 1}, ["other"]),
        (
            both(with_queues, at("teams.vision.guaranteed_nodes", {"g6e": 4})),
            {"urgency": "low"},
            [],
        ),
        (with_queues, {"urgency": "low", "after": ["vit-base"]}, []),
        (both(with_queues, at("queues.preemption", "guarantees")), {"urgency": "low"}, []),
        (both(with_queues, without_nlp), {"urgency": "low"}, []),
        (both(with_queues, without_nlp), {"urgency": "low", "nodes": 3}, ["other"]),
        (with_queues, {}, []),
    ],
)
def test_a_job_that_another_of_its_team_stops_is_warned(
    environment: Edit, other: dict[str, Any], warned: list[str], tmp_path: Path
) -> None:
    folder = checkout(tmp_path, environment, together(**other))
    found = planned("team-vision", folder).warnings
    said = [each for each in found if "of a higher urgency" in each.text]
    assert [each.path for each in said] == [f"team.jobs.{name}" for name in warned]
    assert all(each.text.startswith("vit-base, of a higher urgency, stops it") for each in said)


@pytest.mark.parametrize(
    ("environment", "team"),
    [
        (NLP_LENDS, both(by_name, at(f"{JOB}.nodes", 3))),
        (NLP_LENDS, both(by_name, without_checkpoints)),
        (with_queues, BORROWS[1]),
        (both(NLP_LENDS, at("teams.nlp.lends_nodes", False)), BORROWS[1]),
        (both(NLP_LENDS, at("queues.preemption", "never")), BORROWS[1]),
        (listed, BORROWS[1]),
    ],
    ids=["checkpoints", "guaranteed", "nobody's nodes", "not lent", "never", "no queues"],
)
def test_a_job_that_is_not_stopped_for_a_guarantee_or_resumes_is_not_warned(
    environment: Edit, team: Edit, tmp_path: Path
) -> None:
    assert borrowing(tmp_path, environment, team) == []


def borrowing(tmp_path: Path, environment: Edit, team: Edit) -> list[str]:
    found = planned("team-vision", checkout(tmp_path, environment, team)).warnings
    return [str(each) for each in found if "borrows" in each.text]
