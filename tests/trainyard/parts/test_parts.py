"""The table of parts: a section of the stack file wants each of them, and the wiring makes each."""

from __future__ import annotations

from stacks.watching import MAKERS
from tests.support.everything import everything
from tests.support.stackfile import ENVIRONMENT, Edit, at, environment, environment_plan
from tests.support.teams import with_queues
from trainyard.parts.parts import (
    DISPATCH,
    GANGS,
    PARTS,
    parts_for_teams,
    planned_parts,
    wanted_parts,
)
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.logs import LogsConfig
from trainyard.settings.metrics import MetricsConfig
from trainyard.settings.reading.lookup import settings_of

SECTIONS = everything()[ENVIRONMENT]
EVERY: tuple[Edit, ...] = (
    *(at(part.section, SECTIONS[part.section]) for part in PARTS if part.section in SECTIONS),
    at("training_operator", {"version": "1.8.1"}),
    with_queues,
)
"""Edits after which the dev environment has every part but dispatch, which needs other environments."""


def test_a_section_of_the_stack_file_wants_each_part() -> None:
    assert {part.section for part in PARTS} <= settings_of(EnvironmentConfig).keys()
    assert [part for part, _ in wanted_parts(environment(*EVERY))] == [*PARTS]
    assert [*wanted_parts(environment())] == []


def test_a_plan_names_each_part_and_has_those_that_are_wanted() -> None:
    names = {part.name for part in PARTS}
    assert len(names) == len(PARTS)
    without, whole = environment_plan(), environment_plan(*EVERY)
    assert without.parts == dict.fromkeys(names) and [*planned_parts(without)] == []
    assert [part for part, _ in planned_parts(whole)] == [p for p in PARTS if p != DISPATCH]
    assert whole.parts.keys() == names and GANGS.of(environment_plan(with_queues)) is None


def test_the_wiring_makes_each_part() -> None:
    """What dispatch makes, queues of teams wait for: stacks/training.py."""
    assert {*MAKERS} == {*PARTS} - {DISPATCH}


def test_teams_read_of_parts_what_changes_their_jobs_alone() -> None:
    wanted = environment(
        at("metrics", {"push_gateway": True, "grafana": True}),
        at("history", {"days": 30}),
        at("logs", {"days": 7}),
        at("told", {"emails": ["gpu-oncall@example.com"]}),
    )
    assert parts_for_teams(wanted) == {
        "metrics": MetricsConfig(push_gateway=True),
        "logs": LogsConfig(),
    }


def test_no_two_parts_have_one_namespace() -> None:
    named = [part.namespace for part in PARTS if part.namespace]
    assert len(named) > 4 and len({*named}) == len(named)
