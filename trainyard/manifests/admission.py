"""A YAML file that is a job of a stack (`jobs.x.manifest`), judged against its pool and made ready for the graph."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainyard.catalog import versions
from trainyard.catalog.job_kinds import BESIDE, JOB_KINDS, MORE_KINDS, OTHER_JOBS
from trainyard.derive.pools import TYPES
from trainyard.manifests import owned_fields
from trainyard.manifests.blanks import agreed
from trainyard.manifests.context import ManifestContext, contexts_of
from trainyard.manifests.document import REPLICAS, Workload, look, mapping, read_manifest
from trainyard.manifests.gang_waits import lacks_waiting, waiting
from trainyard.manifests.names.around import Around
from trainyard.manifests.names.names import name_problems
from trainyard.manifests.on_stores import store_warnings
from trainyard.manifests.pod_security import pod_security_errors
from trainyard.manifests.pool_fit import pool_problems
from trainyard.manifests.queue_fields import queue_field_errors, team_problems
from trainyard.manifests.rules import manifest_problems
from trainyard.manifests.tolerations import tolerating, toleration_warnings
from trainyard.plans.identity import digest
from trainyard.plans.jobs import JobPlan, RuntimePlan
from trainyard.problems import At, InputError, InputWarning, write_one_of
from trainyard.rules.jobs import controller_fix
from trainyard.rules.pools import unknown_pool
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.job import JobConfig, ManifestConfig, PyTorchJobConfig
from trainyard.settings.reading.files import is_inside, text_of
from trainyard.stores.kinds import claim_name

KUBECTL = "it is no part of the job; create it with kubectl where the job needs it"
RUNTIMES = ("TrainingRuntime", "ClusterTrainingRuntime")
KINDS = ("ConfigMap", *RUNTIMES, *JOB_KINDS)
OF_FIELD = dict.fromkeys(("runtimeRef", "trainer"), "TrainJob")
OF_FIELD |= {kind.replicas: name for name, kind in JOB_KINDS.items() if kind.replicas}
"""Field of a spec → the only kind that has it."""
"""Kinds of objects that a file may hold, in the order of creation."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """Objects and facts that a job file comes to."""

    objects: tuple[dict[str, Any], ...]
    """As they are to be created, one after the other; the last one is the job."""
    nodes: int
    """Number of pods that train; 0 where there is no job."""
    gpus: int
    """GPUs of a pod."""
    image: str
    """That its pods train with; empty where the runtime has it."""
    lacks_waiting: bool
    """Its pods are to be told how long they wait for each other."""
    errors: tuple[InputError, ...]
    warnings: tuple[InputWarning, ...]

    def plan(
        self, wanted: ManifestConfig, namespace: str, runtimes: Mapping[str, RuntimePlan]
    ) -> JobPlan:
        """The job as it is: the last object is the run, the others come before it. `runtimes`:
        those of the environment."""
        *beside, job = self.objects
        named = look(job, "spec", "runtimeRef", "name")
        has_own = any(each["kind"] in RUNTIMES for each in beside)
        runtime = None if has_own else runtimes.get(named)
        return JobPlan(
            name=job["metadata"]["name"],
            namespace=namespace,
            kind=job["kind"],
            pool=wanted.pool,
            runtime=runtime.name if runtime else None,
            stores=tuple(sorted({*wanted.claims.values(), *(runtime.stores if runtime else ())})),
            nodes=self.nodes,
            image=self.image,
            checkpoints=None,
            labels=job["metadata"].get("labels", {}),
            spec=owned_fields.without_time_to_live(
                waiting(job["kind"], job["spec"]) if self.lacks_waiting else job["spec"]
            ),
            files=None,
            objects=tuple(beside),
            priorities=(),
            expected_hours=wanted.expected_hours,
            wait=wanted.wait,
            wait_minutes=wanted.wait_minutes,
            run=f"{digest([job['spec'], beside])[:12]}-{wanted.run}",
        )

    @property
    def _has_master(self) -> bool:
        """True for a PyTorchJob whose Workers wait for a Master."""
        job = self.objects[-1] if self.objects else {}
        return look(job, *REPLICAS, "Master") is not None

    def stand_in(self, wanted: ManifestConfig) -> JobConfig:
        """Entry that takes the same of the pool as the job of the file."""
        return JobConfig(
            nodes=self.nodes or 1,
            pool=wanted.pool,
            image=self.image,
            gpus_per_node=self.gpus or None,
            pytorch_job=PyTorchJobConfig() if self._has_master else None,
        )


def read_manifests(
    at: str,
    jobs: Mapping[str, ManifestConfig],
    environment: EnvironmentConfig,
    namespace: str,
    folder: Path,
) -> tuple[dict[str, Manifest], list[InputError]]:
    """Each job that is a file, judged; and what keeps a file from being looked at. `at`: the path
    that holds them."""
    read: dict[str, Manifest] = {}
    errors: list[InputError] = []
    for name, job in jobs.items():
        wrong = list(_settings(f"{at}.{name}", job, environment, folder))
        errors += wrong
        if not wrong:
            read[name] = judged(
                text_of(folder / job.manifest),
                job.manifest,
                trainer=environment.trainer.version,
                operator=(
                    environment.training_operator.version if environment.training_operator else None
                ),
                environment=environment,
                pool=job.pool,
                namespace=namespace,
                production=environment.production,
                privileged_pods=job.privileged_pods,
                claims={
                    theirs: claim_name(
                        store, environment.storage[store], environment.zone, environment.kms_key_arn
                    )
                    for theirs, store in job.claims.items()
                },
            )
            errors += read[name].errors
    return read, errors


def _settings(
    path: str, job: ManifestConfig, environment: EnvironmentConfig, folder: Path
) -> Iterator[InputError]:
    """Errors about settings of the stack file beside the file itself."""
    pool = environment.pools.get(job.pool)
    if pool is None:
        yield unknown_pool(path, job.pool, environment)
    elif not pool.instance_types or not set(pool.instance_types) <= set(TYPES):
        yield At(f"{path}.pool").must(
            "be a pool whose instance_types are in the catalogue",
            got=job.pool,
            fix=f"correct environment.pools.{job.pool}.instance_types",
        )
    if environment.trainer.version not in versions.TRAINERS:
        yield At(f"{path}.manifest").must(
            "be written for a Trainer that this program knows",
            got=f"environment.trainer.version {environment.trainer.version}",
            fix=f"use {', '.join(versions.TRAINERS)}",
        )
    for claim, store in job.claims.items():
        if store not in environment.storage:
            yield At(f"{path}.claims.{claim}").must(
                "be a store of the environment",
                got=store,
                fix=write_one_of(environment.storage, "add one under environment.storage"),
            )
    if not is_inside(folder, job.manifest):
        yield At(f"{path}.manifest").must(
            "be a file in the folder of the stack file, which it is not",
            got=job.manifest,
            fix="name its path from there",
        )


def judged(
    file_text: str,
    file_name: str,
    *,
    trainer: str | None,
    operator: str | None,
    environment: EnvironmentConfig,
    pool: str,
    claims: Mapping[str, str],
    namespace: str,
    production: bool,
    privileged_pods: bool,
) -> Manifest:
    """The objects of a file, and everything that is wrong with them. `trainer`, `operator`:
    releases in the environment; `claims`: what the file calls a claim → what ours is called;
    `privileged_pods`: what the namespace admits."""
    workloads, errors = read_manifest(file_text, file_name)
    release = trainer or next(iter(versions.TRAINERS))
    controllers = _controllers(trainer, operator, environment)

    site = _Site(
        environment=environment,
        pool=pool,
        claims=claims,
        namespace=namespace,
        privileged_pods=privileged_pods,
        release=release,
    )

    def in_order(workloads: Sequence[Workload]) -> list[ManifestContext]:
        absent = MORE_KINDS.keys() - controllers.keys()
        accepted = [each for each in workloads if _kind(each) in KINDS and each.kind not in absent]
        return contexts_of(
            sorted(accepted, key=lambda workload: KINDS.index(_kind(workload))),
            release=release,
            environment=environment,
            pool_type=TYPES[environment.pools[pool].instance_types[0]],
            production=production,
        )

    def judge(workloads: Sequence[Workload]) -> list[InputError | InputWarning]:
        found = [*_one_job(workloads, file_name, controllers)]
        return [*found, *site.problems(in_order(workloads), workloads, [*errors, *found])]

    problems = [*errors, *agreed(workloads, judge)]
    contexts = in_order(workloads)
    job = next((context for context in contexts if context.workload.kind in JOB_KINDS), None)
    return Manifest(
        objects=tuple(
            _ready(tolerating(context, pool, environment, release), claims, namespace)
            for context in contexts
        ),
        nodes=job.nodes if job else 0,
        gpus=job.gpus if job else 0,
        image=_image(job),
        lacks_waiting=lacks_waiting(job),
        errors=tuple(problem for problem in problems if isinstance(problem, InputError)),
        warnings=tuple(problem for problem in problems if isinstance(problem, InputWarning)),
    )


@dataclass(frozen=True, kw_only=True)
class _Site:
    """Pool, namespace and claims that the objects of a file are judged against."""

    environment: EnvironmentConfig
    pool: str
    claims: Mapping[str, str]
    namespace: str
    privileged_pods: bool
    release: str

    def problems(
        self,
        contexts: Sequence[ManifestContext],
        workloads: Sequence[Workload],
        before: Sequence[InputError],
    ) -> list[InputError | InputWarning]:
        """Errors and warnings about objects that a file may hold. `workloads`: all that it holds;
        `before`: what is said already."""
        problems = [*manifest_problems(contexts)]
        places = {problem.where for problem in (*before, *problems)}
        problems += _new(name_problems(contexts, self._around(workloads)), places)
        for context in contexts:
            problems += _metadata(context, self.namespace)
            problems += owned_fields.left_out_warnings(context)
            problems += team_problems(context, self.namespace, self.environment)
            if not self.privileged_pods:
                problems += pod_security_errors(context, self.namespace)
            problems += _new(queue_field_errors(context, self.environment, self.release), places)
            problems += _on_pool(context, self.pool, self.environment, places)
            problems += store_warnings(context, self.claims, self.environment, self.namespace)
        return problems

    def _around(self, workloads: Sequence[Workload]) -> Around:
        return Around(
            environment=self.environment,
            pool=self.pool,
            namespace=self.namespace,
            claims=self.claims,
            workloads=tuple(workloads),
        )


def _controllers(
    trainer: str | None, operator: str | None, environment: EnvironmentConfig
) -> dict[str, str | None]:
    """Kind of job → release of the controller that runs it; None where there is none."""
    legacy = environment.training_operator
    more = dict.fromkeys(legacy.more_kinds if legacy else (), operator)
    return {"TrainJob": trainer, "PyTorchJob": operator, **more}


def _image(job: ManifestContext | None) -> str:
    containers = job.view.containers if job else ()
    return next((container.image for container in containers), "")


def _on_pool(
    context: ManifestContext, pool: str, environment: EnvironmentConfig, places: Collection[str]
) -> Iterator[InputError | InputWarning]:
    """Problems with the pool, where nothing else is wrong yet. `places`: of other problems."""
    yield from _new(pool_problems(context, pool, environment), places)
    yield from toleration_warnings(context, pool, environment)


def _new(
    found: Iterable[InputError | InputWarning], places: Collection[str]
) -> list[InputError | InputWarning]:
    """The problems at no place that has another one. `places`: those."""
    return [problem for problem in found if problem.where not in places]


def _kind(workload: Workload) -> str:
    return str(workload.get("kind"))


def _meant(workload: Workload) -> str | None:
    """The kind that somebody means: a slip of one, or that of the fields."""
    fields = mapping(workload.get("spec"))
    by_fields = (kind for field, kind in OF_FIELD.items() if field in fields)
    named = (each for each in KINDS if each.lower() == _kind(workload).lower())
    return next(by_fields, next(named, None))


def _not_ours(workload: Workload) -> InputError:
    """The error of an object that the stack does not create. One that pods find by its name may be made
    beside the stack."""
    kind, meant = _kind(workload), _meant(workload)
    other = OTHER_JOBS.get(kind) or f"take it out: {BESIDE.get(kind, KUBECTL)}"
    return workload.at("kind").must(
        f"be one of {', '.join(KINDS)}", got=kind, fix=f"write {meant}" if meant else other
    )


def _one_job(
    workloads: Sequence[Workload], file: str, controllers: Mapping[str, str | None]
) -> Iterator[InputError]:
    """One job with what belongs to it, and a controller in the environment that runs it."""
    jobs = [workload for workload in workloads if workload.kind in JOB_KINDS]
    others = [workload for workload in workloads if _kind(workload) not in KINDS]
    if not jobs and not any(_kind(each) in OTHER_JOBS or _meant(each) for each in others):
        yield At("", file=file).must(
            "contain a TrainJob or a PyTorchJob", got="none", fix="write one, or name another file"
        )
    for job in jobs[1:]:
        yield job.at("kind").must(
            "be the only job of its file",
            got=f"{job.kind} {job.name}",
            fix="give it a file and an entry of its own",
        )
    for job in jobs:
        if (meant := _meant(job)) not in (job.kind, None):
            must = f"be {meant}, whose fields stand in its spec"
            yield job.at("kind").must(must, got=job.kind, fix=f"write {meant}")
        elif not controllers.get(job.kind):
            fix = "; or ".join(filter(None, (controller_fix(job.kind), OTHER_JOBS.get(job.kind))))
            must = "have its controller in the environment"
            yield job.at("kind").must(must, got=job.kind, fix=fix)
    yield from map(_not_ours, others)


def _metadata(context: ManifestContext, namespace: str) -> Iterator[InputError]:
    if not context.workload.name:
        begins = str(context.get("metadata", "generateName") or "").rstrip("-")
        yield context.error(
            ("metadata", "generateName") if begins else ("metadata",),
            "have a name, by which it is found again",
            "none",
            f"write name: {begins} in its place" if begins else "add name: train",
        )
    given = context.get("metadata", "namespace")
    if given not in (None, namespace):
        must = "be the stack's namespace, or not be set"
        yield context.error(
            ("metadata", "namespace"), must, given, f"write {namespace}, or delete it"
        )


def _ready(workload: Workload, claims: Mapping[str, str], namespace: str) -> dict[str, Any]:
    """The object with our claims, in our namespace."""
    metadata = {**owned_fields.without_identity(workload.get("metadata")), "namespace": namespace}
    if _kind(workload) == "ClusterTrainingRuntime":
        del metadata["namespace"]
    return {**_claimed(workload.body, claims), "metadata": metadata}


def _claimed(value: Any, claims: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_claimed(each, claims) for each in value]
    return (
        {
            key: claims.get(str(each), each) if key == "claimName" else _claimed(each, claims)
            for key, each in value.items()
        }
        if isinstance(value, Mapping)
        else value
    )
