"""Sound job files and entries in which the faults of this folder are planted."""

from __future__ import annotations

FSDP = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: fsdp
  labels: {team: vision}
spec:
  nprocPerNode: "8"
  runPolicy: {cleanPodPolicy: Running, backoffLimit: 3}
  pytorchReplicaSpecs:
    Master: &node
      replicas: 1
      restartPolicy: OnFailure
      template:
        spec:
          nodeSelector: {node.kubernetes.io/instance-type: g6e.48xlarge}
          tolerations:
            - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}
          initContainers:
            - name: stage
              image: registry.example.com/team/stage:4
              command: [stage, --to, /scratch/data]
              volumeMounts: [{name: fast, mountPath: /scratch}]
          containers:
            - name: pytorch
              image: registry.example.com/team/fsdp:12
              command:
                - bash
                - -c
                - |
                  set -euo pipefail
                  torchrun --nproc_per_node=8 --nnodes=4 --node_rank=$RANK \\
                    --master_addr=$MASTER_ADDR --master_port=$MASTER_PORT \\
                    /app/train.py --data /scratch/data --output_dir /scratch/out
              env:
                - {name: WANDB_MODE, value: offline}
                - {name: NCCL_DEBUG, value: INFO}
              resources:
                limits: {nvidia.com/gpu: 8, vpc.amazonaws.com/efa: 4, memory: 900Gi, cpu: "96"}
              volumeMounts:
                - {name: shm, mountPath: /dev/shm}
                - {name: fast, mountPath: /scratch}
                - {name: slow, mountPath: /home/team}
                - {name: objects, mountPath: /objects}
          volumes:
            - {name: shm, emptyDir: {medium: Memory, sizeLimit: 64Gi}}
            - {name: fast, persistentVolumeClaim: {claimName: fsx}}
            - {name: slow, persistentVolumeClaim: {claimName: efs}}
            - {name: objects, persistentVolumeClaim: {claimName: s3}}
    Worker:
      <<: *node
      replicas: 3
"""
EXEC = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: exec}
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: 2
      restartPolicy: Never
      template:
        spec:
          containers:
            - name: pytorch
              image: registry.example.com/team/exec:3
              command: [torchrun, --nnodes=2, --nproc_per_node=8, /app/train.py]
              args: ["--epochs=3", --config, /app/base.yaml]
              env: [{name: LR, value: "0.1"}]
              resources: {limits: {nvidia.com/gpu: 8, memory: 256Gi}}
              volumeMounts: [{name: fast, mountPath: /fast}, {name: shm, mountPath: /dev/shm}]
          volumes:
            - {name: fast, persistentVolumeClaim: {claimName: fsx}}
            - {name: shm, emptyDir: {medium: Memory}}
  elasticPolicy: {rdzvBackend: c10d, minReplicas: 2, maxReplicas: 2}
"""
SFT = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: sft}
data:
  sft.py: |
    print("training")
  config.yaml: |
    epochs: 3
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: sft, labels: {team: nlp}}
spec:
  runtimeRef: {apiGroup: trainer.kubeflow.org, kind: ClusterTrainingRuntime, name: torch-distributed}
  trainer:
    numNodes: 2
    numProcPerNode: 8
    image: registry.example.com/nlp/sft:7
    command: [bash, -c]
    args:
      - |
        set -eu
        torchrun /code/sft.py --config /code/config.yaml --output_dir /data/out
    env:
      - {name: HF_HUB_OFFLINE, value: "1"}
      - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    resourcesPerNode:
      requests: {nvidia.com/gpu: 8, memory: 600Gi}
      limits: {nvidia.com/gpu: 8, memory: 600Gi}
  podTemplateOverrides:
    - targetJobs: [{name: node}]
      spec:
        nodeSelector: {node.kubernetes.io/instance-type: g6e.48xlarge}
        containers:
          - name: node
            volumeMounts:
              - {name: code, mountPath: /code}
              - {name: data, mountPath: /data}
        volumes:
          - {name: code, configMap: {name: sft}}
          - {name: data, persistentVolumeClaim: {claimName: fsx}}
"""
OWN = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: ours}
spec:
  mlPolicy: {numNodes: 2, torch: {numProcPerNode: auto}}
  template:
    spec:
      successPolicy: {operator: All, targetReplicatedJobs: [node]}
      replicatedJobs:
        - name: fetch
          template:
            spec:
              template:
                spec:
                  restartPolicy: OnFailure
                  containers:
                    - name: fetch
                      image: registry.example.com/ours/fetch:2
                      command: [fetch, --to, /data]
                      volumeMounts: [{name: data, mountPath: /data}]
                  volumes: [{name: data, persistentVolumeClaim: {claimName: fsx}}]
        - name: node
          dependsOn: [{name: fetch, status: Complete}]
          template:
            metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
            spec:
              template:
                spec:
                  tolerations:
                    - {key: nvidia.com/gpu, operator: Exists}
                    - {key: team, operator: Equal, value: vision}
                  affinity:
                    nodeAffinity:
                      requiredDuringSchedulingIgnoredDuringExecution:
                        nodeSelectorTerms:
                          - matchExpressions:
                              - {key: kubernetes.io/arch, operator: In, values: [amd64]}
                  containers:
                    - name: node
                      image: registry.example.com/ours/train:2
                      command: [torchrun, /app/train.py]
                      args: [--data=/data, --epochs=3]
                      env: [{name: EPOCHS, value: "3"}]
                      resources:
                        limits: {nvidia.com/gpu: 8, vpc.amazonaws.com/efa: 4, memory: 512Gi}
                      volumeMounts: [{name: data, mountPath: /data}, {name: shm, mountPath: /dev/shm}]
                  volumes:
                    - {name: data, persistentVolumeClaim: {claimName: fsx}}
                    - {name: shm, emptyDir: {medium: Memory, sizeLimit: 64Gi}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: ours}
spec:
  runtimeRef: {kind: TrainingRuntime, name: ours}
  trainer: {numNodes: 2}
"""
PART = EXEC.replace("nvidia.com/gpu: 8", "nvidia.com/gpu: 4").replace("node=8", "node=4")
PART = (
    PART.replace("nnodes=2", "nnodes=1")
    .replace("replicas: 2", "replicas: 1")
    .replace("Replicas: 2", "Replicas: 1")
)
FILES = {"part": PART, "fsdp": FSDP, "exec": EXEC, "sft": SFT, "own": OWN}
ENTRY = "jobs.w"
ENTRY_JOB = {
    "runtime": "torch-distributed-resilient",
    "nodes": 2,
    "pool": "g6e",
    "image": "registry.example.com/team/entry@sha256:" + "1" * 64,
    "checkpoints": {"store": "scratch", "directory": "w"},
    "storage": {"results": {"path": "/results"}, "home": {"path": "/home/team"}},
    "env": {"WANDB_MODE": "offline"},
    "shared_memory_gib": 64,
    "script": (
        "torchrun --nproc_per_node=8 --rdzv_backend=c10d"
        " --rdzv_endpoint=$PET_MASTER_ADDR:$PET_MASTER_PORT /app/train.py --resume"
    ),
}
"""A sound entry, in which a row names a setting below `environment` and its value."""
