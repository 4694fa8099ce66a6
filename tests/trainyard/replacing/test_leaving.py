"""What is said before a team leaves an environment."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import grpc
import pytest
from pulumi.runtime import settings

from stacks.engine import read_deployed
from tests.support.graphs import environment
from tests.support.stackfile import environment_plan
from tests.support.teams import by_name, checkout, listed
from trainyard.replacing.deployed import PROVIDER, Ask, Deployed
from trainyard.replacing.leaving import (
    JOBS,
    NAMESPACE,
    SERVICE_ACCOUNT,
    TEAM,
    team_errors,
    team_warnings,
)

TWO = Deployed(resources={(TEAM, "team-vision"): {}, (TEAM, "team-nlp"): {}})
WITHOUT_VISION = (listed, lambda settings: settings["teams"].pop("vision"))


def nobody(*_: Any) -> list[Any]:
    """A cluster without jobs."""
    return []


def has(*jobs: str) -> Ask:
    """An engine that says of every stack that it has these jobs."""
    resources: dict[tuple[str, str], dict[str, Any]] = {(min(JOBS), job): {} for job in jobs}
    return lambda *_: Deployed(resources=resources)


def test_a_team_that_stays_or_comes_is_no_business_of_these_rules(tmp_path: Path) -> None:
    checkout(tmp_path, listed, by_name)
    for found in (TWO, Deployed()):
        plan = environment_plan(listed)
        assert not [*team_warnings(plan, found)]
        assert not [*team_errors(plan, found, folder=tmp_path, show=nobody, ask=has("job"))]


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
    asked: list[str | None] = []

    def jobs(types: Collection[str], stack: str | None) -> Deployed:
        asked.append(stack)
        return has("vit-base")(types, stack)

    plan = environment_plan(*WITHOUT_VISION)
    [error] = team_errors(plan, TWO, folder=tmp_path, show=nobody, ask=jobs)
    assert asked == ["team-vision"]
    assert str(error).startswith(
        "environment.teams.vision: must stay while stack team-vision has jobs of the team; got no"
        " entry, and there vit-base. Fix: write the entry again, run `pulumi destroy --stack"
        " team-vision`, and delete the entry then."
    )
    assert not [*team_errors(plan, TWO, folder=tmp_path, show=nobody, ask=has())]


def test_the_engine_is_asked_for_jobs_and_knows_no_stack_that_was_never_deployed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    checkout(tmp_path, listed, by_name)
    plan = environment_plan(*WITHOUT_VISION)

    def known(types: Any, stack: str | None) -> Deployed:
        assert (types, stack) == (JOBS, "team-vision")
        return Deployed(resources={(sorted(JOBS)[0], "vit-base"): {}})

    assert len([*team_errors(plan, TWO, folder=tmp_path, show=nobody, ask=known)]) == 1
    monkeypatch.setattr(settings, "get_monitor", lambda: Engine('unknown stack "a/b/team-vision"'))
    assert not [*team_errors(plan, TWO, folder=tmp_path, show=nobody, ask=read_deployed)]


def test_a_team_does_not_leave_where_the_engine_cannot_read_its_stack(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    checkout(tmp_path, listed, by_name)
    monkeypatch.setattr(settings, "get_monitor", lambda: Engine("incorrect passphrase"))
    plan = environment_plan(*WITHOUT_VISION)
    with pytest.raises(grpc.RpcError, match="incorrect passphrase"):
        list(team_errors(plan, TWO, folder=tmp_path, show=nobody, ask=read_deployed))


class Engine:
    """Answers every request with an error."""

    def __init__(self, details: str) -> None:
        self.details = details

    def Invoke(self, request: Any) -> None:
        raise grpc.RpcError(f"invocation of {request.tok} returned an error: {self.details}")


def test_a_team_cannot_leave_while_a_job_that_somebody_sent_goes_on_in_its_namespace(
    tmp_path: Path,
) -> None:
    provider = {"kubeconfig": "{}", "clusterIdentifier": "c"}
    found = Deployed(
        resources={
            **TWO.resources,
            (PROVIDER, "cluster"): provider,
            (NAMESPACE, "team-vision"): {"metadata": {"name": "team-vision"}},
        }
    )
    ended = {
        "metadata": {"name": "old"},
        "status": {"conditions": [{"type": "Complete", "status": "True"}]},
    }
    jobs = [{"metadata": {"name": "byhand"}}, ended]

    def show(kubeconfig: str, kind: str, namespace: str | None) -> list[Any]:
        assert (kubeconfig, namespace) == ("{}", "team-vision")
        return jobs if kind.startswith("trainjobs") else []

    def said() -> list[str]:
        plan = environment_plan(*WITHOUT_VISION)
        return [
            str(each) for each in team_errors(plan, found, folder=tmp_path, show=show, ask=has())
        ]

    assert said() == [
        "environment.teams.vision: must stay while jobs go on in its namespace, whoever sent them; got no entry,"
        " and in team-vision TrainJob byhand. Fix: write the entry again, and delete it when they have ended;"
        " kubectl --namespace team-vision delete <kind> <name> ends one"
    ]
    jobs[:] = [ended]
    assert said() == []


def test_a_team_cannot_lose_its_schedules_while_it_has_some() -> None:
    found = Deployed(
        resources={
            **TWO.resources,
            (PROVIDER, "cluster"): {"kubeconfig": "{}", "clusterIdentifier": "c"},
            (SERVICE_ACCOUNT, "team-vision-schedules"): {"metadata": {"namespace": "team-vision"}},
        }
    )
    there = [{"metadata": {"name": "nightly"}}]

    def show(kubeconfig: str, kind: str, namespace: str | None) -> list[Any]:
        assert (kubeconfig, kind, namespace) == ("{}", "cronjobs.batch", "team-vision")
        return there

    def keeps(settings: dict[str, Any]) -> None:
        settings["teams"]["vision"]["schedules"] = True

    def said(*edits: Any) -> list[str]:
        plan = environment_plan(listed, *edits)
        return [str(each) for each in team_errors(plan, found, ask=has(), show=show)]

    assert said() == [
        "environment.teams.vision.schedules: must stay true while the team has schedules; got false, and in"
        " team-vision nightly. Fix: write schedules: true. First delete each `schedule` in the team's stack file"
        " and run `pulumi up` there, or `kubectl --namespace team-vision delete cronjob <name>`"
    ]
    assert said(keeps) == []
    there.clear()
    assert said() == []


def test_the_service_account_of_schedules_has_the_name_and_the_type_that_the_rule_looks_for() -> (
    None
):
    def keeps(settings: dict[str, Any]) -> None:
        settings["teams"]["vision"]["schedules"] = True

    graph = environment(listed, keeps)
    assert "team-vision-schedules" in {
        node.name for node in graph.nodes.values() if node.kind == SERVICE_ACCOUNT
    }
