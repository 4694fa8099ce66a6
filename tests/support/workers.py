"""The way tests are handed to the workers of `make test`: what shares something that is slow to make goes
to one worker, and what takes longest goes first, so that no worker begins it when the others have nothing
left to do."""

from __future__ import annotations

import pytest
from xdist.scheduler import LoadFileScheduling

TOGETHER = ("tests/graph/",)
"""Beginnings of files that share a worker. Each worker that asks for a recorded stack records it: all of
them take half a minute."""
LONGEST = (
    "tests/worlds/test_rehearsal.py",
    "tests/worlds/test_capacity_world.py",
    "tests/worlds/test_jobs_world.py",
    "tests/graph/",
    "tests/development/test_cli.py",
    "tests/controllers/test_one_run.py",
    "tests/rehearsal/kubelet/test_kubelet_world.py",
    "tests/controllers/test_admission.py",
    "tests/controllers/test_secret_attacks.py",
    "tests/controllers/test_queue_attacks.py",
    "tests/controllers/test_team_attacks.py",
    "tests/package/test_engine.py",
    "tests/policy_pack/test_engine.py",
    "tests/policy_pack/test_check.py",
    "tests/rehearsal/control_plane/test_control_plane.py",
    "tests/rehearsal/standins/test_standins.py",
    "tests/controllers/test_sdk.py",
    "tests/corpus/test_corpus.py",
    "tests/controllers/test_qos.py",
)
"""Units of work, the longest first; all others take half a minute at most."""


def unit(test: str) -> str:
    """The unit of work that a test belongs to: its file, or one of TOGETHER."""
    file = test.partition("::")[0]
    return next((start for start in TOGETHER if file.startswith(start)), file)


def in_order(items: list[pytest.Item]) -> None:
    """Sort tests as workers get them; those of a unit keep their order."""
    place = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(unit(item.nodeid), len(LONGEST)))


class Units(LoadFileScheduling):
    """One unit of work after the other to whoever has nothing left to do."""

    def _split_scope(self, nodeid: str) -> str:
        return unit(nodeid)
