"""Looks at runs that tell a ghost from a run that has gone between two lists."""

from __future__ import annotations

import pytest

from tests.worlds.census import Census
from tests.worlds.harness import Object

OLD, NEW = ("old", "2026-11-27T03:00:00Z"), ("new", "2026-11-27T03:00:09Z")


def _job(run: tuple[str, str]) -> Object:
    return _object("Job", run)


def _pod(run: tuple[str, str]) -> Object:
    return _object("Pod", run)


def _ends(one: Object) -> Object:
    return one | {"metadata": one["metadata"] | {"deletionTimestamp": "2026-11-27T03:00:40Z"}}


def _object(kind: str, run: tuple[str, str]) -> Object:
    labels = {
        "jobset.sigs.k8s.io/jobset-name": "mine",
        "jobset.sigs.k8s.io/jobset-uid": run[0],
    }
    return {"kind": kind, "metadata": {"labels": labels, "creationTimestamp": run[1]}}


@pytest.mark.parametrize(
    "objects",
    [
        [_job(NEW), _pod(OLD)],
        [_job(NEW), _job(OLD)],
        [_pod(OLD), _pod(NEW)],
        [_job(OLD), _job(NEW), _pod(NEW)],
        [_ends(_pod(OLD)), _pod(NEW)],
        [_job(NEW), _ends(_pod(OLD)), _ends(_pod(NEW))],
    ],
)
def test_a_run_beside_a_later_one_is_an_overlap(objects: list[Object]) -> None:
    census = Census()
    census.look(objects)
    assert len(census.overlaps) == census.looks == 1 and "mine: " in census.overlaps[0]


@pytest.mark.parametrize("objects", [[_job(OLD), _pod(NEW)], [_job(OLD), _pod(OLD)], []])
def test_a_run_that_can_have_gone_between_two_lists_is_none(objects: list[Object]) -> None:
    census = Census()
    census.look(objects)
    assert census.overlaps == []


def test_a_gang_that_ends_as_soon_as_it_is_made_again_is_none() -> None:
    census = Census()
    census.look([_ends(_job(NEW)), _ends(_pod(OLD)), _ends(_pod(NEW))])
    assert census.overlaps == []
