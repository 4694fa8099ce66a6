"""A file that is a job is ready for the graph, or refused for what its pool and its environment
cannot do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.cases.jobs import tune
from tests.support.recording import WORKLOADS
from tests.support.stackfile import Edit, at, environment_plan, planned, reading
from tests.support.sweep import lines_not_reached
from trainyard.catalog.job_kinds import MORE_KINDS
from trainyard.derive.pools import TYPES
from trainyard.manifests import admission
from trainyard.manifests.admission import KINDS, Manifest, judged
from trainyard.plans.identity import digest
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.job import ManifestConfig

VALID = WORKLOADS / "valid"
NO_SHM = "no volume is mounted at /dev/shm"
"""A warning about what works with a new NCCL: tests/trainyard/rules/test_jobs.py."""
CLAIMS = {"fsx-pvc": "scratch-1", "fsx": "scratch-1", "ckpt": "home-2"}
JOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: a}
spec:
  runtimeRef: {name: torch-distributed}
  trainer:
    numNodes: 2
    image: a/b:1
    command: [bash, -c, "torchrun train.py"]
    resourcesPerNode: {limits: {nvidia.com/gpu: 8}}
"""
V1 = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: a, namespace: training}
spec:
  pytorchReplicaSpecs:
    Master: {replicas: 1, template: {spec: {containers: [{name: pytorch, image: "a/b:1", command: [torchrun, t.py],
      resources: {limits: {nvidia.com/gpu: 8}}}]}}}
"""


def environment(*edits: Edit) -> EnvironmentConfig:
    config = reading(
        *edits,
        at("pools.cpu", {"instance_types": ["m7i.8xlarge"], "max_nodes": 4}),
        at("pools.any", {"instance_types": ["g6e.12xlarge", "g6.12xlarge"], "max_nodes": 4}),
        at("pools.p5", {"instance_types": ["p5.48xlarge"], "max_nodes": 8}),
    ).config
    assert config and config.environment
    return config.environment


def made(
    text: str, pool: str = "g6e", claims: Mapping[str, str] = CLAIMS, **given: Any
) -> Manifest:
    asked: dict[str, Any] = {
        "trainer": "2.1.0",
        "operator": "1.8.1",
        "namespace": "training",
        "production": False,
        "privileged_pods": False,
    }
    asked["environment"] = environment()
    return judged(text, "x.yaml", pool=pool, claims=claims, **asked | given)


EVERY_KIND = environment(at("training_operator", {"version": "1.8.1", "more_kinds": [*MORE_KINDS]}))


def of_kind(kind: str, old: str = "", new: str = "", **given: Any) -> Manifest:
    text = (WORKLOADS / f"v1/{kind.removesuffix('Job').lower()}.yaml").read_text()
    assert old in text
    return made(text.replace(old, new), environment=EVERY_KIND, **given)


@pytest.mark.parametrize("kind", MORE_KINDS)
def test_a_sound_job_of_another_kind_is_not_blamed_and_its_nodes_are_those_with_gpus(
    kind: str,
) -> None:
    found = of_kind(kind)
    assert (found.errors, found.warnings) == ((), ())
    assert (found.nodes, found.gpus, found.lacks_waiting) == (2, 8, False)


FLAWS: dict[str, tuple[str, str, str, str]] = {
    "a slip of a role": ("PaddleJob", "Worker:", "Wroker:", "paddleReplicaSpecs.Wroker"),
    "no launcher": ("MPIJob", "Launcher:", "Worker2:", "spec.mpiReplicaSpecs"),
    "two launchers": ("MPIJob", "replicas: 1", "replicas: 2", "Launcher.replicas"),
    "another container": (
        "TFJob",
        "name: tensorflow",
        "name: main",
        "Worker.template.spec.containers",
    ),
    "no master": ("XGBoostJob", "Master:", "Chief:", "xgbReplicaSpecs"),
    "a field that it has not": ("MXJob", "jobMode:", "jobKind:", "spec.jobKind"),
    "a field of a pod that there is not": ("TFJob", "command:", "comand:", "containers[0].comand"),
    "more GPUs than a node has": ("TFJob", "gpu: 8", "gpu: 16", "nvidia.com/gpu"),
    "another scheduler": (
        "PaddleJob",
        "containers:",
        "schedulerName: x\n          containers:",
        "schedulerName",
    ),
    "folders of the node": (
        "MXJob",
        "containers:\n            -",
        "volumes: [{name: a, hostPath: {path: /}}]\n          containers:\n            -",
        "hostPath",
    ),
    "a claim without a store": (
        "TFJob",
        "containers:",
        "volumes: [{name: a, persistentVolumeClaim: {claimName: nobody}}]\n          containers:",
        "claimName",
    ),
    "another zone": (
        "MPIJob",
        "containers:",
        "nodeSelector: {topology.kubernetes.io/zone: us-east-1a}\n          containers:",
        "topology.kubernetes.io/zone",
    ),
    "a restart that there is not": (
        "TFJob",
        "restartPolicy: Never",
        "restartPolicy: Nevr",
        "restartPolicy",
    ),
}


@pytest.mark.parametrize("case", FLAWS)
def test_a_flaw_of_another_kind_is_refused_by_its_path_with_a_way_out(case: str) -> None:
    kind, old, new, path = FLAWS[case]
    found = [error for error in of_kind(kind, old, new).errors if path in error.where]
    assert found and all(error.fix for error in found)


def test_a_team_has_no_job_of_another_kind() -> None:
    [error] = of_kind("TFJob", namespace="team-vision").errors
    assert "in a team" in str(error) and "environment.jobs" in error.fix


@pytest.mark.parametrize(
    ("policy", "got"),
    [
        ("", "nothing"),
        ("{backoffLimit: 3}", "nothing"),
        ("{cleanPodPolicy: None}", "None"),
        ("{cleanPodPolicy: Running}", ""),
        ("{cleanPodPolicy: All}", ""),
    ],
)
def test_pods_in_a_queue_end_with_their_job(policy: str, got: str) -> None:
    """Kueue gives the quota of a job that has ended to another team."""
    text = V1.replace("namespace: training", "namespace: team-vision")
    text = text.replace("spec:\n", f"spec:\n  runPolicy: {policy or '{}'}\n", 1)

    def said(config: EnvironmentConfig, namespace: str = "team-vision") -> list[str]:
        named = text.replace("team-vision", namespace)
        found = made(named, environment=config, namespace=namespace).errors
        return [str(each) for each in found if "cleanPodPolicy" in each.where]

    in_queues = environment(at("queues", {}))
    assert said(environment()) == [] and said(in_queues, "training") == []
    errors = said(in_queues)
    assert len(errors) == bool(got)
    assert all(f"; got {got}. Fix: write Running" in each for each in errors)
    assert all(each.startswith("spec.runPolicy.cleanPodPolicy [") for each in errors)


@pytest.mark.parametrize(("restarts", "warned"), [("", 1), (", restartPolicy: Always", 0)])
def test_work_before_the_training_is_warned_of_in_a_queue(restarts: str, warned: int) -> None:
    """Pods are not ready before it ends, and Kueue stops the job by then: a copy of data began again, for ever."""
    text = V1.replace("namespace: training", "namespace: team-vision")
    first = f"initContainers: [{{name: copy, image: 'a/b:1'{restarts}}}], containers:"
    text = text.replace("containers:", first)

    def said(config: EnvironmentConfig, namespace: str = "team-vision") -> list[str]:
        named = text.replace("team-vision", namespace)
        found = made(named, environment=config, namespace=namespace).warnings
        return [str(each) for each in found if "takes the nodes back" in each.text]

    plain = at("trainer.runtimes", ["torch-distributed"])
    in_queues = environment(at("queues", {}), plain)
    assert said(environment()) == [] and said(in_queues, "training") == []
    warnings = said(in_queues)
    assert len(warnings) == warned
    assert all("initContainers[0]" in each and "after 18 minutes, and" in each for each in warnings)
    longer = said(environment(at("queues", {})))
    assert all("after 78 minutes, and" in each for each in longer) and len(longer) == warned


def test_a_time_to_live_is_left_out_with_a_warning_and_starts_no_run_again() -> None:
    """A file that had it before keeps the identity of its run."""
    entry = ManifestConfig(manifest="x.yaml", pool="g6e")
    short = V1.replace(
        "spec:\n", "spec:\n  runPolicy: {ttlSecondsAfterFinished: 60, backoffLimit: 3}\n", 1
    )
    found = made(short)
    warnings = [each for each in found.warnings if NO_SHM not in str(each)]
    assert ["runPolicy.ttlSecondsAfterFinished" in warning.where for warning in warnings] == [True]
    plan = found.plan(entry, "training", {})
    assert plan.spec["runPolicy"] == {"backoffLimit": 3}
    assert plan.run == f"{digest([found.objects[-1]['spec'], []])[:12]}-1"
    kept = made(V1).plan(entry, "training", {})
    assert plan.spec["pytorchReplicaSpecs"] == kept.spec["pytorchReplicaSpecs"]


def test_a_file_that_kubectl_has_printed_is_created_without_what_the_cluster_wrote() -> None:
    """With a uid, a resourceVersion or managedFields the API server refuses to create it."""
    seen = "uid: 1-2, resourceVersion: '7', generation: 1, managedFields: [{manager: kubectl}]"
    owner = "ownerReferences: [{kind: CronJob, name: c, uid: 3-4, apiVersion: batch/v1}]"
    name = "metadata: {name: "
    assert name in V1
    found = made(V1.replace(name, f"metadata: {{{seen}, {owner}, name: ", 1))
    assert not found.errors
    [warning] = [str(each) for each in found.warnings if "left out" in each.text]
    assert warning.startswith("metadata.ownerReferences [")
    [job] = found.objects
    assert job["metadata"] == made(V1).objects[-1]["metadata"] | {"generation": 1}


def said(text: str, pool: str = "g6e", **given: Any) -> list[str]:
    return [str(error) for error in made(text, pool, **given).errors]


def test_a_file_says_which_image_its_pods_train_with() -> None:
    """Pulls from Docker Hub are counted by it (trainyard/rules/together.py)."""
    without = JOB.replace("    image: a/b:1\n", "")
    assert [made(text).image for text in (JOB, V1, without, "")] == ["a/b:1", "a/b:1", "", ""]


@pytest.mark.parametrize(
    ("name", "pool", "kinds"),
    [
        ("trainjob-own-runtime-beside", "g6e", ["TrainingRuntime", "TrainJob"]),
        ("trainjob-script-from-configmap", "cpu", ["ConfigMap", "TrainJob"]),
        ("trainjob-overrides", "p5", ["TrainJob"]),
        ("pytorchjob-torchrun-env", "g6e", ["PyTorchJob"]),
    ],
)
def test_objects_come_in_the_order_of_creation_in_our_namespace_and_otherwise_as_they_are(
    name: str, pool: str, kinds: list[str]
) -> None:
    text = (
        (VALID / f"{name}.yaml")
        .read_text()
        .replace("namespace: ml, ", "")
        .replace("namespace: a, ", "")
    )
    if pool == "cpu":
        text = text.replace(
            "      spec:\n", "      spec:\n        tolerations: [{operator: Exists}]\n"
        )
    found = made("---\n".join(reversed(text.split("---\n"))), pool, privileged_pods=True)
    assert found.errors == () and [each["kind"] for each in found.objects] == kinds
    assert {each["metadata"].pop("namespace") for each in found.objects} == {"training"}
    written = sorted(
        (each for each in yaml.safe_load_all(text) if each),
        key=lambda each: KINDS.index(each["kind"]),
    )
    back = yaml.safe_dump_all(found.objects).replace(
        "scratch-1", "fsx" if "own" in name else "fsx-pvc"
    )
    assert [*yaml.safe_load_all(back)] == written


def test_a_cluster_runtime_has_no_namespace_and_claims_are_ours_wherever_they_stand() -> None:
    text = (
        (VALID / "trainjob-own-runtime-beside.yaml")
        .read_text()
        .replace("namespace: a, ", "")
        .replace("kind: TrainingRuntime", "kind: ClusterTrainingRuntime")
        .replace("{kind: ClusterTrainingRuntime, name", "{name")
    )
    runtime, job = made(text).objects
    assert "namespace" not in runtime["metadata"] and job["metadata"]["namespace"] == "training"
    assert "'claimName': 'scratch-1'" in str(runtime)


POD, FIRST = "{spec: {con", "apiVersion"
SMALL = JOB.replace("gpu: 8", "gpu: 4").replace("numNodes: 2", "numNodes: 1")
ON_CPU = JOB.replace(
    "resourcesPerNode: {limits: {nvidia.com/gpu: 8}}", "numProcPerNode: 1"
).replace(
    "  trainer",
    """\
  podTemplateOverrides: [{targetJobs: [{name: node}], spec: {tolerations: [{operator: Exists}]}}]
  trainer""",
)


def other(kind: str) -> tuple[str, str]:
    return FIRST, f"kind: {kind}\nmetadata: {{name: b}}\n---\n{FIRST}"


def pod(text: str) -> tuple[str, str]:
    return POD, POD.replace("con", f"{text}, con")


REFUSED: dict[str, tuple[str, str, tuple[str, str], str, str, str]] = {
    # case: (pool, file, (what stands there, what stands there by mistake), where, rule, way out)
    "a secret": (
        "g6e",
        JOB,
        other("Secret"),
        "kind [x.yaml:1]",
        "be one of",
        "create a Secret with kubectl",
    ),
    "another kind": (
        "g6e",
        JOB,
        other("Service"),
        "kind [x.yaml:1]",
        "be one of ConfigMap",
        "take it out",
    ),
    "a kind of other fields": (
        "g6e",
        JOB,
        ("kind: TrainJob", "kind: MPIJob"),
        "kind [x.yaml:2]",
        "be TrainJob, whose fields stand in its spec",
        "write TrainJob",
    ),
    "two jobs": (
        "g6e",
        JOB,
        (FIRST, f"{JOB.replace('name: a', 'name: b')}---\n{FIRST}"),
        "kind [x.yaml:13]",
        "only job",
        "a file",
    ),
    "no job": (
        "g6e",
        JOB,
        (JOB, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}"),
        "",
        "contain a TrainJob",
        "write one",
    ),
    "a runtime of nobody": (
        "g6e",
        JOB,
        ("torch-distributed", "mine"),
        "spec.runtimeRef.name [x.yaml:5]",
        "be a runtime of",
        "torch-distributed-resilient",
    ),
    "a namespaced runtime that is not in the file": (
        "g6e",
        JOB,
        ("{name: torch-d", "{kind: TrainingRuntime, name: torch-d"),
        "spec.runtimeRef.name [x.yaml:5]",
        "of the file",
        "write kind: ClusterTrainingRuntime",
    ),
    "another namespace": (
        "g6e",
        JOB,
        ("name: a", "name: a, namespace: b"),
        "metadata.namespace [x.yaml:3]",
        "not be set",
        "training",
    ),
    "a generated name": (
        "g6e",
        JOB,
        ("name: a", "generateName: a-"),
        "metadata.generateName [x.yaml:3]",
        "have a name",
        "name",
    ),
    "a claim without a store": (
        "g6e",
        V1,
        pod("volumes: [{name: d, persistentVolumeClaim: {claimName: c}}]"),
        "volumes[0].persistentVolumeClaim.claimName",
        "claim that has a store",
        "write claims: {c: …} into the job's entry, with one of scratch",
    ),
    "more nodes than the pool": (
        "g6e",
        JOB,
        ("numNodes: 2", "numNodes: 99"),
        "spec.trainer.numNodes [x.yaml:7]",
        "the max_nodes of pool g6e",
        "raise pools.g6e.max_nodes",
    ),
    "two nodes of several types": (
        "any",
        SMALL,
        ("numNodes: 1", "numNodes: 2"),
        "spec.trainer.numNodes [x.yaml:7]",
        "be 1 on pool any",
        "a pool of one type",
    ),
    "more GPUs than the type": (
        "any",
        SMALL,
        ("gpu: 4", "gpu: 8"),
        "spec.trainer.resourcesPerNode.limits.nvidia.com/gpu [x.yaml:10]",
        "be at most 4",
        "write 4, or name a pool whose nodes have",
    ),
    "more memory than the type has for pods": (
        "any",
        SMALL,
        ("gpu: 4}", "gpu: 4, memory: 400Gi}"),
        "spec.trainer.resourcesPerNode.limits.memory [x.yaml:10]",
        "be at most 173Gi, which g6.12xlarge of pool any has for pods beside its DaemonSets",
        "write 173Gi or less",
    ),
    "more CPUs than the type has for pods": (
        "any",
        SMALL,
        ("gpu: 4}}", "gpu: 4}, requests: {cpu: 47500m}}"),
        "spec.trainer.resourcesPerNode.requests.cpu [x.yaml:10]",
        "be at most 47, which",
        "write 47 or less",
    ),
    "more EFA devices than the type": (
        "p5",
        JOB.replace("gpu: 8", "gpu: 8, vpc.amazonaws.com/efa: 32"),
        ("efa: 32", "efa: 33"),
        "limits.vpc.amazonaws.com/efa [x.yaml:10]",
        "be at most 32, which p5.48xlarge",
        "write 32 or less",
    ),
    "hugepages": (
        "g6e",
        JOB,
        ("gpu: 8}", "gpu: 8, hugepages-2Mi: 5120Mi}"),
        "limits.hugepages-2Mi [x.yaml:10]",
        "not be requested: no node of pool g6e has hugepages-2Mi",
        "delete it",
    ),
    "more memory than a node in two containers": (
        "g6e",
        V1,
        (
            "limits: {nvidia.com/gpu: 8}}}]}}}",
            "limits: {nvidia.com/gpu: 8, memory: 900Gi}}},"
            " {name: b, image: b/c:1, resources: {requests: {memory: 700Gi}}}]}}}",
        ),
        "containers[0].resources.limits.memory",
        "be at most",
        "or less",
    ),
    "another type": (
        "g6e",
        V1,
        pod("nodeSelector: {node.kubernetes.io/instance-type: p4d.24xlarge}"),
        "nodeSelector.node.kubernetes.io/instance-type",
        "select nodes of pool g6e",
        "g6e.48xlarge",
    ),
    "another zone": (
        "g6e",
        V1,
        pod("nodeSelector: {topology.kubernetes.io/zone: ap-northeast-2d}"),
        "topology.kubernetes.io/zone",
        "select nodes",
        "ap-northeast-2a",
    ),
    "a label of nobody": (
        "g6e",
        V1,
        pod("nodeSelector: {nodeType: nvidia}"),
        "nodeSelector.nodeType",
        "select nodes of pool g6e",
        "trainyard.io/pool: g6e",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_the_stack_cannot_do_is_refused_alone_with_its_line_and_a_way_out(case: str) -> None:
    pool, text, (there, instead), where, rule, way_out = REFUSED[case]
    assert said(text, pool) == [] and there in text
    [error] = said(text.replace(there, instead, 1), pool)
    assert where in (place := error.partition(": ")[0]) and "x.yaml" in place
    assert rule in error.partition("; got ")[0] and way_out in error.partition("; got ")[2]


def test_memory_that_only_karpenters_estimate_lacks_is_a_warning() -> None:
    job = JOB.replace("gpu: 8", "gpu: 8, vpc.amazonaws.com/efa: 32, memory: 1900Gi")
    read = made(job, "p5")
    assert read.errors == ()
    [warning] = [str(each) for each in read.warnings if "Karpenter expects" in str(each)]
    assert "limits.memory [x.yaml:10]: Karpenter expects at most 1891Gi" in warning
    [error] = said(job.replace("1900Gi", "2048Gi"), "p5")
    assert "must be at most 1891Gi" in error


INTO = "{name: pytorch, "
FORBIDDEN = {
    "hostNetwork": pod("hostNetwork: true"),
    "hostIPC": pod("hostIPC: true"),
    "hostPath": pod("volumes: [{name: a, hostPath: {path: /a}}]"),
    "privileged": (INTO, f"{INTO}securityContext: {{privileged: true}}, "),
    "add": (INTO, f"{INTO}securityContext: {{capabilities: {{add: [IPC_LOCK]}}}}, "),
    "hostPort": (INTO, f"{INTO}ports: [{{containerPort: 1, hostPort: 1}}], "),
}


@pytest.mark.parametrize("field", FORBIDDEN)
def test_what_the_namespace_would_not_admit_is_refused_with_the_setting_that_admits_it(
    field: str,
) -> None:
    wrong = V1.replace(*FORBIDDEN[field])
    [error] = said(wrong)
    what = "add the capability IPC_LOCK" if field == "add" else f"set {field}"
    assert f"must not {what}: namespace training admits pods of Pod Security's" in error
    assert "[x.yaml:6]" in error and "privileged_pods: true" in error
    assert said(wrong, privileged_pods=True) == []


def test_privileged_pods_open_the_namespace(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    for allowed in (False, True):
        job = {"manifest": "job.yaml", "pool": "g6e", "privileged_pods": allowed}
        plan = environment_plan(at("jobs", {"theirs": job}), folder=tmp_path)
        assert plan.workspace.host_paths == allowed


OURS = {"key": "trainyard.io/pool", "operator": "Exists"}
FOREIGN = {"key": "a", "operator": "Exists"}


def _warned(found: Manifest) -> bool:
    return any("get a toleration for the taint of pool" in w.text for w in found.warnings)


def test_what_kueue_drops_from_a_job_in_a_queue_is_refused() -> None:
    pod = "{template: {spec: {template: {spec: {terminationGracePeriodSeconds: 120}}}}, name: node}"
    text = f"""{JOB}  runtimePatches:
    - manager: example.com/me
      trainingRuntimeSpec: {{template: {{spec: {{replicatedJobs: [{pod}]}}}}}}
"""
    queues = environment(at("queues", {}))
    assert said(text, trainer="2.3.0") == []
    assert said(text, trainer="2.3.0", environment=queues) == [
        "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0].template.spec"
        ".template.spec.terminationGracePeriodSeconds [x.yaml:13]: must not be set in runtimePatches"
        " of a job in a queue: Kueue drops it; got 120. Fix: set terminationGracePeriodSeconds in the"
        " pods of a TrainingRuntime, and delete it here"
    ]


OWN_ARGS = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: mine}
spec:
  mlPolicy: {torch: {}}
  template: {spec: {replicatedJobs: [{name: node, template: {
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}, spec: {template: {spec: {
    containers: [{name: node, image: "a/b:1", command: [torchrun], args: [--old, train.py]}]}}}}}]}}
---
"""


@pytest.mark.parametrize("release", ["2.1.0", "2.3.0"])
def test_an_empty_list_cannot_clear_the_runtimes_words_in_a_queue(release: str) -> None:
    """The Trainer takes [] for no arguments, and Kueue writes the job back without it."""
    job = JOB.replace("{name: torch-distributed}", "{kind: TrainingRuntime, name: mine}")
    text = OWN_ARGS + job + "    args: []\n"
    queues = environment(at("queues", {}))
    assert said(text, trainer=release) == []
    assert said(JOB + "    args: []\n", trainer=release, environment=queues) == []
    [error] = said(text, trainer=release, environment=queues)
    assert error == (
        "spec.trainer.args [x.yaml:20]: must not be an empty list in a queue: Kueue drops it, and pods"
        " get the runtime's args; got []. Fix: take args out of the runtime, or write the whole command"
        " here"
    )


@pytest.mark.parametrize("release", ["2.1.0", "2.3.0"])
def test_a_job_of_the_trainer_gets_the_toleration_of_our_taint_beside_its_own(release: str) -> None:
    without = ON_CPU.replace("{operator: Exists}", "{key: a, operator: Exists}")
    if release == "2.3.0":
        start = without.index("  podTemplateOverrides")
        without = without[:start] + without[without.index("  trainer") :]
    found = made(without, "cpu", trainer=release)
    [job] = found.objects
    assert found.errors == () and _warned(found)
    if release == "2.1.0":
        assert job["spec"]["podTemplateOverrides"][1] == {
            "targetJobs": [{"name": "node"}],
            "spec": {"tolerations": [FOREIGN, OURS]},
        }
    else:
        assert [patch["manager"] for patch in job["spec"]["runtimePatches"]] == [
            "trainyard.io/program"
        ]
        assert f"'tolerations': [{OURS}]" in str(job["spec"]["runtimePatches"])


def test_a_pytorch_job_gets_the_toleration_in_each_replica_that_lacks_it() -> None:
    text = V1.replace("resources: {limits: {nvidia.com/gpu: 8}}", "env: []")
    found = made(text, "cpu")
    assert found.errors == () and _warned(found)
    [job] = found.objects
    master = job["spec"]["pytorchReplicaSpecs"]["Master"]
    assert master["template"]["spec"]["tolerations"] == [OURS]
    on_gpus = made(text, "g6e").objects[0]["spec"]["pytorchReplicaSpecs"]["Master"]
    assert on_gpus["template"]["spec"]["tolerations"] == [{**OURS, "key": "nvidia.com/gpu"}]


def test_a_file_that_tolerates_our_taint_stays_as_it_is() -> None:
    for text, pool in ((ON_CPU, "cpu"), (JOB, "g6e")):
        found = made(text, pool)
        assert not _warned(found) and found.objects[0]["spec"] == yaml.safe_load(text)["spec"]


TYPE, FAMILY = "node.kubernetes.io/instance-type", "karpenter.k8s.aws/instance-family"
COUNT, HOST = "karpenter.k8s.aws/instance-gpu-count", "kubernetes.io/hostname"


def term(*requirements: str) -> str:
    return f"{{matchExpressions: [{', '.join(f'{{{each}}}' for each in requirements)}]}}"


def wants(label: str, operator: str, *values: str) -> str:
    given = f", values: {json.dumps(values)}" if values else ""
    return f"key: {label}, operator: {operator}{given}"


def affinity(*terms: str, preferred: str = "") -> tuple[str, str]:
    more = (
        ", preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference:"
        f" {preferred}}}]" * bool(preferred)
    )
    return pod(
        "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution:"
        f" {{nodeSelectorTerms: [{', '.join(terms)}]}}{more}}}}}"
    )


@pytest.mark.parametrize(
    ("pool", "selector"),
    [
        ("g6e", affinity(term(wants(TYPE, "NotIn", "p5.48xlarge")))),
        ("g6e", affinity(term(wants("eks.amazonaws.com/compute-type", "NotIn", "fargate")))),
        ("g6e", affinity(term(wants(HOST, "NotIn", "ip-10-0-0-1.ec2.internal")))),
        ("g6e", affinity(term(wants("eks.amazonaws.com/nodegroup", "DoesNotExist")))),
        ("g6e", affinity(term(wants(FAMILY, "Exists"), wants(HOST, "Exists")))),
        ("g6e", affinity(term(wants(COUNT, "Gt", "4")), term(wants(COUNT, "Lt", "2")))),
        ("g6e", affinity(term(wants("karpenter.k8s.aws/instance-generation", "Gt", "3")))),
        ("g6e", affinity(term(wants(FAMILY, "In", "p5", "g6e")))),
        (
            "g6e",
            affinity(
                term(wants(FAMILY, "In", "p5")),
                term(wants("nodeType", "In", "x")),
                term(wants(FAMILY, "In", "g6e")),
            ),
        ),
        ("g6e", affinity(term(wants("kubernetes.io/zone", "Exists")), term(wants(HOST, "Exists")))),
        ("g6e", affinity(term(wants("beta.kubernetes.io/arch", "In", "amd64")))),
        (
            "g6e",
            affinity(
                term(wants(FAMILY, "Exists")), preferred=term(wants("nodeType", "In", "nvidia"))
            ),
        ),
        (
            "g6e",
            pod(
                "affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution:"
                " [{weight: 1, podAffinityTerm: {topologyKey: kubernetes.io/zone}}]}}"
            ),
        ),
        (
            "g6e",
            pod(
                "topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/zone,"
                " whenUnsatisfiable: ScheduleAnyway}]"
            ),
        ),
        ("p5", affinity(term(wants("karpenter.k8s.aws/instance-gpu-name", "In", "h100", "h200")))),
    ],
)
def test_a_selector_that_a_node_can_fit_is_no_fault(pool: str, selector: tuple[str, str]) -> None:
    devices = TYPES[environment().pools[pool].instance_types[0]].efa
    text = V1.replace("gpu: 8", f"gpu: 8, vpc.amazonaws.com/efa: {devices}").replace(*selector)
    assert text != V1 and said(text, pool) == []


@pytest.mark.parametrize(
    ("selector", "got", "way_out"),
    [
        (
            affinity(term(wants(TYPE, "NotIn", "g6e.48xlarge", "p5.48xlarge"))),
            "NotIn g6e.48xlarge, p5.48xlarge",
            "delete it",
        ),
        (
            affinity(term(wants(FAMILY, "DoesNotExist"))),
            "DoesNotExist",
            "delete it: the nodes have g6e",
        ),
        (affinity(term(wants(HOST, "DoesNotExist"))), "DoesNotExist", "delete it"),
        (affinity(term(wants("nodeType", "Exists"))), "Exists", "trainyard.io/pool: g6e"),
        (affinity(term(wants(COUNT, "Gt", "8"))), "Gt 8", "the nodes have 8"),
        (affinity(term(wants(COUNT, "Lt", "8"))), "Lt 8", "the nodes have 8"),
        (affinity(term(wants(FAMILY, "In", "g6e"), wants(COUNT, "In", "4"))), "4", "8"),
        (affinity(term(wants(FAMILY, "In", "p5")), term(wants(FAMILY, "In", "p4d"))), "p5", "g6e"),
    ],
)
def test_a_selector_that_no_node_of_the_pool_fits_is_one_fault(
    selector: tuple[str, str], got: str, way_out: str
) -> None:
    [error] = said(V1.replace(*selector))
    assert "matchExpressions" in error and "select nodes of pool g6e" in error
    assert f"got {got}" in error and way_out in error.partition("; got ")[2]


def test_a_file_for_a_pool_that_is_switched_off_is_sound_and_has_a_warning() -> None:
    found = made(V1, environment=environment(at("pools.g6e.replicas", 0)))
    assert not found.errors
    assert "pool g6e are switched off (replicas: 0), so the job waits" in " ".join(
        str(each) for each in found.warnings
    )


def test_a_controller_must_be_there() -> None:
    assert said(V1) == []
    assert "environment.training_operator" in said(V1, operator=None)[0]
    assert "environment.trainer" in said(JOB, trainer=None)[0]


THEIRS = {"manifest": "job.yaml", "pool": "g6e"}
OF_THE_ENTRY: dict[str, tuple[list[Edit], str, str]] = {
    # case: (edits of the dev file, path of the error, part of the message)
    "a pool that the environment lacks": (
        [at("jobs", {"theirs": {**THEIRS, "pool": "a100"}})],
        "jobs.theirs.pool",
        "must be a pool of the environment; got a100. Fix: write one of g6e, h100",
    ),
    "a pool of an unknown type": (
        [
            at("pools.odd", {"instance_types": ["p9.48xlarge"], "max_nodes": 1}),
            at("jobs", {"theirs": {**THEIRS, "pool": "odd"}}),
        ],
        "jobs.theirs.pool",
        "must be a pool whose instance_types are in the catalogue; got odd",
    ),
    "a Trainer that this program does not know": (
        [at("trainer.version", "2.0.0"), at("jobs", {"theirs": THEIRS})],
        "jobs.theirs.manifest",
        "must be written for a Trainer that this program knows",
    ),
    "a claim of a store that the environment lacks": (
        [at("jobs", {"theirs": {**THEIRS, "claims": {"data": "nowhere"}}})],
        "jobs.theirs.claims.data",
        "must be a store of the environment; got nowhere. Fix: write one of scratch, home",
    ),
    "a file that is not there": (
        [at("jobs", {"theirs": {**THEIRS, "manifest": "nowhere.yaml"}})],
        "jobs.theirs.manifest",
        "must be a file in the folder of the stack file, which it is not; got nowhere.yaml",
    ),
}


@pytest.mark.parametrize("case", OF_THE_ENTRY)
def test_what_the_stack_file_says_of_a_file_is_refused_where_it_stands(
    case: str, tmp_path: Path
) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    edits, path, says = OF_THE_ENTRY[case]
    found = [str(error) for error in planned(*edits, folder=tmp_path).errors]
    assert [error for error in found if error.startswith(f"environment.{path}: ") and says in error]


def test_every_error_of_admission_is_caused_by_a_test_above(tmp_path: Path) -> None:
    """Counted by line: a new error without a case fails here."""

    def run() -> None:
        for case in OF_THE_ENTRY:
            test_what_the_stack_file_says_of_a_file_is_refused_where_it_stands(case, tmp_path)
        for pool, text, (there, instead), *_ in REFUSED.values():
            said(text.replace(there, instead, 1), pool)
        test_a_controller_must_be_there()

    assert lines_not_reached([admission], run) == []


@pytest.mark.parametrize(
    ("pool", "devices", "says"),
    [
        ("p5", 4, "4 of the 32 EFA devices of a p5.48xlarge: the nodes exchange data with 12.5 %"),
        ("p5", 32, ""),
        ("g6e", 1, "1 of the 4 EFA devices of a g6e.48xlarge"),
        ("g6e", 4, ""),
        ("g6e", 0, ""),
    ],
)
def test_a_part_of_the_efa_devices_of_whole_nodes_is_a_warning(
    pool: str, devices: int, says: str
) -> None:
    found = made(JOB.replace("gpu: 8", f"gpu: 8, vpc.amazonaws.com/efa: {devices}"), pool)
    [text] = [str(each) for each in found.warnings if "EFA devices" in str(each)] or [""]
    assert says in text and bool(says) is bool(text) and found.errors == ()
    assert not says or ".resourcesPerNode.limits.vpc.amazonaws.com/efa [x.yaml:" in text
    one_node = JOB.replace("numNodes: 2", "numNodes: 1")
    found = made(one_node.replace("gpu: 8", f"gpu: 8, vpc.amazonaws.com/efa: {devices}"), pool)
    assert not any("EFA devices" in str(each) for each in found.warnings)


def test_the_pool_s_type_counts_and_in_production_nothing_moves() -> None:
    [error] = said(JOB, "p5")
    assert "ask for EFA on p5.48xlarge" in error
    latest = JOB.replace("a/b:1", "a/b:latest")
    assert (
        said(latest) == []
        and len([each for each in made(latest).warnings if NO_SHM not in str(each)]) == 1
        and len(said(latest, production=True)) == 1
    )
    assert said(JOB.replace("  trainer", "  runtimePatches: []\n  trainer"), trainer="2.1.0") != []


def test_a_file_on_a_torchtune_runtime_has_its_store_too(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(
        JOB.replace("torch-distributed", "tune").replace("numNodes: 2", "numNodes: 1")
    )
    of_file = at("jobs", {"theirs": {"manifest": "job.yaml", "pool": "g6e"}})
    found = environment_plan(tune()[0], of_file, folder=tmp_path).jobs["theirs"]
    assert (found.runtime, found.stores) == ("tune", ("scratch",))


@pytest.mark.parametrize("text", ["", "[]", "a", "{", "kind: [1]", "metadata: 3\nkind: PyTorchJob"])
def test_what_is_no_job_is_refused(text: str) -> None:
    assert said(text)
