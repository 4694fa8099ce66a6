"""Jobs that a manager hands to a worker, with two API servers and a Kueue on each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rehearsal.kube import Api, ApiError, Object
from tests.controllers.test_kueue import job, live, started, starts
from tests.rehearsal.api_server import MANAGERS_TOKEN
from tests.support.dispatching import TEAM, WORKER, Dispatching, dispatching
from tests.support.kueue_server import KINDS, KueueServer
from tests.support.patience import until
from trainyard.objects.jobs.pod_template import GPU
from trainyard.objects.queues.queues import API, DISPATCHER
from trainyard.objects.teams.queue_admission import POLICY, policy
from trainyard.operations.reach.snapshot import condition_of

pytestmark = pytest.mark.apart
JOBS = f"/apis/{KINDS['TrainJob']}/namespaces/{TEAM}/trainjobs"
PODS = f"/api/v1/namespaces/{TEAM}/pods"


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dispatching]:
    with dispatching(tmp_path_factory.mktemp("dispatch")) as made:
        yield made


@pytest.fixture
def clusters(both: Dispatching) -> Iterator[Dispatching]:
    """Without jobs, before and after."""
    yield both
    both.manager.clear()
    both.worker.clear()


def handed(clusters: Dispatching, name: str, nodes: int = 1) -> Object:
    """A job of vision in the manager, as its team's stack writes it."""
    made = job(clusters.manager, "vision", name, nodes)
    made["spec"]["managedBy"] = DISPATCHER
    return made


def names(cluster: KueueServer, path: str) -> list[str]:
    return [each["metadata"]["name"] for each in cluster.api.request("GET", path)["items"]]


def arrived(clusters: Dispatching, name: str) -> bool:
    """Whether a job of vision runs in the worker."""
    return name in names(clusters.worker, JOBS) and started(clusters.worker, "vision", name)


def state(cluster: KueueServer) -> list[Object]:
    """What the Trainer says of the parts of a job."""
    return live(cluster, "vision", "away").get("status", {}).get("jobsStatus", [])


def as_manager(cluster: KueueServer) -> Api:
    server = cluster.trainer.server
    return Api(server.url, ca_file=server.authority, token=lambda: MANAGERS_TOKEN)


def connected(cluster: KueueServer) -> bool:
    found = cluster.api.request("GET", f"/apis/{API}/multikueueclusters/{WORKER}")
    return any(
        each["type"] == "Active" and each["status"] == "True"
        for each in found["status"]["conditions"]
    )


def test_a_job_runs_in_the_worker_and_its_state_comes_back(clusters: Dispatching) -> None:
    clusters.manager.trainer.create(handed(clusters, "away", 2))
    assert until(lambda: names(clusters.worker, JOBS) == ["away"])
    assert until(lambda: arrived(clusters, "away"))
    assert until(lambda: len(names(clusters.worker, PODS)) == 2)
    assert until(lambda: state(clusters.manager) == state(clusters.worker) != [])
    assert names(clusters.manager, PODS) == []


def test_a_job_that_is_deleted_in_the_manager_ends_in_the_worker(clusters: Dispatching) -> None:
    body = handed(clusters, "short")
    clusters.manager.trainer.create(body)
    assert until(lambda: arrived(clusters, "short"))
    clusters.manager.api.delete(body)
    assert until(lambda: names(clusters.worker, JOBS) == [])


def test_a_job_waits_until_the_worker_has_all_its_nodes(clusters: Dispatching) -> None:
    """The worker's own team has taken half of the nodes, of which the manager knows nothing."""
    own = job(clusters.worker, "nlp", "own", 2)
    clusters.worker.trainer.create(own)
    assert starts(clusters.worker, "nlp", "own")
    clusters.manager.trainer.create(handed(clusters, "large", 4))
    assert until(lambda: "insufficient unused quota" in _why(clusters.worker))
    clusters.worker.api.delete(own)
    assert until(lambda: arrived(clusters, "large"))


def _why(cluster: KueueServer) -> str:
    """Why the only Workload of vision waits, which belongs to no job yet."""
    found = cluster.api.request("GET", f"/apis/{API}/namespaces/{TEAM}/workloads")["items"]
    return condition_of(found[0], "QuotaReserved").get("message", "") if found else ""


def test_a_job_that_names_nobody_is_handed_on_too(clusters: Dispatching) -> None:
    """Such as one that a person starts with the SDK: Kueue's webhook completes it."""
    clusters.manager.trainer.create(job(clusters.manager, "vision", "by-hand", 1))
    assert until(lambda: arrived(clusters, "by-hand"))
    assert live(clusters.manager, "vision", "by-hand")["spec"]["managedBy"] == DISPATCHER
    assert names(clusters.manager, PODS) == []


def test_a_pass_that_expires_is_renewed_and_the_job_goes_on(clusters: Dispatching) -> None:
    clusters.manager.trainer.create(handed(clusters, "long"))
    assert until(lambda: arrived(clusters, "long"))
    assert clusters.passes.renew(clusters.manager.api, "expired")
    assert until(lambda: not connected(clusters.manager))
    assert clusters.passes.renew(clusters.manager.api)
    assert until(lambda: connected(clusters.manager))
    assert started(clusters.worker, "vision", "long")
    assert len(names(clusters.worker, PODS)) == 1


def test_the_manager_enters_the_namespaces_of_teams_and_reads_no_secret(
    clusters: Dispatching,
) -> None:
    manager = as_manager(clusters.worker)
    assert manager.request("GET", JOBS)["items"] == []
    body = handed(clusters, "elsewhere")
    body["metadata"]["namespace"] = "default"
    for method, path, sent in (
        ("POST", JOBS.replace(TEAM, "default"), body),
        ("GET", f"/api/v1/namespaces/{TEAM}/secrets", None),
        ("GET", PODS, None),
        ("GET", "/api/v1/nodes", None),
    ):
        with pytest.raises(ApiError) as refused:
            manager.request(method, path, sent)
        assert refused.value.code == 403, path


def test_without_its_exception_the_policy_of_queues_refuses_the_manager(
    clusters: Dispatching,
) -> None:
    """Nobody else makes a job a part of another one."""
    whole = clusters.worker.objects[f"ValidatingAdmissionPolicy {POLICY}"]
    body = job(clusters.worker, "vision", "part", 1)
    body["metadata"]["labels"]["kueue.x-k8s.io/prebuilt-workload-name"] = "another"
    with pytest.raises(ApiError, match="must not make the job a part of another one"):
        clusters.worker.api.request("POST", f"{JOBS}?dryRun=All", body)
    clusters.worker.api.apply(whole | {"spec": policy(managed=False)}, manager="tests")
    try:
        assert until(lambda: _refused(as_manager(clusters.worker), body))
    finally:
        clusters.worker.api.apply(whole, manager="tests")
    assert until(lambda: not _refused(as_manager(clusters.worker), body))


def _refused(api: Api, body: Object) -> bool:
    try:
        api.request("POST", f"{JOBS}?dryRun=All", body)
    except ApiError as error:
        return "must not make the job a part" in str(error)
    return False


def test_gpus_are_counted_in_both_clusters(clusters: Dispatching) -> None:
    clusters.manager.trainer.create(handed(clusters, "counted", 2))
    assert until(lambda: arrived(clusters, "counted"))

    def used(cluster: KueueServer) -> str:
        found = cluster.api.request("GET", f"/apis/{API}/clusterqueues/vision")["status"]
        return next(
            one["total"]
            for each in found["flavorsUsage"]
            for one in each["resources"]
            if one["name"] == GPU and each["name"] == "g6e"
        )

    assert until(lambda: used(clusters.worker) == "16")
    assert until(lambda: used(clusters.manager) == "16")
