"""Names of what neither the file nor the stack has, and amounts that no node has. Rows as in blanks.py."""

from __future__ import annotations

from tests.corpus.written.blanks import Row

_POD = "          containers:\n            - name: pytorch\n"
_CPU = 'cpu: "96"'
_SELECT = "{node.kubernetes.io/instance-type: g6e.48xlarge}"
_LOG = "                - {name: NCCL_DEBUG, value: INFO}\n"
_OVER = "        nodeSelector: {node"


def _pod(field: str, file: str = "fsdp") -> tuple[str, str, str]:
    return file, _POD, f"          {field}\n{_POD}"


def _over(field: str) -> tuple[str, str, str]:
    return "sft", _OVER, f"        {field}\n{_OVER}"


def _env(entry: str) -> tuple[str, str, str]:
    return "fsdp", _LOG, f"                - {{name: X, valueFrom: {entry}}}\n{_LOG}"


def _terms(expression: str) -> tuple[str, str, str]:
    terms = f"nodeSelectorTerms: [{{matchExpressions: [{expression}]}}]"
    return _pod(
        f"affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{{terms}}}}}}}"
    )


ABSENT: dict[str, Row] = {
    "an account in an override": (
        *_over("serviceAccountName: s3-reader"),
        "serviceAccountName",
        "s3-reader",
        False,
    ),
    "an account of the old field": (
        *_pod("serviceAccount: irsa", "exec"),
        "serviceAccount",
        "irsa",
        False,
    ),
    "a ConfigMap of an init container": (
        "fsdp",
        "command: [stage, --to, /scratch/data]",
        "command: [stage]\n              envFrom: [{configMapRef: {name: stage-env}}]",
        "initContainers[0].envFrom[0].configMapRef.name",
        "stage-env",
        False,
    ),
    "a ConfigMap of another name": (
        "sft",
        "configMap: {name: sft}",
        "configMap: {name: sft-code}",
        "configMap.name",
        "sft-code",
        False,
    ),
    "a key of a ConfigMap": (
        "sft",
        "configMap: {name: sft}",
        "configMap: {name: sft, items: [{key: train.py, path: sft.py}]}",
        "items[0].key",
        "train.py",
        True,
    ),
    "a Secret of variables": (
        *_env("{secretKeyRef: {name: hf, key: token}}"),
        "secretKeyRef.name",
        "hf",
        False,
    ),
    "a Secret of files": (
        "exec",
        "            - {name: shm, emptyDir",
        "            - {name: key, secret: {secretName: ssh}}\n            - {name: shm, emptyDir",
        "secret.secretName",
        "ssh",
        False,
    ),
    "a Secret of an image": (
        *_over("imagePullSecrets: [{name: ngc}]"),
        "imagePullSecrets[0].name",
        "ngc",
        False,
    ),
    "a class of priority": (
        *_pod("priorityClassName: urgent", "exec"),
        "priorityClassName",
        "urgent",
        False,
    ),
    "a class of runtime": (
        *_pod("runtimeClassName: nvidia-legacy"),
        "runtimeClassName",
        "nvidia-legacy",
        False,
    ),
    "another scheduler": (*_pod("schedulerName: yunikorn"), "schedulerName", "yunikorn", True),
    "a claim that has no store": (
        "fsdp",
        "claimName: efs",
        "claimName: nas",
        "claimName",
        "nas",
        True,
    ),
    "a volume that a mount names": (
        "exec",
        "{name: fast, mountPath",
        "{name: fsat, mountPath",
        "volumeMounts[0].name",
        "fsat",
        True,
    ),
    "a job of an override": (
        "sft",
        "targetJobs: [{name: node}]",
        "targetJobs: [{name: trainer}]",
        "targetJobs",
        "trainer",
        True,
    ),
    "a container of an override": (
        "sft",
        "- name: node\n            volumeMounts",
        "- name: pytorch\n            volumeMounts",
        "containers[0].name",
        "pytorch",
        True,
    ),
    "a runtime": (
        "sft",
        "name: torch-distributed}",
        "name: torch-distributed-v2}",
        "runtimeRef.name",
        "torch-distributed-v2",
        True,
    ),
    "a runtime of the file": (
        "own",
        "{kind: TrainingRuntime, name: ours}",
        "{kind: TrainingRuntime, name: theirs}",
        "runtimeRef.name",
        "theirs",
        True,
    ),
    "a job that must be complete": (
        "own",
        "dependsOn: [{name: fetch",
        "dependsOn: [{name: download",
        "dependsOn",
        "download",
        True,
    ),
    "a job of a success": (
        "own",
        "targetReplicatedJobs: [node]",
        "targetReplicatedJobs: [trainer]",
        "targetReplicatedJobs",
        "trainer",
        True,
    ),
    "a host of etcd": (
        "exec",
        "rdzvBackend: c10d",
        "rdzvBackend: etcd-v2, rdzvHost: etcd-0.etcd, rdzvPort: 2379",
        "rdzvHost",
        "etcd-0.etcd",
        False,
    ),
    "a host of another job": (
        "fsdp",
        "--master_addr=$MASTER_ADDR",
        "--master_addr=llama-master-0",
        "command",
        "llama-master-0",
        False,
    ),
    "a host of another namespace": (
        "sft",
        "torchrun /code/sft.py",
        "torchrun --rdzv_backend=c10d --rdzv_endpoint=head.ml.svc:29400 /code/sft.py",
        "args",
        "head.ml.svc",
        False,
    ),
    "a node in an affinity": (
        *_terms("{key: kubernetes.io/hostname, operator: In, values: [gpu-10-0-1-17]}"),
        "values[0]",
        "node gpu-10-0-1-17",
        False,
    ),
    "a host in an option of the program": (
        "fsdp",
        "--output_dir /scratch/out",
        "--dist-url=tcp://10.0.1.17:22222",
        "command",
        "meet at 10.0.1.17",
        False,
    ),
    "a pool by its label": (
        "sft",
        _SELECT,
        "{karpenter.sh/nodepool: gpu}",
        "karpenter.sh/nodepool",
        "gpu",
        True,
    ),
    "a node group": (
        "fsdp",
        _SELECT,
        "{eks.amazonaws.com/nodegroup: p5-ng}",
        "eks.amazonaws.com/nodegroup",
        "nodegroup",
        True,
    ),
    "a zone of another region": (
        "sft",
        _SELECT,
        "{topology.kubernetes.io/zone: us-east-1a}",
        "topology.kubernetes.io/zone",
        "us-east-1a",
        True,
    ),
    "a type of another pool": (
        "fsdp",
        "instance-type: g6e.48xlarge",
        "instance-type: p4d.24xlarge",
        "instance-type",
        "p4d.24xlarge",
        True,
    ),
    "an accelerator of another cloud": (
        *_terms("{key: cloud.google.com/gke-accelerator, operator: Exists}"),
        "affinity",
        "gke-accelerator",
        True,
    ),
    "a capacity that no pool has": (
        "sft",
        _SELECT,
        "{karpenter.sh/capacity-type: reserved}",
        "capacity-type",
        "reserved",
        True,
    ),
    "GPUs of AMD": (
        "exec",
        "nvidia.com/gpu: 8",
        "amd.com/gpu: 4",
        "amd.com/gpu",
        "amd.com/gpu",
        True,
    ),
    "a shared GPU": (
        "exec",
        "nvidia.com/gpu: 8",
        "nvidia.com/gpu.shared: 4",
        "nvidia.com/gpu.shared",
        "nvidia.com/gpu.shared",
        True,
    ),
    "a slice of a GPU": (
        "own",
        "nvidia.com/gpu: 8",
        "nvidia.com/mig-3g.40gb: 1",
        "nvidia.com/mig-3g.40gb",
        "mig-3g.40gb",
        True,
    ),
    "a device of InfiniBand": (
        "fsdp",
        "vpc.amazonaws.com/efa: 4",
        "rdma/ib: 1",
        "rdma/ib",
        "rdma/ib",
        True,
    ),
    "more GPUs than a node": (
        "own",
        "nvidia.com/gpu: 8",
        "nvidia.com/gpu: 16",
        "nvidia.com/gpu",
        "16",
        True,
    ),
    "more interfaces than a node": (
        "fsdp",
        "vpc.amazonaws.com/efa: 4",
        "vpc.amazonaws.com/efa: 32",
        "vpc.amazonaws.com/efa",
        "32",
        True,
    ),
    "more CPUs than a node": ("fsdp", _CPU, 'cpu: "256"', "cpu", "256", True),
    "more memory than a node": ("exec", "memory: 256Gi", "memory: 2Ti", "memory", "2Ti", True),
    "more disk than a node": (
        "fsdp",
        _CPU,
        "ephemeral-storage: 90Ti",
        "ephemeral-storage",
        "90Ti",
        True,
    ),
    "large pages": (
        "exec",
        "memory: 256Gi",
        "memory: 256Gi, hugepages-1Gi: 4Gi",
        "hugepages-1Gi",
        "hugepages-1Gi",
        True,
    ),
    "a field of the pod": (
        *_env("{fieldRef: {fieldPath: spec.nodename}}"),
        "fieldPath",
        "spec.nodename",
        True,
    ),
    "a container of an amount": (
        *_env("{resourceFieldRef: {containerName: main, resource: limits.cpu}}"),
        "containerName",
        "main",
        True,
    ),
    "a spread over what no node has": (
        *_pod(
            "topologySpreadConstraints: [{maxSkew: 1, topologyKey: rack,"
            " whenUnsatisfiable: DoNotSchedule, labelSelector: {}}]"
        ),
        "topologyKey",
        "rack",
        True,
    ),
    "a neighbour by what no node has": (
        *_pod(
            "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey:"
            " block, labelSelector:"
            " {matchLabels: {app: a}}}]}}",
            "exec",
        ),
        "topologyKey",
        "block",
        True,
    ),
    "a driver of volumes": (
        "exec",
        "            - {name: shm, emptyDir",
        "            - {name: gcs, csi: {driver: gcsfuse.csi.storage.gke.io}}\n            - {name: shm, emptyDir",
        "csi.driver",
        "gcsfuse.csi.storage.gke.io",
        False,
    ),
    "a queue without queues": (
        "fsdp",
        "{team: vision}",
        "{kueue.x-k8s.io/queue-name: vision}",
        "queue-name",
        "vision",
        False,
    ),
    "a job that nobody resumes": (
        "exec",
        "spec:\n  pytorch",
        "spec:\n  runPolicy: {suspend: true}\n  pytorch",
        "suspend",
        "resumes",
        False,
    ),
    "a runtime of an entry": (
        "entry",
        "jobs.w.runtime",
        "torch-distributed-resilent",
        "jobs.w.runtime",
        "torch-distributed-resilent",
        True,
    ),
    "a store of an entry": (
        "entry",
        "jobs.w.storage.shared",
        {"path": "/shared"},
        "storage.shared",
        "shared",
        True,
    ),
    "a job before it": ("entry", "jobs.w.after", ["prepare"], "after", "prepare", True),
    "a queue of an entry": (
        "entry",
        "jobs.w.labels",
        {"kueue.x-k8s.io/queue-name": "x"},
        "queue-name",
        "x",
        False,
    ),
}
