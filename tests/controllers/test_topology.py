"""Where Kueue puts the nodes of a job that it chooses by their place in the network."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from tests.controllers.test_kueue import job, legacy_job, started, waits
from tests.support.kueue_server import KueueServer, kueue_server
from tests.support.patience import until
from tests.support.stackfile import at
from trainyard.catalog.fabric import LAYER
from trainyard.catalog.kueue_types import PLACES_GPUS_ONLY
from trainyard.catalog.versions import TRAINER_RELEASES
from trainyard.objects.jobs.pod_template import GPU, POOL, TAINT_VALUE

pytestmark = pytest.mark.apart
NODES = {"a": "left", "b": "right", "c": "left", "d": "right"}
"""Node → its part of the network, in the middle layer. Each is alone in the nearest one."""
STATIC = (
    at("queues", {"topology": "preferred"}),
    at("pools", {"g6e": {"instance_types": ["g6e.48xlarge"], "max_nodes": 4, "replicas": 4}}),
)


@pytest.fixture(scope="module", params=TRAINER_RELEASES)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KueueServer]:
    with kueue_server(tmp_path_factory.mktemp("topology"), request.param, *STATIC) as made:
        yield made


def _stand(server: KueueServer, name: str, side: str) -> None:
    """A node that is ready, as its kubelet would say it. The cluster forgets one whose kubelet says
    nothing for a while."""
    places = {LAYER.format(1): "all", LAYER.format(2): side, LAYER.format(3): name}
    amounts = {GPU: "8", "cpu": "190", "memory": "1500Gi", "pods": "100"}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {POOL: "g6e", **places}},
        "spec": {"taints": [{"key": GPU, "value": TAINT_VALUE, "effect": "NoSchedule"}]},
    }
    server.api.apply(node, manager="tests")
    status = {
        "capacity": amounts,
        "allocatable": amounts,
        "conditions": [{"type": "Ready", "status": "True", "reason": "x", "message": "x"}],
    }
    server.api.request(
        "PATCH",
        f"/api/v1/nodes/{name}/status",
        {"status": status},
        content_type="application/merge-patch+json",
    )


def parts(server: KueueServer, team: str, name: str) -> set[str]:
    """The parts of the network that a job has nodes in; empty while it waits."""
    status: Any = server.workload(f"team-{team}", name).get("status", {})
    levels = [
        part["valuesPerLevel"][1]
        for given in status.get("admission", {}).get("podSetAssignments", [])
        for part in given.get("topologyAssignment", {}).get("slices", [])
    ]
    return {name for level in levels for name in _names(level)}


def _names(level: dict[str, Any]) -> list[str]:
    """Values of a label, of which Kueue writes what they have in common once."""
    if "universal" in level:
        return [level["universal"]]
    several = level["individual"]
    ends = several.get("prefix", ""), several.get("suffix", "")
    return [root.join(ends) for root in several["roots"]]


@pytest.fixture
def cluster(server: KueueServer) -> Iterator[KueueServer]:
    """With the nodes and without jobs."""
    for name, side in NODES.items():
        _stand(server, name, side)
    yield server
    server.clear()


def placed(cluster: KueueServer, name: str, nodes: int) -> set[str]:
    """The parts of the network that a new job of so many nodes gets."""
    cluster.trainer.create(job(cluster, "vision", name, nodes))
    assert until(lambda: started(cluster, "vision", name))
    return parts(cluster, "vision", name)


def test_a_gang_gets_nodes_of_one_part_of_the_network(cluster: KueueServer) -> None:
    """And not the first two that are free, of which one is beside the single node."""
    [part] = placed(cluster, "single", 1)
    [other] = placed(cluster, "gang", 2)
    assert {part, other} == {"left", "right"}


def test_a_gang_that_is_too_large_for_one_part_gets_nodes_of_both(cluster: KueueServer) -> None:
    assert placed(cluster, "large", 3) == {"left", "right"}


def test_a_pytorchjob_asks_for_no_place_and_starts_as_well(cluster: KueueServer) -> None:
    cluster.trainer.create(legacy_job("vision", "legacy", 2))
    assert until(lambda: started(cluster, "vision", "legacy", "PyTorchJob"))


def test_pods_without_gpus_have_no_place_and_start_only_where_kueue_lets_them(
    cluster: KueueServer,
) -> None:
    """A release in which both jobs start needs no rule: trainyard/rules/queues.py, placed_job_errors."""
    release = TRAINER_RELEASES[cluster.trainer.release]
    counts, mixed = job(cluster, "vision", "counts", 1), legacy_job("vision", "mixed", 2)
    counts["spec"]["trainer"]["resourcesPerNode"] = {"requests": {"cpu": "2"}}
    del counts["spec"][release.pod_changes]
    roles = mixed["spec"]["pytorchReplicaSpecs"] = deepcopy(mixed["spec"]["pytorchReplicaSpecs"])
    roles["Master"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "2"}}
    cluster.trainer.create(counts)
    cluster.trainer.create(mixed)
    if release.kueue in PLACES_GPUS_ONLY:
        for name in ("counts", "mixed"):
            assert until(lambda name=name: "no TAS flavor" in waits(cluster, "vision", name))
    else:
        assert until(lambda: started(cluster, "vision", "counts"))
        assert until(lambda: started(cluster, "vision", "mixed", "PyTorchJob"))
