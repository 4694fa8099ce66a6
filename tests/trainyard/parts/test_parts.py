"""The table of parts: a section of the stack file wants each of them, and the wiring makes each."""

from __future__ import annotations

from stacks.watching import MAKERS
from tests.support.stackfile import Edit, at, environment, environment_plan
from trainyard.parts.parts import PARTS, planned_parts, wanted_parts
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.reading.lookup import settings_of

EVERY: tuple[Edit, ...] = (
    at("budget", {"dollars_a_month": 20000, "emails": ["gpu-budget@example.com"]}),
)
"""Edits after which the dev environment has every part."""


def test_a_section_of_the_stack_file_wants_each_part() -> None:
    assert {part.section for part in PARTS} <= settings_of(EnvironmentConfig).keys()
    assert [part for part, _ in wanted_parts(environment(*EVERY))] == [*PARTS]
    assert [*wanted_parts(environment())] == []


def test_a_plan_names_each_part_and_has_those_that_are_wanted() -> None:
    names = {part.name for part in PARTS}
    assert len(names) == len(PARTS)
    without, whole = environment_plan(), environment_plan(*EVERY)
    assert without.parts == dict.fromkeys(names)
    assert whole.parts.keys() == names and [*planned_parts(without)] == []
    assert [part for part, _ in planned_parts(whole)] == [*PARTS]


def test_the_wiring_makes_each_part() -> None:
    assert {*MAKERS} == {*PARTS}
