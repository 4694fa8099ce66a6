"""How a lost object of the cluster is found again."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from trainyard.operations.reach.cluster import StackCluster


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    calls: list[tuple[str, ...]] = []

    def run(self: StackCluster, *words: str) -> str:
        calls.append(words)
        return "found"

    monkeypatch.setattr(StackCluster, "_run", run)
    return calls


def _inputs(**meta: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}


def test_an_object_is_looked_for_in_its_own_namespace(asked: list[tuple[str, ...]]) -> None:
    """In another one repair would find nothing, and Pulumi would fail: it exists already."""
    found = StackCluster(None).object(_inputs(name="a", namespace="training"))
    assert found and found.id == "training/a"
    assert asked == [
        ("kubectl", "get", "ConfigMap", "a", "--namespace", "training", "--output=name")
    ]


def test_an_object_of_the_whole_cluster_has_no_namespace(asked: list[tuple[str, ...]]) -> None:
    pool = {**_inputs(name="g6e"), "apiVersion": "karpenter.sh/v1", "kind": "NodePool"}
    found = StackCluster(None).object(pool)
    assert found and found.id == "g6e"
    assert asked == [("kubectl", "get", "NodePool.v1.karpenter.sh", "g6e", "--output=name")]


def test_an_object_whose_name_nobody_knows_is_not_looked_for(asked: list[tuple[str, ...]]) -> None:
    assert StackCluster(None).object(_inputs(namespace="training")) is None
    assert asked == []


def test_what_the_cluster_is_deleting_is_told_in_one_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where another object has a kind that is not served any more."""
    asked: list[str] = []
    going = _inputs(name="a", namespace="training", deletionTimestamp="2026-11-24T00:00:00Z")
    whole = _inputs(name="b", namespace="training")

    def run(words: list[str], *, input: str, **_: Any) -> subprocess.CompletedProcess[str]:
        asked.append(input)
        answer = json.dumps({"kind": "List", "items": [going, whole]})
        return subprocess.CompletedProcess(words, 1, answer, "no matches for kind NodePool")

    monkeypatch.setattr(subprocess, "run", run)
    cluster = StackCluster(dict)
    named = {name: _inputs(name=name, namespace="training") for name in "ab"}
    assert cluster.leaving(named) == ["a"] and not cluster.failure
    assert [json.loads(line)["metadata"]["name"] for line in asked[0].splitlines()] == ["a", "b"]
    assert cluster.leaving({}) == [] and len(asked) == 1
    named["c"] = _inputs(name="c", namespace="training")
    assert cluster.gone(named) == ["c"]
    assert StackCluster(None).gone(named) == [], "without a cluster nobody can be asked"
