"""An object of a YAML file, and what it is judged against: a release of the Trainer, its runtime,
its nodes. The view of the job that it describes: what rules/jobs.py judges."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from trainyard.catalog import versions
from trainyard.catalog.aws.instances import InstanceType
from trainyard.catalog.job_kinds import JOB_KINDS, job_kind
from trainyard.catalog.quantities import amount
from trainyard.derive.job_view import (
    OPTION,
    V1_ENV,
    ContainerView,
    JobView,
    Where,
    outlives_pods,
)
from trainyard.derive.jobs import own_spec
from trainyard.derive.policies import given, policy_name
from trainyard.derive.pools import TYPES
from trainyard.manifests.document import (
    TRAINER,
    Container,
    Path,
    Pod,
    Workload,
    items,
    look,
    mapping,
    mount_path,
    of_body,
    pods_of,
)
from trainyard.manifests.pod_amounts import (
    means_gpus,
    pod_requests,
    resources_of_trainer,
    shared_memory,
    volume_kinds,
)
from trainyard.objects.jobs.pod_template import EFA, GPU
from trainyard.objects.jobs.upstream_runtimes import upstream_runtimes
from trainyard.problems import At, InputError, InputWarning
from trainyard.settings.environment import EnvironmentConfig

HYPERPOD = "ml."
"""Before the name of an instance type of SageMaker HyperPod."""


@dataclass(frozen=True, kw_only=True)
class ManifestContext:
    """An object, and what it is judged against."""

    workload: Workload
    trainer_minor: tuple[int, int]
    """Major and minor version of the Trainer, such as (2, 1)."""
    controller: str
    """Name and release of what runs the job."""
    runtime: Mapping[str, Any] | None
    """The body of the runtime that a TrainJob refers to, or of the object itself. None: not
    known."""
    pool_type: InstanceType | None
    production: bool
    of_trainer: Any = None
    """Resources that a TrainJob gives the container that trains."""
    runs_for: Workload | None = None
    """Job of the files that a runtime is for, where what the runtime runs is not the job's own."""

    @cached_property
    def runtime_pods(self) -> tuple[Pod, ...]:
        """Pods of the runtime; the role of each is its replicated job."""
        return tuple(pods_of("TrainingRuntime", self.runtime or {}))

    @property
    def all_pods(self) -> tuple[Pod, ...]:
        """Pods that the object describes, and those of its runtime."""
        return (*self.workload.pods, *self.runtime_pods)

    @cached_property
    def nodes(self) -> int:
        """Number of pods that train; 0 where it is not known."""
        pods = (*(self.runs_for.pods if self.runs_for else ()), *self.workload.training_pods)
        own = [pod.nodes for pod in pods if isinstance(pod.nodes, int)]
        counts = own or [self.policy("numNodes")]
        return sum(counts) if isinstance(counts[0], int) else 0

    @cached_property
    def gpus(self) -> int:
        """GPUs of a pod."""
        return self._amount(GPU)

    def _amount(self, resource: str) -> int:
        """Amount of an extended resource in a pod: the job's, or else its runtime's."""
        own = [container.amount(resource) for container in self.workload.containers]
        of_runtime = [c.amount(resource) for pod in self.runtime_pods for c in pod.containers]
        return max(own, default=0) or max(of_runtime, default=0)

    @cached_property
    def cpus(self) -> int:
        """vCPUs of a pod as the Trainer counts them where processes follow from them: the job's, or
        else its runtime's, rounded up; 0 where none are requested."""
        containers = [*self.workload.containers]
        containers += [container for pod in self.runtime_pods for container in pod.containers]
        amounts = (
            amount(look(container.body, "resources", part, "cpu"))
            for container in containers
            for part in ("requests", "limits")
        )
        return math.ceil(next(filter(None, amounts), 0))

    @cached_property
    def instance_type(self) -> InstanceType | None:
        """The instance type: the pool's, or what the pods select by its name or its GPU."""
        return self.pool_type or next(
            (
                kind
                for label, value in self._selected()
                for kind in TYPES.values()
                if value.removeprefix(HYPERPOD) == kind.name or self._is_gpu_of(label, value, kind)
            ),
            None,
        )

    def _selected(self) -> list[tuple[str, str]]:
        """(label, value in lower case) of what all pods must be on."""
        return [
            (requirement.label, str(value).lower())
            for terms in self.workload.selectors
            if len(terms) == 1
            for requirement in terms[0]
            if requirement.operator == "In"
            for value in requirement.values
        ]

    def _is_gpu_of(self, label: str, value: str, kind: InstanceType) -> bool:
        same_count = kind.gpus == self.gpus > 0
        return "gpu" in label and same_count and bool(re.search(rf"\b{kind.gpu}\b", value))

    def policy(self, *path: str) -> Any:
        """A value of the runtime's mlPolicy."""
        return look(self.runtime, "spec", "mlPolicy", *path)

    def get(self, *path: str | int) -> Any:
        """A value of the object."""
        return self.workload.get(*path)

    def error(self, path: Path, must: str, got: Any, fix: str) -> InputError:
        """An error at a place of the object."""
        shown = " ".join(str(got).split())[:60] or "nothing"
        return self.workload.at(*path).must(must, got=shown, fix=fix)

    def warning(self, path: Path, text: str) -> InputWarning:
        """A warning at a place of the object."""
        return self.workload.at(*path).warning(text)

    @cached_property
    def view(self) -> JobView:
        """The training job that the object describes."""
        return JobView(
            origin="file",
            kind=self.workload.kind,
            controller=self.controller,
            nodes=self.nodes,
            gpus=self.gpus,
            efa=self._amount(EFA) > 0,
            ranks=self._ranks(),
            torch=self.policy("torch") is not None and self.policy("mpi") is None,
            mpi=self.policy("mpi") is not None,
            policy=policy_name(self.policy()),
            elastic=bool(self.get("spec", "elasticPolicy")),
            most_nodes=self._most_nodes,
            host_network=any(pod.spec.get("hostNetwork") for pod in self.all_pods),
            host_ipc=any(pod.spec.get("hostIPC") for pod in self.all_pods),
            restarts=self.restarts,
            pods_restart=self.pods_restart,
            first_decides="Master" in mapping(self.workload.replicas),
            deletes_others=self.get("spec", "runPolicy", "cleanPodPolicy") in ("Running", "All"),
            resumes=self.restarts > 0 and outlives_pods(self.mounts),
            instance_type=self.instance_type,
            runtime_known=self.runtime is not None,
            production=self.production,
            containers=tuple(map(self._container, self.workload.containers)),
            mounts=self.mounts,
            shared_memory=tuple(shared_memory(self.workload, self.of_trainer)),
            requests=tuple(pod_requests(self.workload)),
            where=self._where,
            gpus_elsewhere=self._has_a_runtime_of_the_file and not self._asks_for(GPU),
            means_gpus=means_gpus(self.all_pods),
        )

    @property
    def _has_a_runtime_of_the_file(self) -> bool:
        return self.runtime is not self.workload.body and "kind" in (self.runtime or {})

    def _asks_for(self, resource: str) -> bool:
        return any(container.amount(resource) for container in self.workload.containers)

    @cached_property
    def restarts(self) -> int:
        """Number of times that the whole gang may start again; of a PyTorchJob the number of times that a
        pod may."""
        policy = ("spec", "template", "spec", "failurePolicy", "maxRestarts")
        of_pods = self.get("spec", "runPolicy", "backoffLimit") if self.pods_restart else 0
        count = of_pods if self.workload.replicas else look(self.runtime, *policy)
        return count if isinstance(count, int) else 0

    @property
    def _most_nodes(self) -> int:
        most = self.get("spec", "elasticPolicy", "maxReplicas")
        return most if isinstance(most, int) else self.nodes

    @property
    def pods_restart(self) -> bool:
        """True where the containers of a PyTorchJob start again after a failure."""
        replicas = self.workload.replicas
        policies = items([*replicas.values()]) if isinstance(replicas, Mapping) else []
        return any(
            each.get("restartPolicy") in ("OnFailure", "Always", "ExitCode") for each in policies
        )

    @cached_property
    def mounts(self) -> dict[str, frozenset[str]]:
        """Path, with a slash at its end → kinds of the volume that is mounted there."""
        specs = [pod.spec for pod in self.all_pods]
        kinds = {name: kind for spec in specs for name, kind in volume_kinds(spec).items()}
        return {
            mount_path(mount): kinds.get(str(mount.get("name")), frozenset())
            for spec in specs
            for container in items(spec.get("containers"))
            for mount in items(container.get("volumeMounts"))
        }

    def _ranks_path(self) -> Path:
        return {
            "TrainJob": (*TRAINER, "numProcPerNode"),
            "TrainingRuntime": ("spec", "mlPolicy", "torch", "numProcPerNode"),
        }.get(self.workload.kind, ("spec", "nprocPerNode"))

    def _ranks(self) -> int | None:
        count = str(self.get(*self._ranks_path()))
        return int(count) if count.isdecimal() and not self.policy("mpi") else None

    def _where(self, name: str) -> At:
        if name == "ranks":
            return self.workload.at(*self._ranks_path())
        if name == "elastic.max_nodes":
            return self.workload.at("spec", "elasticPolicy", "maxReplicas")
        if name == "nodes" and self.workload.kind == "TrainJob":
            return self.workload.at(*TRAINER, "numNodes")
        if name == "gpus":
            for container in self.workload.containers:
                if container.amount(GPU):
                    return self.workload.at(*container.at("resources", "limits", GPU))
        return self.workload.at("spec")

    def _container(self, container: Container) -> ContainerView:
        return ContainerView(
            image=str(container.body.get("image") or ""),
            script=container.script,
            words=() if isinstance(container.body.get("command"), str) else container.command,
            own_entrypoint=self._starts_own_entrypoint(container),
            env=container.env,
            more_env=self._more_env(container),
            in_directory=bool(container.body.get("workingDir")),
            node_rank=self._node_rank(container),
            where=self._where_in(container),
        )

    def _starts_own_entrypoint(self, container: Container) -> bool:
        """True where neither the job nor its runtime has a command. A container beside the one that
        trains is nobody's business."""
        kind = JOB_KINDS.get(self.workload.kind)
        if kind is None or container.body.get("command"):
            return False
        if not kind.has_runtime:
            return container.body.get("name") == kind.container
        of_runtime = [
            container.body.get("command")
            for pod in self.runtime_pods
            for container in pod.containers
            if container.body.get("image")  # a fragment of a runtime has none
        ]
        return container.path == TRAINER and bool(of_runtime) and not any(of_runtime)

    def _where_in(self, container: Container) -> Where:
        def where(name: str) -> At:
            if name.startswith("env."):
                names = [str(entry.get("name")) for entry in items(container.body.get("env"))]
                number = names.index(name.removeprefix("env."))
                return self.workload.at(*container.at("env", number, "name"))
            if name.startswith(OPTION):
                return self.workload.at(*container.option(name.removeprefix(OPTION)))
            path = container.runs if name in ("script", "arguments") else container.at(name)
            return self.workload.at(*path)

        return where

    def _more_env(self, container: Container) -> frozenset[str] | None:
        if container.body.get("envFrom") or self.policy("mpi") is not None:
            return None
        by_operator = V1_ENV if self.get("spec", "pytorchReplicaSpecs", "Master") else ()
        by_runtime = re.findall(r"'([A-Z][A-Z0-9_]*)'", str(self.runtime))
        by_job = (
            [name for each in self.runs_for.containers for name in each.env]
            if self.runs_for
            else []
        )
        by_controller = given(policy_name(self.policy()))
        return frozenset((*by_controller, *by_operator, *by_runtime, *by_job))

    def _node_rank(self, container: Container) -> int | None:
        if "Master" in container.path:
            return 0
        return 1 if "Worker" in container.path and self.nodes == 2 else None


def contexts_of(
    workloads: Sequence[Workload],
    *,
    release: str = next(iter(versions.TRAINERS)),
    production: bool = False,
    environment: EnvironmentConfig | None = None,
    pool_type: InstanceType | None = None,
) -> list[ManifestContext]:
    """Objects that belong together, ready to be judged."""
    return [
        ManifestContext(
            workload=workload,
            trainer_minor=versions.minor(release),
            runtime=runtime_of(workload, workloads, release, environment),
            pool_type=pool_type,
            controller=f"{job_kind(workload.kind).controller} {_release(workload.kind, release)}",
            production=production,
            of_trainer=resources_of_trainer(workload, workloads),
            runs_for=_job_of(workload, workloads),
        )
        for workload in workloads
    ]


def _job_of(runtime: Workload, workloads: Sequence[Workload]) -> Workload | None:
    """The only job that refers to a runtime and leaves the command to it; None where there is no such job, or
    several."""
    if runtime.kind != "TrainingRuntime" or "kind" not in runtime.body:
        return None
    jobs = [
        each
        for each in workloads
        if each.kind in JOB_KINDS and each.get("spec", "runtimeRef", "name") == runtime.name
    ]
    return jobs[0] if len(jobs) == 1 and not jobs[0].get(*TRAINER, "command") else None


def live_view(job: Mapping[str, Any], runtimes: Sequence[Mapping[str, Any]] = ()) -> JobView:
    """The view of a TrainJob or PyTorchJob of a cluster. `runtimes`: those of the cluster."""
    live = of_body(job)
    release = next(iter(versions.TRAINERS))
    return ManifestContext(
        workload=live,
        trainer_minor=versions.minor(release),
        runtime=runtime_of(live, [of_body(runtime) for runtime in runtimes], release, None),
        pool_type=None,
        controller=f"the {job_kind(live.kind).controller}",
        production=False,
    ).view


def _release(kind: str, trainer: str) -> str:
    """Release of the controller that judges an object of the kind."""
    return trainer if job_kind(kind).has_runtime else f"v{versions.TRAINING_OPERATORS[-1]}"


def runtime_of(
    job: Workload, beside: Sequence[Workload], release: str, environment: EnvironmentConfig | None
) -> Any:
    """The body of a TrainJob's runtime: in the files, of the environment, of upstream; a fragment
    counts as any."""
    if job.kind not in JOB_KINDS or not JOB_KINDS[job.kind].has_runtime:
        return job.body
    name = str(job.get("spec", "runtimeRef", "name"))
    in_files = [
        workload.body
        for workload in beside
        if workload.kind == "TrainingRuntime"
        and ("kind" not in workload.body or workload.name == name)
    ]
    if in_files:
        return min(in_files, key=lambda body: "kind" not in body)
    known = dict(upstream_runtimes(release)) if release in versions.TRAINERS else {}
    if environment and (own := environment.trainer.own_runtimes.get(name)):
        known[name] = own_spec(release, own, environment)
    return {"spec": known[name][1]} if name in known else None
