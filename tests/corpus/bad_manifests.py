"""Bad YAML jobs: one wrong value each in a sound TrainJob, PyTorchJob or runtime. A row is (which file,
steps to the value, the value, where the problem stands if elsewhere)."""

from __future__ import annotations

from typing import Any

REMOVED = object()
"""In the place of a value: the field is deleted."""
TRAINJOB: dict[str, Any] = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "TrainJob",
    "metadata": {"name": "train"},
    "spec": {
        "runtimeRef": {"name": "torch-distributed"},
        "trainer": {
            "numNodes": 2,
            "image": "registry.example.com/train:1",
            "command": ["bash", "-c", "torchrun train.py"],
            "env": [{"name": "EPOCHS", "value": "3"}],
            "resourcesPerNode": {"limits": {"nvidia.com/gpu": 8, "memory": "200Gi"}},
        },
        "podTemplateOverrides": [
            {
                "targetJobs": [{"name": "node"}],
                "spec": {
                    "nodeSelector": {"node.kubernetes.io/instance-type": "g6e.48xlarge"},
                    "containers": [
                        {"name": "node", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
                    ],
                    "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "fsx"}}],
                },
            }
        ],
    },
}


def _replica() -> dict[str, Any]:
    container = {
        "name": "pytorch",
        "image": "registry.example.com/train:1",
        "command": ["torchrun", "train.py"],
        "resources": {
            "requests": {"nvidia.com/gpu": 8, "memory": "200Gi"},
            "limits": {"nvidia.com/gpu": 8, "memory": "200Gi"},
        },
        "volumeMounts": [{"name": "dshm", "mountPath": "/dev/shm"}],
    }
    volume = {"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"}}
    return {
        "replicas": 1,
        "restartPolicy": "Never",
        "template": {"spec": {"containers": [container], "volumes": [volume]}},
    }


PYTORCHJOB: dict[str, Any] = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "PyTorchJob",
    "metadata": {"name": "train"},
    "spec": {
        "runPolicy": {"cleanPodPolicy": "Running"},
        "pytorchReplicaSpecs": {"Master": _replica(), "Worker": _replica()},
    },
}
FILES = {"TrainJob": TRAINJOB, "PyTorchJob": PYTORCHJOB}
_SPEC, _TRAINER = ("spec",), ("spec", "trainer")
_OVERRIDE = ("spec", "podTemplateOverrides", 0)
_MASTER = ("spec", "pytorchReplicaSpecs", "Master")
_POD = (*_MASTER, "template", "spec")
_MAIN = (*_POD, "containers", 0)


def _of(kind: str, at: tuple[Any, ...], values: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [(kind, (*at, *name.split(" ")), value) for name, value in values.items()]


OBJECTS: list[tuple[Any, ...]] = [
    ("TrainJob", ("apiVersion",), "trainer.kubeflow.org/v1"),
    ("TrainJob", ("apiVersion",), "kubeflow.org/v2alpha1"),
    ("TrainJob", ("kind",), "Trainjob", ()),
    ("TrainJob", ("kind",), "MPIJob", ()),
    ("TrainJob", ("kind",), "Deployment", ()),
    ("TrainJob", ("metadata", "name"), "Train"),
    ("TrainJob", ("metadata", "name"), "train_1"),
    ("TrainJob", ("metadata", "name"), "1-train"),
    ("TrainJob", ("metadata", "name"), "t" * 60),
    ("TrainJob", ("metadata", "name"), "<name>"),
    ("TrainJob", ("metadata", "name"), REMOVED, ("metadata",)),
    ("TrainJob", ("metadata", "namespace"), "default"),
    ("TrainJob", ("metadata", "labels"), {"api-key": "swordfish-42"}, ("metadata", "labels")),
    ("TrainJob", ("runtimeRef",), {"name": "a"}),
    ("TrainJob", ("spec", "runtimeRef", "name"), "torch"),
    ("TrainJob", ("spec", "runtimeRef", "kind"), "TrainingRuntime", ("spec", "runtimeRef")),
    ("PyTorchJob", ("apiVersion",), "kubeflow.org/v1beta1"),
    ("PyTorchJob", ("apiVersion",), "pytorch.org/v1"),
    ("PyTorchJob", ("metadata", "name"), "train" * 14),
    ("PyTorchJob", ("spec", "replicaSpecs"), {}),
    ("PyTorchJob", ("spec", "pytorchReplicaSpecs", "worker"), {}),
    ("PyTorchJob", ("spec", "pytorchReplicaSpecs", "Chief"), {}),
    ("PyTorchJob", (*_MASTER, "replicas"), "one"),
    ("PyTorchJob", (*_MASTER, "restartPolicy"), "onfailure"),
    ("PyTorchJob", ("spec", "cleanPodPolicy"), "Running"),
    ("PyTorchJob", ("spec", "runPolicy", "cleanPodPolicy"), "running"),
    ("PyTorchJob", ("spec", "runPolicy", "backoffLimit"), "3"),
    ("PyTorchJob", ("spec", "nprocPerNode"), 99),
    ("PyTorchJob", ("spec", "elasticPolicy"), {"minReplicas": "1"}),
    *(("TrainJob", (field,), REMOVED, ()) for field in ("apiVersion", "spec")),
    ("TrainJob", ("spec", "runtimeRef"), REMOVED, ("spec",)),
    *(("PyTorchJob", (field,), REMOVED, ()) for field in ("apiVersion", "spec")),
    ("PyTorchJob", ("spec", "pytorchReplicaSpecs"), REMOVED, ("spec",)),
    ("PyTorchJob", (*_MASTER, "template"), REMOVED, _MASTER),
    ("PyTorchJob", (*_MASTER, "template", "spec", "containers"), REMOVED, _MASTER),
    ("PyTorchJob", (*_MAIN, "image"), REMOVED, _MAIN),
    ("PyTorchJob", (*_MAIN, "command"), ["torchrun train.py"]),
    ("PyTorchJob", (*_MASTER, "template", "spec", "volumes", 0, "name"), "Dshm_1"),
    ("PyTorchJob", (*_MASTER, "replicas"), 0),
    ("PyTorchJob", ("spec", "runPolicy", "backoffLimit"), -1),
    ("PyTorchJob", ("spec", "elasticPolicy"), {"minReplicas": 0, "maxReplicas": 2}),
    ("TrainJob", ("spec", "trainer", "numNodes"), 0),
    ("TrainJob", ("spec", "trainer", "numNodes"), -1),
    ("TrainJob", ("spec", "trainer", "numProcPerNode"), 0),
    ("TrainJob", ("spec", "trainer", "command"), ["python3 /app/train.py"]),
    ("TrainJob", ("spec", "trainer", "resourcesPerNode", "limits", "memory"), "-1Gi"),
]
FIELDS: list[tuple[Any, ...]] = [
    *_of(
        "TrainJob",
        _SPEC,
        {
            "backoffLimit": 3,
            "restartPolicy": "Never",
            "schedulingPolicy": {"minAvailable": 2},
            "ttlSecondsAfterFinished": 60,
            "activeDeadlineSeconds": 60,
            "runtimePatches": [{"manager": "a.io/b"}],
            "modelConfig": {},
            "suspend": "no",
            "managedBy": "kueue.x-k8s.io/multikueue",
            "initializer": {"dataset": {"storageUri": "hf://a/b"}},
            "template": {"spec": {}},
        },
    ),
    *_of(
        "TrainJob",
        _TRAINER,
        {
            "numNodes": "two",
            "nodes": 2,
            "numProcPerNode": 16,
            "command": "torchrun train.py",
            "args": "--epochs 3",
            "env": {"EPOCHS": "3"},
            "env 0 value": 3,
            "env 0 name": "PET_NNODES",
            "resources": {"limits": {}},
            "resourcesPerNode limits nvidia.com/gpu": 16,
            "resourcesPerNode limits nvidia.com": 8,
            "resourcesPerNode limits gpu": 8,
            "resourcesPerNode limits amd.com/gpu": 8,
            "resourcesPerNode limits habana.ai/gaudi": 8,
            "resourcesPerNode limits aws.amazon.com/neuron": 16,
            "resourcesPerNode limits memory": "200 GB",
            "resourcesPerNode limits cpu": "many",
            "resourcesPerNode requests": {"nvidia.com/gpu": 4},
            "resourcesPerNode nvidia.com/gpu": 8,
            "volumeMounts": [],
            "imagePullPolicy": "Always",
        },
    ),
    *_of(
        "TrainJob",
        _OVERRIDE,
        {
            "targetJobs": {"name": "node"},
            "targetJobs 0 name": "worker",
            "spec nodeSelector topology.kubernetes.io/zone": "ap-northeast-2",
            "spec nodeSelector kubernetes.io/zone": "ap-northeast-2a",
            "spec nodeSelector nvidia.com/gpu.product": "NVIDIA-L40S",
            "spec nodeSelector node.kubernetes.io/instance-type": "ml.g6e.48xlarge",
            "spec nodeSelector sagemaker.amazonaws.com/node-health-status": "Schedulable",
            "spec nodeSelector eks.amazonaws.com/nodegroup": "gpu",
            "spec nodeSelector karpenter.sh/capacity-type": "spot",
            "spec containers 0 env": [{"name": "A", "value": "1"}],
            "spec containers 0 image": "a/b:1",
            "spec containers 0 name": "trainer",
            "spec containers 0 volumeMounts 0 mountPath": "/usr",
            "spec containers 0 volumeMounts 0 mountPath ": "/a:/b",
            "spec containers 0 volumeMounts 0 subPath": "../a",
            "spec containers 0 volumeMounts 0 name": "missing",
            "spec volumes 0 persistentVolumeClaim claimName": "unknown",
            "spec volumes 0 persistentVolumeClaim claimName ": "${CLAIM}",
            "spec volumes 1": {"name": "data", "emptyDir": {}},
            "spec volumes 0 hostPath": {"path": "/data"},
            "spec volumes 1 ": {"name": "s", "csi": {"driver": "secrets-store.csi.k8s.io"}},
            "spec hostNetwork": True,
            "spec priorityClassName": "high",
        },
    ),
    *_of(
        "PyTorchJob",
        _POD,
        {
            "hostNetwork": True,
            "hostIPC": True,
            "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-L40S"},
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "topologyKey": "kubernetes.io/zone",
                    "whenUnsatisfiable": "DoNotSchedule",
                }
            ],
            "affinity": {
                "podAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}}
                    ]
                }
            },
            "volumes 1": {"name": "dshm", "emptyDir": {}},
            "volumes 0 emptyDir sizeLimit": "400Gi",
            "volumes 0 emptyDir sizeLimit ": "64 GB",
            "initContainers": [{"name": "a", "image": "Bad Image"}],
            "restartpolicy": "Never",
            "serviceAccount": {"name": "a"},
        },
    ),
    *_of(
        "PyTorchJob",
        _MAIN,
        {
            "name": "trainer",
            "image": "<your-registry>/train:latest",
            "image ": "ghcr.io/Team/train:1",
            "command": "torchrun train.py",
            "commands": ["torchrun"],
            "env": [
                {"name": "NCCL_NET", "value": "Socket"},
                {"name": "HF_TOKEN", "value": "swordfish-42"},
            ],
            "env ": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "a"}}}],
            "securityContext": {"privileged": True},
            "securityContext ": {"capabilities": {"add": ["IPC_LOCK", "SYS_ADMIN"]}},
            "resources limits nvidia.com/gpu": None,
            "resources limits nvidia.com/gpu ": 16,
            "resources limits nvidia.com/gpus": 8,
            "resources requests nvidia.com/gpu": 4,
            "resources requests memory": "300Gi",
            "resources requests memory ": "100Gi",
            "resources limits memory ": "",
            "volumeMounts 0 mountPath": "/etc",
            "volumeMounts 1": {"name": "dshm", "mountPath": "/dev/shm"},
            "imagePullPolicy": "always",
            "ports": [{"containerPort": "23456"}],
        },
    ),
]
SCRIPTS: list[tuple[Any, ...]] = [
    ("TrainJob", (*_TRAINER, "command"), ["bash", "-c", script])
    for script in (
        *(
            "# train",
            "torchrun # t.py --a",
            "torchrun \\ \n t.py",
            "cd /a\r\ntorchrun t.py",
            "echo 'a",
        ),
        *("torchrun --standalone t.py", "torchrun --nnodes=3 t.py", "torchrun --node-rank 0 t.py"),
        *(
            "torchrun --nproc-per-node 16 t.py",
            "torchrun --nproc-per-node=2 t.py",
            "torchrun <SCRIPT>",
        ),
        *(
            "git clone github.com/a/b",
            "git clone git@github.com:a/b",
            "torchrun t.py --output_dir /tmp/a",
        ),
        *("torchrun --master_addr=$(MASTER_ADDR) t.py", "torchrun --nnodes=\\$PET_NNODES t.py"),
        *("accelerate launch --num_machines 8 t.py", "deepspeed --num_gpus 4 t.py", "python t.py"),
        *("pip install a && torchrun t.py", "export WANDB_API_KEY=swordfish-42; torchrun t.py"),
        *("NCCL_IB_DISABLE=1 torchrun t.py", "export FI_PROVIDER=efa; torchrun t.py", "kill $$"),
    )
] + [
    ("PyTorchJob", (*_MAIN, "command"), command)
    for command in (
        ["torchrun", "--nnodes=${WORLD_SIZE}", "t.py"],
        ["torchrun", "--rdzv_endpoint=$(PYTORCH_JOB_MASTER_SERVICE_HOST):1", "t.py"],
        ["train.py"],
        ["torchrun", "--nproc_per_node=16", "t.py"],
        ["torchrun", "--rdzv_backend=c10d", "--nnodes=2", "t.py"],
    )
]
ROWS = [*OBJECTS, *FIELDS, *SCRIPTS]
