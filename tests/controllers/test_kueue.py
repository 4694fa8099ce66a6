"""Jobs of two teams with Kueue itself: who waits, who starts, who stops for whom, and what Kueue writes
into a job."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from catalog.versions import TRAINER_RELEASES
from plans.parts import RUN
from plans.pod_template import GPU, POOL, TOLERATIONS
from plans.queue_admission import POLICY
from plans.queues import QUEUE_LABEL, job_labels
from plans.trainer import changed_pods
from rehearsal.kube import ApiError, Object
from tests.support.kueue_server import KINDS, KueueServer, kueue_server
from tests.support.patience import until
from tests.support.team_server import PREFIX

pytestmark = pytest.mark.apart


@pytest.fixture(scope="module", params=TRAINER_RELEASES)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KueueServer]:
    """Of each release of the Trainer with its Kueue."""
    with kueue_server(tmp_path_factory.mktemp("kueue"), request.param) as made:
        yield made


@pytest.fixture
def cluster(server: KueueServer) -> Iterator[KueueServer]:
    """Without jobs, before and after."""
    yield server
    server.clear()


def job(cluster: KueueServer, team: str, name: str, nodes: int, urgency: Any = None) -> Object:
    """A TrainJob on whole nodes of g6e, as the program writes it."""
    pod = {"nodeSelector": {POOL: "g6e"}, "tolerations": TOLERATIONS}
    field = TRAINER_RELEASES[cluster.trainer.release].pod_changes
    return {
        "apiVersion": KINDS["TrainJob"],
        "kind": "TrainJob",
        "metadata": {
            "name": name,
            "namespace": f"team-{team}",
            "labels": job_labels(team, urgency),
            "annotations": {RUN: "0123456789ab-1"},
        },
        "spec": {
            "runtimeRef": {"name": "torch-distributed"},
            "trainer": {
                "image": f"{PREFIX}a:1",
                "numNodes": nodes,
                "resourcesPerNode": {
                    "limits": {GPU: "8", "memory": "10Gi"},
                    "requests": {GPU: "8"},
                },
            },
            field: changed_pods(field, {"node": pod}),
        },
    }


def legacy_job(team: str, name: str, nodes: int) -> Object:
    template = {
        "spec": {
            "nodeSelector": {POOL: "g6e"},
            "tolerations": TOLERATIONS,
            "containers": [
                {
                    "name": "pytorch",
                    "image": f"{PREFIX}a:1",
                    "resources": {"limits": {GPU: "8"}, "requests": {GPU: "8"}},
                }
            ],
        }
    }
    replicas = {"Master": 1, "Worker": nodes - 1}
    return {
        "apiVersion": KINDS["PyTorchJob"],
        "kind": "PyTorchJob",
        "metadata": {
            "name": name,
            "namespace": f"team-{team}",
            "labels": job_labels(team, None),
            "annotations": {RUN: "0123456789ab-1"},
        },
        "spec": {
            "pytorchReplicaSpecs": {
                role: {"replicas": number, "template": template}
                for role, number in replicas.items()
            }
        },
    }


def started(cluster: KueueServer, team: str, name: str, kind: str = "TrainJob") -> bool:
    spec = live(cluster, team, name, kind)["spec"]
    return (spec if kind == "TrainJob" else spec["runPolicy"])["suspend"] is False


def live(cluster: KueueServer, team: str, name: str, kind: str = "TrainJob") -> Object:
    at = f"/apis/{KINDS[kind]}/namespaces/team-{team}/{kind.lower()}s/{name}"
    return cluster.api.request("GET", at)


def waits(cluster: KueueServer, team: str, name: str) -> str:
    """Why a job waits; empty while Kueue has not looked at it."""
    condition = cluster.condition(f"team-{team}", name, "QuotaReserved")
    return condition.get("message", "") if condition.get("status") == "False" else ""


def starts(cluster: KueueServer, team: str, name: str, kind: str = "TrainJob") -> bool:
    return until(lambda: started(cluster, team, name, kind))


def test_a_started_job_is_the_same_run_with_the_same_pods(cluster: KueueServer) -> None:
    """What Kueue writes is what was there already."""
    asked = job(cluster, "vision", "same", 2)
    cluster.trainer.create(asked)
    assert starts(cluster, "vision", "same")
    found = live(cluster, "vision", "same")
    assert found["metadata"]["annotations"][RUN] == asked["metadata"]["annotations"][RUN]
    assert found["metadata"]["labels"] == asked["metadata"]["labels"]
    for field in ("runtimeRef", "trainer"):
        assert found["spec"][field].items() >= asked["spec"][field].items()
    field = TRAINER_RELEASES[cluster.trainer.release].pod_changes
    assert found["spec"][field][0].items() >= asked["spec"][field][0].items()

    def pods() -> list[Object]:
        return cluster.api.request("GET", "/api/v1/namespaces/team-vision/pods")["items"]

    assert until(lambda: len(pods()) == 2)
    for pod in pods():
        assert pod["spec"]["nodeSelector"] == {POOL: "g6e"}
        assert [each for each in TOLERATIONS if each not in pod["spec"]["tolerations"]] == []


def test_a_pytorchjob_waits_and_starts_as_a_whole(cluster: KueueServer) -> None:
    asked = legacy_job("vision", "legacy", 2)
    cluster.trainer.create(asked)
    assert starts(cluster, "vision", "legacy", "PyTorchJob")
    for role, replica in live(cluster, "vision", "legacy", "PyTorchJob")["spec"][
        "pytorchReplicaSpecs"
    ].items():
        pod = replica["template"]["spec"]
        assert pod["nodeSelector"] == {POOL: "g6e"}, role
        assert pod["tolerations"][: len(TOLERATIONS)] == TOLERATIONS, role
    cluster.trainer.create(legacy_job("nlp", "second", 3))
    assert until(lambda: bool(waits(cluster, "nlp", "second")))
    assert not started(cluster, "nlp", "second", "PyTorchJob")


def test_a_job_waits_for_all_its_nodes_and_gets_them_at_once(cluster: KueueServer) -> None:
    cluster.trainer.create(job(cluster, "vision", "first", 2))
    assert starts(cluster, "vision", "first")
    cluster.trainer.create(job(cluster, "nlp", "second", 3))
    assert until(lambda: "insufficient unused quota" in waits(cluster, "nlp", "second"))
    assert not started(cluster, "nlp", "second")
    cluster.api.delete(job(cluster, "vision", "first", 2))
    assert starts(cluster, "nlp", "second")


def test_a_team_gets_its_guaranteed_nodes_back(cluster: KueueServer) -> None:
    """nlp has borrowed two of vision's nodes: its job stops as a whole, and waits again."""
    cluster.trainer.create(job(cluster, "nlp", "borrower", 4))
    assert starts(cluster, "nlp", "borrower")
    cluster.trainer.create(job(cluster, "vision", "owner", 1))
    assert starts(cluster, "vision", "owner")
    assert not started(cluster, "nlp", "borrower")
    assert cluster.condition("team-nlp", "borrower", "Preempted")["reason"] == "InCohortReclamation"
    assert live(cluster, "nlp", "borrower")["metadata"]["annotations"][RUN] == "0123456789ab-1"
    cluster.api.delete(job(cluster, "vision", "owner", 1))
    assert starts(cluster, "nlp", "borrower")


def test_nobody_takes_what_is_nobodys_guarantee_from_another_team(cluster: KueueServer) -> None:
    cluster.trainer.create(job(cluster, "nlp", "free", 2, "low"))
    assert starts(cluster, "nlp", "free")
    cluster.trainer.create(job(cluster, "vision", "larger", 4, "normal"))
    assert until(lambda: bool(waits(cluster, "vision", "larger")))
    assert started(cluster, "nlp", "free") and not started(cluster, "vision", "larger")


def test_within_a_team_the_more_urgent_job_goes_first(cluster: KueueServer) -> None:
    cluster.trainer.create(job(cluster, "vision", "patient", 4, "low"))
    assert starts(cluster, "vision", "patient")
    cluster.trainer.create(job(cluster, "vision", "urgent", 3, "normal"))
    assert starts(cluster, "vision", "urgent")
    assert not started(cluster, "vision", "patient")


def test_without_the_policy_a_job_without_a_queue_never_starts(cluster: KueueServer) -> None:
    """A13 has two controls: the policy refuses it at once, and Kueue never starts it."""
    body = job(cluster, "vision", "outside", 1)
    del body["metadata"]["labels"][QUEUE_LABEL]
    whole = cluster.objects[f"ValidatingAdmissionPolicyBinding {POLICY}"]
    cluster.api.delete(whole)
    try:
        assert until(lambda: _created(cluster, body))
        assert not started(cluster, "vision", "outside")
        # Kueue has seen it by the time that it has started a later one.
        cluster.trainer.create(job(cluster, "vision", "inside", 1))
        assert starts(cluster, "vision", "inside")
        assert not started(cluster, "vision", "outside")
    finally:
        cluster.api.apply(whole, manager="tests")


def _created(cluster: KueueServer, body: Object) -> bool:
    try:
        cluster.trainer.create(body)
    except ApiError:
        return False
    return True
