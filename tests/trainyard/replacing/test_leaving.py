"""What is said before a team leaves an environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc
import pytest
from pulumi.runtime import settings

from tests.support.stackfile import environment_plan
from tests.support.teams import by_name, checkout, listed
from trainyard.replacing import leaving
from trainyard.replacing.deployed import Deployed
from trainyard.replacing.leaving import JOBS, TEAM, team_errors, team_warnings

TWO = Deployed(resources={(TEAM, "team-vision"): {}, (TEAM, "team-nlp"): {}})
WITHOUT_VISION = (listed, lambda settings: settings["teams"].pop("vision"))


def test_a_team_that_stays_or_comes_is_no_business_of_these_rules(tmp_path: Path) -> None:
    checkout(tmp_path, listed, by_name)
    for found in (TWO, Deployed()):
        plan = environment_plan(listed)
        assert not [*team_warnings(plan, found)]
        assert not [*team_errors(plan, found, folder=tmp_path, jobs_of=lambda _: {"job"})]


def test_a_team_that_leaves_takes_every_job_in_its_namespace_along() -> None:
    [warning] = team_warnings(environment_plan(*WITHOUT_VISION), TWO)
    assert str(warning).startswith(
        "environment.teams: this update deletes team vision: its namespace, and every job in it"
    )
    assert "Destroy the team's own stack before" in str(warning)


def test_a_team_cannot_leave_while_its_stack_has_jobs(tmp_path: Path) -> None:
    """Only stacks of this team in this environment are asked."""
    checkout(
        tmp_path,
        listed,
        by_name,
        other=lambda settings: (by_name(settings), settings.update(name="nlp")),
        elsewhere=lambda settings: (by_name(settings), settings.update(environment="prod")),
    )
    asked: list[str] = []

    def jobs(stack: str) -> list[str]:
        asked.append(stack)
        return ["vit-base"]

    plan = environment_plan(*WITHOUT_VISION)
    [error] = team_errors(plan, TWO, folder=tmp_path, jobs_of=jobs)
    assert asked == ["team-vision"]
    assert str(error).startswith(
        "environment.teams.vision: must stay while stack team-vision has jobs of the team; got no"
        " entry, and there vit-base. Fix: write the entry again, run `pulumi destroy --stack"
        " team-vision`, and delete the entry then."
    )
    assert not [*team_errors(plan, TWO, folder=tmp_path, jobs_of=lambda _: set())]


def test_the_engine_is_asked_for_jobs_and_knows_no_stack_that_was_never_deployed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    checkout(tmp_path, listed, by_name)
    plan = environment_plan(*WITHOUT_VISION)

    def known(types: Any, stack: str) -> Deployed:
        assert (types, stack) == (JOBS, "team-vision")
        return Deployed(resources={(sorted(JOBS)[0], "vit-base"): {}})

    monkeypatch.setattr(leaving, "read_deployed", known)
    assert len([*team_errors(plan, TWO, folder=tmp_path)]) == 1
    monkeypatch.undo()
    monkeypatch.setattr(settings, "get_monitor", lambda: Engine('unknown stack "a/b/team-vision"'))
    assert not [*team_errors(plan, TWO, folder=tmp_path)]


def test_a_team_does_not_leave_where_the_engine_cannot_read_its_stack(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    checkout(tmp_path, listed, by_name)
    monkeypatch.setattr(settings, "get_monitor", lambda: Engine("incorrect passphrase"))
    with pytest.raises(grpc.RpcError, match="incorrect passphrase"):
        list(team_errors(environment_plan(*WITHOUT_VISION), TWO, folder=tmp_path))


class Engine:
    """Answers every request with an error."""

    def __init__(self, details: str) -> None:
        self.details = details

    def Invoke(self, request: Any) -> None:
        raise grpc.RpcError(f"invocation of {request.tok} returned an error: {self.details}")
