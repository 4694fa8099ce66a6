"""Values that take the place of others where a merge is expected. Rows as in blanks.py."""

from __future__ import annotations

from tests.corpus.written.blanks import Row
from tests.corpus.written.owned import LOG


def _over(spec: str) -> str:
    """A trainer with an override of the pods of its job node."""
    override = f"[{{targetJobs: [{{name: node}}], spec: {spec}}}]"
    return f"trainer: {{numNodes: 2}}\n  podTemplateOverrides: {override}"


REPLACED: dict[str, Row] = {
    "another number of nodes in the runtime's command": (
        "own",
        "command: [torchrun, /app/train.py]",
        "command: [torchrun, --nnodes=4, /app/train.py]",
        "replicatedJobs[1].template.spec.template.spec.containers[0].command",
        "must start the job's 2 nodes",
        True,
    ),
    "memory alone": (
        "own",
        "trainer: {numNodes: 2}",
        "trainer: {numNodes: 2, resourcesPerNode: {limits: {memory: 900Gi}}}",
        "resourcesPerNode",
        "GPUs",
        True,
    ),
    "GPUs without EFA": (
        "own",
        "trainer: {numNodes: 2}",
        "trainer: {numNodes: 2, resourcesPerNode: {limits: {nvidia.com/gpu: 8, memory: 512Gi}}}",
        "resourcesPerNode",
        "vpc.amazonaws.com/efa: 4",
        False,
    ),
    "arguments over arguments": (
        "own",
        "trainer: {numNodes: 2}",
        "trainer: {numNodes: 2, args: [--epochs=9]}",
        "trainer.args",
        "--data=/data",
        False,
    ),
    "a command over a command": (
        "own",
        "trainer: {numNodes: 2}",
        "trainer: {numNodes: 2, command: [torchrun, /app/eval.py]}",
        "trainer.command",
        "--epochs=3",
        False,
    ),
    "tolerations over tolerations": (
        "own",
        "trainer: {numNodes: 2}",
        _over("{tolerations: [{key: nvidia.com/gpu, operator: Exists}]}"),
        "tolerations",
        "team",
        False,
    ),
    "terms over terms": (
        "own",
        "trainer: {numNodes: 2}",
        _over(
            "{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms:"
            " [{matchExpressions: [{key: kubernetes.io/os, operator: In, values: [linux]}]}]}}}}"
        ),
        "nodeSelectorTerms",
        "kubernetes.io/arch",
        False,
    ),
    "a volume of a name that is taken": (
        "own",
        "trainer: {numNodes: 2}",
        _over("{volumes: [{name: data, emptyDir: {}}]}"),
        "volumes[0]",
        "data",
        True,
    ),
    "arguments behind a script": (
        "sft",
        "    env:\n",
        '    command: [bash, -c, "torchrun /code/sft.py --output_dir /data/out"]\n    env:\n',
        "",
        "command",
        True,
    ),
    "arguments that a script ignores": (
        "exec",
        "[torchrun, --nnodes=2, --nproc_per_node=8, /app/train.py]",
        '[bash, -c, "torchrun --nnodes=2 --nproc_per_node=8 /app/train.py"]',
        "command",
        "--epochs=3",
        False,
    ),
    "one variable twice": (
        "fsdp",
        LOG,
        f"{LOG}                - {{name: NCCL_DEBUG, value: WARN}}\n",
        "env",
        "NCCL_DEBUG",
        False,
    ),
    "an image of an init container without a tag": (
        "fsdp",
        "registry.example.com/team/stage:4",
        "registry.example.com/team/stage",
        "initContainers[0].image",
        "the tag latest",
        False,
    ),
    "one field twice": (
        "exec",
        "              resources:",
        "              resources: {limits: {nvidia.com/gpu: 1}}\n              resources:",
        "resources",
        "resources",
        True,
    ),
    "one volume twice": (
        "fsdp",
        "            - {name: slow, persistent",
        "            - {name: fast, emptyDir: {}}\n            - {name: slow, persistent",
        "volumes",
        "fast",
        True,
    ),
    "a folder of a ConfigMap over the program": (
        "sft",
        "torchrun /code/sft.py",
        "torchrun /code/train.py",
        "args",
        "got /code/train.py",
        True,
    ),
    "a store over the image's programs": (
        "fsdp",
        "mountPath: /home/team",
        "mountPath: /usr/local",
        "mountPath",
        "/usr/local",
        True,
    ),
    "requests over limits": (
        "sft",
        "requests: {nvidia.com/gpu: 8, memory: 600Gi}",
        "requests: {nvidia.com/gpu: 8, memory: 700Gi}",
        "memory",
        "700Gi",
        True,
    ),
}
