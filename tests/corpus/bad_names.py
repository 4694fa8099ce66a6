"""Job files that name what is not there, one fault each. A row is (file, what stands there, what stands there
instead, end of the path of the problem, its words, whether it is an error)."""

from __future__ import annotations

V1 = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: train}
spec:
  runPolicy: {cleanPodPolicy: Running}
  pytorchReplicaSpecs:
    Master: &replica
      replicas: 1
      restartPolicy: Never
      template:
        metadata: {labels: {app: train}}
        spec:
          volumes:
            - {name: shm, emptyDir: {medium: Memory, sizeLimit: 32Gi}}
            - {name: code, configMap: {name: code}}
            - {name: data, persistentVolumeClaim: {claimName: fsx}}
            - {name: results, persistentVolumeClaim: {claimName: s3}}
          containers:
            - name: pytorch
              image: registry.example.com/team/train:1
              command: [torchrun, /code/train.py]
              env:
                - {name: EPOCHS, value: "3"}
              volumeMounts:
                - {name: shm, mountPath: /dev/shm}
                - {name: code, mountPath: /code}
                - {name: data, mountPath: /data}
                - {name: results, mountPath: /results}
              resources: {limits: {nvidia.com/gpu: 8, vpc.amazonaws.com/efa: 4, memory: 512Gi}}
    Worker: *replica
---
apiVersion: v1
kind: ConfigMap
metadata: {name: code}
data: {train.py: "print(1)", epochs: "3"}
"""
V2 = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: train}
spec:
  runtimeRef: {name: torch-distributed}
  trainer:
    numNodes: 2
    image: registry.example.com/team/train:1
    command: [torchrun, /app/train.py]
    env:
      - {name: EPOCHS, value: "3"}
    resourcesPerNode: {limits: {nvidia.com/gpu: 8, memory: 512Gi}}
  podTemplateOverrides:
    - targetJobs: [{name: node}]
      spec:
        containers: [{name: node, volumeMounts: [{name: data, mountPath: /data}]}]
        volumes: [{name: data, persistentVolumeClaim: {claimName: fsx}}]
"""
RUNTIME = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: mine}
spec:
  mlPolicy: {numNodes: 2, torch: {numProcPerNode: auto}}
  template:
    spec:
      network: {publishNotReadyAddresses: true}
      replicatedJobs:
        - name: fetch
          template:
            metadata: {labels: {}}
            spec:
              template:
                spec:
                  restartPolicy: OnFailure
                  containers:
                    - {name: fetch, image: "registry.example.com/team/fetch:1", command: [fetch]}
        - name: node
          dependsOn: [{name: fetch, status: Complete}]
          template:
            metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
            spec:
              template:
                spec:
                  tolerations: [{key: team, operator: Exists}]
                  volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 32Gi}}]
                  containers:
                    - name: node
                      image: registry.example.com/team/train:1
                      command: [torchrun, /app/train.py]
                      args: [--epochs=3]
                      env: [{name: EPOCHS, value: "3"}]
                      volumeMounts: [{name: shm, mountPath: /dev/shm}]
                      resources: {limits: {nvidia.com/gpu: 8, memory: 512Gi}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: train}
spec:
  runtimeRef: {kind: TrainingRuntime, name: mine}
  trainer: {numNodes: 2}
"""
FILES = {"v1": V1, "v2": V2, "runtime": RUNTIME}
_POD1, _POD2 = "          volumes:\n", "      spec:\n        containers"
_POD3 = "                  volumes: [{name: shm"
_VOLUME1 = "            - {name: code, configMap: {name: code}}\n"
_ENV1, _ENV2, _ENV3 = (
    '                - {name: EPOCHS, value: "3"}\n',
    '      - {name: EPOCHS, value: "3"}\n',
    'env: [{name: EPOCHS, value: "3"}]',
)
_GPUS = "memory: 512Gi"
_V1_META, _V2_META = (
    "metadata: {name: train}\nspec:\n  runPolicy",
    "metadata: {name: train}\nspec:\n  runtimeRef",
)
_OURS = "neither the file nor the stack makes"
Row = tuple[str, str, str, str, str, bool]


def _pod1(field: str) -> tuple[str, str, str]:
    return "v1", _POD1, f"          {field}\n{_POD1}"


def _pod2(field: str) -> tuple[str, str, str]:
    return "v2", _POD2, f"      spec:\n        {field}\n        containers"


def _pod3(field: str) -> tuple[str, str, str]:
    return "runtime", _POD3, f"                  {field}\n{_POD3}"


def _volume1(volume: str) -> tuple[str, str, str]:
    return "v1", _VOLUME1, f"{_VOLUME1}            - {{name: more, {volume}}}\n"


def _env1(entry: str) -> tuple[str, str, str]:
    return "v1", _ENV1, f"{_ENV1}                - {{name: X, valueFrom: {entry}}}\n"


def _env2(entry: str) -> tuple[str, str, str]:
    return "v2", _ENV2, f"{_ENV2}      - {{name: X, valueFrom: {entry}}}\n"


def _limits(file: str, resource: str) -> tuple[str, str, str]:
    return file, _GPUS, f"{resource}, {_GPUS}"


def _label(file: str, label: str) -> tuple[str, str, str]:
    meta = _V1_META if file == "v1" else _V2_META
    return file, meta, meta.replace("{name: train}", f"{{name: train, labels: {{{label}}}}}")


NAMES: dict[str, Row] = {
    "a service account": (
        *_pod1("serviceAccountName: train-sa"),
        "Master.template.spec.serviceAccountName",
        f"{_OURS} ServiceAccount train-sa: the API server refuses every pod; delete it",
        False,
    ),
    "a service account by its old field": (
        *_pod1("serviceAccount: irsa-s3"),
        "serviceAccount",
        f"{_OURS} ServiceAccount irsa-s3",
        False,
    ),
    "a service account of an override": (
        *_pod2("serviceAccountName: sdk"),
        "podTemplateOverrides[0].spec.serviceAccountName",
        f"{_OURS} ServiceAccount sdk",
        False,
    ),
    "a service account of a runtime": (
        *_pod3("serviceAccountName: runner"),
        "serviceAccountName",
        f"{_OURS} ServiceAccount runner",
        False,
    ),
    "a ConfigMap as a volume": (
        *_volume1("configMap: {name: sft-conf}"),
        "volumes[2].configMap.name",
        f"{_OURS} ConfigMap sft-conf: its pods wait in ContainerCreating on nodes that cost; put it",
        False,
    ),
    "a ConfigMap of another name": (
        "v1",
        "metadata: {name: code}",
        "metadata: {name: codes}",
        "volumes[1].configMap.name",
        f"{_OURS} ConfigMap code",
        False,
    ),
    "a ConfigMap in a projected volume": (
        *_volume1("projected: {sources: [{configMap: {name: conf}}]}"),
        "sources[0].configMap.name",
        f"{_OURS} ConfigMap conf",
        False,
    ),
    "a ConfigMap as a variable": (
        *_env1("{configMapKeyRef: {name: settings, key: lr}}"),
        "configMapKeyRef.name",
        f"{_OURS} ConfigMap settings: its containers wait in CreateContainerConfigError",
        False,
    ),
    "all of a ConfigMap": (
        "v1",
        "              env:\n",
        "              envFrom: [{configMapRef: {name: nccl-env}}]\n              env:\n",
        "envFrom[0].configMapRef.name",
        f"{_OURS} ConfigMap nccl-env",
        False,
    ),
    "a ConfigMap of an override": (
        "v2",
        "volumes: [{name: data",
        "volumes: [{name: code, configMap: {name: scripts}}, {name: data",
        "volumes[0].configMap.name",
        f"{_OURS} ConfigMap scripts",
        False,
    ),
    "a key that a ConfigMap lacks": (
        *_env1("{configMapKeyRef: {name: code, key: rate}}"),
        "configMapKeyRef.key",
        "must be a key of the ConfigMap, which has train.py, epochs",
        True,
    ),
    "an item that a ConfigMap lacks": (
        *_volume1("configMap: {name: code, items: [{key: main.py, path: main.py}]}"),
        "items[0].key",
        "must be a key of the ConfigMap",
        True,
    ),
    "a file that a ConfigMap lacks": (
        "v1",
        "{name: code, mountPath: /code}",
        "{name: code, mountPath: /code/run.py, subPath: run.py}",
        "Master.template.spec.containers[0].volumeMounts[1].subPath",
        "pods get an empty folder for another name; got run.py. Fix: write one of train.py",
        True,
    ),
    "a Secret as a volume": (
        *_volume1("secret: {secretName: ssh-key}"),
        "secret.secretName",
        f"{_OURS} Secret ssh-key: its pods wait in ContainerCreating",
        False,
    ),
    "a Secret as a variable": (
        *_env2("{secretKeyRef: {name: wandb, key: token}}"),
        "secretKeyRef.name",
        f"{_OURS} Secret wandb: its containers wait in CreateContainerConfigError on nodes that cost; create"
        " it in namespace training before `pulumi up`; where its namespace is not there yet, run",
        False,
    ),
    "all of a Secret": (
        "v2",
        "    env:\n",
        "    envFrom: [{secretRef: {name: keys}}]\n    env:\n",
        "envFrom",
        "must be a field of Trainer",
        True,
    ),
    "a pull secret": (
        *_pod1("imagePullSecrets: [{name: regcred}]"),
        "imagePullSecrets[0].name",
        f"{_OURS} Secret regcred: kubelet pulls without it",
        False,
    ),
    "a priority class": (
        *_pod1("priorityClassName: high-priority"),
        "priorityClassName",
        f"{_OURS} PriorityClass high-priority: the API server refuses every pod; delete it, or add it to"
        " environment.priorities",
        False,
    ),
    "a priority class of a runtime": (
        *_pod3("priorityClassName: gold"),
        "priorityClassName",
        f"{_OURS} PriorityClass gold",
        False,
    ),
    "a runtime class": (
        *_pod1("runtimeClassName: nvidia"),
        "runtimeClassName",
        f"{_OURS} RuntimeClass nvidia: the API server refuses every pod; delete it: nodes with GPUs run",
        False,
    ),
    "a storage class": (
        *_volume1(
            "ephemeral: {volumeClaimTemplate: {spec: {storageClassName: gp3, accessModes: [ReadWriteOnce],"
            " resources: {requests: {storage: 1Ti}}}}}"
        ),
        "storageClassName",
        f"{_OURS} StorageClass gp3: its pods stay Pending",
        False,
    ),
    "a driver of volumes": (
        *_volume1("csi: {driver: ebs.csi.aws.com}"),
        "csi.driver",
        f"{_OURS} CSI driver ebs.csi.aws.com: no node has it",
        False,
    ),
    "a server of NFS": (
        *_volume1("nfs: {server: nas.example.com, path: /export}"),
        "nfs.server",
        f"{_OURS} NFS server nas.example.com",
        False,
    ),
    "a volume of another cloud": (
        *_volume1("azureFile: {secretName: s, shareName: a}"),
        "volumes[2].azureFile",
        "must be a volume that nodes can mount, not one of another cloud; got azureFile",
        True,
    ),
    "a volume that Kubernetes has no more": (
        *_volume1("glusterfs: {endpoints: e, path: p}"),
        "volumes[2].glusterfs",
        "not one which Kubernetes has no more",
        True,
    ),
    "a volume of git": (
        *_volume1("gitRepo: {repository: 'https://github.com/a/b'}"),
        "volumes[2].gitRepo",
        "which Kubernetes turns off",
        True,
    ),
    "another scheduler": (
        *_pod1("schedulerName: kai-scheduler"),
        "schedulerName",
        "must be default-scheduler, which is the only scheduler of the cluster",
        True,
    ),
    "another scheduler of a runtime": (
        *_pod3("schedulerName: volcano"),
        "schedulerName",
        "got volcano. Fix: delete it: queues start whole gangs",
        True,
    ),
    "the name of a node": (
        *_pod1("nodeName: ip-10-0-1-17.ec2.internal"),
        "nodeName",
        "must not be set: nobody knows the names of nodes that Karpenter launches",
        True,
    ),
    "the name of a node, selected": (
        *_pod1("nodeSelector: {kubernetes.io/hostname: ip-10-0-1-17}"),
        "nodeSelector.kubernetes.io/hostname",
        f"{_OURS} node ip-10-0-1-17",
        False,
    ),
    "a claim of a device": (
        *_pod3("resourceClaims: [{name: gpus, resourceClaimTemplateName: eight-gpus}]"),
        "resourceClaims[0].resourceClaimTemplateName",
        "Karpenter launches no node for a pod with resource claims",
        True,
    ),
    "a group of pods": (
        "runtime",
        "  template:\n    spec:\n      network",
        "  podGroupPolicy: {coscheduling: {scheduleTimeoutSeconds: 120}}\n  template:\n    spec:\n      network",
        "spec.podGroupPolicy",
        "must not be set: the cluster has no PodGroups",
        True,
    ),
    "a group of pods of Volcano": (
        "runtime",
        "  template:\n    spec:\n      network",
        "  podGroupPolicy: {volcano: {}}\n  template:\n    spec:\n      network",
        "spec.podGroupPolicy",
        "got volcano",
        True,
    ),
    "a policy of gangs": (
        "v1",
        "{cleanPodPolicy: Running}",
        "{cleanPodPolicy: Running, schedulingPolicy: {minAvailable: 2}}",
        "schedulingPolicy",
        "schedulingPolicy does nothing",
        False,
    ),
    "a queue": (
        *_label("v1", "kueue.x-k8s.io/queue-name: research"),
        "kueue.x-k8s.io/queue-name",
        "nobody reads the label, and no queue research is there",
        False,
    ),
    "a priority of a queue": (
        *_label("v2", "kueue.x-k8s.io/priority-class: high"),
        "kueue.x-k8s.io/priority-class",
        "nobody reads the priority high",
        False,
    ),
    "a suspended job": (
        "v1",
        "{cleanPodPolicy: Running}",
        "{cleanPodPolicy: Running, suspend: true}",
        "runPolicy.suspend",
        "nobody in the environment resumes the job, as it has no queues",
        False,
    ),
    "a suspended TrainJob": (
        "v2",
        "  runtimeRef",
        "  suspend: true\n  runtimeRef",
        "spec.suspend",
        "nobody in the environment resumes the job",
        False,
    ),
    "a job that somebody else runs": (
        "v2",
        "  runtimeRef",
        "  managedBy: example.com/runner\n  runtimeRef",
        "spec.managedBy",
        "must be Trainer's own: nobody else in the environment runs the job",
        True,
    ),
    "a device of InfiniBand": (
        *_limits("v1", "rdma/hca_shared_devices_ib: 8"),
        "limits.rdma/hca_shared_devices_ib",
        "must not be requested: no node of pool g6e has rdma/hca_shared_devices_ib; got 8. Fix: delete it:"
        " vpc.amazonaws.com/efa takes its place",
        True,
    ),
    "a device of FUSE": (
        *_limits("v2", "smarter-devices/fuse: 1"),
        "limits.smarter-devices/fuse",
        "no node of pool g6e has smarter-devices/fuse",
        True,
    ),
    "a device of an init container": (
        *_pod1(
            "initContainers: [{name: i, image: 'registry.example.com/i:1', resources: {limits:"
            " {example.com/dongle: 1}}}]"
        ),
        "initContainers[0].resources.limits.example.com/dongle",
        "no node of pool g6e has example.com/dongle",
        True,
    ),
    "a slice of a GPU": (
        "v1",
        "nvidia.com/gpu: 8",
        "nvidia.com/mig-1g.10gb: 1",
        "limits.nvidia.com/mig-1g.10gb",
        "Fix: write nvidia.com/gpu: 1 in its place: nodes have whole GPUs only",
        True,
    ),
    "a disk that no node has": (
        *_limits("v1", "ephemeral-storage: 20Ti"),
        "limits.ephemeral-storage",
        "must be at most 6369Gi, which g6e.48xlarge of pool g6e has for pods",
        True,
    ),
    "a field that pods do not have": (
        *_env1("{fieldRef: {fieldPath: spec.hostname}}"),
        "fieldRef.fieldPath",
        "must be a field that pods can hand on",
        True,
    ),
    "a label that pods do not have": (
        *_env1("{fieldRef: {fieldPath: \"metadata.labels['example.com/rank']\"}}"),
        "fieldRef.fieldPath",
        "neither the pods of the file nor a controller have labels example.com/rank: the value is empty",
        False,
    ),
    "an amount that pods do not have": (
        *_env1("{resourceFieldRef: {resource: limits.nvidia.com/gpu}}"),
        "resourceFieldRef.resource",
        "must be limits or requests of cpu, memory or ephemeral-storage",
        True,
    ),
    "a container that pods do not have": (
        *_env1("{resourceFieldRef: {containerName: main, resource: limits.memory}}"),
        "resourceFieldRef.containerName",
        "must be a container of the pod; got main. Fix: write pytorch",
        True,
    ),
    "a job that another one waits for": (
        "runtime",
        "dependsOn: [{name: fetch,",
        "dependsOn: [{name: download,",
        "dependsOn[0].name",
        "must be a job of this runtime",
        True,
    ),
    "a job of a policy": (
        "runtime",
        "      network:",
        "      successPolicy: {operator: All, targetReplicatedJobs: [trainer]}\n      network:",
        "targetReplicatedJobs[0]",
        "got trainer. Fix: write one of fetch, node",
        True,
    ),
    "a group of runtimes": (
        "v2",
        "{name: torch-distributed}",
        "{name: torch-distributed, apiGroup: kubeflow.org}",
        "runtimeRef.apiGroup",
        "must be trainer.kubeflow.org",
        True,
    ),
    "a host of a rendezvous": (
        "v1",
        "command: [torchrun, /code/train.py]",
        "command: [torchrun, --nnodes=2, --rdzv_backend=etcd-v2, '--rdzv_endpoint=etcd-server:2379', /code/train.py]",
        "Master.template.spec.containers[0].command",
        "the nodes meet at etcd-server, which is no pod of the job",
        False,
    ),
    "a host of another job": (
        "v1",
        "[torchrun, /code/train.py]",
        "[torchrun, --nnodes=2, --master_addr=bert-master-0, /code/train.py]",
        "containers[0].command",
        "the nodes meet at bert-master-0, which is no pod of the job",
        False,
    ),
}


def _value1(name: str, value: str) -> tuple[str, str, str]:
    return "v1", _ENV1, f'{_ENV1}                - {{name: {name}, value: "{value}"}}\n'


def _value2(name: str, value: str) -> tuple[str, str, str]:
    return "v2", _ENV2, f'{_ENV2}      - {{name: {name}, value: "{value}"}}\n'


_RUN1, _RUN2 = "[torchrun, /code/train.py]", "[torchrun, /app/train.py]"
OWNED: dict[str, Row] = {
    "a number of nodes that the operator sets": (
        *_value1("PET_NNODES", "2"),
        "containers[0].env[1].name",
        "training-operator v1.8.1 writes PET_NNODES behind this one, which so has no effect",
        False,
    ),
    "a rank that the operator sets": (
        *_value1("PET_NODE_RANK", "0"),
        "env[1].name",
        "training-operator v1.8.1 writes PET_NODE_RANK behind this one",
        False,
    ),
    "a rank that torchrun sets": (
        *_value2("LOCAL_RANK", "0"),
        "env[1].name",
        "LOCAL_RANK reaches no process, because torchrun sets it for each of them",
        False,
    ),
    "a number of processes that torchrun sets": (
        *_value1("WORLD_SIZE", "16"),
        "env[1].name",
        "WORLD_SIZE reaches no process",
        False,
    ),
    "a rank that the Trainer sets": (
        *_value2("PET_NODE_RANK", "0"),
        "env[1].name",
        "must not be a variable that the Trainer sets: its webhook refuses the job",
        True,
    ),
    "one number for all nodes": (
        *_value2("NODE_RANK", "0"),
        "env[1].name",
        "must not be one number for 2 nodes",
        True,
    ),
    "one index for all nodes": (
        *_value2("JOB_COMPLETION_INDEX", "0"),
        "env[1].name",
        "must not be one number for 2 nodes",
        True,
    ),
    "programs of an image": (
        *_value1("PATH", "/opt/bin:$PATH"),
        "env[1].name",
        "must list every folder: it takes the place of the image's PATH",
        True,
    ),
    "modules of an image": (
        *_value2("PYTHONPATH", "/app:$PYTHONPATH"),
        "env[1].name",
        "PYTHONPATH takes the place of the image's value, which kubelet does not put in here",
        False,
    ),
    "libraries of an image": (
        "v1",
        _RUN1,
        "[bash, -c, 'export LD_LIBRARY_PATH=/usr/local/cuda/lib64; torchrun /code/train.py']",
        "containers[0].command",
        "LD_LIBRARY_PATH=/usr/local/cuda/lib64 takes the place of the image's value: where the image finds"
        " aws-ofi-nccl by it, NCCL sends over TCP",
        False,
    ),
    "an interface of the node": (
        *_value2("NCCL_SOCKET_IFNAME", "ens5"),
        "env[1].name",
        "must name an interface that pods have, which is eth0",
        True,
    ),
    "an interface of the node for MPI": (
        *_value1("OMPI_MCA_btl_tcp_if_include", "ens5"),
        "env[1].name",
        "must name an interface that pods have",
        True,
    ),
    "an interface that MPI is to leave out": (
        *_value1("OMPI_MCA_oob_tcp_if_exclude", "lo,eth0"),
        "env[1].name",
        "must name an interface that pods have",
        True,
    ),
    "an interface for Horovod": (
        *_value2("HOROVOD_GLOO_IFACE", "enp5s0"),
        "env[1].name",
        "must name an interface that pods have",
        True,
    ),
    "a device of InfiniBand for UCX": (
        *_value2("UCX_NET_DEVICES", "mlx5_0:1"),
        "env[1].name",
        "mlx5 is of InfiniBand",
        True,
    ),
    "GPUs that a pod lacks": (
        *_value1("CUDA_VISIBLE_DEVICES", "4,5,6,8"),
        "env[1].name",
        "must name GPUs of the pod, which counts its 8 from 0",
        True,
    ),
    "GPUs that a pod lacks, in a script": (
        "v2",
        _RUN2,
        "[bash, -c, 'CUDA_VISIBLE_DEVICES=8 torchrun /app/train.py']",
        "trainer.command",
        "must name GPUs of the pod",
        True,
    ),
    "a restartPolicy of pods": (
        *_pod1("restartPolicy: OnFailure"),
        "Master.template.spec.restartPolicy",
        "the training-operator writes Never over it",
        False,
    ),
    "another number of pods in a runtime": (
        "runtime",
        "template:\n                spec:\n                  tolerations",
        "parallelism: 4\n              template:\n                spec:\n                  tolerations",
        "replicatedJobs[1].template.spec.parallelism",
        "the Trainer writes numNodes over it: 2",
        False,
    ),
    "two replicas of a job": (
        "runtime",
        "        - name: node\n",
        "        - name: node\n          replicas: 2\n",
        "replicatedJobs[1].replicas",
        "must be 1: the Trainer's webhook refuses others",
        True,
    ),
    "a domain of pods": (
        "runtime",
        "{publishNotReadyAddresses: true}",
        "{publishNotReadyAddresses: true, subdomain: pods}",
        "network.subdomain",
        "must not be set: PET_MASTER_ADDR has the job's name in its place",
        True,
    ),
    "arguments in the place of a runtime's": (
        "runtime",
        "  trainer: {numNodes: 2}",
        "  trainer: {numNodes: 2, args: [--lr=1]}",
        "spec.trainer.args",
        "args takes the place of the runtime's args, so the program loses --epochs=3",
        False,
    ),
    "tolerations in the place of a runtime's": (
        "runtime",
        "  trainer: {numNodes: 2}",
        "  trainer: {numNodes: 2}\n  podTemplateOverrides:\n    - targetJobs: [{name: node}]\n"
        "      spec: {tolerations: [{key: nvidia.com/gpu, operator: Exists}]}",
        "spec.podTemplateOverrides[0].spec.tolerations",
        "tolerations takes the place of the runtime's list, so pods lose {key: team, operator: Exists}",
        False,
    ),
    "a cache on a store without renames": (
        *_value1("HF_HOME", "/results/hf"),
        "env[1].name",
        "/results/hf is on store results, whose files cannot be renamed, appended to or locked, which the"
        " Hugging Face libraries must do there",
        False,
    ),
    "logs on a store without renames": (
        "v1",
        _RUN1,
        "[torchrun, /code/train.py, --logging_dir=/results/logs]",
        "containers[0].command",
        "/results/logs is on store results",
        False,
    ),
}
"""Fields and variables that somebody else owns, and paths that a store cannot serve: as NAMES."""
NAMES |= OWNED
