"""From which gangs Kueue itself takes the nodes back that they hold without all of their pods. Why the rule
warns of PyTorchJobs: catalog/job_kinds.py, ready_as_a_whole."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from catalog.versions import TRAINER_RELEASES
from tests.controllers.test_kueue import KINDS, job, legacy_job, started, starts
from tests.support.kueue_server import KueueServer, kueue_server
from tests.support.patience import until
from tests.support.team_server import environment_with_queues

pytestmark = pytest.mark.apart


@pytest.fixture(scope="module", params=TRAINER_RELEASES)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KueueServer]:
    """Of each release, with seconds in the place of minutes."""
    graph = environment_with_queues(request.param)
    values = graph["Release kueue"].inputs["values"]["managerConfig"]
    config = yaml.safe_load(values["controllerManagerConfigYaml"])
    config["waitForPodsReady"] |= {"timeout": "2s", "recoveryTimeout": "2s"}
    values["controllerManagerConfigYaml"] = yaml.safe_dump(config)
    with kueue_server(tmp_path_factory.mktemp("gangs"), request.param, graph=graph) as made:
        yield made


def given_up(cluster: KueueServer, team: str, name: str) -> bool:
    evicted = cluster.condition(f"team-{team}", name, "Evicted")
    return evicted.get("reason") == "PodsReadyTimeout"


def test_a_pytorchjob_keeps_its_nodes_once_its_master_runs(server: KueueServer) -> None:
    """Three gangs whose pods get no node. The training-operator calls the one Running whose Master runs."""
    server.trainer.create(legacy_job("vision", "half", 2))
    assert starts(server, "vision", "half", "PyTorchJob")
    at = f"/apis/{KINDS['PyTorchJob']}/namespaces/team-vision/pytorchjobs/half/status"
    running = {"type": "Running", "status": "True", "reason": "PyTorchJobRunning", "message": "m"}
    replicas = {"Master": {"active": 1}, "Worker": {}}
    server.api.request(
        "PATCH",
        at,
        {"status": {"conditions": [running], "replicaStatuses": replicas}},
        content_type="application/merge-patch+json",
    )
    assert until(
        lambda: server.condition("team-vision", "half", "PodsReady").get("status") == "True"
    )
    server.trainer.create(legacy_job("nlp", "none", 1))
    server.trainer.create(job(server, "nlp", "train", 1))
    assert until(lambda: given_up(server, "nlp", "none"))
    assert until(lambda: given_up(server, "nlp", "train"))
    assert started(server, "vision", "half", "PyTorchJob")
    assert server.condition("team-vision", "half", "QuotaReserved")["status"] == "True"
