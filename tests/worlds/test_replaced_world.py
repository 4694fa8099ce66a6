"""A force-new input of every type is changed, one after the other: one `up` converges, or the preview
refuses it until `allow_replace` lists what it replaces."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from rehearsal import processes
from tests.support.force_new import (
    CHANGES,
    FILE,
    LATER,
    NAME,
    OPS,
    STACK,
    TEAM,
    begin,
    make,
    write,
)
from tests.support.worlds import NEEDS_A_WORLD
from tests.worlds.harness import VICTIMS, Harness, rehearsing
from tests.worlds.soak import made_twice
from trainyard.objects.iam.policies import document

pytestmark = [pytest.mark.world, pytest.mark.soak, NEEDS_A_WORLD]
PATIENCE_SECONDS = 300
"""For one `up`."""


@pytest.fixture(scope="module")
def stack() -> dict[str, Any]:
    """The stack file as it is now."""
    return copy.deepcopy(STACK)


@pytest.fixture(scope="module")
def harness(stack: dict[str, Any]) -> Iterator[Harness]:
    settings = stack["trainyard:environment"]
    first = {key: value for key, value in settings.items() if key not in LATER}
    first["cluster"] = {key: value for key, value in first["cluster"].items() if key != "admins"}
    before = {**stack, "trainyard:environment": first}
    with rehearsing(NAME, {FILE: yaml.safe_dump({"config": before})}) as made:
        begin(made.checkout)
        assert made.do("up", "--stack", NAME) == 0, made.log.read_text()
        owner = {"AWS": "arn:aws:iam::123456789012:root"}
        trust = json.dumps(document({"Principal": owner, "Action": ["sts:AssumeRole"]}))
        for role in (TEAM, *OPS):
            made.shell(
                f"aws iam create-role --role-name {role} --assume-role-policy-document '{trust}'"
            )
        write(made.checkout, stack)
        assert World(made).up() == ""
        yield made


class World:
    """The stack in a whole world."""

    def __init__(self, harness: Harness) -> None:
        self.harness, self.checkout = harness, harness.checkout

    def up(self) -> str:
        said, command = (
            len(self.harness.log.read_text()),
            self.harness.start("up", "--stack", NAME),
        )
        if not processes.wait(lambda: command.poll() is not None, PATIENCE_SECONDS, 0.2):
            self.harness.kill(*VICTIMS["engine"])
        return self.harness.log.read_text()[said:] if command.wait() else ""

    def preview(self) -> str:
        return self.harness.shell(f"pulumi preview --stack {NAME}", check=False)

    def state(self) -> list[dict[str, Any]]:
        exported = json.loads(self.harness.shell(f"pulumi stack export --stack {NAME}"))
        return exported["deployment"]["resources"]


@pytest.mark.parametrize("what", CHANGES)
def test_one_up_converges(what: str, harness: Harness, stack: dict[str, Any]) -> None:
    make(CHANGES[what], stack, World(harness))


def test_then_nothing_is_left_to_change_and_nothing_is_there_twice(harness: Harness) -> None:
    harness.shell(f"pulumi up --stack {NAME} --yes --skip-preview --expect-no-changes")
    assert made_twice(harness.inventory()) is None


def test_down_leaves_nothing(harness: Harness) -> None:
    for role in (TEAM, *OPS):
        harness.shell(f"aws iam delete-role --role-name {role}")
    assert harness.do("down") == 0, harness.log.read_text()
