"""A force-new input of every type is changed in an account without a cluster: what the engine and AWS
make of it. What the API server and the controllers make of it, tests/worlds/test_replaced_world.py
tells."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from rehearsal import paths
from tests.rehearsal.aws_world import role
from tests.support.alone import Alone, alone
from tests.support.force_new import CHANGES, FILE, NAME, OPS, STACK, TEAM, begin, make
from tests.worlds.soak import made_twice

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not (paths.BIN / "pulumi").exists(), reason="pulumi is not built"),
]


class Account:
    """The stack in an account without a cluster."""

    def __init__(self, place: Alone) -> None:
        self.place, self.checkout = place, place.checkout

    def up(self) -> str:
        return self.place.log.read_text() if self.place.do("up") else ""

    def preview(self) -> str:
        return self.place.pulumi("preview")

    def state(self) -> list[dict[str, Any]]:
        return self.place.state()


@pytest.fixture(scope="module")
def stack() -> dict[str, Any]:
    """The stack file as it is now."""
    return copy.deepcopy(STACK)


@pytest.fixture(scope="module")
def place(stack: dict[str, Any]) -> Iterator[Account]:
    with alone(NAME, {FILE: yaml.safe_dump({"config": stack})}) as made:
        begin(made.checkout)
        for name in (TEAM, *OPS):
            role(made.account, name, "ec2.amazonaws.com")
        assert made.do("up") == 0, made.log.read_text()
        yield Account(made)


@pytest.mark.parametrize("what", CHANGES)
def test_one_up_converges(what: str, place: Account, stack: dict[str, Any]) -> None:
    make(CHANGES[what], stack, place)


def test_then_nothing_is_left_to_change_and_nothing_is_there_twice(place: Account) -> None:
    assert "error" not in place.place.pulumi("preview", "--expect-no-changes")
    assert made_twice(place.place.inventory()) is None


def test_down_leaves_nothing(place: Account) -> None:
    iam = place.place.account.client("iam")
    for name in (TEAM, *OPS):
        iam.delete_role(RoleName=name)
    assert place.place.do("down") == 0, place.place.left()
