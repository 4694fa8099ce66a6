"""Which gangs Kueue itself takes the nodes back from that they hold without all of their pods, and
how our program (trainyard/in_cluster/gangs) does it where Kueue does not:
trainyard/catalog/job_kinds.py, ready_as_a_whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
import yaml

from rehearsal.kube import ApiError, Object
from tests.controllers.test_kueue import KINDS, job, legacy_job, live, started, starts, waits
from tests.support.kueue_server import CORE, KueueServer, kueue_server
from tests.support.patience import until
from tests.support.programs import running
from tests.support.recording import Graph
from tests.support.team_server import As, environment_with_queues
from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.catalog.versions import TRAINER_RELEASES
from trainyard.objects.programs.gangs import AGAIN, APP, TRIES

pytestmark = pytest.mark.apart

PATCH = "application/merge-patch+json"
PODS = "/api/v1/namespaces/team-vision/pods"


@pytest.fixture(scope="module", params=TRAINER_RELEASES)
def graph(request: pytest.FixtureRequest) -> tuple[str, Graph]:
    """Of each release, with seconds in the place of minutes."""
    made = environment_with_queues(request.param)
    values = made["Release kueue"].inputs["values"]["managerConfig"]
    config = yaml.safe_load(values["controllerManagerConfigYaml"])
    config["waitForPodsReady"] |= {"timeout": "4s", "recoveryTimeout": "4s"}
    values["controllerManagerConfigYaml"] = yaml.safe_dump(config)
    return request.param, made


@pytest.fixture(scope="module")
def server(
    graph: tuple[str, Graph], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KueueServer]:
    release, made = graph
    with kueue_server(tmp_path_factory.mktemp("gangs"), release, graph=made) as kueue:
        yield kueue


@pytest.fixture
def cluster(server: KueueServer) -> Iterator[KueueServer]:
    """Without jobs, before and after."""
    yield server
    server.clear()


def given_up(cluster: KueueServer, team: str, name: str) -> bool:
    evicted = cluster.condition(f"team-{team}", name, "Evicted")
    return evicted.get("reason") == "PodsReadyTimeout"


# What the training-operator and kubelets do, which do not run here.


def tell(cluster: KueueServer, name: str, *running_pods: str) -> None:
    """Status of the job whose pods of these roles run."""
    status = "True" if "Master" in running_pods else "False"
    told = {"type": "Running", "status": status, "reason": "PyTorchJobRunning", "message": "m"}
    replicas = {role: {"active": int(role in running_pods)} for role in ("Master", "Worker")}
    at = f"/apis/{KINDS['PyTorchJob']}/namespaces/team-vision/pytorchjobs/{name}/status"
    body = {"status": {"conditions": [told], "replicaStatuses": replicas}}
    cluster.api.request("PATCH", at, body, content_type=PATCH)


def run(cluster: KueueServer, name: str, *running_pods: str) -> None:
    """The pods of a job that has started, of which some run and others have no node."""
    owner = live(cluster, "vision", name, "PyTorchJob")
    for role, replica in owner["spec"]["pytorchReplicaSpecs"].items():
        pod = f"{name}-{role.lower()}-0"
        reference = {key: owner[key] for key in ("apiVersion", "kind")}
        reference |= {key: owner["metadata"][key] for key in ("name", "uid")}
        body: Object = {
            "metadata": {
                "name": pod,
                "labels": {JOB_KINDS["PyTorchJob"].pod_label: name},
                "ownerReferences": [reference],
            },
            "spec": replica["template"]["spec"],
        }
        try:
            cluster.api.request("POST", PODS, body)
        except ApiError as error:
            assert error.code == 409, error
        phase = "Running" if role in running_pods else "Pending"
        cluster.api.request(
            "PATCH", f"{PODS}/{pod}/status", {"status": {"phase": phase}}, content_type=PATCH
        )
    tell(cluster, name, *running_pods)


def stop(cluster: KueueServer, name: str) -> None:
    """The pods of a job that is suspended end."""
    assert until(lambda: not started(cluster, "vision", name, "PyTorchJob"))
    for pod in cluster.api.request("GET", PODS)["items"]:
        cluster.api.request(
            "DELETE", f"{PODS}/{pod['metadata']['name']}", {"gracePeriodSeconds": 0}
        )
    tell(cluster, name)


def test_a_pytorchjob_keeps_its_nodes_once_its_master_runs(cluster: KueueServer) -> None:
    """Without our program. Three gangs whose pods get no node. The training-operator calls the one
    Running whose Master runs."""
    cluster.trainer.create(legacy_job("vision", "half", 2))
    assert starts(cluster, "vision", "half", "PyTorchJob")
    tell(cluster, "half", "Master")
    assert until(
        lambda: cluster.condition("team-vision", "half", "PodsReady").get("status") == "True"
    )
    cluster.trainer.create(legacy_job("nlp", "none", 1))
    cluster.trainer.create(job(cluster, "nlp", "train", 1))
    assert until(lambda: given_up(cluster, "nlp", "none"))
    assert until(lambda: given_up(cluster, "nlp", "train"))
    assert started(cluster, "vision", "half", "PyTorchJob")
    assert cluster.condition("team-vision", "half", "QuotaReserved")["status"] == "True"


def notes(cluster: KueueServer, name: str) -> dict[str, str]:
    return cluster.workload("team-vision", name)["metadata"].get("annotations") or {}


def active(cluster: KueueServer, name: str) -> bool:
    return cluster.workload("team-vision", name)["spec"]["active"]


def events(cluster: KueueServer, name: str) -> list[Object]:
    found = cluster.api.request("GET", "/api/v1/namespaces/team-vision/events")["items"]
    about = [each for each in found if each["involvedObject"]["name"] == name]
    return [each for each in about if each["reason"] == "HalfGang"]


def deactivate(cluster: KueueServer, name: str) -> None:
    workload = cluster.workload("team-vision", name)["metadata"]["name"]
    at = f"{CORE}/namespaces/team-vision/workloads/{workload}"
    cluster.api.request("PATCH", at, {"spec": {"active": False}}, content_type=PATCH)


def test_half_a_gang_gives_its_quota_to_another_job_and_is_tried_again_later(
    cluster: KueueServer, graph: tuple[str, Graph], tmp_path: Path
) -> None:
    """With the program, which is started anew while the gang waits."""

    def program(**settings: Any) -> AbstractContextManager[Any]:
        quick = {"look_seconds": 0.2, "ready_seconds": 3, "backoff_seconds": 6}
        return running(
            cluster.trainer.server, graph[1], "gangs", tmp_path / "program", **(quick | settings)
        )

    cluster.trainer.create(legacy_job("vision", "theirs", 1))
    assert starts(cluster, "vision", "theirs", "PyTorchJob")
    deactivate(cluster, "theirs")
    stop(cluster, "theirs")
    cluster.trainer.create(legacy_job("vision", "half", 2))
    assert starts(cluster, "vision", "half", "PyTorchJob")
    run(cluster, "half", "Master")
    cluster.trainer.create(job(cluster, "nlp", "next", 3))
    assert until(lambda: "insufficient unused quota" in waits(cluster, "nlp", "next"))
    with program():
        [event] = until(lambda: events(cluster, "half"))
    given_back = notes(cluster, "half")
    assert not active(cluster, "half") and given_back[TRIES] == "1"
    assert "1 of 2 pods run" in event["message"] and given_back[AGAIN] in event["message"]
    # Its quota is free at once: the other job was started, which Kueue gives up without pods.
    assert until(lambda: given_up(cluster, "nlp", "next"))
    stop(cluster, "half")
    assert until(
        lambda: cluster.condition("team-vision", "half", "QuotaReserved")["status"] == "False"
    )
    assert cluster.condition("team-vision", "half", "Evicted")["reason"] == "Deactivated"
    with program(ready_seconds=60):
        assert starts(cluster, "vision", "half", "PyTorchJob")
        assert active(cluster, "half") and notes(cluster, "half") == {TRIES: "1"}
        run(cluster, "half", "Master", "Worker")
        assert until(lambda: not notes(cluster, "half"))
    assert not active(cluster, "theirs") and notes(cluster, "theirs") == {}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/secrets"),
        ("DELETE", f"{PODS}/half-master-0"),
        ("GET", f"/apis/{KINDS['PyTorchJob']}/pytorchjobs"),
        ("DELETE", f"{CORE}/namespaces/team-vision/workloads/w"),
        ("PATCH", f"{CORE}/namespaces/team-vision/workloads/w/status"),
        ("PATCH", f"{CORE}/clusterqueues/vision"),
    ],
)
def test_the_program_may_do_nothing_else(server: KueueServer, method: str, path: str) -> None:
    api = As(server.trainer.server, f"system:serviceaccount:{APP}:{APP}")
    with pytest.raises(ApiError, match="forbidden"):
        api.request(method, path, {} if method == "PATCH" else None)
