"""Jobs of two teams with Kueue itself: who waits, who starts, who stops for whom, and what Kueue writes
into a job."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rehearsal.kube import ApiError, Object
from tests.support.kueue_server import CORE, KINDS, KueueServer, kueue_server
from tests.support.patience import until
from tests.support.recording import WORKLOADS
from tests.support.team_server import PREFIX
from tests.support.zero_values import find_zeros, zero_spec
from trainyard.catalog.kueue_types import as_written_back
from trainyard.catalog.logs.symptoms import GRACE_SECONDS
from trainyard.catalog.versions import TRAINER_RELEASES
from trainyard.manifests.document import read_manifest
from trainyard.objects.jobs.pod_template import GPU, POOL, TOLERATIONS
from trainyard.objects.jobs.trainer import changed_pods
from trainyard.objects.queues.queues import QUEUE_LABEL, job_labels
from trainyard.objects.teams.queue_admission import POLICY
from trainyard.operations.reach.snapshot import Snapshot
from trainyard.operations.status.interruptions import interruptions
from trainyard.operations.status.upgrade import KUEUE, PATCHES, jobs_left_behind
from trainyard.plans.jobs import RUN
from trainyard.replacing.moving import STOPPED, WAITS, losing

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
            "runPolicy": {"cleanPodPolicy": "Running"},
            "pytorchReplicaSpecs": {
                role: {"replicas": number, "template": template}
                for role, number in replicas.items()
            },
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


def losing_of(cluster: KueueServer) -> list[str]:
    """What the rule about a Trainer that moves makes of the TrainJobs and Workloads of real controllers."""
    jobs = cluster.api.request("GET", f"/apis/{KINDS['TrainJob']}/trainjobs")["items"]
    workloads = cluster.api.request("GET", f"{CORE}/workloads")["items"]
    return [*losing(jobs, workloads, TRAINER_RELEASES[cluster.trainer.release].pod_changes)]


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


def with_zeros(cluster: KueueServer, name: str) -> Object:
    """A job with every zero value that Kueue's types leave out."""
    made = job(cluster, "vision", name, 1)
    field = TRAINER_RELEASES[cluster.trainer.release].pod_changes
    pod = {"nodeSelector": {POOL: "g6e"}, "tolerations": TOLERATIONS}
    zeros = zero_spec(cluster.trainer.release, field, pod)
    trainer = made["spec"]["trainer"]
    resources = {**zeros["trainer"].pop("resourcesPerNode"), **trainer.pop("resourcesPerNode")}
    made["spec"] |= {
        field: zeros[field],
        "trainer": {**zeros["trainer"], **trainer, "resourcesPerNode": resources},
    }
    return made


def as_sent(cluster: KueueServer, made: Object) -> Object:
    """The job as the program sends it into a queue."""
    return made | {"spec": as_written_back(made["spec"], cluster.trainer.release)}


def test_a_job_with_zero_values_starts_as_it_is_sent_and_not_as_it_was_written(
    cluster: KueueServer,
) -> None:
    """Kueue drops them when it writes the job back, and from 2.3 on the CRD takes the loss for a change. With
    2.1 both start."""
    written = with_zeros(cluster, "written")
    assert len(find_zeros(written["spec"])) > (60 if cluster.trainer.release == "2.1.0" else 90)
    cluster.trainer.create(written)
    cluster.trainer.create(as_sent(cluster, with_zeros(cluster, "sent")))
    assert starts(cluster, "vision", "sent")
    if cluster.trainer.release == "2.1.0":
        assert starts(cluster, "vision", "written")
        return
    assert until(
        lambda: cluster.condition("team-vision", "written", "Admitted").get("status") == "True"
    )
    # Kueue has tried it by the time that it has started a later one.
    cluster.trainer.create(job(cluster, "vision", "later", 1))
    assert starts(cluster, "vision", "later")
    assert not started(cluster, "vision", "written")


REFUSED = {"hostPath", "nfs", "csi"}


def sample_jobs(cluster: KueueServer) -> dict[str, Object]:
    """The TrainJobs of tests/workloads/valid: what they say of their trainer and of the job `node`, on one
    node of this environment. Patches are those of the release."""
    release = cluster.trainer.release
    field = TRAINER_RELEASES[release].pod_changes
    made: dict[str, Object] = {}
    for path in sorted(WORKLOADS.glob("valid/*.yaml")):
        workloads, _ = read_manifest(path.read_text(), path.name)
        for workload in workloads:
            if workload.kind != "TrainJob" or (path.stem.endswith("2.3") and release == "2.1.0"):
                continue
            name = f"s{len(made)}-{path.stem.replace('.', '-')}"[:30].rstrip("-")
            body = job(cluster, "vision", name, 1)
            given = {**workload.get("spec").get("trainer", {})}
            given.pop("numProcPerNode", None)  # a word in 2.1, a number from 2.2 on
            body["spec"]["trainer"] = {**given, **body["spec"]["trainer"]}
            pod = {"nodeSelector": {POOL: "g6e"}, "tolerations": TOLERATIONS}
            for each in workload.pods:
                if "node" in each.jobs:
                    kept = {"volumes", "containers", "initContainers"} & each.spec.keys()
                    pod |= {part: each.spec[part] for part in kept}
            # The policy of teams refuses these.
            pod["volumes"] = [v for v in pod.get("volumes", []) if not REFUSED & v.keys()]
            body["spec"][field] = changed_pods(field, {"node": pod})
            made[name] = body
    return made


def test_every_sample_starts_as_it_is_sent(cluster: KueueServer) -> None:
    samples = sample_jobs(cluster)
    assert len(samples) > 20
    for name, body in samples.items():
        sent = as_sent(cluster, body)
        cluster.trainer.create(sent)
        assert starts(cluster, "vision", name), name
        cluster.api.delete(sent)


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
    assert losing_of(cluster) == [f"team-nlp/second ({WAITS})"], "the first one runs"
    cluster.api.delete(job(cluster, "vision", "first", 2))
    assert starts(cluster, "nlp", "second")


PREEMPTED = (
    "TrainJob borrower was preempted at [0-9:]{8} by TrainJob owner of team vision, whose team took back"
    " nodes that it is guaranteed"
)


def seen(cluster: KueueServer, later: timedelta = timedelta()) -> Snapshot:
    """What `trainyard status` reads of jobs, queues and events. `later`: from now."""
    api = cluster.api
    lists = {
        "trainjobs": f"/apis/{KINDS['TrainJob']}/trainjobs",
        "workloads": f"{CORE}/workloads",
        "events": "/api/v1/events",
    }
    objects = {name: api.request("GET", path)["items"] for name, path in lists.items()}
    for each in objects["trainjobs"]:
        each["kind"] = "TrainJob"
    return Snapshot(objects=objects, taken_at=datetime.now(UTC) + later)


def test_a_team_gets_its_guaranteed_nodes_back(cluster: KueueServer) -> None:
    """nlp has borrowed two of vision's nodes: its job stops as a whole, and waits again."""
    cluster.trainer.create(job(cluster, "nlp", "borrower", 4))
    assert starts(cluster, "nlp", "borrower")
    cluster.trainer.create(job(cluster, "vision", "owner", 1))
    assert starts(cluster, "vision", "owner")
    assert not started(cluster, "nlp", "borrower")
    assert cluster.condition("team-nlp", "borrower", "Preempted")["reason"] == "InCohortReclamation"
    assert live(cluster, "nlp", "borrower")["metadata"]["annotations"][RUN] == "0123456789ab-1"
    [said] = interruptions(seen(cluster))
    assert re.fullmatch(f"{PREEMPTED}; it waits again in the queue of team nlp", str(said)), said
    assert losing_of(cluster) == [f"team-nlp/borrower ({STOPPED})"]
    cluster.api.delete(job(cluster, "vision", "owner", 1))
    assert starts(cluster, "nlp", "borrower")
    assert losing_of(cluster) == [f"team-nlp/borrower ({STOPPED})"], "it was stopped once"
    [said] = interruptions(seen(cluster))
    again = PREEMPTED.replace("TrainJob owner", "(TrainJob owner|a job)")  # it is being deleted
    assert re.fullmatch(f"{again}; it has nodes again since [0-9:]{{8}}", str(said)), said
    assert said.evictions == 1


def test_a_trainjob_without_kueues_patch_is_admitted_in_vain_and_named(
    cluster: KueueServer,
) -> None:
    """So a TrainJob looks that is older than the Trainer 2.2."""
    if TRAINER_RELEASES[cluster.trainer.release].pod_changes != PATCHES:
        return
    cluster.trainer.create(job(cluster, "vision", "owner", 4))
    assert starts(cluster, "vision", "owner")
    cluster.trainer.create(job(cluster, "nlp", "old", 2))
    assert until(lambda: bool(waits(cluster, "nlp", "old")))
    old = live(cluster, "nlp", "old")
    old["spec"][PATCHES] = [each for each in old["spec"][PATCHES] if each["manager"] != KUEUE]
    cluster.api.request("PUT", f"/apis/{KINDS['TrainJob']}/namespaces/team-nlp/trainjobs/old", old)
    assert jobs_left_behind(seen(cluster)) == []
    cluster.api.delete(job(cluster, "vision", "owner", 4))
    assert until(lambda: cluster.condition("team-nlp", "old", "Admitted").get("status") == "True")
    later = timedelta(seconds=GRACE_SECONDS + 1)
    assert until(lambda: [each.name for each in jobs_left_behind(seen(cluster, later))] == ["old"])
    assert not started(cluster, "nlp", "old")


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
