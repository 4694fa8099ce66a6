"""A training job as the rules see it, whoever wrote it: an entry of a stack file, a YAML file, or an
object of a cluster.

Makers: `entry_view` below for an entry, trainyard/manifests/context.py for a file and for a live
object. Rules on it: trainyard/rules/jobs.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from trainyard.catalog import fabric, versions
from trainyard.catalog.aws.instances import InstanceType
from trainyard.catalog.job_kinds import job_kind
from trainyard.derive import pod_resources
from trainyard.derive.commands import command_of
from trainyard.derive.jobs import CHECKPOINTS, KEEP, PLACE, TENSORBOARD
from trainyard.derive.policies import given, policy_name
from trainyard.derive.pools import TYPES, job_type
from trainyard.derive.scripts import script_of
from trainyard.objects.jobs.pod_template import EFA
from trainyard.objects.jobs.upstream_runtimes import upstream_runtimes
from trainyard.parts.parts import job_variables
from trainyard.problems import At
from trainyard.settings.environment import EnvironmentConfig, OwnRuntimeConfig
from trainyard.settings.job import JobConfig
from trainyard.settings.pools import PoolConfig

V1_ENV = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK")
"""Variables that training-operator v1.8.1 sets where a PyTorchJob has a Master."""
OPTION = "option."
OPTIONS = tuple(f"{OPTION}{name}" for name in ("nnodes", "node_rank", "nproc_per_node"))
NODE_DISK, NODE_SYSTEM = "NVMe of the node", "system of the node"
"""Kinds of volumes for two of a hostPath, in its place (trainyard/catalog/aws/node_disks.py)."""
POD_DISK = frozenset({"emptyDir", "ephemeral"})
"""Kinds of volumes that are deleted with their pod (Kubernetes, Ephemeral Volumes)."""
KEEPS_NOTHING = POD_DISK | {
    NODE_DISK,
    NODE_SYSTEM,
    "configMap",
    "secret",
    "projected",
    "downwardAPI",
    "image",
}
"""Kinds of volumes in which no file of a job outlives its pod and its node: pods can only read the last five."""
Where = Callable[[str], At]
"""Name of a value ("image", "env.NCCL_DEBUG") → its place."""


@dataclass(frozen=True, kw_only=True)
class ContainerView:
    """A container that trains."""

    image: str
    """Empty where the runtime has it."""
    script: str
    """Command of the container, as text; empty where the runtime has it."""
    words: tuple[str, ...]
    """Command of the container, as the arguments of a process."""
    own_entrypoint: bool
    """The image's own entrypoint starts, and `words` are its arguments."""
    env: Mapping[str, str | None]
    """Variable → value; None where the value comes from a Secret or a field."""
    more_env: frozenset[str] | None
    """Further variables, by controller and runtime; None where they are not all known."""
    by_us: frozenset[str] = frozenset()
    """Variables that every rank needs and that the job does not name: of its runtime, its node and its checkpoints."""
    in_directory: bool
    """The container has a working directory of its own, beside that of its image."""
    node_rank: int | None
    """The rank of the only node that runs this container; None where several do."""
    where: Where
    """Places of "image", "script", "arguments", "env", "env.<variable>" and "option.<name>" of a launcher."""


@dataclass(frozen=True, kw_only=True)
class SharedMemory:
    """A mount of memory at /dev/shm."""

    gib: float
    at_most_gib: float
    """Half of what the smallest node can give, or the pod's own memory; of a file, the container's memory limit."""
    limit: str
    """Reason for that most, in words."""
    fix: str
    place: At


@dataclass(frozen=True, kw_only=True)
class PodRequest:
    """Written request of a pod to its node, GPUs apart."""

    resource: str
    """As Kubernetes calls it: cpu, memory, vpc.amazonaws.com/efa, hugepages-2Mi."""
    amount: Fraction
    """vCPUs, GiB or devices."""
    text: str
    """As it is written."""
    suffix: str
    """Behind a number that takes its place."""
    place: At


@dataclass(frozen=True, kw_only=True)
class JobView:
    """A training job."""

    origin: Literal["entry", "file"]
    """An entry of a stack file is held to more than what people bring as it is."""
    kind: str
    """TrainJob, PyTorchJob, or TrainingRuntime."""
    controller: str
    """Name and release of what runs it: "Trainer 2.1.0"."""
    nodes: int
    """Pods that train; 0 where it is not known."""
    gpus: int
    """GPUs of a pod."""
    efa: bool
    """Its pods have EFA devices."""
    ranks: int | None
    """Processes a pod, where it is a number."""
    torch: bool
    """The Trainer injects PET_* and starts nothing: each pod must start its own ranks."""
    mpi: bool
    """A launcher on one pod starts the ranks on the other pods, where sshd runs."""
    elastic: bool
    most_nodes: int
    """Nodes to which an elastic job may grow; `nodes` of any other."""
    host_network: bool
    """Its pods have the network of their node."""
    host_ipc: bool
    """Its pods have the shared memory of their node."""
    restarts: int
    """Number of times that the whole gang may start again."""
    pods_restart: bool
    """The containers of a pod start again after a failure."""
    resumes: bool
    """A gang that starts again goes on where its last checkpoint was."""
    instance_type: InstanceType | None
    runtime_known: bool
    production: bool
    containers: tuple[ContainerView, ...]
    mounts: Mapping[str, frozenset[str]]
    """Path, with a slash at its end → kinds of the volume that is mounted there."""
    shared_memory: tuple[SharedMemory, ...]
    requests: tuple[PodRequest, ...]
    where: Where
    """Places of "job", "nodes", "elastic.max_nodes", "gpus" and "ranks"."""
    policy: str = ""
    """The mlPolicy of its runtime, such as torch or jax; empty where there is none, or it is not known."""
    gpus_elsewhere: bool = False
    """A runtime of the same file says how many GPUs its pods have: what is said of them is said there."""
    first_decides: bool = False
    """The job is complete when its first pod is: a PyTorchJob with a Master."""
    deletes_others: bool = False
    """Its controller deletes pods that run when the job is complete."""
    means_gpus: bool = False
    """Its pods ask for GPUs by a name that no node has, such as that of a slice."""

    @property
    def starts_own_ranks(self) -> bool:
        """Each pod runs the whole command, which starts a process for each of its GPUs, as with PyTorch."""
        return self.torch or job_kind(self.kind).a_process_each_gpu


def outlives_pods(mounts: Mapping[str, frozenset[str]]) -> bool:
    """True where one of the mounts keeps what a job saves, longer than its pods and their nodes."""
    return not all(kinds <= KEEPS_NOTHING for kinds in mounts.values())


def most_shared_memory(gib: float) -> float:
    """GiB of /dev/shm that leave the ranks of a pod some of its memory, which is `gib`."""
    return max(gib - 1, gib * 0.99)


def entry_view(path: str, job: JobConfig, environment: EnvironmentConfig) -> JobView:
    """The view of an entry. `path`: the entry's, such as environment.jobs.t5-large."""

    def where(name: str) -> At:
        settings = {
            "ranks": "processes_per_node",
            "gpus": "gpus_per_node",
            "script": _runs(job),
            "arguments": "torchrun.arguments" if job.torchrun else _runs(job),
            **dict.fromkeys(OPTIONS, _runs(job)),
            "job": "",
            **{f"env.{variable}": f"secrets.{variable}" for variable in job.secrets},
        }
        return At(f"{path}.{settings.get(name, name)}".removesuffix("."))

    own, pool = environment.own_runtime(job), environment.pools.get(job.pool)
    kind = job_type(job, environment)
    gpus = (job.gpus_per_node or kind.gpus) if kind else 0
    policy = policy_of(job, environment)
    restarts = restarts_of(job, environment)
    by_node = fabric.environment(kind, job.nodes) if kind else {}
    return JobView(
        origin="entry",
        kind=job.kind,
        controller=(
            f"training-operator v{environment.training_operator.version}"
            if job.pytorch_job and environment.training_operator
            else f"Trainer {environment.trainer.version}"
        ),
        nodes=job.nodes,
        gpus=gpus,
        efa=bool(kind) and EFA in pod_resources.devices(job, kind),
        ranks=_ranks(job, gpus),
        torch=policy == "torch",
        mpi=policy == "mpi",
        elastic=job.elastic is not None,
        most_nodes=job.elastic.max_nodes if job.elastic else job.nodes,
        host_network=False,
        host_ipc=False,
        restarts=restarts,
        pods_restart=False,
        first_decides=_has_master(job),
        deletes_others=_deletes_others(job),
        resumes=job.checkpoints is not None and restarts > 0,
        instance_type=kind,
        runtime_known=True,
        production=environment.production,
        containers=(_container(job, own, policy, by_node, job_variables(environment), where),),
        mounts=_mounts(job),
        shared_memory=_shared_memory(job, pool, where),
        requests=_requests(job, where),
        where=where,
        policy=policy,
    )


def _has_master(job: JobConfig) -> bool:
    return job.pytorch_job is not None and job.elastic is None


def _deletes_others(job: JobConfig) -> bool:
    return job.pytorch_job is not None and job.pytorch_job.clean_pods != "none"


def _ranks(job: JobConfig, gpus: int) -> int | None:
    """Processes a pod, where its object has a number: a PyTorchJob has one also for auto."""
    ranks = job.processes_per_node
    if job.pytorch_job and ranks == "auto":
        return gpus or None
    return ranks if isinstance(ranks, int) else None


def restarts_of(job: JobConfig, environment: EnvironmentConfig) -> int:
    """Number of times that its controller starts the whole gang again."""
    own = environment.own_runtime(job)
    return job.pytorch_job.restarts if job.pytorch_job else own.max_restarts if own else 0


def _runs(job: JobConfig) -> str:
    """The setting that says what runs."""
    if job.arguments is not None:
        return "arguments"
    if job.script is not None:
        return "script"
    return "torchrun" if job.torchrun else "command" if job.command else "runtime"


def policy_of(job: JobConfig, environment: EnvironmentConfig) -> str:
    """The mlPolicy of the job's runtime: torch, mpi or another; empty for a PyTorchJob, and where
    the runtime is not known."""
    own, release = environment.own_runtime(job), environment.trainer.version
    if job.pytorch_job or not job.runtime or release not in versions.TRAINERS:
        return ""
    if own:
        return own.kind
    _, spec = upstream_runtimes(release).get(job.runtime, ("", {}))
    return policy_name(spec.get("mlPolicy"))


def _container(
    job: JobConfig,
    own: OwnRuntimeConfig | None,
    policy: str,
    by_node: Collection[str],
    by_parts: Collection[str],
    where: Where,
) -> ContainerView:
    """The container of the pods. `by_node`, `by_parts`: variables that follow from its node and its environment."""
    command = command_of(job) or (own.command if own else ())
    words = (*command, *(job.arguments or ()))
    return ContainerView(
        image=job.image,
        script=job.script if job.script is not None else script_of(words),
        words=words,
        own_entrypoint=job.arguments is not None and not (own and own.command),
        env={**job.env, **dict.fromkeys(job.secrets)},
        more_env=None
        if policy == "mpi"
        else _known_variables(job, own, (*given(policy), *by_node, *by_parts)),
        by_us=frozenset(
            (*by_node, *(own.env if own else ()), *([PLACE] if job.checkpoints else ()))
        ),
        in_directory=False,
        node_rank=0 if job.nodes == 1 else None,
        where=where,
    )


def _known_variables(
    job: JobConfig, own: OwnRuntimeConfig | None, by_us: Collection[str]
) -> frozenset[str]:
    """Variables that a job has without a word of its own: from its controller, its runtime and us."""
    by_operator = V1_ENV if job.pytorch_job and not job.elastic else ()
    by_runtime = own.env if own else {}
    places = (PLACE, KEEP, "TENSORBOARD_DIR")
    return frozenset((*by_operator, *by_us, *by_runtime, *places))


def _mounts(job: JobConfig) -> dict[str, frozenset[str]]:
    claims = [mount.path for mount in job.storage.values()]
    claims += [CHECKPOINTS] if job.checkpoints else []
    claims += [TENSORBOARD] if job.tensorboard else []
    kinds = {
        "persistentVolumeClaim": claims,
        "hostPath": [mount.path for mount in job.host_paths.values()],
        "configMap": [job.files.path] if job.files else [],
        "emptyDir": ["/dev/shm", *([job.local_scratch] if job.local_scratch else [])],
    }
    return {
        f"{path.rstrip('/')}/": frozenset([kind]) for kind, paths in kinds.items() for path in paths
    }


def _requests(job: JobConfig, where: Where) -> tuple[PodRequest, ...]:
    """Requests that the entry sets. Those that follow from the pool fit it."""
    written = (
        ("cpu", job.cpus_per_node, "cpus_per_node"),
        ("memory", job.memory_gib, "memory_gib"),
    )
    return tuple(
        PodRequest(
            resource=resource,
            amount=Fraction(amount),
            text=str(amount),
            suffix="",
            place=where(setting),
        )
        for resource, amount, setting in written
        if amount is not None
    )


def _shared_memory(
    job: JobConfig, pool: PoolConfig | None, where: Where
) -> tuple[SharedMemory, ...]:
    kinds = [TYPES[name] for name in (pool.instance_types if pool else ()) if name in TYPES]
    if not kinds or not kinds[0].gpus or job.shared_memory_gib is None:
        return ()
    smallest = min(kinds, key=lambda kind: kind.allocatable_mib)
    half = smallest.allocatable_mib // 2 / 1024
    memory = pod_resources.memory_gib(job, kinds)
    of_pod = most_shared_memory(memory)
    if half < of_pod:
        limit, fix = f"half of what a {smallest.name} has for pods", f"write {int(half)} or less"
    else:
        limit = f"as the pod has {memory:g} GiB"
        fix = f"write {int(memory / 2)}, or raise memory_gib"
    return (
        SharedMemory(
            gib=job.shared_memory_gib,
            at_most_gib=min(half, of_pod),
            limit=limit,
            fix=fix,
            place=where("shared_memory_gib"),
        ),
    )
