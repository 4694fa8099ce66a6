"""`down` is killed while AWS deletes an object, which goes on for minutes. Whoever then reads the object
is told that it exists. An `up` that believes it ends well, and the object goes a minute later."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from rehearsal import paths
from tests.support.alone import SPEED, Alone, alone

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not (paths.BIN / "pulumi").exists(), reason="pulumi is not built"),
]
SLOW = 12
"""A node group takes 21 seconds to go, a NAT gateway 5: longer than all reads of a repair."""
IN_ORDER = ("eks-nodegroup", "eks-cluster", "nat-gateway")
"""AWS deletes an add-on with the first, a file system and mount targets with the last."""


@pytest.fixture(scope="module")
def place() -> Iterator[Alone]:
    with alone("dev") as made:
        assert made.do("up") == 0, made.log.read_text()
        yield made


def deleting(place: Alone) -> set[str]:
    """Types of the objects that AWS is deleting now."""
    return {one["type"] for one in place.inventory() if one["state"].lower() == "deleting"}


def killed_down(place: Alone, kind: str) -> None:
    """`down`, whose engine is killed as soon as AWS deletes an object of that type."""
    place.account.speed(SLOW)
    over = threading.Event()

    def kill() -> None:
        while not over.wait(0.1):
            if kind in deleting(place):
                os.killpg(int((paths.STATE / "engine").read_text()), signal.SIGKILL)
                return

    watch = threading.Thread(target=kill)
    watch.start()
    try:
        assert place.do("down") != 0, "it was not killed"
    finally:
        over.set()
        watch.join()
        place.account.speed(SPEED)
    assert kind in deleting(place), "too late"


@pytest.mark.parametrize("kind", IN_ORDER)
def test_up_makes_anew_what_a_killed_down_deletes(place: Alone, kind: str) -> None:
    killed_down(place, kind)
    assert place.do("up") == 0, place.log.read_text()
    assert not deleting(place)
    said = place.pulumi("refresh", "--preview-only", "--expect-no-changes")
    assert "error" not in said, said


def test_a_down_that_is_killed_again_and_again_leaves_nothing(place: Alone) -> None:
    for kind in IN_ORDER:
        killed_down(place, kind)
    assert place.do("down") == 0, place.left()
