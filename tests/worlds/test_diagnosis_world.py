"""Every mistake of the troubleshooting chapters in a real TrainJob and a real PyTorchJob, and a node
of a gang that vanishes at the same time."""

from __future__ import annotations

import copy
import re
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime

import pytest
import yaml

from tests.support.patience import until
from tests.support.recording import stack_values
from tests.support.worlds import NEEDS_A_WORLD
from tests.worlds.harness import Harness, Object, rehearsing

pytestmark = [pytest.mark.world, pytest.mark.soak, NEEDS_A_WORLD]
MEET = (
    "touch x.py; torchrun --nnodes=2 --nproc_per_node=1 --rdzv_id=$HOSTNAME --rdzv_backend=c10d"
    " --rdzv_endpoint=$PET_MASTER_ADDR:29500 --rdzv_conf=join_timeout=5,read_timeout=5 x.py ||"
    " sleep 900"
)
KEY = {"name": "T", "valueFrom": {"configMapKeyRef": {"name": "kube-root-ca.crt", "key": "token"}}}
MISTAKES: dict[str, tuple[Callable[[Object, Object], object], tuple[str, ...]]] = {
    "resources": (
        lambda trainer, _: trainer.update(resourcesPerNode=_asks(gpus=16)),
        (
            "has waited for 1 of 1 nodes",
            "resources: no node has",
            '"16"',
            "→ request no more than a node of the pool has",
        ),
    ),
    "label": (
        lambda _, pod: pod["nodeSelector"].update({"example.com/disk": "nvme"}),
        ("label: no pool", '"example.com/disk"', "→ kubectl get nodepools"),
    ),
    "taint": (
        lambda trainer, pod: (
            trainer.update(resourcesPerNode=_asks(gpus=0)),
            pod.pop("tolerations"),
        ),
        ("taint: the pods lack a toleration: ", "→ add a toleration"),
    ),
    "claim": (
        lambda _, pod: _mount(pod, {"persistentVolumeClaim": {"claimName": "nowhere"}}),
        (
            "claim: there is no PersistentVolumeClaim nowhere",
            "→ kubectl -n training get persistentvolumeclaims",
        ),
    ),
    "image": (
        lambda trainer, _: trainer.update(
            image="123456789012.dkr.ecr.ap-northeast-2.amazonaws.com/train:1"
        ),
        ("has been Pending for", "train:1: not found", "→ aws ecr describe-images"),
    ),
    "crashes": (
        lambda trainer, _: trainer["command"].__setitem__(-1, "sleep 8; echo $((7 / 0))"),
        ("keeps crashing", "exit code 1", "division by 0", "--previous"),
    ),
    "key": (
        lambda trainer, _: trainer["env"].append(KEY),
        (
            "key token in ConfigMap training/kube-root-ca.crt does not exist",
            "→ kubectl -n training get configmaps",
        ),
    ),
    "host": (
        lambda _, pod: _mount(pod, {"hostPath": {"path": "/data/x", "type": "Directory"}}),
        (
            "the node has no such path: /data/x is not a directory",
            "→ a node has only the files of its AMI and user data",
        ),
    ),
    "strangers": (
        lambda trainer, _: (trainer["command"].__setitem__(-1, MEET), trainer.update(numNodes=2)),
        ("its ranks cannot connect", "not all nodes joined the rendezvous", "→ compare --nnodes"),
    ),
    "still": (
        lambda trainer, _: trainer["command"].__setitem__(-1, "echo step 1; sleep 900"),
        ("seems to hang", "an hour", "→ kubectl -n training logs {first}"),
    ),
}
"""Name of a job of one node and one GPU → the mistake in its trainer or its pods, and parts of the
finding about it. {first} is its first pod."""
V1 = "v1-"
"""Prefix of the name of the PyTorchJob with the same mistake."""
NAMES = [*MISTAKES, *(V1 + name for name in MISTAKES)]


def _asks(gpus: int) -> Object:
    amounts = {"cpu": "1", "memory": "1Gi"} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    return {"requests": amounts, "limits": amounts}


def _mount(pod: Object, source: Object) -> None:
    pod["volumes"].append({"name": "wrong", **source})
    pod["containers"][0]["volumeMounts"].append({"name": "wrong", "mountPath": "/wrong"})


@pytest.fixture(scope="module")
def harness() -> Iterator[Harness]:
    config = stack_values("dev")
    config["trainyard:environment"]["training_operator"] = {"version": "1.8.1"}
    with rehearsing(files={"Pulumi.dev.yaml": yaml.safe_dump({"config": config})}) as harness:
        assert harness.do("up") == 0, harness.log.read_text()
        yield harness


def _instances(harness: Harness, job: str) -> dict[str, Object]:
    """Instance → node of each pod of the job, by rank."""
    pods = harness.get(f"pods -n training -l jobset.sigs.k8s.io/jobset-name={job}")["items"]
    pods.sort(key=lambda pod: pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"])
    nodes = [harness.get(f"node {pod['spec']['nodeName']}") for pod in pods]
    return {node["spec"]["providerID"].rpartition("/")[2]: node for node in nodes}


@pytest.fixture(scope="module")
def vanished(harness: Harness) -> tuple[str, float]:
    """The instance of the second rank of a gang that has saved a checkpoint, and when it vanished."""
    harness.apply(harness.copy_of("t5-large", "survives", env_TRAINYARD_STEPS="120"))
    logs = "kubectl logs -n training -l jobset.sigs.k8s.io/jobset-name=survives --tail=-1"
    assert until(lambda: "step 9/" in harness.shell(logs, check=False))
    instance = list(_instances(harness, "survives"))[1]
    assert harness.do("fault", "vanish", "--instance", instance) == 0
    return instance, time.time()


@pytest.fixture(scope="module")
def findings(harness: Harness, vanished: tuple[str, float]) -> list[str]:
    """What status prints about all mistakes at the same time, until it has named every mistake."""
    harness.shell(
        "kubectl label namespace training --overwrite pod-security.kubernetes.io/enforce=privileged"
    )
    base, jobs = harness.copy_of("t5-large", "base"), list[Object]()
    base["spec"]["runtimeRef"]["name"] = "torch-distributed"  # restarts containers in place
    base["spec"]["trainer"] |= {"numNodes": 1, "resourcesPerNode": _asks(gpus=1)}
    for name, (edit, _) in MISTAKES.items():
        jobs.append(copy.deepcopy(base) | {"metadata": {"name": name, "namespace": "training"}})
        edit(jobs[-1]["spec"]["trainer"], jobs[-1]["spec"]["podTemplateOverrides"][0]["spec"])
    jobs += [_as_pytorch_job(job) for job in jobs]
    harness.apply({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": jobs})
    end, findings = time.monotonic() + 300, list[str]()
    while not all(_named(findings, name) for name in NAMES) and time.monotonic() < end:
        findings += _status(harness).split("\n! ")
    return findings


def _status(harness: Harness) -> str:
    return harness.shell(
        f"{sys.executable} -m trainyard status --stack {harness.stack} --silence 0.25", check=False
    )


def _as_pytorch_job(job: Object) -> Object:
    """On the other pool: the nodes of the first are for the gang that lost a node."""
    trainer, pod = (
        job["spec"]["trainer"],
        copy.deepcopy(job["spec"]["podTemplateOverrides"][0]["spec"]),
    )
    pod["nodeSelector"] |= {
        "trainyard.io/pool": "h100",
        "node.kubernetes.io/instance-type": "p5.48xlarge",
    }
    pod["containers"][0] |= {
        "name": "pytorch",
        "image": trainer["image"],
        "command": trainer["command"],
        "env": trainer["env"],
        "resources": trainer["resourcesPerNode"],
    }
    counts = {"Master": 1} | (
        {"Worker": trainer["numNodes"] - 1} if trainer["numNodes"] > 1 else {}
    )
    replicas = {
        role: {"replicas": count, "restartPolicy": "OnFailure", "template": {"spec": pod}}
        for role, count in counts.items()
    }
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "spec": {"pytorchReplicaSpecs": replicas},
        "metadata": {"name": V1 + job["metadata"]["name"], "namespace": "training"},
    }


def _named(findings: list[str], name: str) -> bool:
    first = f"{name}-master-0" if name.startswith(V1) else f"{name}-node-0-0"
    expected = [words.replace("{first}", first) for words in MISTAKES[name.removeprefix(V1)][1]]
    return any(
        f" {name}" in finding and all(words in finding for words in expected)
        for finding in findings
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_mistake_is_named_with_its_cause_and_the_next_command(findings: list[str], name: str):
    assert _named(findings, name), "\n! ".join(findings)


def test_pods_that_a_failed_pytorch_job_leaves_behind_are_named(harness: Harness):
    """The worker looks for its master or waits for it, and holds its GPUs."""
    job = harness.copy_of("t5-large", "leaves", script=lambda _: "exit 3")
    left = _as_pytorch_job(job)
    left["spec"]["runPolicy"] = {"cleanPodPolicy": "None"}
    for replica in left["spec"]["pytorchReplicaSpecs"].values():
        replica["restartPolicy"] = "Never"
    left["spec"]["pytorchReplicaSpecs"]["Worker"]["template"] = {
        "spec": {
            **left["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"],
            "containers": [
                {
                    "name": "pytorch",
                    "image": job["spec"]["trainer"]["image"],
                    "command": ["sleep", "600"],
                }
            ],
        }
    }
    harness.apply(left)
    assert until(
        lambda: re.search(
            rf"PyTorchJob {V1}leaves ended \d+ s ago, and its pods have not: {V1}leaves-worker-0",
            _status(harness),
        ),
        every=5,
    ), _status(harness)
    harness.shell(f"kubectl -n training delete pytorchjob {V1}leaves --wait")


def test_a_node_that_vanishes_is_replaced_in_its_zone_and_the_gang_resumes(
    harness: Harness, vanished: tuple[str, float]
):
    assert until(lambda: harness.condition("survives")) == "Complete", _status(harness)
    (instance, when), now = vanished, _instances(harness, "survives")
    zones = [node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in now.values()]
    jobset = harness.get("jobset survives -n training")["status"]
    assert instance not in now and zones == ["ap-northeast-2a"] * 2 and jobset["restarts"] == 1
    log = harness.shell(
        "kubectl logs -n training -l jobset.sigs.k8s.io/jobset-name=survives --tail=-1"
    )
    assert "resumed from step " in log and "step 120/120" in log
    complete = next(c for c in jobset["conditions"] if c["type"] == "Completed")
    times = (
        max(n["metadata"]["creationTimestamp"] for n in now.values()),
        complete["lastTransitionTime"],
    )
    replaced, ended = (datetime.fromisoformat(at).timestamp() - when for at in times)
    print(f"a node vanished: replaced after {replaced:.0f} s, the run complete after {ended:.0f} s")
