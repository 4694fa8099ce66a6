"""Changes of test_replaced.py, and the engine is killed at every operation of each, before its answer.

Where AWS or EKS replaces a resource, the account then has an object that the state does not hold, in the
place of one that it holds. The next `up` goes on with it, and makes no second one."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from rehearsal import paths
from tests.rehearsal.aws_world import role
from tests.rehearsal.providers.test_replaced import Account
from tests.support.alone import Alone, alone
from tests.support.force_new import CHANGES, FILE, NAME, OPS, STACK, TEAM, begin, make
from tests.worlds.crawl import Crawl, crawling
from tests.worlds.soak import made_twice

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not (paths.BIN / "pulumi").exists(), reason="pulumi is not built"),
]
TOGETHER = 20
WHATS = {
    "another launch template": "found by its tags, which the old one has, too",
    "another range of a private subnet": "the same, and its association goes with it",
    "another role of the GPU nodes": "found by another name",
    "another type of system nodes": "the old one is deleted first",
    "another file system": "mount targets, access points and volumes go with it",
    "another deployment of Lustre": "takes minutes",
}
"""Change → what is special about the new object. With the whole table, this test would take an hour."""


class Killed(Account):
    """An account in which every `up` is killed until nothing of it is left to hit."""

    def __init__(self, place: Alone, crawl: Crawl) -> None:
        super().__init__(place)
        self.crawl, self.hit = crawl, list[str]()

    def up(self) -> str:
        self.crawl.forget()
        self.crawl.aim("before", 0, TOGETHER)
        while True:
            status = self.place.do("up")
            if not (hits := self.crawl.hits()):
                break
            self.hit += hits
        self.crawl.rest()
        return self.place.log.read_text() if status else ""


@pytest.fixture(scope="module")
def stack() -> dict[str, Any]:
    """The stack file as it is now."""
    return copy.deepcopy(STACK)


@pytest.fixture(scope="module")
def place(stack: dict[str, Any]) -> Iterator[Killed]:
    with crawling() as crawl, alone(NAME, {FILE: yaml.safe_dump({"config": stack})}) as made:
        begin(made.checkout)
        for name in (TEAM, *OPS):
            role(made.account, name, "ec2.amazonaws.com")
        assert made.do("up") == 0, made.log.read_text()
        yield Killed(made, crawl)


@pytest.mark.parametrize("what", WHATS)
def test_a_killed_replacement_goes_on(what: str, place: Killed, stack: dict[str, Any]) -> None:
    make(CHANGES[what], stack, place)
    print(f"{what}: {len(place.hit)} operations hit so far")
    assert made_twice(place.place.inventory()) is None


def test_down_leaves_nothing(place: Killed) -> None:
    iam = place.place.account.client("iam")
    for name in (TEAM, *OPS):
        iam.delete_role(RoleName=name)
    assert place.place.do("down") == 0, place.place.left()
