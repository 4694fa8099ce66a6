"""The kinds of training jobs: what their controllers call a job, its pods and its end.

Sources: Trainer v2.1.0 and v2.3.0, JobSet v0.10.1, training-operator v1.8.1, read at their tags
(2026-11-21).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, kw_only=True)
class JobKind:
    """A kind of Kubernetes object that is a training job."""

    api_version: str
    pod_label: str
    """Label of the job's pods whose value is the job's name."""
    rank_label: str
    """Label of the job's pods whose value is the number of the node."""
    succeeded: str
    """Type of the condition of a job that ended well. A job that failed has `Failed`."""
    controller: str
    """Controller that runs the job."""
    controller_setting: str
    """The setting of the stack file that installs the controller."""
    has_runtime: bool
    """The job refers to a runtime, which has what the job itself leaves out."""
    restarts_as_job_set: bool
    """JobSet starts the whole gang again, and counts in the JobSet's status."""
    rank_variables: str
    """Variables with which ranks find each other, as a message proposes them."""
    keeps_variables: bool
    """The controller takes a job whose pods set its own variables, which it writes behind them: of two of
    a name the last one counts (training-operator v1.8.1, pytorch/envvar.go)."""
    time_limit: tuple[str, ...]
    """Path of the field with the seconds after which a job fails. They count from when its queue
    starts it (Trainer 2.3.0, trainjob_controller.go; training-operator, common/job.go)."""
    deletion: str
    """Propagation policy of a deletion: background, or foreground, in which the job stays until its pods
    are gone. The Trainer makes the JobSet again of a TrainJob that stays (2.1.0 and 2.3.0,
    trainjob_controller.go, asks for no deletionTimestamp). The training-operator leaves a job alone that
    is being deleted (pytorchjob_controller.go)."""
    suspend: tuple[str, ...]
    """Where a job says that it is suspended, if its controller takes a pod from before the suspension that
    still ends for one of the resumed job, which fails with that pod (training-operator, common/job.go,
    ReconcileJobs). Empty: the controller waits for the end of such pods."""
    whole: tuple[str, ...]
    """Resources, as kubectl calls them, that the controller makes under the name of the job. Its pods end
    after them."""
    ready_as_a_whole: bool
    """Kueue takes a gang for complete only when all its pods run. It takes a PyTorchJob for it that is
    Running, as soon as its Master runs, or one Worker where there is no Master (kueue 0.16.2 and
    0.19.2, kubeflowjob_controller.go; training-operator, pytorchjob_controller.go)."""

    replicas: str = ""
    """Field of the spec with the pods of each role. Empty: a runtime has the pods."""
    container: str = ""
    """Name of the container that each pod must have; empty: any."""
    roles: tuple[str, ...] = ()
    """Roles of pods that the controller knows; empty: any."""
    needed_role: str = ""
    """Role of which there must be one pod."""
    a_process_each_gpu: bool = False
    """A program needs a process for each GPU, as with PyTorch. Of TensorFlow, JAX and others one takes all
    GPUs of a pod."""


ENTRY_KINDS: dict[str, JobKind] = {
    "TrainJob": JobKind(
        api_version="trainer.kubeflow.org/v1alpha1",
        pod_label="jobset.sigs.k8s.io/jobset-name",
        rank_label="batch.kubernetes.io/job-completion-index",
        succeeded="Complete",
        controller="Trainer",
        controller_setting="environment.trainer",
        has_runtime=True,
        restarts_as_job_set=True,
        rank_variables="PET_MASTER_ADDR, PET_NODE_RANK, PET_NNODES",
        keeps_variables=False,
        time_limit=("spec", "activeDeadlineSeconds"),
        deletion="background",
        suspend=(),
        whole=("jobsets.jobset.x-k8s.io",),
        ready_as_a_whole=True,
    ),
    "PyTorchJob": JobKind(
        api_version="kubeflow.org/v1",
        pod_label="training.kubeflow.org/job-name",
        rank_label="training.kubeflow.org/replica-index",
        succeeded="Succeeded",
        controller="training-operator",
        controller_setting="environment.training_operator",
        has_runtime=False,
        restarts_as_job_set=False,
        rank_variables="$(MASTER_ADDR), $(MASTER_PORT)",
        keeps_variables=True,
        time_limit=("spec", "runPolicy", "activeDeadlineSeconds"),
        deletion="foreground",
        suspend=("spec", "runPolicy", "suspend"),
        whole=(),
        ready_as_a_whole=False,
        replicas="pytorchReplicaSpecs",
        container="pytorch",
        roles=("Master", "Worker"),
        a_process_each_gpu=True,
    ),
}
"""Kinds that an entry of a stack file can become."""


def _more(replicas: str, container: str, roles: str, needed_role: str = "") -> JobKind:
    return replace(
        ENTRY_KINDS["PyTorchJob"],
        replicas=replicas,
        container=container,
        roles=tuple(roles.split()),
        needed_role=needed_role,
        a_process_each_gpu=False,
        rank_variables="those of its framework",
    )


MORE_KINDS: dict[str, JobKind] = {
    "MPIJob": _more("mpiReplicaSpecs", "", "Launcher Worker", "Launcher"),
    "MXJob": _more(
        "mxReplicaSpecs", "mxnet", "Scheduler Server Worker TunerTracker TunerServer Tuner"
    ),
    "PaddleJob": _more("paddleReplicaSpecs", "paddle", "Master Worker"),
    "TFJob": _more("tfReplicaSpecs", "tensorflow", "Chief Evaluator Master PS Worker"),
    "XGBoostJob": _more("xgbReplicaSpecs", "xgboost", "Master Worker", "Master"),
}
"""Kinds that only a file can be, and that the training-operator runs where training_operator.more_kinds
lists them (training-operator v1.8.1, pkg/apis/kubeflow.org/v1 and pkg/webhooks)."""
JOB_KINDS = ENTRY_KINDS | MORE_KINDS
ENGINE_TYPES = {kind: f"kubernetes:{it.api_version}:{kind}" for kind, it in JOB_KINDS.items()}
"""Kind of a job → its type for Pulumi's engine."""
KIND_OF_ENGINE_TYPE = {type_: kind for kind, type_ in ENGINE_TYPES.items()}


RESTARTING = "PyTorchJobRestarting"
"""Reason of an event of the training-operator v1.8.1 (its pod.go): it has deleted a failed pod and
creates it again."""


def resource_of(kind: str) -> str:
    """A kind of job as the API server and quotas call it, such as trainjobs.trainer.kubeflow.org."""
    return f"{kind.lower()}s.{JOB_KINDS[kind].api_version.partition('/')[0]}"


_AS_PYTORCH = "write it as a PyTorchJob or as an entry of jobs"
_BY_TORCHRUN = "write what it runs as an entry of jobs, with nodes and torchrun or script"
_INSIDE = "take the job out of it, into a file of its own"
OTHER_JOBS: dict[str, str] = {
    "MPIJob": (
        "write an own runtime of kind mpi (environment.trainer.own_runtimes), and an entry of jobs with"
        " nodes and the mpirun line as script"
    ),
    "HyperPodPyTorchJob": f"{_AS_PYTORCH}: only SageMaker HyperPod serves this kind",
    **dict.fromkeys(("TFJob", "XGBoostJob", "PaddleJob", "JAXJob", "MXJob"), _BY_TORCHRUN),
    **dict.fromkeys(
        ("RayJob", "RayCluster", "RayService"), f"{_BY_TORCHRUN}: no stack has KubeRay"
    ),
    **dict.fromkeys(
        ("Job", "CronJob", "JobSet", "Pod", "Deployment", "StatefulSet", "LeaderWorkerSet"),
        _BY_TORCHRUN,
    ),
    "Experiment": f"{_INSIDE}, with a value for each parameter: no stack has Katib",
    "AppWrapper": f"{_INSIDE}: queues hand out whole gangs",
    "Workflow": _INSIDE,
    "SparkApplication": "run it with a controller of yours, and kubectl",
}
"""Kind of an object that runs pods and that no stack runs, or only with more_kinds → what serves instead."""
BESIDE: dict[str, str] = {
    "Secret": "create a Secret with kubectl, and name it here",
    "PersistentVolumeClaim": "`claims` gives a PersistentVolumeClaim a store",
    "PersistentVolume": "`claims` gives a PersistentVolumeClaim a store",
    "StorageClass": "`claims` gives a PersistentVolumeClaim a store",
    "Namespace": "the stack makes the namespace of the job",
    "PriorityClass": "write priorities: {high: 1000} in environment, and name it",
    **dict.fromkeys(
        ("LocalQueue", "ClusterQueue", "ResourceFlavor"), "environment.queues makes the queues"
    ),
}
"""Kind of an object beside a job → what serves instead, or how it is made."""


def job_kind(kind: str) -> JobKind:
    """The kind of a job, or that of the jobs which refer to an object of `kind`: runtimes."""
    return JOB_KINDS.get(kind, JOB_KINDS["TrainJob"])


def time_limit(kind: str, job: Mapping[str, Any]) -> int | None:
    """Seconds after which a job fails; None: nothing ends it."""
    found: Any = job
    for name in JOB_KINDS[kind].time_limit:
        found = (found or {}).get(name)
    return found or None


POOL = "trainyard.io/pool"
"""Label of a pool's nodes, whatever their type, by which pods of jobs select them; on CPU nodes a taint too, which
keeps everything but jobs away."""
SUCCEEDED = tuple(kind.succeeded for kind in JOB_KINDS.values())
ENDED = (*SUCCEEDED, "Failed")


def true_conditions(job: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The conditions of a job whose status is True, in the order of the object."""
    conditions = (job.get("status") or {}).get("conditions") or []
    return [condition for condition in conditions if condition["status"] == "True"]


def outcome(job: Mapping[str, Any]) -> str | None:
    """The condition with which a job ended: one of ENDED. None: the job has not ended."""
    types = (condition["type"] for condition in true_conditions(job))
    return next((name for name in types if name in ENDED), None)


def is_suspended(job: Mapping[str, Any]) -> bool:
    """True for a job that is to have no pods, such as one that waits in a queue."""
    spec = job["spec"]
    return bool(spec.get("suspend") or (spec.get("runPolicy") or {}).get("suspend"))
