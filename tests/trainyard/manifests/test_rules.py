"""Mistakes are named with their line, a rule and a way out; what is none passes without a word."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.crds import upstream
from tests.support.grammar import without_a_verb
from tests.support.recording import WORKLOADS
from tests.support.stackfile import reading
from tests.trainyard.manifests.test_admission import NO_SHM
from trainyard.catalog import versions
from trainyard.derive.pools import TYPES
from trainyard.manifests import rules
from trainyard.manifests.blanks import agreed
from trainyard.manifests.context import contexts_of
from trainyard.manifests.document import read_manifest
from trainyard.manifests.rules import manifest_problems
from trainyard.objects.jobs.upstream_runtimes import upstream_runtimes
from trainyard.problems import InputWarning
from trainyard.rules import jobs

FOLDER = WORKLOADS
VALID = sorted(FOLDER.glob("valid/*.yaml"))


def judged(*texts: str, **given: Any) -> list[str]:
    """Findings of files that belong together, warnings with a mark."""
    read = [read_manifest(text, "x.yaml") for text in texts]
    found = [
        *(error for _, errors in read for error in errors),
        *agreed(
            [workload for found, _ in read for workload in found],
            lambda filled: manifest_problems(contexts_of(filled, **given)),
        ),
    ]
    said = [f"{'warning: ' if isinstance(each, InputWarning) else ''}{each}" for each in found]
    return [each for each in said if NO_SHM not in each]


def sample(name: str) -> str:
    return next(FOLDER.glob(f"{name}*")).read_text()


# The inputs.


@pytest.mark.parametrize(
    "name",
    [
        "a-max",
        "a-torch",
        "d-gpu",
        "d-retry",
        "d-training",
        "d-trainjob-with-configmap",
        "d-trainjob-with-hostpath",
        "e-ds",
    ],
)
def test_valid_inputs_pass_without_a_word(name: str) -> None:
    assert judged(sample(name)) == judged(sample(name), sample("d-training")) == []


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_what_people_write_legally_passes_without_a_word(path: Path) -> None:
    release = "2.3.0" if path.stem.endswith("on-2.3") else next(iter(versions.TRAINERS))
    said = judged(path.read_text(), release=release)
    true_of_some = (
        *("the image's own entrypoint", "makes one $ of $$", "restarts for ever"),
        "gives up where a node comes",
        "restarts begin at step 0",
        "the pod ends only when this container has ended",
    )
    assert [each for each in said if not any(words in each for words in true_of_some)] == []
    assert len(VALID) >= 40


UPSTREAM = {
    "2.1.0": (
        "github.com/kubeflow/trainer/v2@v2.1.0/manifests/base/runtimes",
        "github.com/kubeflow/training-operator@v1.8.1/examples/pytorch",
    ),
    "2.3.0": ("github.com/kubeflow/trainer/v2@v2.3.0/manifests/base/runtimes",),
}


@pytest.mark.parametrize(
    ("release", "folder"), [(release, each) for release in UPSTREAM for each in UPSTREAM[release]]
)
def test_upstream_s_own_runtimes_and_examples_are_not_refused(release: str, folder: str) -> None:
    found = [(path.name, path.read_text()) for path in upstream(folder).glob("**/*.yaml")]
    found = [
        (name, text)
        for name, text in found
        if re.search(r"kind: .*(TrainingRuntime|PyTorchJob)", text)
    ]
    errors = [
        (name, each)
        for name, text in found
        for each in judged(text, release=release)
        if "warning: " not in each
    ]
    assert len(found) >= 5 and errors == []


def test_what_moves_is_noted_and_not_refused() -> None:
    clone, install = judged(sample("a-t5"))
    assert clone.startswith("warning: spec.trainer.command [x.yaml:22]: the job uses a clone of")
    assert "git checkout" in clone
    assert install.startswith(
        "warning: spec.trainer.command [x.yaml:22]: the job uses `pip install -r"
    )
    [latest] = judged(sample("d-trainjob-with-image"))
    assert (
        latest.startswith("warning: spec.trainer.image [x.yaml:11]: the job uses the tag latest")
        and "digest" in latest
    )


def test_restarts_that_resume_from_nothing_are_noted() -> None:
    [note] = [each for each in judged(sample("a-t5"), sample("a-max")) if "restarts" in each]
    assert note.startswith("warning: spec [x.yaml:5]: 5 restarts begin at step 0")


_POD = "spec.pytorchReplicaSpecs.{}.template.spec"
_MAIN = f"{_POD}.containers[0]"
_LABEL = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0]"
FLAWED: dict[str, list[tuple[int, str, str, str]]] = {
    "b-t5": [
        (6, "spec.backoffLimit", "Trainer 2.1.0", "failurePolicy.maxRestarts"),
        (7, "spec.restartPolicy", "Trainer 2.1.0", "failurePolicy.maxRestarts"),
        (10, "spec.podTemplateOverrides[0].targetJobs", "be a list", "- name: node"),
        (11, "spec.podTemplateOverrides[0].targetJobs.name", "job of its runtime", "write node"),
        (
            15,
            "spec.podTemplateOverrides[0].spec.nodeSelector.topology.kubernetes.io/zone",
            "not a region",
            "ap-northeast-2a",
        ),
        (23, "spec.trainer.command", "be a list", "/bin/bash, -c"),
        (23, "spec.trainer.command", "rendezvous", "--rdzv_endpoint"),
        (31, "spec.trainer.resourcesPerNode.limits.nvidia.com", "resource", "nvidia.com/gpu"),
    ],
    "c-pytorch": [
        (39, "", "be YAML", "indent"),
        (11, "spec.pytorchReplicaSpecs.Master", "NCCL", "nvidia.com/gpu"),
        (20, f"{_MAIN.format('Master')}.args", "placeholder", "write"),
        (40, f"{_MAIN.format('Worker')}.args", "placeholder", "write"),
    ],
    "d-elastic": [
        (6, "spec.mlPolicy.torch.elasticPolicy", "Trainer 2.1 does not", "set mlPolicy.numNodes")
    ],
    "e-qwen": [
        (39, f"{_MAIN.format('Master')}.args", "one comment", "write |"),
        *[
            row
            for role, line in (("Master", 0), ("Worker", 100))
            for row in (
                (34 + line, f"{_POD.format(role)}.containers", "name pytorch", "name: pytorch"),
                (
                    36 + line,
                    f"{_MAIN.format(role)}.image",
                    "not contain a placeholder",
                    "write what belongs there",
                ),
                (
                    39 + line,
                    f"{_MAIN.format(role)}.args",
                    "variables that training-operator",
                    "$(MASTER_ADDR)",
                ),
                (
                    21 + line,
                    f"{_POD.format(role)}.nodeSelector.nvidia.com/gpu.product",
                    "label",
                    "instance-type",
                ),
                (31 + line, f"{_POD.format(role)}.{_LABEL}.key", "label", "instance-type"),
            )
        ],
        *[
            row
            for role, line in (("Master", 83), ("Worker", 167))
            for row in (
                (line, f"{_MAIN.format(role)}.resources", "EFA", "vpc.amazonaws.com/efa: 32"),
            )
        ],
    ],
}


@pytest.mark.parametrize("name", FLAWED)
def test_every_fault_of_a_flawed_input_is_refused_once_and_nothing_else(name: str) -> None:
    found = [each for each in judged(sample(name)) if not each.startswith("warning: ")]
    for line, path, rule, way_out in FLAWED[name]:
        said = [
            each
            for each in found
            if each.startswith(f"{path} [x.yaml:{line}]: " if path else f"x.yaml:{line}: ")
            and rule in each.partition("; got ")[0]
            and way_out in each.partition("; got ")[2]
        ]
        assert len(said) == 1, (line, path, found)
    assert len(found) == len(FLAWED[name])


def test_four_gpus_and_eight_processes_are_refused_whichever_file_says_it() -> None:
    eight = (
        sample("d-trainjob-with-image")
        .replace("numProcPerNode: 2", "numProcPerNode: 8")
        .replace("latest", "1")
    )
    [error] = judged(eight, sample("d-gpu"))
    assert "numProcPerNode [x.yaml:15]: must be at most the 4 GPUs of a pod; got 8" in error
    [error] = judged(sample("d-gpu").replace("numProcPerNode: gpu", "numProcPerNode: 8"))
    assert error.startswith("spec.mlPolicy.torch.numProcPerNode [x.yaml:4]: must be at most")


# One mistake at a time, in a job, a runtime or a PyTorchJob that has no other.

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
    resourcesPerNode: {limits: {nvidia.com/gpu: 4}}
"""
V1 = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: a}
spec:
  pytorchReplicaSpecs:
    Master: {replicas: 1, template: &pod {spec: {containers: [{name: pytorch, image: "a/b:1", command: [torchrun, t.py],
      resources: {limits: {nvidia.com/gpu: 4}}}]}}}
    Worker: {replicas: 1, template: *pod}
"""
ONE = V1[: V1.index("    Worker")]
POD = "{spec: {con"
P5_POD = POD.replace("con", "nodeSelector: {node.kubernetes.io/instance-type: p5.48xlarge}, con")
ON_P5 = ONE.replace(POD, P5_POD)
MOUNTED = ONE.replace(
    POD,
    POD.replace("con", "volumes: [{name: a, emptyDir: {}}, {name: b, emptyDir: {}}], con"),
).replace(
    "{name: pytorch,",
    "{name: pytorch, volumeMounts: [{name: a, mountPath: /a}, {name: b, mountPath: /b}],",
)
ALWAYS, ON_HOST = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "topologyKey: kubernetes.io/hostname",
)
RUNTIME = sample("a-torch")
MPI = (FOLDER / "valid" / "runtime-mpi.yaml").read_text()
SCRIPT = '[bash, -c, "torchrun train.py"]'
TRAINER = "  trainer:\n"
SPEC, COUNT = "spec:\n", "    numProcPerNode: 2\n"
TO_NODE = "  podTemplateOverrides: [{{targetJobs: [{{name: node}}], spec: {{{}}}}}]\n"


def also(text: str) -> tuple[str, str]:
    return SPEC, f"{SPEC}  {text.strip()}\n"


def script(text: str) -> tuple[str, str]:
    return SCRIPT, f"[bash, -c, {json.dumps(text)}]"


OWN_RESOURCES = "{limits: {nvidia.com/gpu: 8, vpc.amazonaws.com/efa: 4, memory: 900Gi}}"
OVER_GPUS = (
    JOB.replace("{name: torch-distributed}", "{kind: TrainingRuntime, name: mine}").replace(
        "{limits: {nvidia.com/gpu: 4}}", OWN_RESOURCES
    )
    + """\
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: mine}
spec:
  mlPolicy: {torch: {}}
  template: {spec: {replicatedJobs: [{name: node, template: {
    metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}, spec: {template: {spec: {
    containers: [{name: node, image: "a/b:1",
      resources: {limits: {nvidia.com/gpu: 8, vpc.amazonaws.com/efa: 4, memory: 512Gi}}}]}}}}}]}}
"""
)
"""A job whose runtime, beside it, has the same devices."""
OVER_LIMIT = OVER_GPUS.replace(
    OWN_RESOURCES, "{limits: {nvidia.com/gpu: 8}, requests: {memory: 900Gi}}"
)
LISTS = OVER_GPUS.replace(
    'image: "a/b:1",\n', 'image: "a/b:1", command: [torchrun, t.py], args: [--old],\n'
).replace(
    "{template: {spec: {\n",
    "{template: {spec: {tolerations: [{key: example.com/x, operator: Exists}],\n",
)
"""The same, whose runtime has a command, arguments and tolerations."""


def _env(name: str, value: str) -> tuple[str, str]:
    return TRAINER, f"{TRAINER}    env: [{{name: {name}, value: '{value}'}}]\n"


COUNTED = (
    "must list the GPUs of its runtime too: Trainer 2.3.0 counts processes by this field alone"
)

VOLUMES = OVER_GPUS.replace(
    "{template: {spec: {\n", "{template: {spec: {volumes: [{name: data, emptyDir: {}}],\n"
)
"""The same, whose runtime has a volume."""
MISTAKES: dict[str, tuple[str, tuple[str, str], str, str, str]] = {
    # case: (file, (what stands there, what stands there by mistake), path, rule, way out)
    "a volume with the name of another kind": (
        VOLUMES,
        (TRAINER, TO_NODE.format("volumes: [{name: data, configMap: {name: a}}]") + TRAINER),
        "volumes[0].name",
        "not be the name of a volume of the runtime, with which it is merged into configMap and emptyDir",
        "write another name, such as my-data",
    ),
    "fewer GPUs than processes": (
        JOB,
        script("export CUDA_VISIBLE_DEVICES=0,1\ntorchrun --nproc_per_node=4 train.py"),
        "command",
        "name a GPU for each of the 4 processes of a pod",
        "delete it",
    ),
    "GPUs of other pods": (
        ON_P5,
        ("{name: pytorch,", "{name: pytorch, env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}],"),
        "env[0].name",
        "the device plugin sets it to the 4 GPUs",
        "delete it",
    ),
    "a path of programs that is to be added": (
        JOB,
        _env("PATH", "/opt/bin:$PATH"),
        "env[0].name",
        "list every folder: it takes the place of the image's PATH",
        "delete it, and write export PATH=",
    ),
    "GPUs that the pod lacks": (
        JOB,
        _env("CUDA_VISIBLE_DEVICES", "4,5"),
        "env[0].name",
        "name GPUs of the pod, which counts its 4 from 0",
        "delete it",
    ),
    "one rank for all": (
        JOB,
        _env("NODE_RANK", "0"),
        "env[0].name",
        "not be one number for 2 nodes",
        "delete it, and read PET_NODE_RANK",
    ),
    "an interface of the node for MPI": (
        JOB,
        script("mpirun -H $HOSTS --mca btl_tcp_if_include ens5 -np 8 t"),
        "command",
        "an interface that pods have, which is eth0",
        "delete it",
    ),
    "two replicas of a job": (
        RUNTIME,
        ("replicas: 1\n", "replicas: 2\n"),
        "replicatedJobs[0].replicas",
        "be 1: the Trainer's webhook refuses others",
        "delete it, and set mlPolicy.numNodes",
    ),
    "pods without names": (
        RUNTIME,
        (
            "    spec:\n      repl",
            "    spec:\n      network: {enableDNSHostnames: false}\n      repl",
        ),
        "network.enableDNSHostnames",
        "not be false: PET_MASTER_ADDR is such a name",
        "delete it",
    ),
    "names of pods in another domain": (
        RUNTIME,
        ("    spec:\n      repl", "    spec:\n      network: {subdomain: pods}\n      repl"),
        "network.subdomain",
        "not be set: PET_MASTER_ADDR has the job's name in its place",
        "delete it",
    ),
    "T1": (
        RUNTIME,
        ("    spec:\n      repl", "    spec:\n      ttlSecondsAfterFinished: 60\n      repl"),
        "spec.template.spec.ttlSecondsAfterFinished",
        "runs again",
        "delete it",
    ),
    "T1b": (
        MPI,
        (
            "- name: node\n        template: {spec: {",
            "- name: node\n        template: {spec: {ttlSecondsAfterFinished: 60, ",
        ),
        "[1].template.spec.ttlSecondsAfterFinished",
        "the first to end is made again",
        "delete it",
    ),
    "T2": (
        JOB + "---\n" + RUNTIME.replace("numNodes: 1", "numNodes: 2"),
        (JOB[JOB.index(TRAINER) :], ""),
        "spec",
        "PET_*",
        "trainer: {numNodes: 1}",
    ),
    "T3, with a job beside": (
        JOB + "---\n" + RUNTIME,
        ("trainjob-ancestor-step", "trainjob-ancestor"),
        "spec.trainer",
        "these values reach no pod",
        "trainjob-ancestor-step: trainer",
    ),
    "T4": (
        JOB,
        (TRAINER, f"{TRAINER}    env: [{{name: PET_NNODES, value: '3'}}]\n"),
        "env[0].name",
        "its webhook refuses the job",
        "delete it",
    ),
    "T5": (
        MPI,
        ("numNodes: 1", "numNodes: 3"),
        "spec.mlPolicy.numNodes",
        "1 launcher",
        "delete it",
    ),
    "T7": (
        JOB + "---\n" + MPI.replace("runLauncherAsNode: true", "runLauncherAsNode: false"),
        ("torch-distributed}", "my-mpi}"),
        "resourcesPerNode",
        "it reaches the launcher only",
        "runtime's job node",
    ),
    "T6": (
        JOB.replace("torch-d", "deepspeed-d"),
        ("numNodes: 2", "numNodes: 1"),
        "numNodes",
        "a second pod with GPUs",
        "torch runtime",
    ),
    "T8": (
        JOB.replace("torch-d", "deepspeed-d"),
        also(TO_NODE.format("tolerations: [{key: a, operator: Exists}]")),
        "podTemplateOverrides[0].spec.tolerations",
        "every pod that trains",
        "launcher too",
    ),
    "T9": (
        MPI,
        ("spec: {template", "spec: {backoffLimit: 0, template"),
        "replicatedJobs[0]",
        "wait until the nodes' sshd runs, or allow retries",
        "dependsOn",
    ),
    "T10": (
        JOB.replace("nvidia.com/gpu: 4", "nvidia.com/mig-1g.9gb: 1").replace(
            TRAINER, TRAINER + COUNT
        ),
        (COUNT, ""),
        "resourcesPerNode",
        "with MIG slices auto counts CPUs",
        "numProcPerNode",
    ),
    "T11": (
        RUNTIME.replace(
            "      replicated", "      failurePolicy: {maxRestarts: 1}\n      replicated"
        ),
        (
            "                containers",
            "                restartPolicy: OnFailure\n                containers",
        ),
        "spec.restartPolicy",
        "a rank restarts alone",
        "Never",
    ),
    "T13": (
        RUNTIME,
        (
            "  template:\n    spec:\n      repl",
            (
                "  template:\n    metadata: {annotations: "
                "{karpenter.sh/do-not-disrupt: 'true'}}\n    spec:\n      repl"
            ),
        ),
        "do-not-disrupt",
        "be an annotation of the pods",
        "replicatedJobs[].template",
    ),
    "T14": (
        JOB,
        also("labels: {kueue.x-k8s.io/queue-name: q}"),
        "queue-name",
        "Kueue reads no other",
        "metadata.labels",
    ),
    "T15": (
        JOB,
        (SPEC, f"status: {{jobsStatus: [{{name: node, active: 1}}]}}\n{SPEC}"),
        "jobsStatus[0]",
        "not be changed while the job runs",
        "another name",
    ),
    "T16": (
        JOB,
        also("managedBy: kueue.x-k8s.io/multikueue"),
        "managedBy",
        "before Trainer 2.3",
        "delete",
    ),
    "T18": (
        JOB,
        ("name: a}", f"name: {'a' * 49}}}"),
        "metadata.name",
        "at most 48 of a-z0-9-, with a letter first, which leaves room for the names of pods",
        f"write {'a' * 48}",
    ),
    "a name with an underscore": (
        JOB,
        ("name: a}", "name: 7B_Tune}"),
        "metadata.name",
        "with a letter first",
        "write b-tune",
    ),
    "a name too long beside an initializer": (
        JOB.replace("torch-d", "own-d")
        + "---\n"
        + RUNTIME.replace(
            "    spec:\n      replicatedJobs:\n",
            "    spec:\n      replicatedJobs:\n      - {name: dataset-initializer, template: {spec: {template: {spec:"
            ' {containers: [{name: dataset-initializer, image: "a/i:1"}]}}}}}\n',
        ).replace("name: torch-distributed", "name: own-distributed"),
        ("name: a}", f"name: {'a' * 34}}}"),
        "metadata.name",
        "at most 33",
        f"write {'a' * 33}",
    ),
    "a name too long for a worker": (
        V1,
        ("name: a}", f"name: {'a' * 55}}}"),
        "metadata.name",
        "at most 54",
        f"write {'a' * 54}",
    ),
    "a runtime whose name is no name": (
        RUNTIME,
        ("name: torch-distributed", "name: Torch_Own"),
        "metadata.name",
        "253 of a-z0-9-.",
        "write torch-own",
    ),
    "a program and its arguments in one word": (
        JOB,
        ('[bash, -c, "torchrun train.py"]', '["torchrun train.py"]'),
        "spec.trainer.command",
        "have an item for each word",
        "write [torchrun, train.py]",
    ),
    "a ConfigMap whose name is no name": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
        ("name: a", "name: Scripts"),
        "metadata.name",
        "253 of a-z0-9-.",
        "write scripts",
    ),
    "a placeholder in a selector": (
        ONE,
        (POD, POD.replace("con", "nodeSelector: {team: <YOUR_TEAM>}, con")),
        "nodeSelector.team",
        "not contain a placeholder",
        "write what belongs there",
    ),
    "a variable that nobody filled in": (
        JOB,
        also(
            TO_NODE.format("volumes: [{name: a, persistentVolumeClaim: {claimName: '${CLAIM}'}}]")
        ),
        "claimName",
        "not contain a placeholder",
        "write what belongs there",
    ),
    "a placeholder in a variable": (
        JOB,
        (TRAINER, f"{TRAINER}    env: [{{name: A, value: '<your-bucket>'}}]\n"),
        "env[0].name",
        "not contain a placeholder",
        "write what belongs there",
    ),
    "an initializer that no job is": (
        JOB,
        also("initializer: {dataset: {storageUri: 'hf://a/b'}}"),
        "initializer.dataset",
        "have a job dataset-initializer in its runtime",
        "or add the job",
    ),
    "a GPU of another vendor": (
        ONE,
        ("nvidia.com/gpu: 4", "amd.com/gpu: 4"),
        "limits.amd.com/gpu",
        "whose GPUs are NVIDIA's: this one is of AMD",
        "an image with CUDA",
    ),
    "an instance type of HyperPod": (
        ON_P5,
        ("instance-type: p5", "instance-type: ml.p5"),
        "nodeSelector.node.kubernetes.io/instance-type",
        "be an instance type of EC2",
        "p5.48xlarge",
    ),
    "a label of HyperPod": (
        ONE,
        (POD, POD.replace("con", "nodeSelector: {sagemaker.amazonaws.com/a: b}, con")),
        "sagemaker.amazonaws.com/a",
        "be a label that nodes have",
        "only nodes of SageMaker HyperPod have it",
    ),
    "a word that Kubernetes does not know": (
        ONE,
        ("{name: pytorch,", "{imagePullPolicy: always, name: pytorch,"),
        "imagePullPolicy",
        "be one of Always, IfNotPresent, Never",
        "write Always",
    ),
    "a policy in small letters": (
        ONE,
        ("  pytorchR", "  runPolicy: {cleanPodPolicy: running}\n  pytorchR"),
        "runPolicy.cleanPodPolicy",
        "be one of All, Running, None",
        "write Running",
    ),
    "a variable from nowhere in a Secret": (
        ONE,
        (
            "{name: pytorch,",
            "{env: [{name: A, valueFrom: {secretKeyRef: {name: a}}}], name: pytorch,",
        ),
        "valueFrom.secretKeyRef",
        "have the field key",
        "add key",
    ),
    "a mount of no volume": (
        MOUNTED,
        ("{name: b, mountPath", "{name: c, mountPath"),
        "volumeMounts[1].name",
        "be a volume of the pod",
        "one of a, b",
    ),
    "a container that the runtime does not have": (
        JOB,
        also(TO_NODE.format("containers: [{name: trainer}]")),
        "containers[0].name",
        "be a container of the runtime's pods: node",
        "write node",
    ),
    "an escaped variable": (
        JOB,
        script("torchrun --nnodes=\\$PET_NNODES t.py"),
        "command",
        "not escape a variable",
        "write $PET_NNODES",
    ),
    "a shell's variable without a shell": (
        ONE,
        ("[torchrun, t.py]", '[torchrun, t.py, "${MASTER_ADDR}"]'),
        "command",
        "use $(NAME) for a variable",
        "write $(MASTER_ADDR)",
    ),
    "machines of accelerate": (
        JOB,
        script("accelerate launch --num_machines 3 --machine_rank $R --main_process_ip $IP t.py"),
        "command",
        "start the job's 2 nodes",
        "--num_machines 2",
    ),
    "memory without a number": (
        JOB,
        ("limits: {", "limits: {memory: , "),
        "limits.memory",
        "have a value",
        "delete the line",
    ),
    "a mount that hides the system": (
        MOUNTED,
        ("mountPath: /a", "mountPath: /usr/"),
        "volumeMounts[0].mountPath",
        "not hide /usr",
        "/data",
    ),
    "a mount that leaves its folder": (
        MOUNTED,
        ("mountPath: /a", "mountPath: /a/../b"),
        "volumeMounts[0].mountPath",
        "not contain `..`",
        "write /b",
    ),
    "two mounts at one path": (
        MOUNTED,
        ("mountPath: /a", "mountPath: /b/"),
        "volumeMounts[1].mountPath",
        "one volume only",
        "/data",
    ),
    "a folder outside its volume": (
        MOUNTED,
        ("mountPath: /a", "mountPath: /a, subPath: ../b"),
        "volumeMounts[0].subPath",
        "stay in its volume",
        "root",
    ),
    "a script with CRLF": (
        JOB,
        script("cd /a\r\ntorchrun t.py\r\n"),
        "command",
        "end its lines with LF",
        "write \\n for each \\r\\n",
    ),
    "a script with NUL": (
        JOB,
        script("torchrun t.py\0"),
        "command",
        "not contain the character NUL",
        "delete",
    ),
    "a script that the kernel does not take": (
        JOB,
        script("torchrun t.py\n" + "true\n" * 30_000),
        "command",
        "be shorter than 131072 bytes",
        "ConfigMap",
    ),
    "a variable that the kernel does not take": (
        JOB,
        (TRAINER, f"{TRAINER}    env: [{{name: A, value: {'x' * 131_070}}}]\n"),
        "env[0].name",
        "be shorter than 131072 bytes",
        "ConfigMap",
    ),
    "a file in the place of a program": (
        JOB.replace("numNodes: 2", "numNodes: 1"),
        script("train.py"),
        "command",
        "start a program",
        "torchrun train.py",
    ),
    "a script that bash cannot read": (
        JOB,
        script("for i in 1 2; do\n  torchrun t.py\n"),
        "command",
        "be a script that bash can read",
        "close what is open: ",
    ),
    "an API that is not served": (
        JOB,
        ("v1alpha1", "v2alpha1"),
        "apiVersion",
        "served",
        "v1alpha1",
    ),
    "v1 with the API of v2": (
        V1,
        ("kubeflow.org/v1", "kubeflow.org/v2"),
        "apiVersion",
        "served",
        "kubeflow.org/v1",
    ),
    "another job than node": (
        RUNTIME,
        ("name: node\n        replicas", "name: worker\n        replicas"),
        "replicatedJobs[0]",
        "name node",
        "name: node",
    ),
    "env in an override": (
        JOB,
        also(TO_NODE.format("containers: [{name: node, env: [{name: A}]}]")),
        "env",
        "webhook",
        "trainer.env",
    ),
    "a target given as text": (
        JOB,
        also("podTemplateOverrides: [{targetJobs: [node]}]"),
        "targetJobs[0]",
        "be a map",
        "write a map: a line",
    ),
    "a field spelt wrongly": (
        JOB,
        ("numNodes", "numNode"),
        "spec.trainer.numNode",
        "drops others",
        "numNodes?",
    ),
    "a field of a pod spelt wrongly": (
        ONE,
        ("command:", "imagePullPolcy: Always, command:"),
        "imagePullPolcy",
        "drops others",
        "imagePullPolicy?",
    ),
    "a gang field": (
        JOB,
        also("schedulingPolicy: {}"),
        "schedulingPolicy",
        "2.1.0",
        "podGroupPolicy",
    ),
    "a patch of a later release": (
        JOB,
        also("runtimePatches: []"),
        "runtimePatches",
        "Trainer 2.1.0",
        "podTemplateOverrides",
    ),
    "a number for a variable": (
        JOB,
        (TRAINER, f"{TRAINER}    env: [{{name: A, value: 3}}]\n"),
        "value",
        "be text",
        '"3"',
    ),
    "a number that is text": (
        JOB,
        ("numNodes: 2", "numNodes: '2'"),
        "numNodes",
        "whole number",
        "without quotes: 2",
    ),
    "processes of v1 as a number": (V1, also("nprocPerNode: 4"), "nprocPerNode", "be text", '"4"'),
    "more processes than GPUs in v1": (
        V1,
        also("nprocPerNode: '8'"),
        "nprocPerNode",
        "GPUs",
        "4",
    ),
    "two volumes of one name": (
        ONE,
        (
            "{spec: {con",
            "{spec: {volumes: [{name: a, emptyDir: {}}, {name: a, emptyDir: {}}], con",
        ),
        "volumes[1].name",
        "no other volume of the pod",
        "a-2",
    ),
    "a truth value as text": (
        JOB,
        also("suspend: 'true'"),
        "spec.suspend",
        "be true or false",
        "without quotes",
    ),
    "a field of another object in a pod": (
        ONE,
        ("{spec: {con", "{spec: {replicatedJobs: [], con"),
        "replicatedJobs",
        "be a field of",
        "delete it",
    ),
    "a number in a command": (JOB, (SCRIPT, "[train, 3]"), "command[1]", "be text", '"3"'),
    "half a CPU as a number": (
        JOB,
        ("limits: {", "limits: {cpu: 0.5, "),
        "limits.cpu",
        "whole number or",
        '"0.5"',
    ),
    "no such label": (
        JOB,
        also(TO_NODE.format("nodeSelector: {kubernetes.io/zone: a}")),
        "kubernetes.io/zone",
        "label",
        "topology.kubernetes.io/zone",
    ),
    "no such topology": (
        ONE,
        (
            "{spec: {con",
            "{spec: {topologySpreadConstraints: [{maxSkew: 1, whenUnsatisfiable: DoNotSchedule, topologyKey:"
            " kubernetes.io/region}], con",
        ),
        "topologyKey",
        "label",
        "topology.kubernetes.io/region",
    ),
    "requests unlike limits": (
        JOB,
        ("{limits:", "{requests: {nvidia.com/gpu: 2}, limits:"),
        "requests.nvidia.com/gpu",
        "extended",
        "4 in both",
    ),
    "a place for a name": (
        JOB,
        ("a/b:1", "${REGISTRY}/b:1"),
        "image",
        "not contain a placeholder",
        "write what belongs there",
    ),
    "capital letters in the name of an image": (
        JOB,
        ("a/b:1", "a/Base:1"),
        "spec.trainer.image",
        "be in small letters, but for the tag",
        "write a/base:1",
    ),
    "an image of an init container that is none": (
        ONE,
        (POD, POD.replace("con", "initContainers: [{name: i, image: 'a:b:c'}], con")),
        "initContainers[0].image",
        "have one tag",
        "write a:<version>",
    ),
    "a comment as the script": (
        JOB,
        script("# all of it torchrun train.py"),
        "command",
        "one comment",
        "write |",
    ),
    "a comment inside folded text": (
        JOB,
        script("torchrun # 2 nodes --x train.py"),
        "command",
        "behind a #",
        "write |",
    ),
    "something after a backslash": (
        JOB,
        script("torchrun \\ \n train.py"),
        "command",
        "backslash",
        "delete",
    ),
    "a comment between continued lines": (
        JOB,
        script("torchrun \\\n # why\n t.py"),
        "command",
        "backslash",
        "delete",
    ),
    "no URL": (JOB, script("git clone --branch v1 github.com/a/b"), "command", "URL", "https://"),
    "a rank of nobody": (
        JOB,
        script("echo $RANK"),
        "command",
        "variables that Trainer 2.1.0",
        "PET_NODE_RANK",
    ),
    "an address of nobody": (
        JOB,
        script("torchrun --rdzv_endpoint=$(MASTER_ADDR):1 t.py"),
        "command",
        "variable",
        "PET_MASTER_ADDR",
    ),
    "a local rank in v1": (
        ONE,
        ("[torchrun, t.py]", "[bash, -c, 'echo $LOCAL_RANK']"),
        "command",
        "v1.8.1",
        "MASTER_",
    ),
    "each its own localhost": (
        JOB,
        script("torchrun --standalone train.py"),
        "command",
        "rendezvous",
        "rdzv_endpoint",
    ),
    "an endpoint at home": (
        JOB,
        script("torchrun --rdzv_endpoint=127.0.0.1:2 t.py"),
        "command",
        "rendezvous",
        "PET_",
    ),
    "the same rank on every node": (
        JOB,
        script("torchrun --node_rank=0 --master_addr=$PET_MASTER_ADDR t.py"),
        "command",
        "a rank of its own",
        "PET_NODE_RANK",
    ),
    "another container than node": (
        RUNTIME,
        ("                  name: node", "                  name: trainer"),
        "replicatedJobs[0]",
        "container with the name node",
        "name: node",
    ),
    "another number of nodes": (
        JOB,
        script("torchrun --nnodes=1 t.py"),
        "command",
        "the job's 2 nodes",
        "PET_NNODES",
    ),
    "more ranks than GPUs": (
        JOB,
        script("torchrun --nproc_per_node 8 t.py"),
        "command",
        "4 GPUs",
        "per_node=4",
    ),
    "checkpoints in the container": (
        JOB,
        script("torchrun t.py --output_dir /out"),
        "command",
        "shared",
        "Claim",
    ),
    "a role that is none": (
        V1,
        ("    Master", "    Leader"),
        "pytorchReplicaSpecs.Leader",
        "be one of Master, Worker",
        "write one of them",
    ),
    "a volume of two sources": (
        MOUNTED,
        ("{name: a, emptyDir: {}}", "{name: a, emptyDir: {}, configMap: {name: c}}"),
        "volumes[0].configMap",
        "be the only source of its volume",
        "delete one of the two",
    ),
    "no master": (
        ONE,
        ("    Master: {replicas: 1", "    Worker: {replicas: 2"),
        "pytorchReplicaSpecs",
        "MASTER_ADDR",
        "Master",
    ),
    "a token": (
        JOB,
        script(f"export HF_TOKEN=hf_{'a' * 30}"),
        "command[2]",
        "not contain a secret",
        "Kubernetes Secret",
    ),
    "a password in an address": (
        JOB,
        script("torchrun t.py --store postgres://me:hunter2swordfish@db.example.com/runs"),
        "command[2]",
        "not contain a secret",
        "write the address without it, or put the whole address into a Kubernetes Secret, and read it by env",
    ),
    "an amount that Kubernetes does not read": (
        JOB,
        ("limits: {", "limits: {memory: 64GB, "),
        "limits.memory",
        "be a quantity",
        "64Gi",
    ),
    "a field of a pod on a JobSet": (
        RUNTIME,
        ("      repl", "      hostIPC: true\n      repl"),
        "hostIPC",
        "drops others",
        "fields here",
    ),
    "restarts spelt wrongly": (
        RUNTIME,
        ("      repl", "      failurePolicy: {maxRestart: 3}\n      repl"),
        "maxRestart",
        "drops",
        "mean max",
    ),
    "a claim that is no field": (
        JOB,
        also(TO_NODE.format("volumes: [{name: a, persistentVolumeClaim: {claim: b}}]")),
        "persistentVolumeClaim.claim",
        "drops others",
        "claimName?",
    ),
    "part of the GPUs, privileged": (
        ON_P5,
        ("{name: pytorch,", "{name: pytorch, securityContext: {privileged: true},"),
        "securityContext.privileged",
        "4 of 8 GPUs",
        "no privileges",
    ),
    "pods that share a node": (
        JOB,
        also(TO_NODE.format(f"affinity: {{podAffinity: {{{ALWAYS}: [{{{ON_HOST}}}]}}}}")),
        "topologyKey",
        "on one node",
        "instance-type",
    ),
    "shared memory beyond the limit": (
        ONE.replace("limits: {", "limits: {memory: 64Gi, ")
        .replace(
            "{name: pytorch,", "{name: pytorch, volumeMounts: [{name: d, mountPath: /dev/shm}],"
        )
        .replace(
            POD,
            POD.replace(
                "con", "volumes: [{name: d, emptyDir: {medium: Memory, sizeLimit: 16384Mi}}], con"
            ),
        ),
        ("16384Mi", "65536Mi"),
        "sizeLimit",
        "/dev/shm is a part of the pod's memory",
        "write 32Gi, which leaves",
    ),
    "NVLink that is not there": (
        ON_P5.replace("p5.48xlarge", "g6e.48xlarge"),
        ("[torchrun, t.py]", "[bash, -c, 'NCCL_P2P_LEVEL=NVL torchrun t.py']"),
        "command",
        "NVL on nodes without NVLink",
        "delete",
    ),
    "a rank that is 0 on every node": (
        JOB,
        script("torchrun --nnodes=2 --node_rank=${RANK:-0} --master_addr=$PET_MASTER_ADDR t.py"),
        "command",
        "sets no RANK: each of 2 nodes would be the first of its own",
        "write ${PET_NODE_RANK} for ${RANK:-0}",
    ),
    "a rank that is 0 on every node, in Python": (
        JOB,
        script("python3 -c \"import os; print(os.environ.get('RANK', 0))\""),
        "command",
        "sets no RANK: each of 2 nodes would be the first of its own",
        "write os.environ[",
    ),
    "memory alone over a runtime with GPUs": (
        OVER_GPUS,
        (OWN_RESOURCES, "{requests: {memory: 900Gi}, limits: {memory: 900Gi}}"),
        "spec.trainer.resourcesPerNode",
        "so pods get no GPU",
        "add nvidia.com/gpu: 8, vpc.amazonaws.com/efa: 4 to its limits",
    ),
    "vCPUs alone over a runtime with GPUs": (
        OVER_GPUS,
        (OWN_RESOURCES, '{requests: {cpu: "8"}}'),
        "spec.trainer.resourcesPerNode",
        "so pods get no GPU",
        "add memory: 512Gi, nvidia.com/gpu: 8, vpc.amazonaws.com/efa: 4",
    ),
    "no resources over a runtime with GPUs": (
        OVER_GPUS,
        (OWN_RESOURCES, "{}"),
        "spec.trainer.resourcesPerNode",
        "and starts 1 on the 8 GPUs of a pod",
        "add nvidia.com/gpu: 8 to its limits",
    ),
    "a large ConfigMap": (
        "apiVersion: v1\nkind: ConfigMap\ndata:\n  a: X",
        ("X", "x" * (2**20 + 1)),
        "data",
        "1 MiB",
        "image",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_refused_alone_with_its_rule_and_a_way_out(case: str) -> None:
    text, (right, wrong), path, rule, way_out = MISTAKES[case]
    assert judged(text) == [] and right in text
    [error] = [e for e in judged(text.replace(right, wrong, 1)) if "warning: " not in e]
    where, _, rest = error.partition("]: ")
    assert re.search(r" \[x\.yaml:\d+$", where) and where.partition(" [")[0].endswith(path)
    assert rule in rest.partition("; got ")[0] and way_out in rest.partition("; got ")[2]


NOTED: dict[str, tuple[str, tuple[str, str], str]] = {
    # case: (file, (what stands there, what stands there instead), what is said)
    "words that a shell keeps": (
        JOB,
        (SCRIPT, '[bash, -c, "torchrun train.py", --lr=1]'),
        "the program gets no --lr=1: a shell keeps what stands behind the text of -c",
    ),
    "words that a shell with other options keeps": (
        JOB,
        (SCRIPT, '[ksh, -ceo, pipefail, "torchrun train.py", --lr=1]'),
        "the program gets no --lr=1: a shell keeps what stands behind the text of -c",
    ),
    "an address where transformers expects a folder": (
        JOB,
        script("torchrun run_clm.py --output_dir s3://bucket/out"),
        "transformers makes a folder s3:/bucket/out in the container for s3://bucket/out",
    ),
    "tries for ever": (
        JOB,
        script("until torchrun train.py; do sleep 10; done"),
        "`until torchrun` goes on for ever, where each try fails",
    ),
    "nodes of Ray that stay when their head has ended": (
        JOB,
        script("ray start --address=$PET_MASTER_ADDR:6379; sleep infinity"),
        "`sleep infinity` keeps this pod after the Ray head has ended",
    ),
    "a variable that sshd does not give": (
        JOB.replace(*script("mpirun python t.py")).replace("torch-dist", "deepspeed-dist"),
        _env("SEED", "1"),
        "mpirun starts the ranks on another pod by sshd, without SEED",
    ),
    "nodes of the script's own": (
        JOB,
        script("export PET_NNODES=1; torchrun train.py"),
        "PET_NNODES=1 takes the place of what Trainer 2.1.0 sets",
    ),
    "a variable that nobody sets": (
        JOB,
        script("set -eu; torchrun train.py --data $DATA_DIR --lr ${LR:-1}"),
        "the script uses DATA_DIR, which neither the job nor Trainer 2.1.0 sets",
    ),
    "a variable that torchrun sets": (
        JOB,
        _env("LOCAL_RANK", "0"),
        "LOCAL_RANK reaches no process, because torchrun sets it for each of them",
    ),
    "a variable that the operator sets": (
        ONE,
        ("{name: pytorch,", "{name: pytorch, env: [{name: PET_NNODES, value: '2'}],"),
        "training-operator v1.8.1 writes PET_NNODES behind this one, which so has no effect",
    ),
    "libraries that are to be added": (
        JOB,
        _env("LD_LIBRARY_PATH", "/opt/lib:$LD_LIBRARY_PATH"),
        "LD_LIBRARY_PATH takes the place of the image's value, which kubelet does not put in here",
    ),
    "libraries without those of EFA": (
        OVER_GPUS,
        _env("LD_LIBRARY_PATH", "/usr/local/cuda/lib64"),
        "where the image finds aws-ofi-nccl by it, NCCL sends over TCP",
    ),
    "tolerations over those of a runtime": (
        LISTS,
        also(TO_NODE.format("tolerations: [{operator: Exists}]")),
        "tolerations takes the place of the runtime's list, so pods lose {key: example.com/x, operator:"
        " Exists}",
    ),
    "arguments over those of a runtime": (
        LISTS,
        (f"    command: {SCRIPT}\n", "    args: [--new]\n"),
        "args takes the place of the runtime's args, so the program loses --old",
    ),
    "a restartPolicy of the pods": (
        ONE,
        (POD, POD.replace("con", "restartPolicy: Always, con")),
        "the training-operator writes OnFailure over it, from restartPolicy of the replica",
    ),
    "another number of pods in a runtime": (
        RUNTIME,
        (
            "          spec:\n            template",
            "          spec:\n            parallelism: 4\n            template",
        ),
        "the Trainer writes numNodes over it",
    ),
    "a relative path for checkpoints": (
        JOB,
        script("torchrun train.py --output_dir ./out"),
        "what is saved in ./out is lost when the container starts again",
    ),
    "restarts that nothing ends": (
        ONE,
        ("{replicas: 1,", "{replicas: 1, restartPolicy: OnFailure,"),
        "OnFailure without runPolicy.backoffLimit restarts for ever and keeps its nodes",
    ),
    "a torchrun that gives up early": (
        JOB,
        script("torchrun --rdzv_conf=timeout=600 train.py"),
        "torchrun gives up where a node comes 600 s later than another",
    ),
    "a policy that gives up early": (
        V1,
        ("spec:\n", "spec:\n  elasticPolicy: {rdzvConf: [{key: join_timeout, value: '600'}]}\n"),
        "(rdzvConf has join_timeout)",
    ),
    "T3": (RUNTIME, ("trainjob-ancestor-step", "trainjob-ancestor"), "reach none of its pods"),
    "a program on several nodes that nothing starts ranks for": (
        JOB,
        script("cd /app && python -u train.py --epochs 3"),
        "`python -u train.py` starts without torchrun on 2 nodes",
    ),
    "the image's own entrypoint": (
        JOB,
        (f"    command: {SCRIPT}\n", "    args: [train.py]\n"),
        "the image's own entrypoint starts, with train.py: whether it starts the ranks",
    ),
    "the image's own entrypoint in v1": (
        ONE,
        ("command: [torchrun, t.py]", "imagePullPolicy: Always"),
        "the image's own entrypoint starts, without arguments",
    ),
    "a variable that does nothing": (
        JOB,
        (TRAINER, f"{TRAINER}    env: [{{name: NCCL_NETWORK_TIMEOUT, value: '1'}}]\n"),
        "is no variable of NCCL",
    ),
    "another in a script": (
        JOB,
        script("export FI_EFA_SET_DEFAULT_GDR=1; torchrun t.py"),
        "no variable of libfabric",
    ),
    "a clone over SSH": (
        JOB,
        script("git clone -b v1 git@github.com:a/b; torchrun t.py"),
        "git@github.com:a/b is cloned over SSH",
    ),
    "a clone with a token that nobody sets": (
        JOB,
        script("git clone -b v1 https://$TOKEN@github.com/a/b; torchrun t.py"),
        "the clone logs in with TOKEN",
    ),
    "the number of a process": (JOB, script("torchrun t.py > /tmp/$$.log"), "one $ of $$"),
    "fewer processes than GPUs": (
        JOB,
        (TRAINER, TRAINER + COUNT),
        "2 processes: 2 of the 4 GPUs of a pod",
    ),
    "fewer processes than GPUs in the script": (
        JOB,
        script("torchrun --nproc-per-node 2 t.py"),
        "--nproc_per_node=2: 2 of the 4 GPUs of a pod",
    ),
    "no GPU where there are some": (
        ONE.replace(POD, P5_POD),
        ("nvidia.com/gpu", "memory"),
        "the pods ask for no GPU, and p5.48xlarge has 8",
    ),
    "processes by vCPUs that nobody requests": (
        JOB,
        (TRAINER, f"{TRAINER}    numProcPerNode: cpu\n"),
        "cpu starts one process: it counts vCPUs",
    ),
    "a variable for EFA without EFA": (
        JOB,
        (TRAINER, f"{TRAINER}    env: [{{name: FI_PROVIDER, value: efa}}]\n"),
        "FI_PROVIDER is for EFA",
    ),
    "a port that torchrun sets itself": (
        JOB,
        (TRAINER, f'{TRAINER}    env: [{{name: MASTER_PORT, value: "29501"}}]\n'),
        "MASTER_PORT reaches no process, because torchrun sets it",
    ),
    "a runtime's EFA that a job loses": (
        OVER_GPUS,
        (OWN_RESOURCES, "{limits: {nvidia.com/gpu: 8, memory: 900Gi}}"),
        "takes the place of all resources of the runtime, so pods lose vpc.amazonaws.com/efa: 4; write",
    ),
    "the runtime's arguments behind another command": (
        OVER_GPUS.replace('image: "a/b:1",', 'image: "a/b:1", command: [run], args: [--old],'),
        (f"command: {SCRIPT}", "command: [torchrun, t.py]"),
        "the runtime's args stay behind this command: --old; write the args that it needs here",
    ),
    "a rank that is asked and that nobody sets": (
        JOB,
        script('[ "${RANK:-0}" = 0 ] && python get.py; torchrun t.py'),
        "sets no RANK, so ${RANK:-0} is the same on all 2 nodes",
    ),
    "parts of nodes": (V1, (POD, P5_POD), "4 of a node's 8 GPUs"),
    "latest": (
        JOB,
        ("a/b:1", "a/b:latest"),
        "the tag latest, which is another image tomorrow: take a version",
    ),
    "no tag": (
        JOB,
        ("a/b:1", "localhost:5000/b"),
        "the tag latest, which is another image tomorrow",
    ),
    "a clone of whatever is newest": (
        JOB,
        script("git clone https://github.com/a/b; torchrun t.py"),
        "git checkout",
    ),
    "packages at start": (
        JOB,
        script("pip install x; pip install y; torchrun t"),
        "whose packages may be others tomorrow",
    ),
}


@pytest.mark.parametrize("case", NOTED)
def test_what_works_and_should_be_known_is_noted_alone(case: str) -> None:
    text, (there, instead), said = NOTED[case]
    [note] = judged(text.replace(there, instead, 1))
    assert note.startswith("warning: ") and " [x.yaml:" in note and said in note


def test_arguments_of_the_runtime_that_a_text_ignores_are_no_matter() -> None:
    over = OVER_GPUS.replace('image: "a/b:1",', 'image: "a/b:1", command: [run], args: [--old],')
    assert judged(over.replace("[bash, -c,", "[bash, -lc,")) == []


@pytest.mark.parametrize("starts", ["", "bash, start.sh, ", "/workspace/start.sh, "])
def test_a_command_is_judged_as_a_whole_where_c_is_an_option_of_its_program(starts: str) -> None:
    words = "torchrun, --standalone, train.py, -c, cfg.yaml"
    [error] = judged(JOB.replace(SCRIPT, f"[{starts}{words}]"))
    assert "must give torchrun a rendezvous endpoint that all nodes reach" in error


@pytest.mark.parametrize(
    ("own", "said"),
    [
        (
            "{limits: {memory: 900Gi}}",
            f"{COUNTED}, and starts 1 on the 8 GPUs of a pod; got memory",
        ),
        ('{requests: {cpu: "90"}}', f"{COUNTED}, and starts 90 on the 8 GPUs of a pod; got cpu"),
        (
            "{}",
            f"{COUNTED}, and starts 1 on the 8 GPUs of a pod; got nothing. Fix: add nvidia.com/gpu",
        ),
        ("{limits: {nvidia.com/gpu: 8}}", ""),
        ("{limits: {nvidia.com/gpu: 8}, requests: {memory: 512Gi}}", ""),
        (
            "{limits: {nvidia.com/gpu: 8}, requests: {memory: 900Gi}}",
            "must be at most the limit of its runtime, 512Gi",
        ),
        ("{requests: {memory: 900Gi}, limits: {memory: 900Gi, nvidia.com/gpu: 8}}", ""),
    ],
)
def test_trainer_2_3_merges_resources_and_counts_processes_by_those_of_the_job(
    own: str, said: str
) -> None:
    found = judged(OVER_GPUS.replace(OWN_RESOURCES, own), release="2.3.0")
    assert [said in each for each in found] == ([True] if said else [])


@pytest.mark.parametrize("release", versions.TRAINERS)
def test_gpus_are_not_missed_where_nobody_counts_them(release: str) -> None:
    """A start that says how many, a number in the job, nodes without GPUs, and another Trainer's count."""
    memory = OVER_GPUS.replace(OWN_RESOURCES, "{limits: {memory: 600Gi}}")
    says = memory.replace("torchrun train.py", "torchrun --nproc-per-node=8 train.py")
    number = memory.replace(TRAINER, TRAINER + "    numProcPerNode: 8\n")
    no_torch = memory.replace("mlPolicy: {torch: {}}", "mlPolicy: {numNodes: 2}")
    for text in (says, number, no_torch):
        found = [each for each in judged(text, release=release) if "list the GPUs" in each]
        assert len(found) == (1 if release == "2.1.0" else 0), (text, found)
    cpus = {"release": release, "pool_type": TYPES["m7i.8xlarge"]}
    assert not any("list the GPUs" in each for each in judged(memory, **cpus))


@pytest.mark.parametrize("kind", ['""', "Directory", "BlockDevice", "directory"])
def test_a_folder_of_the_node_needs_no_type_but_no_other_than_kubernetes_knows(kind: str) -> None:
    """ "" is the default, which is written out where somebody copies an object from a cluster."""
    volume = f"volumes: [{{name: d, hostPath: {{path: /d, type: {kind}}}}}], con"
    found = [
        said for said in judged(ONE.replace(POD, POD.replace("con", volume))) if "type" in said
    ]
    assert bool(found) is (kind == "directory"), found


@pytest.mark.parametrize(
    "case", ["latest", "no tag", "a clone of whatever is newest", "packages at start"]
)
def test_in_production_what_moves_is_refused(case: str) -> None:
    text, (there, instead), said = NOTED[case]
    [error] = judged(text.replace(there, instead, 1), production=True)
    assert "be the same tomorrow" in error and said.partition(":")[0] in error


@pytest.mark.parametrize(
    "selector",
    [
        "topology.kubernetes.io/region: ap-northeast-2",
        "topology.kubernetes.io/zone: ap-northeast-2a",
        "topology.k8s.aws/zone-id: apne2-az1",
    ],
)
def test_a_region_is_refused_as_a_zone_and_nowhere_else(selector: str) -> None:
    def said(selector: str) -> list[str]:
        return judged(ONE.replace(POD, POD.replace("con", f"nodeSelector: {{{selector}}}, con")))

    assert [each for each in said(selector) if "not a region" in each] == []
    [error] = said("topology.kubernetes.io/zone: ap-northeast-2")
    assert "must be a zone, not a region" in error


def test_amounts_are_compared_as_kubernetes_reads_them() -> None:
    written = (
        "requests: {cpu: 1, memory: 8Gi, nvidia.com/gpu: 4}, limits: {cpu: 1000m, memory: 8192Mi, "
    )
    assert judged(JOB.replace("limits: {", written)) == []
    [error] = judged(JOB.replace("limits: {", written.replace("1000m", "900m")))
    assert "requests.cpu [x.yaml:10]: must be at most its limit (900m)" in error


def test_a_request_below_its_limit_is_legal_and_of_memory_a_warning() -> None:
    written = "requests: {cpu: 1, memory: 8Gi, nvidia.com/gpu: 4}, limits: {cpu: 2, memory: 9Gi, "
    [note] = judged(JOB.replace("limits: {", written))
    assert note.startswith("warning: spec.trainer.resourcesPerNode.requests.memory [x.yaml:10]: ")
    assert "the pod may use more memory (9Gi) than it requests (8Gi)" in note
    assert judged(JOB.replace("limits: {", written.replace("8Gi", "9Gi"))) == []


def test_what_a_trainer_would_lose_is_refused_and_what_it_would_not_lose_is_not() -> None:
    """T2 and T3."""
    alone = JOB[: JOB.index(TRAINER)]
    [note] = judged(alone + "---\n" + RUNTIME)
    assert "the image's own entrypoint starts, without arguments" in note
    unlabelled = RUNTIME.replace("trainjob-ancestor-step", "trainjob-ancestor")
    note, _ = sorted(judged(alone + "---\n" + unlabelled))
    assert note.startswith("warning: spec.template.spec.replicatedJobs [") and "reach none" in note
    error, _ = sorted(judged(JOB + "---\n" + unlabelled))
    assert error.startswith(
        "spec.trainer [x.yaml:6]: must be unset: no replicated job of its runtime"
    )


def test_a_job_that_restarts_on_failure_is_sound_where_something_ends_it() -> None:
    restarting = V1.replace("{replicas: 1,", "{replicas: 1, restartPolicy: OnFailure,")
    [note] = judged(restarting)
    assert note.startswith("warning: spec.pytorchReplicaSpecs.Master.restartPolicy [x.yaml:6]: ")
    assert "add backoffLimit: 10, which counts the restarts of all pods together" in note
    for limit in ("backoffLimit: 0", "activeDeadlineSeconds: 3600"):
        assert judged(restarting.replace("spec:\n", f"spec:\n  runPolicy: {{{limit}}}\n", 1)) == []
    limited = restarting.replace("spec:\n", "spec:\n  runPolicy: {backoffLimit: 10}\n", 1)
    [note] = judged(limited)
    assert "10 restarts begin at step 0: no claim is mounted" in note
    volume = "volumes: [{name: d, persistentVolumeClaim: {claimName: d}}]"
    claim = f"{volume}, containers: [{{volumeMounts: [{{name: d, mountPath: /d}}],"
    assert judged(limited.replace("containers: [{", claim)) == []
    assert judged(restarting.replace("OnFailure", "Never")) == []


def test_tcp_is_no_mistake_where_pods_have_no_efa() -> None:
    sockets = JOB.replace(TRAINER, f"{TRAINER}    env: [{{name: NCCL_NET, value: Socket}}]\n")
    selecting = sockets.replace(
        *also(TO_NODE.format("nodeSelector: {node.kubernetes.io/instance-type: g6e.48xlarge}"))
    ).replace("gpu: 4", "gpu: 8")
    assert judged(selecting) == []
    [error] = judged(selecting.replace("gpu: 8", "gpu: 8, vpc.amazonaws.com/efa: 4"))
    assert "must not be Socket with EFA" in error


@pytest.mark.parametrize(
    "option",
    [
        "--output_dir=/root/.cache/hf",
        "--save-path /dev/null",
        "--ckpt_path /models/llama.pt",
        "--checkpoint-path=/cache/a",
    ],
)
def test_a_cache_and_weights_that_are_read_need_no_shared_storage(option: str) -> None:
    assert judged(JOB.replace(*script(f"torchrun t.py {option}"))) == []


@cache
def provoked() -> str:
    """Everything that is said in this file."""
    said = [
        each
        for text, (there, instead), *_ in [*MISTAKES.values(), *NOTED.values()]
        for each in judged(text.replace(there, instead, 1))
    ]
    said += [each for name in FLAWED for each in judged(sample(name))]
    said += judged(sample("d-gpu").replace("numProcPerNode: gpu", "numProcPerNode: 8"))
    said += judged(JOB.replace("numNodes: 2", "numProcPerNode: 8"))
    said += judged((FOLDER / "valid" / "trainjob-overrides.yaml").read_text(), release="2.3.0")
    return re.sub(r" \[x\.yaml:\d+\]", "", "\n".join(said))


def test_every_fix_begins_with_a_verb() -> None:
    assert without_a_verb(provoked().splitlines()) == []


NO_LAUNCHER = "apiVersion: kubeflow.org/v1\nkind: MPIJob\nspec: {mpiReplicaSpecs: {Worker: {}}}\n"
"""Other flaws of such kinds: tests/trainyard/manifests/test_admission.py."""


def test_every_rule_is_broken_by_a_test_above() -> None:
    """A rule that no file breaks would say nothing, and nobody would notice."""
    texts = [
        text.replace(there, instead, 1)
        for text, (there, instead), *_ in [*MISTAKES.values(), *NOTED.values()]
    ]
    texts += [sample(name) for name in FLAWED]
    contexts = [context for text in texts for context in contexts_of(read_manifest(text, "x")[0])]
    contexts += [
        context
        for text in (INITIALIZED.replace("hf://a/b", "a/b"), PATCHED, OVER_LIMIT, NO_LAUNCHER)
        for context in contexts_of(read_manifest(text, "x")[0], release="2.3.0")
    ]
    silent = [
        rule
        for of_kind in rules.RULES.values()
        for rule in of_kind
        if not any([*rule(context)] for context in contexts)
    ]
    silent += [
        rule for rule in jobs.OF_JOBS if not any([*rule(context.view)] for context in contexts)
    ]
    silent += [
        rule
        for rule in jobs.OF_CONTAINERS
        if rule is not jobs._tag  # of entries only
        and not any(
            [*rule(context.view, container)]
            for context in contexts
            for container in context.view.containers
        )
    ]
    assert silent == []


TRAPS = {
    # Silent failures T1 to T19 of the Trainer, and traps of people's own jobs → what is said, or -
    # and why nothing is.
    "T1": "makes the deleted JobSet again",
    "T1b": "the first to end is made again while others run",
    "T2": "without one nobody injects PET_*",
    "T3": "reach none of its pods",
    "T4": "a variable that the Trainer sets",
    "T5": "be 1 in a runtime with 1 launcher",
    "T6": "the launcher gets a second pod with GPUs",
    "T7": "it reaches the launcher only",
    "T8": "reach every pod that trains",
    "T9": "wait until the nodes' sshd runs",
    "T10": "with MIG slices auto counts CPUs",
    "T11": "a rank restarts alone",
    "T13": "be an annotation of the pods",
    "T14": "Kueue reads no other",
    "T15": "not be changed while the job runs",
    "T16": "not be set before Trainer 2.3",
    "T18": "which leaves room for the names of pods",
    "T12": "- legal, and what one wants without checkpoints; a runtime of ours has max_restarts",
    "T17": (
        "- an order of deletion: the graph deletes jobs before their runtime, and that before the"
        " controller"
    ),
    "T19": "be a field of Trainer 2.3.0",
    "1": "be a zone, not a region",
    "2": "be a resource that nodes have",
    "3": "spec.backoffLimit: must be a field of Trainer 2.1.0",
    "4": "targetJobs: must be a list",
    "5": "be a job of its runtime",
    "6": "command: must be a list",
    "7": "a rendezvous endpoint",
    "8": "spec.schedulingPolicy: must be a field",
    "9": "have the name node",
    "10": "the webhook refuses it",
    "11": "have nothing behind the backslash",
    "12": "clone from a URL",
    "13": "is no variable of NCCL",
    "14": "- a command that people type; `trainyard status` prints it",
    "15": "- admission.py: must be a runtime of the file or of the environment",
    "16": "numProcPerNode: must be at most the 4 GPUs",
    "17": "- as T12",
    "18": "hostIPC: must be a field of",
    "19": "runtimePatches: [{manager",
    "20": "new image or command has no effect",
    "21": "apiVersion: must be a version that is served",
    "22": "- an order of installation: the graph waits for the webhook",
    "23": "not contain a secret in clear",
    "24": "not be set with 4 of 8 GPUs",
    "25": "save on shared storage",
    "26": "whose packages may be others tomorrow",
    "27": "which is another image",
    "28": "be YAML",
    "29": "ranks of NCCL",
    "30": "have a container with the name pytorch",
    "31": "one comment",
    "32": "variables that training-operator v1.8.1 provides",
    "33": "be a label that nodes have",
    "34": "ask for EFA on p5.48xlarge",
    "35": "not keep all pods on one node",
    "36": "got kubernetes.io/zone",
    "37": "- commands that people type",
    "38": "each send over the network what",
    "82": "/dev/shm is a part of the pod's memory",
}


def test_every_known_trap_is_said_or_has_a_reason_why_it_is_not_for_a_file() -> None:
    assert {*map(str, range(1, 39)), *(f"T{n}" for n in range(1, 20))} <= {*TRAPS}
    assert {
        trap: said
        for trap, said in TRAPS.items()
        if not said.startswith("- ") and said not in provoked()
    } == {}


@pytest.mark.parametrize("value", ["~", "1", "[1, [~]]", "[{}]", "{a: {b: [1]}}"])
def test_no_shape_is_too_wrong_to_be_judged(value: str) -> None:
    for text in (JOB, V1, RUNTIME, MPI, sample("e-q")):
        for path, line in read_manifest(text, "x.yaml")[0][0].lines.items():
            changed = text.splitlines()
            if path and "Worker" not in path and f"{path[-1]}:" in changed[line - 1]:
                before, key, _ = changed[line - 1].partition(f"{path[-1]}:")
                judged("\n".join([*changed[: line - 1], f"{before}{key} {value}"]))


# Which release.


@pytest.mark.parametrize("release", ["2.2.1", "2.3.0"])
def test_what_a_release_no_longer_has_is_refused_with_its_name_and_what_came_instead(
    release: str,
) -> None:
    found = judged(
        (FOLDER / "valid" / "trainjob-overrides.yaml").read_text(),
        sample("a-torch-d"),
        release=release,
    )
    assert [error.partition(" ")[0] for error in found] == [
        "spec.labels",
        "spec.podTemplateOverrides",
        "spec.mlPolicy.torch.numProcPerNode",
    ]
    assert all(f"Trainer {release}" in error for error in found) and "runtimePatches" in found[1]


def test_a_deadline_and_patches_belong_to_later_releases() -> None:
    later = JOB.replace(*also("activeDeadlineSeconds: 60\n  runtimePatches: [{manager: a.io/b}]"))
    assert judged(later, release="2.2.0") == [] and len(judged(later)) == 2
    assert judged(JOB.replace("numNodes: 2", "numProcPerNode: auto")) == []
    [error] = judged(JOB.replace("numNodes: 2", "numProcPerNode: auto"), release="2.3.0")
    assert "numProcPerNode [x.yaml:7]: must be a whole number" in error


def test_a_patch_is_of_a_job_that_its_runtime_has() -> None:
    """2.3's webhook lets it pass, and JobSet refuses what comes of it: only an event says so."""
    patches = (
        "runtimePatches: [{manager: a.io/b, trainingRuntimeSpec: {template: {spec: {replicatedJobs:"
        " [{name: NAME, template: {spec: {}}}]}}}}]"
    )
    assert judged(JOB.replace(*also(patches.replace("NAME", "node"))), release="2.3.0") == []
    [error] = judged(JOB.replace(*also(patches.replace("NAME", "worker"))), release="2.3.0")
    assert (
        "replicatedJobs[0].name [x.yaml:5]: must be a job of its runtime" in error
        and "write node" in error
    )


PATCHED = JOB.replace(*also("runtimePatches: [{manager: team-a}]"))
INITIALIZED = (
    JOB.replace("torch-d", "own-d").replace(
        *also("initializer: {dataset: {storageUri: 'hf://a/b'}}\n")
    )
    + "---\n"
    + RUNTIME.replace("name: torch-distributed", "name: own-distributed").replace(
        "    spec:\n      replicatedJobs:\n",
        "    spec:\n      replicatedJobs:\n      - name: dataset-initializer\n        template: {spec: {"
        "template: {spec: {containers: [{name: dataset-initializer, image: 'a:1', volumeMounts:"
        " [{name: initializer, mountPath: /workspace}]}]}}}}\n",
    )
)


@pytest.mark.parametrize("release", ["2.1.0", "2.3.0"])
def test_what_the_webhook_asks_of_an_initializer_is_said_for_its_release(release: str) -> None:
    def said(text: str) -> list[str]:
        return [words for words in judged(text, release=release) if "nitializer" in words]

    is_new = release == "2.3.0"
    assert said(INITIALIZED) == []
    unmounted = said(INITIALIZED.replace("name: initializer", "name: workspace"))
    assert ["have a mount of `initializer`" in words for words in unmounted] == [True] * is_new
    bare = said(INITIALIZED.replace("hf://a/b", "a/b"))
    assert ["got a/b. Fix: write hf://a/b" in words for words in bare] == [True] * is_new
    assert ["have a job" in words for words in said(INITIALIZED.replace("dataset:", "model:"))] == [
        True
    ]


def test_the_manager_of_a_patch_has_a_domain_since_2_3() -> None:
    assert judged(PATCHED, release="2.2.1") == []
    [error] = judged(PATCHED, release="2.3.0")
    assert "must be a domain and a path; got team-a. Fix: write example.com/team-a" in error


def test_processes_by_vcpus_are_counted_on_pods_with_gpus() -> None:
    counted = JOB.replace(TRAINER, f"{TRAINER}    numProcPerNode: cpu\n")
    [note] = judged(counted.replace("limits: {", "requests: {cpu: 95500m}, limits: {"))
    assert "numProcPerNode [x.yaml:7]: cpu starts 96 processes on 4 GPUs" in note


@pytest.mark.parametrize("release", versions.TRAINERS)
def test_the_runtimes_of_upstream_have_no_mistakes(release: str) -> None:
    for name, (_, spec) in upstream_runtimes(release).items():
        runtime = {
            "apiVersion": rules.SERVED,
            "kind": "TrainingRuntime",
            "metadata": {"name": name},
            "spec": spec,
        }
        assert judged(yaml.safe_dump(runtime), release=release) == []


# Against an environment.


def test_an_environment_s_runtimes_count() -> None:
    config = reading().config
    assert config and config.environment
    resilient = JOB.replace("torch-distributed", "torch-distributed-resilient")
    assert judged(resilient) == []
    assert ["5 restarts" in note for note in judged(resilient, environment=config.environment)] == [
        True
    ]
