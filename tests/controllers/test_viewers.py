"""What the roles of `cluster.viewers` may do, at a real API server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.patience import until
from tests.support.recording import Graph, deploy
from tests.support.stackfile import ENVIRONMENT
from tests.support.team_server import ROLE, As, TeamServer, allowed, refusal, team_server
from trainyard.objects.viewers import VIEWERS
from trainyard.operations.reach.snapshot import KINDS

JOBS = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/team-vision/trainjobs"
JOB = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "TrainJob",
    "metadata": {"name": "attack"},
    "spec": {"runtimeRef": {"name": "torch-distributed"}},
}


def _with_a_viewer() -> Graph:
    def changes(values: dict[str, Any]) -> None:
        values[ENVIRONMENT]["cluster"]["viewers"] = {"night": {"role_arn": f"{ROLE}/night"}}

    return deploy("dev", changes)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamServer]:
    with team_server(tmp_path_factory.mktemp("viewers")) as made:
        graph = _with_a_viewer()
        ours = [node for node in graph.starting("kubernetes:rbac") if _is_of_viewers(node.name)]
        assert len(ours) == 3
        for node in ours:
            made.put(json.loads(json.dumps(node.inputs)))
        assert until(lambda: not refusal(_somebody(made), "GET", JOBS))
        yield made


def _is_of_viewers(name: str) -> bool:
    return name.partition("-")[0] == "viewers"


def _somebody(server: TeamServer) -> As:
    return As(server.server, "on call", VIEWERS)


@pytest.mark.parametrize(
    "path",
    [
        JOBS,
        JOBS.replace("/namespaces/team-vision", ""),
        "/api/v1/nodes",
        "/api/v1/pods",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        "/apis/storage.k8s.io/v1/storageclasses",
    ],
)
def test_a_viewer_reads_jobs_nodes_and_pods_of_the_whole_cluster(
    server: TeamServer, path: str
) -> None:
    assert "items" in _somebody(server).request("GET", path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_viewer_reads_everything_that_status_reads(server: TeamServer, kind: str) -> None:
    resource, _, group = kind.partition(".")
    assert allowed(_somebody(server), "list", resource, group)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/secrets"),
        ("GET", "/api/v1/namespaces/team-vision/secrets"),
        ("POST", JOBS),
        ("DELETE", f"{JOBS}/train"),
        ("DELETE", "/api/v1/nodes/n"),
        ("DELETE", "/api/v1/namespaces/team-vision"),
        ("POST", "/api/v1/namespaces/team-vision/serviceaccounts/default/token"),
        ("GET", "/api/v1/namespaces/team-vision/pods/p/exec"),
    ],
)
def test_a_viewer_reads_no_secrets_and_changes_nothing(
    server: TeamServer, method: str, path: str
) -> None:
    said = refusal(_somebody(server), method, path, JOB if method == "POST" else None)
    assert "forbidden" in said
