"""No pod of a run lives beside a later run of its name, with the Trainer and JobSet of each release at a
real API server: how a TrainJob is deleted, and what the policy of trainyard/objects/jobs/one_run.py refuses."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from rehearsal.kube import ApiError, Object
from tests.support.cases.trainer import JOB, train_job
from tests.support.patience import until
from tests.support.team_server import CRDS
from tests.support.trainer_server import TrainerServer, runtimes
from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.objects.jobs import one_run
from trainyard.objects.jobs.trainer import pod_jobs, train_job_spec

ADMISSION = "admissionregistration.k8s.io/v1"
HELD = "example.com/writes-a-checkpoint"
SETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"
PODS = "/api/v1/namespaces/default/pods"
PATCH = "application/merge-patch+json"
TIMES = 10


def job(trainer: TrainerServer, name: str) -> Object:
    jobs = pod_jobs(runtimes(trainer.release)["own-torch"][1])
    spec = train_job_spec(trainer.release, "own-torch", JOB, jobs=jobs)
    made = train_job(name, spec)
    return made | {"metadata": made["metadata"] | {"namespace": "default"}}


def legacy_job(name: str) -> Object:
    container = {"name": "pytorch", "image": "trainer:1"}
    replica = {"replicas": 1, "template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": JOB_KINDS["PyTorchJob"].api_version,
        "kind": "PyTorchJob",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"pytorchReplicaSpecs": {"Master": replica}},
    }


def refusal(trainer: TrainerServer, obj: Object, *, ask: bool = False) -> str:
    """Why it is refused; empty where it is not. `ask`: without making it."""
    try:
        if ask:
            at = trainer.api.path(obj, collection=True)
            trainer.api.request("POST", f"{at}?dryRun=All", obj)
        else:
            trainer.create(obj)
    except ApiError as error:
        return str(error)
    return ""


def test_a_deletion_as_ours_leaves_no_gang_that_stays(trainer: TrainerServer) -> None:
    """Where the Trainer hears of a deletion after JobSet did, it may make the JobSet again: the garbage
    collector deletes it at once (docs/limits.md)."""
    _until_garbage_is_collected(trainer)
    ours = JOB_KINDS["TrainJob"].deletion.capitalize()
    names = [f"ours-{number}" for number in range(TIMES)]
    made = [trainer.create(job(trainer, name)) for name in names]
    for name in names:
        trainer.pods(name, 2)
    for each in made:
        trainer.api.delete(each, policy=ours)
        assert until(lambda each=each: not trainer.api.get(each))
    time.sleep(1)  # whatever the Trainer makes again is there by now
    assert until(lambda: not [name for name in names if _gang(trainer, name)])


def test_a_trainer_that_hears_late_of_a_deletion_makes_no_gang_that_stays(
    trainer: TrainerServer,
) -> None:
    """It makes the JobSet again in about half of the deletions; the garbage collector deletes it at once,
    as its owner is gone (docs/limits.md)."""
    _until_garbage_is_collected(trainer)
    again = 0
    for name in (f"late-{n}" for n in range(5 * TIMES)):
        made = trainer.create(job(trainer, name))
        sound = {pod["metadata"]["uid"] for pod in trainer.pods(name, 2)}
        with trainer.held():
            before = trainer.api.request("GET", SETS)["metadata"]["resourceVersion"]
            trainer.api.delete(made, policy="Background")
            assert until(lambda made=made: not trainer.api.get(_set_of(made)))
        again += _made_since(trainer, name, before)
        assert until(lambda name=name, sound=sound: _gang(trainer, name) <= sound)
        if again == 3:
            return
    pytest.fail("the Trainer makes no gang again any more: docs/limits.md says that it does")


def _made_since(trainer: TrainerServer, name: str, version: str) -> bool:
    """True where a JobSet of this name was made between this resource version and a second from now. It may
    live for a few milliseconds only."""
    events = [*trainer.api.watch(f"{SETS}?resourceVersion={version}", timeout_seconds=1)]
    made = [event["object"]["metadata"]["name"] for event in events if event["type"] == "ADDED"]
    return name in made


def _gang(trainer: TrainerServer, name: str) -> set[str]:
    """UIDs of the JobSet of this name and of its pods."""
    sets = trainer.api.request("GET", SETS)["items"]
    named = [each for each in sets if each["metadata"]["name"] == name]
    return {each["metadata"]["uid"] for each in [*named, *trainer.pods(name, 0)]}


def test_a_deletion_in_the_foreground_leaves_ghosts(trainer: TrainerServer) -> None:
    """The Trainer makes a JobSet for each TrainJob that is still there, and this one is held until
    then: alone it is there for milliseconds only."""
    _until_garbage_is_collected(trainer)
    made = trainer.create(_held(job(trainer, "other")))
    trainer.pods("other", 2)
    sets = _set_of(made)
    sound = trainer.api.request("GET", trainer.api.path(sets))["metadata"]["uid"]

    def ghost() -> bool:
        found = trainer.api.get(sets)
        return found is not None and found["metadata"]["uid"] != sound

    trainer.api.delete(made, policy="Foreground")
    assert until(ghost), (
        "the Trainer makes no ghosts any more: its TrainJobs can be deleted in the foreground"
    )
    trainer.api.request(
        "PATCH", trainer.api.path(made), {"metadata": {"finalizers": None}}, content_type=PATCH
    )
    assert until(lambda: not trainer.api.get(made))


def _until_garbage_is_collected(trainer: TrainerServer) -> None:
    """The garbage collector asks every 30 seconds which CRDs there are. Until it watches JobSets, it
    deletes none with its TrainJob."""
    made = trainer.create(job(trainer, "watched"))
    trainer.pods("watched", 2)
    trainer.api.delete(made, policy="Background")
    assert until(lambda: not trainer.api.get(_set_of(made)))


def _set_of(train_job: Object) -> Object:
    return train_job | {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}


def _held(obj: Object) -> Object:
    return obj | {"metadata": obj["metadata"] | {"finalizers": [HELD]}}


@pytest.fixture
def guarded(trainer: TrainerServer) -> Iterator[TrainerServer]:
    """With the policy, which an API server obeys a moment later."""
    parts: list[Object] = [
        _named("ValidatingAdmissionPolicy", one_run.policy()),
        _named("ValidatingAdmissionPolicyBinding", one_run.binding()),
    ]
    for part in parts:
        trainer.api.apply(part, manager="tests")
    kept = trainer.create(_pod("probe", "probe"))
    probe = job(trainer, "probe")
    assert until(lambda: "pod probe of the TrainJob" in refusal(trainer, probe, ask=True))
    yield trainer
    for part in parts:
        trainer.api.delete(part)
    # else the policy of this test could answer for that of the next one
    assert until(lambda: refusal(trainer, probe, ask=True) == "")
    trainer.api.delete(kept)
    assert until(lambda: not trainer.api.get(kept))


def _named(kind: str, spec: Any) -> Object:
    return {
        "apiVersion": ADMISSION,
        "kind": kind,
        "metadata": {"name": one_run.POLICY},
        "spec": spec,
    }


def _pod(name: str, of: str, kind: str = "TrainJob") -> Object:
    labels = {JOB_KINDS[kind].pod_label: of}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"containers": [{"name": "node", "image": "trainer:1"}]},
    }


def test_a_job_is_refused_until_the_pods_of_the_one_before_are_gone(guarded: TrainerServer) -> None:
    """Pods that end slowly: they have a finalizer in the place of a grace period."""
    first = guarded.create(job(guarded, "slow"))
    pods = guarded.pods("slow", 2)
    for each in pods:
        _finalizers(guarded, each, [HELD])
    guarded.api.delete(first)
    made = first | {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}
    assert until(lambda: not guarded.api.get(made)), "only its pods are left"
    said = refusal(guarded, job(guarded, "slow"))
    assert "of the TrainJob that was called slow before is still there: send the job again" in said
    assert refusal(guarded, job(guarded, "another")) == ""
    for each in pods:
        _finalizers(guarded, each, None)
    assert until(lambda: refusal(guarded, job(guarded, "slow")) == "")
    assert guarded.pods("slow", 2)


def test_a_gang_that_starts_again_passes(guarded: TrainerServer) -> None:
    """JobSet makes its Jobs again while pods of the first try end."""
    guarded.create(job(guarded, "again"))
    pods = guarded.pods("again", 2)
    for each in pods:
        _finalizers(guarded, each, [HELD])
    [made] = guarded.api.request(
        "GET",
        "/apis/batch/v1/namespaces/default/jobs?labelSelector="
        "jobset.sigs.k8s.io%2Fjobset-name%3Dagain",
    )["items"]
    guarded.api.delete(made | {"apiVersion": "batch/v1", "kind": "Job"})
    assert guarded.pods("again", 4)
    for each in pods:
        _finalizers(guarded, each, None)


def test_jobs_of_the_training_operator_are_kept_apart_too(guarded: TrainerServer) -> None:
    guarded.api.apply(_crd(), manager="tests")
    left = guarded.create(_pod("old-master-0", "old", "PyTorchJob"))
    old = legacy_job("old")
    said = "pod old-master-0 of the PyTorchJob"
    assert until(lambda: said in refusal(guarded, old, ask=True)), (
        "as long as it passes, none is made"
    )
    assert refusal(guarded, job(guarded, "old")) == "", "the name is that of another kind"
    guarded.api.delete(left)
    assert until(lambda: refusal(guarded, old) == "")


def test_a_suspended_job_of_the_training_operator_waits_for_the_end_of_its_pods(
    guarded: TrainerServer,
) -> None:
    """The operator would take them for pods of the resumed job. Anything else may change meanwhile."""
    guarded.api.apply(_crd(), manager="tests")
    made = legacy_job("half")
    made["spec"]["runPolicy"] = {"suspend": True}
    assert until(lambda: refusal(guarded, made) == "")
    left = guarded.create(_pod("half-master-0", "half", "PyTorchJob"))

    def change(suspend: bool, **notes: str) -> str:
        body = {"metadata": {"annotations": notes}, "spec": {"runPolicy": {"suspend": suspend}}}
        try:
            guarded.api.request("PATCH", guarded.api.path(made), body, content_type=PATCH)
        except ApiError as error:
            return str(error)
        return ""

    def resumed() -> str:
        """The refusal to resume it. The policy can hear of the pod a little later than the test."""
        assert change(True) == ""
        return change(False)

    assert until(lambda: "pod half-master-0 of the PyTorchJob" in (said := resumed()) and said)
    assert change(True, seen="1") == ""
    guarded.api.delete(left)
    assert until(lambda: change(False) == "")
    guarded.create(_pod("half-master-0", "half", "PyTorchJob"))
    time.sleep(1)
    assert change(False, seen="2") == "", "it runs"
    assert change(True) == ""


def _crd() -> Object:
    import yaml

    return yaml.load(CRDS[-1].read_text(), yaml.CSafeLoader)


def _finalizers(trainer: TrainerServer, pod: Object, names: list[str] | None) -> None:
    trainer.api.request(
        "PATCH",
        f"{PODS}/{pod['metadata']['name']}",
        {"metadata": {"finalizers": names}},
        content_type=PATCH,
    )
