"""The Trainer's objects, against the CRDs and the runtimes that upstream ships."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import pytest
import yaml
from hypothesis import given

from tests.support import crds
from tests.support.cases.trainer import (
    API,
    JOB,
    RUNTIME,
    RUNTIMES,
    runtime,
    train_job,
)
from tests.support.recording import WORKLOADS, Graph
from tests.support.stackfile import sound_stacks
from trainyard.catalog import versions
from trainyard.decide import plan_stack
from trainyard.objects.jobs.own_runtimes import Fetched, OwnRuntime, own_runtime
from trainyard.objects.jobs.pod_template import GPU, POOL, TOLERATIONS
from trainyard.objects.jobs.runtime_objects import ANCESTOR
from trainyard.objects.jobs.trainer import pod_jobs, train_job_spec
from trainyard.objects.jobs.upstream_runtimes import TUNED, upstream_runtimes
from trainyard.plans.jobs import Spec
from trainyard.settings.reading.reader import read

SHIPPED = [(version, name) for version in versions.TRAINERS for name in upstream_runtimes(version)]


def test_there_are_builders_for_exactly_the_versions_of_the_catalogue() -> None:
    for version in versions.TRAINERS:
        assert train_job_spec(version, RUNTIME, JOB)["runtimeRef"] and upstream_runtimes(version)
    with pytest.raises(KeyError):
        train_job_spec("1.8.1", RUNTIME, JOB)
    with pytest.raises(KeyError):
        upstream_runtimes("1.8.1")


def test_the_dev_stacks_objects_are_ones_that_the_crds_admit(dev: Graph, team: Graph) -> None:
    objects = [*dev.of("TrainJob"), *team.of("TrainJob"), *dev.of("ClusterTrainingRuntime")]
    assert len(objects) == 9
    assert {str(o): found for o in objects if (found := crds.problems(o.inputs))} == {}


@given(stack=sound_stacks())
def test_a_job_of_an_accepted_stack_file_is_one_that_the_crd_admits(stack: dict[str, Any]) -> None:
    plan = plan_stack(read(stack, stack="dev", project="trainyard")).accepted()
    assert {
        name: crds.problems(train_job(name, job.spec)) for name, job in plan.jobs.items()
    } == dict.fromkeys(plan.jobs, [])


@pytest.mark.parametrize(("version", "name"), SHIPPED)
def test_a_runtime_of_ours_means_what_upstreams_manifest_of_that_name_means(
    version: str, name: str
) -> None:
    framework, spec = upstream_runtimes(version)[name]
    theirs = _upstream(version)[name]
    assert theirs["metadata"] == {
        "name": name,
        "labels": {"trainer.kubeflow.org/framework": framework},
    }
    assert _normal(spec, version) == _normal(theirs["spec"], version)


@pytest.mark.parametrize("version", versions.TRAINERS)
def test_every_runtime_that_upstream_ships_is_offered(version: str) -> None:
    assert set(_upstream(version)) == set(upstream_runtimes(version))


def _upstream(version: str) -> dict[str, Any]:
    """The runtimes of the release's own default installation: what its kustomizations list."""
    found: dict[str, Any] = {}
    folders = [crds.upstream(f"{crds.TRAINER}/runtimes", version)]
    while folders:
        folder = folders.pop()
        for entry in yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]:
            if (folder / entry).is_dir():
                folders.append(folder / entry)
            else:
                runtime = yaml.safe_load((folder / entry).read_text())
                found[runtime["metadata"]["name"]] = runtime
    return found


def _normal(value: Any, version: str) -> Any:
    """Images with the tag that the release's kustomization sets, quantities as text."""
    if isinstance(value, dict):
        made = {k: _normal(v, version) for k, v in value.items()}
        image = made.get("image", "")
        if image.startswith("ghcr.io/kubeflow/trainer/") and ":" not in image:
            made["image"] = f"{image}:v{version}"
        return {
            k: {q: str(n) for q, n in v.items()} if k in ("limits", "requests") else v
            for k, v in made.items()
        }
    return [_normal(item, version) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(("version", "name"), RUNTIMES)
def test_a_runtime_is_one_that_the_crds_of_trainer_and_jobset_admit(
    version: str, name: str
) -> None:
    spec = RUNTIMES[version, name]
    assert crds.problems(runtime(name, spec), version) == []
    assert crds.problems(_job_set(spec), version) == []


def _job_set(runtime: Spec) -> dict[str, Any]:
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "job"},
        "spec": runtime["template"]["spec"],
    }


@pytest.mark.parametrize(
    ("version", "image"),
    [
        ("2.1.0", "pytorch/pytorch:2.7.1-cuda12.8-cudnn9-runtime"),
        ("2.3.0", "pytorch/pytorch:2.13.0-cuda13.0-cudnn9-runtime"),
    ],
)
def test_the_resilient_runtime_is_upstreams_with_a_gang_restart_and_nothing_else(
    version: str, image: str
) -> None:
    _, spec = own_runtime(version, OwnRuntime(kind="torch", image=image, max_restarts=3))
    assert _without_gang_restart(spec) == 3
    assert spec == upstream_runtimes(version)["torch-distributed"][1]


@pytest.mark.parametrize("version", versions.TRAINERS)
def test_the_own_mpi_runtime_is_upstreams_newest_with_a_gang_restart_and_nothing_else(
    version: str,
) -> None:
    """Also on 2.1, whose own launcher may run before the nodes answer (T9)."""
    spec = own_runtime(
        version,
        OwnRuntime(
            kind="mpi", image="ghcr.io/kubeflow/trainer/deepspeed-runtime:v2.3.0", max_restarts=3
        ),
    )[1]
    assert _without_gang_restart(spec) == 3
    assert spec == upstream_runtimes("2.3.0")["deepspeed-distributed"][1]


@pytest.mark.parametrize("version", versions.TRAINERS)
@pytest.mark.parametrize("model", TUNED)
def test_the_own_torchtune_runtime_is_upstreams_on_a_claim_of_ours_with_restarts(
    version: str, model: str
) -> None:
    at = Fetched(model=model, store="scratch", claim="scratch-1", directory="tuned")
    framework, spec = own_runtime(
        version, OwnRuntime(kind="torchtune", image="registry/tune:1", max_restarts=3, fetched=at)
    )
    theirs = copy.deepcopy(upstream_runtimes(version)[f"torchtune-{model}"])
    jobset = theirs[1]["template"]["spec"]
    for job in jobset["replicatedJobs"]:
        pod = job["template"]["spec"]["template"]["spec"]
        pod["volumes"] = [{"name": "scratch", "persistentVolumeClaim": {"claimName": "scratch-1"}}]
        pod["containers"][0]["volumeMounts"] = [
            {"name": "scratch", "mountPath": "/workspace", "subPath": "tuned"}
        ]
    jobset.pop("volumeClaimPolicies", None)
    jobset["failurePolicy"] = {"maxRestarts": 3}
    node = jobset["replicatedJobs"][-1]["template"]["spec"]
    node["backoffLimit"], node["template"]["spec"]["restartPolicy"] = 0, "Never"
    node["template"]["spec"]["containers"][0]["image"] = "registry/tune:1"
    assert (framework, spec) == theirs


def test_a_gated_model_is_fetched_with_a_token_that_the_training_does_not_see() -> None:
    jobs = RUNTIMES["2.3.0", "own-torchtune"]["template"]["spec"]["replicatedJobs"]
    assert ["ACCESS_TOKEN" in str(job) for job in jobs] == [True, True, False]


def _without_gang_restart(runtime: Spec) -> int:
    """Takes it out and says how many restarts there were."""
    jobset = runtime["template"]["spec"]
    for job in jobset["replicatedJobs"]:
        assert job["template"]["spec"].pop("backoffLimit") == 0
        assert job["template"]["spec"]["template"]["spec"].pop("restartPolicy") == "Never"
    return jobset.pop("failurePolicy")["maxRestarts"]


def test_the_cpu_runtime_means_what_the_demo_that_people_bring_means() -> None:
    demo = yaml.safe_load((WORKLOADS / "d-training-runtime-demo.yaml").read_text())
    [job] = demo["spec"]["template"]["spec"]["replicatedJobs"]
    [node] = job["template"]["spec"]["template"]["spec"]["containers"]
    ours = OwnRuntime(
        kind="cpu", image=node["image"], max_restarts=2, command=tuple(node["command"])
    )
    framework, spec = own_runtime("2.1.0", ours)
    # It deletes the log of a failed run after half an hour.
    assert job["template"]["spec"].pop("ttlSecondsAfterFinished") == 1800
    assert demo["metadata"]["labels"] == {"trainer.kubeflow.org/framework": framework}
    assert _normal(spec, "2.1.0") == _normal(demo["spec"], "2.1.0")


@pytest.mark.parametrize("version", versions.TRAINERS)
def test_a_priority_is_every_pods_of_the_runtime(version: str) -> None:
    jobs = RUNTIMES[version, "own-urgent"]["template"]["spec"]["replicatedJobs"]
    assert [j["template"]["spec"]["template"]["spec"]["priorityClassName"] for j in jobs] == [
        "urgent",
        "urgent",
    ]


@pytest.mark.parametrize("version", versions.TRAINERS)
@pytest.mark.parametrize("kind", ["torch", "mpi", "cpu"])
def test_variables_and_the_pull_policy_of_a_runtime_are_in_every_pod_that_trains(
    version: str, kind: Any
) -> None:
    ours = OwnRuntime(
        kind=kind, image="a:1", max_restarts=1, env={"A": "1"}, pull_policy="IfNotPresent"
    )
    for job in own_runtime(version, ours)[1]["template"]["spec"]["replicatedJobs"]:
        for container in job["template"]["spec"]["template"]["spec"]["containers"]:
            assert {"name": "A", "value": "1"} in container["env"]
            assert container["imagePullPolicy"] == "IfNotPresent"


@pytest.mark.parametrize(("version", "name"), RUNTIMES)
def test_a_job_reaches_every_pod_of_its_runtime_that_trains(version: str, name: str) -> None:
    jobs = {
        job["name"]: job["template"]["spec"]["template"]["spec"]["containers"][0]["name"]
        for job in RUNTIMES[version, name]["template"]["spec"]["replicatedJobs"]
    }
    assert set(pod_jobs(RUNTIMES[version, name])) == {
        job for job, container in jobs.items() if container == "node"
    }


def test_the_number_of_ranks_is_a_number_or_left_out() -> None:
    four = dataclasses.replace(JOB, processes_per_node=4)
    ranks = [
        train_job_spec(version, RUNTIME, job)["trainer"].get("numProcPerNode")
        for version in versions.TRAINERS
        for job in (JOB, four)
    ]
    assert ranks == [None, 4, None, 4]


def test_a_time_limit_is_the_newer_releases_and_refused_before_2_1_drops_it() -> None:
    limited = dataclasses.replace(JOB, time_limit_minutes=90)
    assert train_job_spec("2.3.0", RUNTIME, limited)["activeDeadlineSeconds"] == 5400
    assert "activeDeadlineSeconds" not in train_job_spec("2.3.0", RUNTIME, JOB)
    with pytest.raises(ValueError, match="no time limit"):
        train_job_spec("2.1.0", RUNTIME, limited)


@pytest.mark.parametrize(("version", "name"), RUNTIMES)
def test_a_runtime_marks_the_job_whose_nodes_a_train_job_sets(version: str, name: str) -> None:
    jobs = RUNTIMES[version, name]["template"]["spec"]["replicatedJobs"]
    marked = [
        j["name"]
        for j in jobs
        if j["template"].get("metadata", {}).get("labels", {}).get(ANCESTOR) == "trainer"
    ]
    assert len(marked) == 1


def test_a_job_says_the_same_in_the_same_order_whatever_order_it_was_told_in() -> None:
    other = dataclasses.replace(
        JOB, env={"A": "1", "B": "2"}, resources={GPU: 8, "vpc.amazonaws.com/efa": 4}
    )
    for version in versions.TRAINERS:
        assert str(train_job_spec(version, RUNTIME, other)) == str(
            train_job_spec(version, RUNTIME, JOB)
        )


def test_a_job_requests_its_devices_and_memory_and_is_not_limited_in_cpu() -> None:
    for version in versions.TRAINERS:
        resources = train_job_spec(version, RUNTIME, JOB)["trainer"]["resourcesPerNode"]
        limits = {GPU: "8", "vpc.amazonaws.com/efa": "4", "memory": "1272Gi"}
        assert resources == {"requests": {"cpu": "171", **limits}, "limits": limits}


def test_every_mount_has_its_volume() -> None:
    pod = train_job_spec("2.1.0", RUNTIME, JOB)["podTemplateOverrides"][0]["spec"]
    assert {m["name"] for m in pod["containers"][0]["volumeMounts"]} == {
        v["name"] for v in pod["volumes"]
    }
    assert [v["name"] for v in pod["volumes"]] == ["dshm", "home", "scratch"]


def test_tolerations_are_of_the_pool_taint_and_of_nodes_that_are_gone() -> None:
    assert [t["key"] for t in TOLERATIONS] == [
        GPU,
        POOL,
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/not-ready",
    ]


# The check is worth something only if it sees what people get wrong.


def test_a_field_of_another_release_a_bad_name_and_a_volume_mounted_twice_are_seen() -> None:
    made = train_job("T5", copy.deepcopy(train_job_spec("2.1.0", RUNTIME, JOB)))
    [node] = made["spec"]["podTemplateOverrides"][0]["spec"]["containers"]
    node["volumeMounts"].append({"name": "home", "mountPath": "/again"})
    said = " ".join(crds.problems(made))
    assert "RFC 1035" in said and "given twice" in said
    assert "'podTemplateOverrides' was unexpected" in " ".join(crds.problems(made, "2.3.0"))


def test_the_crds_rules_are_read() -> None:
    assert crds.rules_of("TrainJob", API) >= 5 and crds.rules_of("ClusterTrainingRuntime", API) >= 9
    assert crds.rules_of("TrainJob", API, "2.3.0") >= 19
