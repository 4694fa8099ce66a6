"""The program refuses an update before its first object, for a stack file with errors or a role that is missing:
nothing is to be repaired after it. What a kill before it has left is."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
import yaml

from development import engine
from rehearsal import paths
from tests.support.alone import Alone, alone
from tests.worlds.harness import with_l4

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not (paths.BIN / "pulumi").exists(), reason="pulumi is not built"),
]
NAME = "refused"
FILE = f"Pulumi.{NAME}.yaml"
REFUSED = "refused: the last update was refused or stopped before it changed anything"
BEFORE = ", and the one before it succeeded"
SETTLED = "; nothing to repair"


def _file(**cluster: Any) -> str:
    stack = deepcopy(with_l4())
    stack["trainyard:environment"]["cluster"] |= cluster
    return yaml.safe_dump({"config": stack})


GOOD = _file()
WRONG = _file(version="1.0")
NO_ROLE = _file(admins={"me": {"role_arn": "arn:aws:iam::123456789012:role/nobody"}})


@pytest.fixture
def place() -> Iterator[Alone]:
    with alone(NAME, {FILE: WRONG}) as made:
        yield made


def _up(place: Alone, text: str) -> str:
    """What the repair of `up` says, which looks at what the update before has left."""
    (place.checkout / FILE).write_text(text)
    status = place.do("up")
    assert (status == 0) == (text == GOOD), place.log.read_text()
    return (paths.LOGS / "repair.log").read_text()


def _killed_up(place: Alone) -> None:
    """`up`, whose engine is killed as soon as the account has something."""
    over = threading.Event()
    (place.checkout / FILE).write_text(GOOD)

    def kill() -> None:
        while not over.wait(0.05):
            if "vpc" in {one["type"] for one in place.inventory()}:
                os.killpg(int((paths.STATE / "engine").read_text()), signal.SIGKILL)
                return

    watch = threading.Thread(target=kill)
    watch.start()
    try:
        assert place.do("up") != 0, "it was not killed"
    finally:
        over.set()
        watch.join()


def test_after_a_refused_update_up_repairs_nothing(place: Alone) -> None:
    assert "no update has run yet" in _up(place, WRONG)
    assert _up(place, NO_ROLE).count(REFUSED + SETTLED)
    assert _up(place, GOOD).count(REFUSED + SETTLED)
    assert "the last update succeeded" in _up(place, WRONG)
    for text in (NO_ROLE, GOOD):
        assert _up(place, text).count(REFUSED + BEFORE + SETTLED)


def test_a_kill_before_a_refused_update_is_repaired(place: Alone) -> None:
    """As on an account, where `pulumi up` begins with no repair."""
    _killed_up(place)
    (place.checkout / FILE).write_text(WRONG)
    engine.prepare(place.stack, lambda _: None)
    assert "must be a Kubernetes version" in place.pulumi("up", "--yes", "--skip-preview")
    repaired = _up(place, GOOD)
    assert "reads account" in repaired and REFUSED not in repaired, repaired
