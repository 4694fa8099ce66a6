"""Shared memory is judged by the memory of the containers that mount it."""

from __future__ import annotations

from tests.trainyard.manifests.test_rules import judged

RULE = "/dev/shm is a part of the pod's memory"
SHM = "volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 64Gi}}]"
MOUNT = "volumeMounts: [{name: shm, mountPath: /dev/shm}]"
EXPORTER = ', {name: exporter, image: "a/c:1", resources: {limits: {memory: 1Gi}}}'


def _pod(memory: str, beside: str) -> str:
    limits = f"nvidia.com/gpu: 8{f', memory: {memory}' if memory else ''}"
    resources = f"resources: {{limits: {{{limits}}}}}"
    command = "image: 'a/b:1', command: [torchrun, t.py]"
    return f"{{{SHM}, containers: [{{name: NAME, {command}, {MOUNT}, {resources}}}{beside}]}}"


def pytorch_job(memory: str, beside: str = "") -> list[str]:
    """Errors about shared memory of a PyTorchJob."""
    pod = _pod(memory, beside).replace("NAME", "pytorch")
    text = (
        "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: a}\nspec: {pytorchReplicaSpecs: "
        f"{{Master: {{replicas: 1, restartPolicy: Never, template: {{spec: {pod}}}}}}}}}\n"
    )
    return [each for each in judged(text) if RULE in each]


def runtime(memory: str, beside: str = "", of_job: str = "") -> list[str]:
    """The same of a runtime, and of a TrainJob with this limit in the place of the runtime's."""
    template = (
        "{metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}, spec: {template: {spec: "
        f"{_pod(memory, beside).replace('NAME', 'node')}}}}}}}"
    )
    text = (
        "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainingRuntime\nmetadata: {name: r}\nspec:\n"
        "  mlPolicy: {numNodes: 2, torch: {}}\n"
        f"  template: {{spec: {{replicatedJobs: [{{name: node, template: {template}}}]}}}}\n"
    )
    job = (
        "---\napiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: a}\nspec:\n"
        "  runtimeRef: {kind: TrainingRuntime, name: r}\n  trainer: {command: [torchrun, t.py], resourcesPerNode: "
        f"{{limits: {{nvidia.com/gpu: 8, memory: {of_job}}}}}}}\n"
    )
    return [each for each in judged(text + (job if of_job else "")) if RULE in each]


def test_a_container_that_mounts_no_shared_memory_does_not_limit_it() -> None:
    for made in (pytorch_job, runtime):
        assert made("", EXPORTER) == made("100Gi", EXPORTER) == made("", "") == []
        [found] = made("32Gi", EXPORTER)
        assert "as the container has 32 GiB" in found and "write 16Gi" in found


def test_a_container_without_a_limit_beside_one_with_a_limit_may_fill_it() -> None:
    both = EXPORTER.replace("resources", f"{MOUNT}, resources")
    assert pytorch_job("", both) == []
    assert pytorch_job("32Gi", both)


def test_the_trainers_resources_take_the_place_of_the_runtimes() -> None:
    assert runtime("32Gi", of_job="1000Gi") == []
    [found] = runtime("", of_job="32Gi")
    assert "as the container has 32 GiB" in found
