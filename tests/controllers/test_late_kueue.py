"""Gangs of teams that run when queues are turned on: Kueue stops them, once, and starts them again when they have the
label of their queue. Of the Trainer's later releases a TrainJob must be made again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rehearsal.kube import ApiError, Object
from tests.controllers.test_kueue import _created, legacy_job, live, started
from tests.controllers.test_kueue import job as train_job
from tests.support.kueue_server import KINDS, KueueServer, kueue_server
from tests.support.patience import until
from tests.support.trainer_server import TrainerServer
from trainyard.catalog.versions import TRAINER_RELEASES
from trainyard.objects.queues.queues import job_labels
from trainyard.plans.jobs import TEAM
from trainyard.replacing.jobs.queues import needs_another

pytestmark = pytest.mark.apart
SPACE = "team-vision"
JOB_SETS = f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{SPACE}/jobsets"


def _before(trainer: TrainerServer) -> None:
    """A team without queues, with a gang of each kind."""
    labels = {TEAM: "vision"}
    space: Object = {"name": SPACE, "labels": labels}
    trainer.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": space}, manager="tests")
    there = KueueServer(trainer=trainer, objects={})
    for made in (train_job(there, "vision", "long", 2), legacy_job("vision", "old", 2)):
        del made["metadata"]["labels"]
        trainer.create(made)
    assert until(lambda: len(trainer.api.request("GET", JOB_SETS)["items"]) == 1)


@pytest.fixture(scope="module", params=TRAINER_RELEASES)
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KueueServer]:
    with kueue_server(tmp_path_factory.mktemp("late"), request.param, first=_before) as made:
        yield made


@pytest.mark.parametrize(("kind", "name"), [("TrainJob", "long"), ("PyTorchJob", "old")])
def test_a_gang_without_a_queue_is_stopped_and_starts_again_with_one(
    cluster: KueueServer, kind: str, name: str
) -> None:
    def is_stopped() -> bool:
        spec = live(cluster, "vision", name, kind)["spec"]
        return bool(spec.get("suspend") or spec.get("runPolicy", {}).get("suspend"))

    assert until(is_stopped)
    [job_set] = cluster.api.request("GET", JOB_SETS)["items"]
    generation = job_set["metadata"]["generation"]
    assert generation < 10, "Kueue and the Trainer change it in turns"
    at = f"/apis/{KINDS[kind]}/namespaces/{SPACE}/{kind.lower()}s"
    assert until(lambda: _labelled(cluster, f"{at}/{name}"))
    if needs_another(kind, cluster.trainer.release):
        admitted = {"type": "Admitted", "status": "True"}
        assert until(lambda: admitted.items() <= cluster.condition(SPACE, name, "Admitted").items())
        assert is_stopped(), "admitted in vain"
        cluster.api.request("DELETE", f"{at}/{name}")
        again = train_job(cluster, "vision", name, 2)
        assert until(lambda: _created(cluster, again))
    assert until(lambda: started(cluster, "vision", name, kind))


def _labelled(cluster: KueueServer, at: str) -> bool:
    """Controllers write to the job at the same time."""
    found = cluster.api.request("GET", at)
    found["metadata"]["labels"] = job_labels("vision", None)
    try:
        cluster.api.request("PUT", at, found)
    except ApiError:
        return False
    return True
