"""An event is about one object, and not about another one of its name."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from trainyard.catalog.logs.events import is_about, owner_of


class Job(NamedTuple):
    namespace: str
    name: str


POD: dict[str, Any] = {
    "kind": "Pod",
    "metadata": {"name": "train-worker-0", "namespace": "team-b", "uid": "2"},
}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({}, True),
        ({"uid": "2", "namespace": "team-b", "kind": "Pod"}, True),
        ({"name": "train-worker-1"}, False),
        ({"namespace": "team-a"}, False),
        ({"kind": "Job"}, False),
        ({"uid": "1", "namespace": "team-b", "kind": "Pod"}, False),
    ],
    ids=[
        "the name alone",
        "itself",
        "another name",
        "another team",
        "another kind",
        "an earlier pod",
    ],
)
def test_an_event_is_about_one_object_alone(said: dict[str, str], told: bool) -> None:
    assert is_about({"involvedObject": {"name": "train-worker-0", **said}}, POD) is told


def test_an_event_is_in_the_namespace_of_its_object() -> None:
    event = {"metadata": {"namespace": "team-a"}, "involvedObject": {"name": "train-worker-0"}}
    assert not is_about(event, POD)


@pytest.mark.parametrize(
    ("name", "space", "owner"),
    [
        ("train-node-0", "team-a", "team-a/train"),
        ("train-node-0", "team-b", "team-b/train"),
        ("train-node-0", "", "team-a/train"),
        ("train-big-node-0", "team-a", "team-a/train-big"),
        ("train-big", "team-a", "team-a/train-big"),
        ("trainer-0", "team-a", None),
        ("train", "team-c", None),
    ],
)
def test_the_job_of_an_event_is_that_of_its_namespace_with_the_longest_name(
    name: str, space: str, owner: str | None
) -> None:
    event = {"metadata": {"namespace": space}, "involvedObject": {"name": name}}
    jobs = [Job("team-a", "train"), Job("team-b", "train"), Job("team-a", "train-big")]
    found = owner_of(event, jobs)
    assert (f"{found.namespace}/{found.name}" if found else None) == owner
