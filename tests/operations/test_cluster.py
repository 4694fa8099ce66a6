"""How a lost object of the cluster is found again."""

from __future__ import annotations

from typing import Any

import pytest

from operations.cluster import Cluster


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    calls: list[tuple[str, ...]] = []

    def run(self: Cluster, *words: str) -> str:
        calls.append(words)
        return "found"

    monkeypatch.setattr(Cluster, "_run", run)
    return calls


def _inputs(**meta: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}


def test_an_object_is_looked_for_in_its_own_namespace(asked: list[tuple[str, ...]]) -> None:
    """In another one repair would find nothing, and Pulumi would fail: it exists already."""
    found = Cluster(None).object(_inputs(name="a", namespace="training"))
    assert found and found.id == "training/a"
    assert asked == [
        ("kubectl", "get", "ConfigMap", "a", "--namespace", "training", "--output=name")
    ]


def test_an_object_of_the_whole_cluster_has_no_namespace(asked: list[tuple[str, ...]]) -> None:
    pool = {**_inputs(name="g6e"), "apiVersion": "karpenter.sh/v1", "kind": "NodePool"}
    found = Cluster(None).object(pool)
    assert found and found.id == "g6e"
    assert asked == [("kubectl", "get", "NodePool.v1.karpenter.sh", "g6e", "--output=name")]


def test_an_object_whose_name_nobody_knows_is_not_looked_for(asked: list[tuple[str, ...]]) -> None:
    assert Cluster(None).object(_inputs(namespace="training")) is None
    assert asked == []
