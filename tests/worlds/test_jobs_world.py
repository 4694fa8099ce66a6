"""Jobs of a stack in one world: the repaired full fine-tuning of a 30B model as a PyTorchJob under
the real training-operator on two p5.48xlarge, and others beside it: TrainJobs that come, change,
fail and go, samples of tests/workloads, jobs that Kubeflow's SDK sends; at last the Trainer is
upgraded under one that runs."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.controllers.test_sdk import SDK, V1, submitted
from tests.support.patience import until
from tests.support.recording import CHECKOUT
from tests.support.worlds import NEEDS_A_WORLD
from tests.worlds.harness import Harness, Object, rehearsing
from trainyard.catalog import versions
from trainyard.decide import plan_stack
from trainyard.settings.reading.reader import read

pytestmark = [pytest.mark.world, pytest.mark.apart, NEEDS_A_WORLD]

JOB = "qwen3-30b-fullft"
KEYS = {"HUGGING_FACE_HUB_TOKEN": "hf-token", "LANGFUSE_SECRET_KEY": "langfuse-secrets"}
SCRIPT = """\
test "$HUGGING_FACE_HUB_TOKEN" = of-hf-token
test "$LANGFUSE_SECRET_KEY" = of-langfuse-secrets
torchrun --nproc_per_node=8 --nnodes=2 --rdzv_backend=c10d --rdzv_endpoint=${PET_MASTER_ADDR}:${PET_MASTER_PORT} \\
  /workspace/train/run_full_finetune.py --model_name Qwen/Qwen3-30B-A3B-Thinking-2507-FP8 \\
  --dataset_dir /mnt/datasets/processed --bf16 True --deepspeed /workspace/train/ds_full.json
"""
FILES = {
    "run_full_finetune.py": "import deepspeed\n",
    "ds_full.json": '{"zero_optimization": {"stage": 2}}\n',
}
REPOSITORY = {
    "workloads/dist/training.py": (
        "import os\nprint('rank', os.environ['RANK'], os.environ['WORLD_SIZE'])\n"
    )
}
"""What the rehearsal's git has for the sample that clones."""
OLDER, NEWER = versions.TRAINERS


def stack(trainer: str = OLDER, **pytorch_job: Any) -> Object:
    job = {
        "nodes": 2,
        "pool": "h100",
        "image": "registry.example.com/pytorch-fullft:1.0",
        "script": SCRIPT,
        "processes_per_node": 8,
        "shared_memory_gib": 64,
        "storage": {"datasets": {"path": "/mnt/datasets"}},
        "checkpoints": {"store": "checkpoints", "directory": JOB},
        "env": {"TRAINYARD_STEPS": "6"},
        "secrets": {key: {"secret": secret, "key": key} for key, secret in KEYS.items()},
        "files": {"sources": list(FILES), "path": "/workspace/train"},
        "pytorch_job": {"clean_pods": "none", **pytorch_job},
    }  # running: a worker is often gone with its last words
    lustre = {"data": "delete", "lustre": {"capacity_gib": 4800, "throughput_mbps_per_tib": 500}}
    return {
        "aws:region": "us-east-2",
        "trainyard:environment": {
            "zone": "us-east-2a",
            "pools": {
                "h100": {"instance_types": ["p5.48xlarge"], "max_nodes": 2},
                "l4": {"instance_types": ["g6.12xlarge"], "max_nodes": 3},
            },
            "cluster": {
                "version": "1.35",
                "endpoint": "public-and-private",
                "public_access_cidrs": ["203.0.113.7/32"],
            },
            "storage": {"datasets": lustre, "checkpoints": lustre},
            "training_operator": {"version": "1.8.1"},
            "trainer": {
                "version": trainer,
                "runtimes": ["torch-distributed"],
                "own_runtimes": {"once": {"image": "trainer:1", "max_restarts": 0}},
            },
            "jobs": {JOB: job},
        },
    }


def beside(script: str, wait: str) -> Object:
    """A small TrainJob, on a pool that the others leave free."""
    return {
        "runtime": "once",
        "nodes": 1,
        "pool": "l4",
        "image": "trainer:1",
        "gpus_per_node": 1,
        "script": script,
        "wait": wait,
        "wait_minutes": 15,
    }


LONG = beside("sleep 900", "running")


@pytest.fixture(scope="module")
def harness() -> Iterator[Harness]:
    """A world of this module's own. Its owners bring the Secrets for which the job's pods have
    waited."""
    first = stack()
    first["trainyard:environment"]["jobs"] |= {
        "long": LONG,
        "short": beside("echo first", "complete"),
    }
    files = {**FILES, **REPOSITORY, "Pulumi.pytorch.yaml": yaml.safe_dump({"config": first})}
    with rehearsing("pytorch", files) as made:
        made.do("up", "--stack", "pytorch", "--wait", "5")
        for key, secret in KEYS.items():
            made.apply(
                {
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "metadata": {"name": secret, "namespace": "training"},
                    "stringData": {key: f"of-{secret}"},
                }
            )
        assert until(lambda: _state(made, JOB)) == "Succeeded", made.log.read_text()
        yield made


def test_sixteen_ranks_met_on_two_nodes_with_claims_on_lustre(harness: Harness):
    assert _ranks(harness, JOB) == set(range(16))
    master, worker = harness.get(f"pods -n training -l training.kubeflow.org/job-name={JOB}")[
        "items"
    ]
    assert (master["metadata"]["name"], worker["metadata"]["name"]) == (
        f"{JOB}-master-0",
        f"{JOB}-worker-0",
    )
    assert master["spec"]["nodeName"] != worker["spec"]["nodeName"]
    [waited] = worker["status"]["initContainerStatuses"]
    assert waited["name"] == "init-pytorch" and waited["state"]["terminated"]["exitCode"] == 0
    claims, volumes = harness.get("pvc -n training")["items"], harness.get("pv")["items"]
    assert [claim["status"]["phase"] for claim in claims] == ["Bound"] * 2
    assert [volume["spec"]["csi"]["driver"] for volume in volumes] == ["fsx.csi.aws.com"] * 2


def test_the_real_webhook_refuses_two_masters(harness: Harness):
    wrong = _by_hand(harness, "two-masters")
    wrong["spec"]["pytorchReplicaSpecs"]["Master"]["replicas"] = 2
    with pytest.raises(
        RuntimeError, match=r'"validator\.pytorchjob\..* denied .*Master\]\.replicas: .* must be 1'
    ):
        harness.apply(wrong)


def test_with_a_coordinator_the_two_nodes_are_workers_and_the_job_ends_after_them(harness: Harness):
    harness.apply(_by_hand(harness, "coordinated", coordinator=True))
    assert until(lambda: _state(harness, "coordinated")) == "Succeeded"
    assert _ranks(harness, "coordinated") == set(range(16))
    assert "2 of 2" in harness.shell("kubectl logs -n training coordinated-master-0")


def test_a_job_whose_ranks_fail_fails_and_keeps_what_they_said(harness: Harness):
    broken = _by_hand(harness, "broken")
    [master] = broken["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"]
    master["command"] = ["/bin/sh", "-c", "echo no data; exit 3"]
    harness.apply(broken)
    assert until(lambda: _state(harness, "broken")) == "Failed"
    assert "no data" in harness.shell("kubectl logs -n training broken-master-0")
    assert "ended first, with exit code 3: no data\n" in harness.shell(
        f"{sys.executable} -m trainyard status --stack {harness.stack}", check=False
    )
    # Its worker, if not begun, still looks for the master, 100 times 2 s, with a node's GPUs in
    # hand.
    harness.shell("kubectl -n training delete pytorchjob broken --wait")


def test_jobs_come_change_fail_and_go_while_another_runs_on(harness: Harness):
    """`up` waits for what it is told to wait for, and says why a run failed. The module's first `up`
    made long and short."""
    assert harness.condition("short") == "Complete", "up has waited for it"
    running, finished = _uid(harness, "pods", "long"), _uid(harness, "trainjob", "short")
    [pod] = harness.get("pods -n training -l jobset.sigs.k8s.io/jobset-name=long")["items"]
    assert pod["status"]["qosClass"] == "Burstable", "BestEffort pods are killed first"
    _up(harness, long=LONG, short=beside("echo second", "complete"), twin=_twin())
    assert _uid(harness, "trainjob", "short") != finished, "a changed run is another run"
    assert "second" in harness.shell(
        "kubectl logs -n training -l jobset.sigs.k8s.io/jobset-name=short"
    )
    assert harness.condition("twin") == "Complete"
    assert _train_job_ranks(harness, "twin") == set(range(16)), "the PyTorchJob as a TrainJob"
    with pytest.raises(
        RuntimeError,
        match=r"TrainJob training/fails is Failed: node rank \d on \S+ ended first, [^\n]*loss is nan",
    ):
        _up(harness, long=LONG, fails=beside("echo loss is nan; exit 1", "complete"))
    assert _train_jobs(harness) == ["fails", "long"], "short is gone although another run failed"
    assert _uid(harness, "pods", "long") == running, "nobody disturbed it"


def _twin() -> Object:
    """The PyTorchJob's entry as one of a TrainJob."""
    twin = {
        **stack()["trainyard:environment"]["jobs"][JOB],
        "runtime": "once",
        "checkpoints": {"store": "checkpoints", "directory": "twin"},
        "wait": "complete",
        "wait_minutes": 15,
    }
    del twin["pytorch_job"]
    return twin


def test_the_sample_that_clones_is_repaired_as_a_file_and_succeeds(harness: Harness):
    text = (CHECKOUT / "tests/workloads/c-pytorch-dist-job.flawed.yaml").read_text()
    job = yaml.safe_load(
        text.replace(" " * 14 + "command", " " * 12 + "command").replace(
            "<GIT_REPO>", "https://example.com/dist"
        )
    )
    del job["metadata"]["namespace"]
    master, worker = (
        replica["template"]["spec"] for replica in job["spec"]["pytorchReplicaSpecs"].values()
    )
    worker["tolerations"].pop()  # of another cluster
    master["containers"][0]["resources"] = worker["containers"][0]["resources"]
    job["spec"]["runPolicy"]["cleanPodPolicy"] = "None"
    (harness.checkout / "dist.yaml").write_text(yaml.safe_dump(job))
    _up(harness, dist={"manifest": "dist.yaml", "pool": "l4"})
    assert _train_jobs(harness) == [], "the one that failed is gone, and the one that ran"
    assert until(lambda: _state(harness, "pytorch-dist-job")) == "Succeeded"
    # The job ends with its master, whatever the workers do.
    assert "rank 0 3" in harness.shell("kubectl logs -n training pytorch-dist-job-master-0")


def test_a_runtime_with_every_fragment_that_people_bring_takes_their_job_to_its_end(
    harness: Harness,
):
    runtime = _sample("d-training-runtime-demo")
    for name in ("d-gpu", "d-retry-and-ttl", "a-max-restarts"):
        runtime = _merged(runtime, _sample(f"{name}.runtime-fragment"))
    job = _sample("d-trainjob-with-configmap")
    job["metadata"]["namespace"] = "training"
    del (
        job["spec"]["trainer"]["resourcesPerNode"],
        job["spec"]["trainer"]["numProcPerNode"],
    )  # the runtime's: GPUs
    [override] = job["spec"]["podTemplateOverrides"]
    override["spec"]["volumes"].append(
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}
    )
    override["spec"]["containers"][0]["volumeMounts"].append(
        {"name": "shm", "mountPath": "/dev/shm"}
    )
    script = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "data": {"pytorch-demo.py": "import torch\n"},
        "metadata": {"name": "pytorch-demo-script", "namespace": "training"},
    }
    for obj in (runtime, script, job):
        harness.apply(obj)
    name = job["metadata"]["name"]
    assert until(lambda: harness.condition(name)) == "Complete"
    assert _train_job_ranks(harness, name) == set(range(8))


def test_the_sdk_lists_our_runtimes_submits_to_one_and_sees_its_job_complete(harness: Harness):
    _sees_complete(harness, OLDER)


def test_the_sdk_of_the_training_operator_submits_and_sees_its_job_succeed(harness: Harness):
    said = submitted(V1, "submit_v1.py", _kubeconfig(harness), "training", "1", "240")
    assert said == {"replicas": {"Master": 1, "Worker": 1}, "succeeded": True}


@pytest.mark.soak
def test_an_upgraded_trainer_finds_nothing_it_cannot_read_and_leaves_alone_what_runs(
    harness: Harness,
):
    _up(harness, long=LONG)
    running, job = _uid(harness, "pods", "long"), harness.get("trainjob long -n training")
    by_hand: Object = {key: job[key] for key in ("apiVersion", "kind", "spec")}
    by_hand["metadata"] = {"name": "by-hand", "namespace": "training"}
    by_hand["spec"]["trainer"] |= {"numProcPerNode": "auto", "command": ["true"]}
    harness.apply(by_hand)
    assert until(lambda: harness.condition("by-hand")) == "Complete"
    said = harness.shell(
        f"{sys.executable} -m trainyard status --stack {harness.stack}", check=False
    )
    assert "set numProcPerNode to a string: by-hand\n" in said
    [remove] = re.findall("before you raise trainer.version: (kubectl .*)", said)
    harness.shell(remove)
    _up(harness, NEWER, long=LONG)
    assert _uid(harness, "pods", "long") == running
    _sees_complete(harness, NEWER)


@pytest.mark.soak
def test_down_leaves_nothing(harness: Harness):
    assert harness.do("down") == 0, harness.log.read_text()


def _up(harness: Harness, trainer: str = OLDER, **jobs: Object) -> None:
    """Plain pulumi on the stack with these jobs beside; RuntimeError with what it says where it
    fails."""
    config = stack(trainer)
    config["trainyard:environment"]["jobs"] |= jobs
    (harness.checkout / "Pulumi.pytorch.yaml").write_text(yaml.safe_dump({"config": config}))
    harness.shell(
        "pulumi up --yes --skip-preview --non-interactive >up.log 2>&1 || { cat up.log >&2; exit"
        " 1; }"
    )


def _sees_complete(harness: Harness, release: str) -> None:
    said = submitted(
        SDK[release], "submit.py", _kubeconfig(harness), "training", "once", "1", "240"
    )
    assert {"once", "torch-distributed"} <= {*said["runtimes"]}
    assert (said["runtime"], said["nodes"], said["status"]) == ("once", 2, "Complete")


def _kubeconfig(harness: Harness) -> str:
    return harness.shell(f"{sys.executable} -m development kubeconfig --stack pytorch").strip()


def _sample(name: str) -> Object:
    return yaml.safe_load((CHECKOUT / f"tests/workloads/{name}.yaml").read_text())


def _merged(there: Any, more: Any) -> Any:
    """Both; of lists the entries of one name are one."""
    if isinstance(there, dict):
        return there | {
            key: _merged(there[key], value) if key in there else value
            for key, value in more.items()
        }
    if not isinstance(there, list):
        return more
    named = {entry["name"]: entry for entry in there}
    return [
        *(
            named | {entry["name"]: _merged(named.get(entry["name"], {}), entry) for entry in more}
        ).values()
    ]


def _train_jobs(harness: Harness) -> list[str]:
    found = harness.get("trainjobs -n training")["items"]
    return sorted(job["metadata"]["name"] for job in found)


def _uid(harness: Harness, kind: str, job: str) -> str:
    of = f"{kind} -n training" + (
        f" -l jobset.sigs.k8s.io/jobset-name={job}" if kind == "pods" else ""
    )
    found = harness.get(of if kind == "pods" else f"{of} {job}")
    return (found["items"][0] if kind == "pods" else found)["metadata"]["uid"]


def _by_hand(harness: Harness, name: str, **settings: Any) -> Object:
    """The job with other settings, as somebody would apply it under another name."""
    plan = plan_stack(
        read(stack(**settings), stack="pytorch", project="trainyard"), harness.checkout
    ).accepted()
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name, "namespace": "training"},
        "spec": plan.jobs[JOB].spec,
    }


def _state(harness: Harness, job: str) -> str:
    found = harness.get(f"pytorchjob {job} -n training").get("status", {}).get("conditions", [])
    return next(
        (
            c["type"]
            for c in found
            if c["type"] in ("Succeeded", "Failed") and c["status"] == "True"
        ),
        "",
    )


def _ranks(harness: Harness, job: str, label: str = "training.kubeflow.org/job-name") -> set[int]:
    said = harness.shell(f"kubectl logs -n training -l {label}={job} --tail=-1")
    return {int(rank) for rank in re.findall(r"\[rank (\d+)/\d+\] node", said)}


def _train_job_ranks(harness: Harness, job: str) -> set[int]:
    return _ranks(harness, job, "jobset.sigs.k8s.io/jobset-name")
