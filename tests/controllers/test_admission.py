"""Every object our builders make, at a real API server with the CRDs, webhooks and controllers of
each Trainer release: accepted, stored as it was sent, and turned into the pods that were meant.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from rehearsal.kube import ApiError, Object
from tests.support.cases.trainer import API, JOB, NODE, OWN, VARIANTS, runtime, train_job
from tests.support.patience import until
from tests.support.recording import CHECKOUT
from tests.support.trainer_server import TrainerServer, runtimes, trainer_server
from trainyard.catalog import versions
from trainyard.decide import plan_stack
from trainyard.manifests.document import look
from trainyard.objects.jobs.own_runtimes import OwnRuntime, own_runtime
from trainyard.objects.jobs.pod_template import EFA, GPU, TOLERATIONS
from trainyard.objects.jobs.trainer import pod_jobs, train_job_spec
from trainyard.objects.jobs.upstream_runtimes import upstream_runtimes
from trainyard.plan import EnvironmentPlan
from trainyard.settings.reading.reader import read_file

FOUR_RANKS = dataclasses.replace(JOB, processes_per_node=4)
FINALIZER = "trainer.kubeflow.org/resource-in-use"


def lost(sent: Any, stored: Any, path: str = "spec") -> list[str]:
    """Fields that are not stored as they were sent; what was added is none of them."""
    if isinstance(sent, dict) and isinstance(stored, dict):
        return [
            each
            for key, value in sent.items()
            for each in (
                lost(value, stored[key], f"{path}.{key}") if key in stored else [f"{path}.{key}"]
            )
        ]
    if isinstance(sent, list) and isinstance(stored, list) and len(sent) == len(stored):
        return [
            each
            for one, other in zip(sent, stored, strict=True)
            for each in lost(one, other, f"{path}[]")
        ]
    return [] if sent == stored else [path]


# What our builders make.


def test_every_runtime_is_stored_as_it_was_sent(trainer: TrainerServer) -> None:
    for name, (_, spec) in runtimes(trainer.release).items():
        assert lost(spec, (trainer.api.get(runtime(name, {})) or {})["spec"]) == [], name


@pytest.mark.parametrize("kind", OWN)
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_job_is_stored_as_it_was_sent(
    trainer: TrainerServer, variant: str, kind: str
) -> None:
    jobs = pod_jobs(runtimes(trainer.release)[f"own-{kind}"][1])
    limited = dataclasses.replace(
        VARIANTS[variant], time_limit_minutes=None if trainer.release == "2.1.0" else 90
    )
    spec = train_job_spec(trainer.release, f"own-{kind}", limited, jobs=jobs)
    name = f"{kind}-{list(VARIANTS).index(variant)}"
    assert lost(spec, trainer.create(train_job(name, spec))["spec"]) == []


def test_the_stack_files_objects_are_stored_as_they_were_sent(
    trainer: TrainerServer, tmp_path: Path
) -> None:
    for file in CHECKOUT.glob("Pulumi*.yaml"):
        (tmp_path / file.name).write_text(
            file.read_text().replace("version: 2.1.0", f"version: {trainer.release}")
        )
    for stack in ("dev", "team-vision"):
        plan = plan_stack(read_file(stack, tmp_path), tmp_path).accepted()
        for each in plan.runtimes if isinstance(plan, EnvironmentPlan) else ():
            applied = trainer.api.apply(
                runtime(each.name, each.spec, each.framework), manager="pulumi"
            )
            assert lost(each.spec, applied["spec"]) == [], each.name
        for job in plan.jobs.values():
            applied = _stored(trainer, train_job(job.name, job.spec))
            assert lost(job.spec, applied["spec"]) == [], job.name


def _stored(trainer: TrainerServer, job: Object) -> Object:
    """The job as the API server has it, as soon as the webhook has heard of its runtime."""

    def sent() -> Object | None:
        try:
            return trainer.api.apply(job, manager="pulumi")
        except ApiError as error:
            if "spec.RuntimeRef" not in str(error):
                raise
            return None

    stored = until(sent)
    assert stored
    return stored


# What becomes of them.


def test_a_torch_jobs_pods_know_their_peers_and_have_what_they_need(trainer: TrainerServer) -> None:
    trainer.create(train_job("gang", train_job_spec(trainer.release, "own-torch", JOB)))
    pods = trainer.pods("gang", 2)
    assert [_lacks(pod) for pod in pods] == [[], []]
    for pod in pods:
        env = {each["name"]: each.get("value") for each in pod["spec"]["containers"][0]["env"]}
        assert (env["PET_NNODES"], env["PET_NPROC_PER_NODE"]) == ("2", "auto")
        assert (
            env["PET_MASTER_ADDR"] == "gang-node-0-0.gang"
            and pod["spec"]["restartPolicy"] == "Never"
        )


def test_a_job_that_names_a_runtime_with_a_pool_gets_whole_nodes_of_it(
    trainer: TrainerServer,
) -> None:
    """What a person sends with the SDK: the runtime, and the number of nodes."""
    spec = {"runtimeRef": {"name": "own-whole"}, "trainer": {"numNodes": 2}}
    trainer.create(train_job("short", spec))
    for pod in trainer.pods("short", 2):
        [node] = pod["spec"]["containers"]
        assert (
            node["resources"]["limits"].items() >= {GPU: "8", EFA: "4", "memory": "1272Gi"}.items()
        )
        assert node["resources"]["requests"]["cpu"] == "171"
        assert pod["spec"]["nodeSelector"] == NODE.node_selector
        assert {each["key"] for each in TOLERATIONS} <= {
            each.get("key") for each in pod["spec"]["tolerations"]
        }
        assert _mounted(pod).keys() >= {"/dev/shm"}
        variables = {each["name"]: each.get("value") for each in node["env"]}
        assert (variables["OF_THE_TYPE"], variables["PET_NPROC_PER_NODE"]) == ("1", "auto")
        assert pod["metadata"]["annotations"]["karpenter.sh/do-not-disrupt"] == "true"


def test_an_entry_on_a_runtime_with_a_pool_has_each_volume_once(trainer: TrainerServer) -> None:
    trainer.create(train_job("over", train_job_spec(trainer.release, "own-whole", JOB)))
    for pod in trainer.pods("over", 2):
        assert _lacks(pod) == []
        volumes = [each["name"] for each in pod["spec"]["volumes"]]
        mounts = [each["mountPath"] for each in pod["spec"]["containers"][0]["volumeMounts"]]
        assert len(volumes) == len({*volumes}) and len(mounts) == len({*mounts})


def test_an_mpi_jobs_launcher_starts_after_its_nodes_and_has_all_that_they_have(
    trainer: TrainerServer,
) -> None:
    jobs = pod_jobs(own_runtime(trainer.release, OWN["mpi"])[1])
    spec = train_job_spec(trainer.release, "own-mpi", dataclasses.replace(JOB, nodes=3), jobs=jobs)
    trainer.create(train_job("mpi", spec))
    nodes = trainer.pods("mpi", 2)
    assert [
        pod["metadata"]["labels"]["jobset.sigs.k8s.io/replicatedjob-name"] for pod in nodes
    ] == ["node", "node"]
    for pod in nodes:
        trainer.api.request(
            "PATCH",
            f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}/status",
            {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}},
            content_type="application/merge-patch+json",
        )
    pods = trainer.pods("mpi", 3)
    assert [_lacks(pod) for pod in pods] == [[], [], []]
    [launcher] = [pod for pod in pods if "-launcher-" in pod["metadata"]["name"]]
    env = {each["name"]: each.get("value") for each in launcher["spec"]["containers"][0]["env"]}
    assert env["OMPI_MCA_orte_set_default_slots"] == "8"


def test_torchtune_fetches_into_our_claim_and_then_trains_with_the_runtimes_recipe_and_the_jobs_mounts(
    trainer: TrainerServer,
) -> None:
    alone = dataclasses.replace(JOB, nodes=1, command=())
    trainer.create(train_job("tune", train_job_spec(trainer.release, "own-torchtune", alone)))
    fetching = trainer.pods("tune", 2)
    assert [_of_job(pod) for pod in fetching] == ["dataset-initializer", "model-initializer"]
    for pod in fetching:
        assert _mounted(pod)["/workspace"] == ("scratch-1", "tuned")
        trainer.api.request(
            "PATCH",
            f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}/status",
            {"status": {"phase": "Succeeded"}},
            content_type="application/merge-patch+json",
        )
    [node] = [pod for pod in trainer.pods("tune", 3) if _of_job(pod) == "node"]
    assert _lacks(node) == []
    mounts = _mounted(node)
    assert (mounts["/workspace"], mounts["/checkpoints"]) == (
        ("scratch-1", "tuned"),
        ("scratch-1", "job"),
    )
    claims = [
        each["persistentVolumeClaim"]["claimName"]
        for each in node["spec"]["volumes"]
        if "persistentVolumeClaim" in each
    ]
    assert sorted(claims) == [
        "home",
        "scratch-1",
    ], "with two volumes of a claim kubelet never starts the pod"
    command = node["spec"]["containers"][0]["command"]
    assert command[:2] == ["tune", "run"] and "qwen2_5/1.5B_full" in command


def _of_job(pod: Object) -> str:
    return pod["metadata"]["labels"]["jobset.sigs.k8s.io/replicatedjob-name"]


def _mounted(pod: Object) -> dict[str, tuple[str, str | None]]:
    """Path → claim, and the directory of it."""
    claims = {
        each["name"]: look(each, "persistentVolumeClaim", "claimName")
        for each in pod["spec"]["volumes"]
    }
    return {
        each["mountPath"]: (claims[each["name"]], each.get("subPath"))
        for each in pod["spec"]["containers"][0]["volumeMounts"]
    }


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

FOREIGN: tuple[tuple[str, Object, list[str]], ...] = (
    (
        "2.1.0",
        train_job(
            "foreign",
            train_job_spec(
                "2.3.0", "own-torch", dataclasses.replace(FOUR_RANKS, time_limit_minutes=90)
            ),
        ),
        ["spec.runtimePatches", "spec.activeDeadlineSeconds"],
    ),
    (
        "2.1.0",
        runtime("foreign", upstream_runtimes("2.3.0")["jax-distributed"][1]),
        ["spec.mlPolicy.jax"],
    ),
    (
        "2.3.0",
        train_job("foreign", train_job_spec("2.1.0", "own-torch", FOUR_RANKS)),
        ["spec.podTemplateOverrides"],
    ),
    (
        "2.3.0",
        runtime("foreign", upstream_runtimes("2.1.0")["torch-distributed"][1]),
        ["spec.mlPolicy.torch.numProcPerNode"],
    ),
)
"""Release of the server, an object of the other release, the fields it loses."""


def test_objects_of_another_release_lose_fields_without_a_word_unless_they_are_applied(
    trainer: TrainerServer,
) -> None:
    """The SDK and Kueue create and update; Pulumi applies."""
    for _, made, gone in [each for each in FOREIGN if each[0] == trainer.release]:
        with pytest.raises(ApiError, match="field not declared in schema"):
            trainer.api.apply(made, manager="pulumi")
        assert lost(made["spec"], trainer.create(made)["spec"]) == gone


@pytest.mark.parametrize("trainer", ["2.3.0"], indirect=True)
def test_a_patch_of_a_job_that_is_not_there_passes_the_newer_webhook_and_starts_nothing(
    trainer: TrainerServer,
) -> None:
    """It is merged before it is looked for: the runtime then has such a job, without an image; only
    an event tells."""
    trainer.create(
        train_job("astray", train_job_spec("2.3.0", "own-torch", FOUR_RANKS, jobs=("launcher",)))
    )
    assert until(
        lambda: (
            'job "astray-launcher-0" creation failed'
            in str(trainer.api.request("GET", "/api/v1/namespaces/default/events"))
        ),
    )
    assert "status" not in (trainer.api.get(train_job("astray", {})) or {})


# From one release to the next, under a job.


def test_an_upgrade_in_place_leaves_a_running_job_alone_and_the_runtime_free(
    tmp_path: Path,
) -> None:
    older, newer = versions.TRAINERS
    resilient = OwnRuntime(kind="torch", image="registry/image:1", max_restarts=5)
    with trainer_server(tmp_path) as server:
        server.install(older)
        server.api.apply(runtime("own", own_runtime(older, resilient)[1]), manager="pulumi")
        by_hand = train_job("by-hand", train_job_spec(older, "own", JOB))
        by_hand["spec"]["trainer"]["numProcPerNode"] = "auto"
        server.create(by_hand)  # first: it waits until the webhook has heard of the runtime
        server.api.apply(train_job("job", train_job_spec(older, "own", JOB)), manager="pulumi")
        waiting = train_job("waiting", train_job_spec(older, "own", JOB) | {"suspend": True})
        server.create(waiting)
        before = server.pods("job", 2)
        assert until(lambda: FINALIZER in _finalizers(server))

        with pytest.raises(
            AssertionError
        ):  # it cannot read a word where a number belongs, and never becomes ready
            server.install(newer, patience=4)
        assert until(lambda: "cannot unmarshal string" in (tmp_path / "trainer/log").read_text())
        server.api.delete(by_hand)
        server.install(newer)
        kept = server.api.get(waiting)
        dropped = versions.TRAINER_RELEASES[older].pod_changes
        assert dropped in waiting["spec"] and kept and dropped not in kept["spec"], "due says so"
        server.api.delete(waiting)
        server.api.apply(runtime("own", own_runtime(newer, resilient)[1]), manager="pulumi")
        assert until(lambda: FINALIZER not in _finalizers(server))
        server.api.apply(train_job("next", train_job_spec(newer, "own", JOB)), manager="pulumi")
        assert [_lacks(pod) for pod in server.pods("next", 2)] == [[], []]
        assert [pod["metadata"]["uid"] for pod in server.pods("job", 2)] == [
            pod["metadata"]["uid"] for pod in before
        ]

        server.stop()
        server.helm("uninstall", "kubeflow-trainer-crds", "--namespace=kubeflow-system")
        jobs = server.api.request("GET", f"/apis/{API}/trainjobs")["items"]
        assert [job["metadata"]["name"] for job in jobs] == ["job", "next"]


def _finalizers(server: TrainerServer) -> list[str]:
    return (server.api.get(runtime("own", {})) or {})["metadata"].get("finalizers", [])
