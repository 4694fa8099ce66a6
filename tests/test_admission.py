"""Every object our builders make, at a real API server with the CRDs, webhooks and controllers of each Trainer release:
accepted, stored as it was sent, and turned into the pods that were meant.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from catalog import versions
from components.plans import Spec
from components.trainer_objects import OwnRuntime, own_runtime, pod_jobs, train_job_spec, upstream_runtimes
from components.training import GPU, TOLERATIONS
from rehearsal.kube import ApiError, Object
from stacks.config import read_file
from stacks.plan import EnvironmentPlan, plan_stack
from tests.recording import CHECKOUT
from tests.test_trainer_objects import JOB, OWN, VARIANTS
from tests.trainer_server import API, Installed, TrainerServer, runtime, runtimes, train_job, trainer_server, until

FOUR_RANKS = dataclasses.replace(JOB, processes_per_node=4)
FINALIZER = "trainer.kubeflow.org/resource-in-use"


def lost(sent: Any, stored: Any, path: str = "spec") -> list[str]:
    """Fields that are not stored as they were sent; what was added is none of them."""
    if isinstance(sent, dict) and isinstance(stored, dict):
        return [each for key, value in sent.items() for each in (
            lost(value, stored[key], f"{path}.{key}") if key in stored else [f"{path}.{key}"])]
    if isinstance(sent, list) and isinstance(stored, list) and len(sent) == len(stored):
        return [each for one, other in zip(sent, stored, strict=True) for each in lost(one, other, f"{path}[]")]
    return [] if sent == stored else [path]


# What our builders make.

def test_every_runtime_is_stored_as_it_was_sent(trainer: Installed) -> None:
    for name, (_, spec) in runtimes(trainer.release).items():
        assert lost(spec, (trainer.server.api.get(runtime(name, {})) or {})["spec"]) == [], name


@pytest.mark.parametrize("kind", OWN)
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_job_is_stored_as_it_was_sent(trainer: Installed, variant: str, kind: str) -> None:
    jobs = pod_jobs(runtimes(trainer.release)[f"own-{kind}"][1])
    spec = train_job_spec(trainer.release, f"own-{kind}", VARIANTS[variant], jobs=jobs)
    name = f"{kind}-{list(VARIANTS).index(variant)}"
    assert lost(spec, trainer.server.create(train_job(name, spec))["spec"]) == []


def test_the_stack_files_objects_are_stored_as_they_were_sent(trainer: Installed, tmp_path: Path) -> None:
    for file in CHECKOUT.glob("Pulumi*.yaml"):
        (tmp_path / file.name).write_text(file.read_text().replace("version: 2.1.0", f"version: {trainer.release}"))
    for stack in ("dev", "team-vision"):
        plan = plan_stack(read_file(stack, tmp_path), tmp_path).accepted()
        for each in plan.runtimes if isinstance(plan, EnvironmentPlan) else ():
            applied = trainer.server.api.apply(runtime(each.name, each.spec, each.framework), manager="pulumi")
            assert lost(each.spec, applied["spec"]) == [], each.name
        for job in plan.jobs.values():
            applied = trainer.server.api.apply(train_job(job.name, job.spec), manager="pulumi")
            assert lost(job.spec, applied["spec"]) == [], job.name


@pytest.mark.parametrize("trainer", ["2.3.0"], indirect=True)
def test_a_time_limit_is_stored_by_the_release_that_has_one(trainer: Installed) -> None:
    spec = train_job_spec(trainer.release, "own-torch", dataclasses.replace(JOB, time_limit_minutes=90))
    assert lost(spec, trainer.server.create(train_job("limited", spec))["spec"]) == []


# What becomes of them.

def test_a_torch_jobs_pods_know_their_peers_and_have_what_they_need(trainer: Installed) -> None:
    trainer.server.create(train_job("gang", train_job_spec(trainer.release, "own-torch", JOB)))
    pods = trainer.server.pods("gang", 2)
    assert [_lacks(pod) for pod in pods] == [[], []]
    for pod in pods:
        env = {each["name"]: each.get("value") for each in pod["spec"]["containers"][0]["env"]}
        assert (env["PET_NNODES"], env["PET_NPROC_PER_NODE"]) == ("2", "auto")
        assert env["PET_MASTER_ADDR"] == "gang-node-0-0.gang" and pod["spec"]["restartPolicy"] == "Never"


def test_an_mpi_jobs_launcher_starts_after_its_nodes_and_has_all_that_they_have(trainer: Installed) -> None:
    jobs = pod_jobs(own_runtime(trainer.release, OWN["mpi"])[1])
    spec = train_job_spec(trainer.release, "own-mpi", dataclasses.replace(JOB, nodes=3), jobs=jobs)
    trainer.server.create(train_job("mpi", spec))
    nodes = trainer.server.pods("mpi", 2)
    assert [pod["metadata"]["labels"]["jobset.sigs.k8s.io/replicatedjob-name"] for pod in nodes] == ["node", "node"]
    for pod in nodes:
        trainer.server.api.request("PATCH", f"{trainer.server.api.path(_named(pod))}/status", {"status": {
            "phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}},
            content_type="application/merge-patch+json")
    pods = trainer.server.pods("mpi", 3)
    assert [_lacks(pod) for pod in pods] == [[], [], []]
    [launcher] = [pod for pod in pods if "-launcher-" in pod["metadata"]["name"]]
    env = {each["name"]: each.get("value") for each in launcher["spec"]["containers"][0]["env"]}
    assert env["OMPI_MCA_orte_set_default_slots"] == "8"


def _named(pod: Object) -> Object:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": pod["metadata"]}


def _lacks(pod: Object) -> list[str]:
    """What a pod of JOB does not have of it."""
    spec, node = pod["spec"], pod["spec"]["containers"][0]
    mounts = {mount["mountPath"] for mount in node["volumeMounts"]}
    has = {
        "GPUs": node["resources"]["limits"].get(GPU) == "8",
        "mounts": mounts >= {"/home", "/checkpoints", "/dev/shm"},
        "zone": spec["nodeSelector"].get("topology.kubernetes.io/zone") == "ap-northeast-2a",
        "tolerations": all(each in spec["tolerations"] for each in TOLERATIONS),
        "environment": {"name": "A", "value": "1"} in node["env"],
        "protection": pod["metadata"]["annotations"].get("karpenter.sh/do-not-disrupt") == "true",
    }
    return [name for name, there in has.items() if not there]


# Why the release decides what is built.

OTHER = {"2.1.0": "2.3.0", "2.3.0": "2.1.0"}
DROPPED = {  # release of the server → what it drops of objects of the other
    "2.1.0": {"job": ["spec.runtimePatches", "spec.activeDeadlineSeconds"], "runtime": ["spec.mlPolicy.jax"]},
    "2.3.0": {"job": ["spec.podTemplateOverrides"], "runtime": ["spec.mlPolicy.torch.numProcPerNode"]},
}


def _of_the_other(release: str) -> dict[str, tuple[Spec, Callable[[Spec], Object]]]:
    other = OTHER[release]
    limited = dataclasses.replace(FOUR_RANKS, time_limit_minutes=90 if other == "2.3.0" else None)
    foreign = "jax-distributed" if other == "2.3.0" else "torch-distributed"
    return {"job": (train_job_spec(other, "own-torch", limited), lambda spec: train_job("foreign", spec)),
            "runtime": (upstream_runtimes(other)[foreign][1], lambda spec: runtime("foreign", spec))}


@pytest.mark.parametrize("what", ["job", "runtime"])
def test_objects_of_another_release_are_accepted_and_lose_fields_without_a_word(trainer: Installed, what: str) -> None:
    spec, made = _of_the_other(trainer.release)[what]
    stored = trainer.server.create(made(spec))
    assert lost(spec, stored["spec"]) == DROPPED[trainer.release][what]
    trainer.server.api.delete(made(spec))


@pytest.mark.parametrize("what", ["job", "runtime"])
def test_an_apply_as_pulumi_does_it_refuses_what_a_release_does_not_have(trainer: Installed, what: str) -> None:
    spec, made = _of_the_other(trainer.release)[what]
    with pytest.raises(ApiError, match="field not declared in schema"):
        trainer.server.api.apply(made(spec), manager="pulumi")


@pytest.mark.parametrize("trainer", ["2.3.0"], indirect=True)
def test_a_patch_of_a_job_that_is_not_there_passes_the_newer_webhook_and_starts_nothing(trainer: Installed) -> None:
    """It is merged before it is looked for: the runtime then has such a job, without an image; only an event tells."""
    server, spec = trainer.server, train_job_spec(trainer.release, "own-torch", FOUR_RANKS, jobs=("launcher",))
    server.create(train_job("astray", spec))
    until(lambda: "astray-launcher-0" in str([
        event["message"] for event in server.api.request("GET", "/api/v1/namespaces/default/events")["items"]
        if event["reason"] == "JobCreationFailed"]), "the event")
    assert "status" not in (server.api.get(train_job("astray", {})) or {})


# From one release to the next, under a job.

def test_an_upgrade_in_place_leaves_a_running_job_alone_and_the_runtime_free(tmp_path: Path) -> None:
    older, newer = versions.TRAINERS
    resilient = OwnRuntime(kind="torch", image="registry/image:1", max_restarts=5)
    with trainer_server(tmp_path) as server:
        server.install(older)
        server.api.apply(runtime("own", own_runtime(older, resilient)[1]), manager="pulumi")
        server.api.apply(train_job("job", train_job_spec(older, "own", JOB)), manager="pulumi")
        by_hand = train_job("by-hand", train_job_spec(older, "own", JOB))
        by_hand["spec"]["trainer"]["numProcPerNode"] = "auto"
        server.create(by_hand)
        before = server.pods("job", 2)
        until(lambda: FINALIZER in _finalizers(server), "the older release holds the runtime")

        with pytest.raises(AssertionError):  # it cannot read a word where a number belongs, and never becomes ready
            server.install(newer, patience=4)
        assert "cannot unmarshal string" in (tmp_path / "trainer/log").read_text()
        server.api.delete(by_hand)
        server.install(newer)
        server.api.apply(runtime("own", own_runtime(newer, resilient)[1]), manager="pulumi")
        until(lambda: FINALIZER not in _finalizers(server), "the newer release lets it go")
        server.api.apply(train_job("next", train_job_spec(newer, "own", JOB)), manager="pulumi")
        assert [_lacks(pod) for pod in server.pods("next", 2)] == [[], []]
        assert [pod["metadata"]["uid"] for pod in server.pods("job", 2)] == [pod["metadata"]["uid"] for pod in before]

        server.stop()
        server.helm("uninstall", "kubeflow-trainer-crds", "--namespace=kubeflow-system")
        jobs = server.api.request("GET", f"/apis/{API}/trainjobs")["items"]
        assert [job["metadata"]["name"] for job in jobs] == ["job", "next"]


def _finalizers(server: TrainerServer) -> list[str]:
    return (server.api.get(runtime("own", {})) or {})["metadata"].get("finalizers", [])
