"""A YAML file that is a job of a stack, judged against its pool and made ready for the graph
(`jobs.x.manifest`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catalog import versions
from plans.parts import JobPlan, RuntimePlan, digest
from plans.pod_template import GPU, POOL, TAINT_VALUE
from stacks.derive.capacity import CAPACITY_TYPES, TYPES, largest_gang, node_type_names
from stacks.derive.jobs import claim_name
from stacks.manifests.context import Case, cases_of
from stacks.manifests.document import Workload, items, look, read_manifest
from stacks.manifests.rules import findings
from stacks.settings.environment import EnvironmentConfig
from stacks.settings.job import JobConfig, ManifestConfig
from stacks.settings.problems import InputError, InputWarning

RUNTIMES, JOBS = ("TrainingRuntime", "ClusterTrainingRuntime"), ("TrainJob", "PyTorchJob")
OLD_LABELS = {
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""Deprecated, and still on every node; Karpenter knows both names (karpenter v1,
NormalizedLabels)."""
KINDS = ("ConfigMap", *RUNTIMES, *JOBS)
"""What a file may hold, in the order of creation."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What a file comes to."""

    objects: tuple[dict[str, Any], ...]
    """As they are to be created, one after the other; the last one is the job."""
    nodes: int
    """How many pods train; 0 where there is no job."""
    gpus: int
    """Of a pod."""
    errors: tuple[InputError, ...]
    warnings: tuple[InputWarning, ...]


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
                (folder / job.manifest).read_text(),
                job.manifest,
                trainer=environment.trainer.version,
                operator=(
                    environment.training_operator.version if environment.training_operator else None
                ),
                environment=environment,
                pool=job.pool,
                namespace=namespace,
                production=environment.production,
                claims={
                    theirs: claim_name(store, environment.storage[store], environment.zone)
                    for theirs, store in job.claims.items()
                },
            )
            errors += read[name].errors
    return read, errors


def manifest_plan(
    wanted: ManifestConfig, read: Manifest, namespace: str, runtimes: Mapping[str, RuntimePlan]
) -> JobPlan:
    """A job that is a file, as it is: its last object is the run, the others come before it.
    `runtimes`: those of the environment."""
    *beside, job = read.objects
    named = look(job, "spec", "runtimeRef", "name")
    runtime = None if any(each["kind"] in RUNTIMES for each in beside) else runtimes.get(named)
    return JobPlan(
        name=job["metadata"]["name"],
        namespace=namespace,
        kind=job["kind"],
        pool=wanted.pool,
        runtime=runtime.name if runtime else None,
        stores=tuple(sorted({*wanted.claims.values(), *(runtime.stores if runtime else ())})),
        nodes=read.nodes,
        checkpoints=None,
        labels=job["metadata"].get("labels", {}),
        spec=job["spec"],
        files=None,
        objects=tuple(beside),
        priorities=(),
        expected_hours=wanted.expected_hours,
        wait=wanted.wait,
        wait_minutes=wanted.wait_minutes,
        run=f"{digest([job['spec'], beside])[:12]}-{wanted.run}",
    )


def stand_in(wanted: ManifestConfig, read: Manifest) -> JobConfig:
    """What a job that is a file takes of its pool, in the words of a described one."""
    return JobConfig(
        nodes=read.nodes or 1, pool=wanted.pool, image="", gpus_per_node=read.gpus or None
    )


def _settings(
    path: str, job: ManifestConfig, environment: EnvironmentConfig, folder: Path
) -> Iterator[InputError]:
    """What the stack file says beside the file itself."""
    pool = environment.pools.get(job.pool)
    if pool is None:
        yield InputError(
            path=f"{path}.pool",
            must="be a pool of the environment",
            got=job.pool,
            fix=f"one of {', '.join(environment.pools) or 'none yet'}",
        )
    elif not pool.instance_types or not set(pool.instance_types) <= set(TYPES):
        yield InputError(
            path=f"{path}.pool",
            must="have types that are known",
            got=job.pool,
            fix="mend the pool",
        )
    if environment.trainer.version not in versions.TRAINERS:
        yield InputError(
            path=f"{path}.manifest",
            must="be judged for a known Trainer",
            got=environment.trainer.version,
            fix=f"use {', '.join(versions.TRAINERS)}",
        )
    for claim, store in job.claims.items():
        if store not in environment.storage:
            yield InputError(
                path=f"{path}.claims.{claim}",
                must="be a store of the environment",
                got=store,
                fix=f"one of {', '.join(environment.storage) or 'none yet'}",
            )
    if not (folder / job.manifest).is_file():
        yield InputError(
            path=f"{path}.manifest",
            must="be a file of this checkout",
            got=job.manifest,
            fix="name it from the project's folder",
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
) -> Manifest:
    """The objects of a file, and everything that is wrong with them. `trainer`, `operator`:
    releases in the environment; `claims`: what the file calls a claim → what ours is called."""
    read, errors = read_manifest(file_text, file_name)
    kept = sorted(
        (each for each in read if _kind(each) in KINDS), key=lambda each: KINDS.index(_kind(each))
    )
    cases = cases_of(
        kept,
        release=trainer or next(iter(versions.TRAINERS)),
        environment=environment,
        pool_type=TYPES[environment.pools[pool].instance_types[0]],
        production=production,
    )
    found = [
        *errors,
        *_held(read, file_name, {"TrainJob": trainer, "PyTorchJob": operator}),
        *findings(cases),
    ]
    said = {each.where for each in found}
    for case in cases:
        found += _named(case, claims, namespace, environment)
        found += [
            each for each in _referred(case, kept, environment) if case.job.kind == "TrainJob"
        ]
        found += [each for each in _on_pool(case, pool, environment) if each.where not in said]
    job = next((case for case in cases if case.job.kind in JOBS), None)
    return Manifest(
        objects=tuple(_ready(each, claims, namespace) for each in kept),
        nodes=job.nodes if job else 0,
        gpus=job.gpus if job else 0,
        errors=tuple(each for each in found if isinstance(each, InputError)),
        warnings=tuple(each for each in found if isinstance(each, InputWarning)),
    )


def _kind(workload: Workload) -> str:
    return str(workload.get("kind"))


def _held(
    read: Sequence[Workload], file: str, controllers: Mapping[str, str | None]
) -> Iterator[InputError]:
    """One job with what belongs to it, and a controller in the environment that runs it."""
    jobs = [each for each in read if each.kind in JOBS]
    if not jobs:
        yield InputError(
            path="",
            file=file,
            must="contain a TrainJob or a PyTorchJob",
            got="none",
            fix="write it",
        )
    for each in jobs[1:]:
        yield InputError(
            **each.at("kind"),
            must="be the only job of its file",
            got=f"{each.kind} {each.name}",
            fix="a file and an entry of its own",
        )
    for each in (each for each in jobs if not controllers[each.kind]):
        yield InputError(
            **each.at("kind"),
            must="have its controller in the environment",
            got=each.kind,
            fix=(
                "environment.training_operator"
                if each.kind == "PyTorchJob"
                else "environment.trainer"
            ),
        )
    for each in (each for each in read if _kind(each) not in KINDS):
        yield InputError(
            **each.at("kind"),
            must=f"be one of {', '.join(KINDS)}",
            got=_kind(each),
            fix=(
                "take it out: kubectl makes a Secret, which is only named here; `claims` gives a"
                " claim a store"
            ),
        )


def _named(
    case: Case, claims: Mapping[str, str], namespace: str, environment: EnvironmentConfig
) -> Iterator[InputError]:
    job, given = case.job, case.job.get("metadata", "namespace")
    if not job.name:
        yield case.error(
            ("metadata", "generateName"),
            "have a name, to be found again by",
            "none",
            "metadata.name",
        )
    if given not in (None, namespace):
        yield case.error(
            ("metadata", "namespace"), "be the stack's namespace, or left out", given, namespace
        )
    for path in job.find("** persistentVolumeClaim claimName"):
        if (claim := str(job.get(*path))) not in claims:
            yield case.error(
                path,
                "be a claim that has a store",
                claim,
                f"claims: {{{claim}: …}}, one of"
                f" {', '.join(environment.storage) or 'no stores yet'}",
            )


def _referred(
    case: Case, beside: Sequence[Workload], environment: EnvironmentConfig
) -> Iterator[InputError]:
    ref, own = (
        case.job.get("spec", "runtimeRef"),
        (*environment.trainer.runtimes, *environment.trainer.own_runtimes),
    )
    there = {*((RUNTIMES[1], name) for name in own), *((_kind(each), each.name) for each in beside)}
    if (look(ref, "kind") or RUNTIMES[1], look(ref, "name")) not in there:
        yield case.error(
            ("spec", "runtimeRef", "name"),
            "be a runtime of the file or of the environment",
            look(ref, "name"),
            f"one of {', '.join(own)}",
        )


def _on_pool(case: Case, name: str, environment: EnvironmentConfig) -> Iterator[InputError]:
    """What no node of the pool can be or has."""
    pool = environment.pools[name]
    alone = len(pool.instance_types) > 1 or pool.fallback_zones
    most, gpus = (
        1 if alone else largest_gang(pool),
        min(TYPES[kind].gpus for kind in pool.instance_types),
    )
    yield from _selected(case, name, _labels(name, environment))
    for each in (each for each in case.job.containers if each.amount(GPU) > gpus):
        yield case.error(
            each.at("resources", "limits", GPU),
            f"fit a node of pool {name}, which has {gpus}",
            each.amount(GPU),
            f"{gpus}, or another pool",
        )
    if case.job.kind in JOBS and case.nodes > most:
        yield case.error(
            ("spec", "trainer", "numNodes") if case.job.kind == "TrainJob" else ("spec",),
            f"fit pool {name}, of which a job gets {most} nodes",
            case.nodes,
            f"{most}, or another pool",
        )
    # The API server adds a toleration for GPUs to pods that ask for them
    # (ExtendedResourceToleration).
    taint = GPU if gpus else POOL
    tolerations = [
        each for pod in (*case.job.pods, *case.base) for each in items(pod.spec.get("tolerations"))
    ]
    if (
        case.job.kind in JOBS
        and not (gpus and case.gpus)
        and not any(_tolerates(each, taint) for each in tolerations)
    ):
        yield case.error(
            ("spec",),
            f"tolerate the taint of pool {name}",
            "no toleration",
            f"tolerations: [{{key: {taint}, operator: Exists}}]",
        )


def _selected(case: Case, name: str, labels: Mapping[str, set[str] | None]) -> Iterator[InputError]:
    """Of each selector one term can hold."""
    for terms in case.job.selectors:
        wrong = [
            [
                each
                for each in term
                if not each.can_hold(labels) and not _not_known(each.label, labels)
            ]
            for term in terms
        ]
        for each in wrong[0][:1] if wrong and all(wrong) else ():
            theirs = ", ".join(sorted(labels.get(each.label) or ()))
            ways = {"In": theirs or f"{POOL}: {name}", "Exists": f"{POOL}: {name}"}
            yield case.error(
                each.path,
                f"select nodes of pool {name}",
                each,
                ways.get(each.operator, f"drop it: theirs is {theirs or 'there'}"),
            )


def _not_known(label: str, labels: Mapping[str, object]) -> bool:
    """Karpenter has more labels of its own than are known here."""
    return label.startswith("karpenter.k8s.aws/") and label not in labels and "gpu" not in label


def _labels(name: str, environment: EnvironmentConfig) -> dict[str, set[str] | None]:
    """Labels of the pool's nodes → their values, before there is any; None where only a node itself
    has them."""
    pool = environment.pools[name]
    kinds = [TYPES[kind] for kind in pool.instance_types]
    known: dict[str, set[str] | None] = {
        POOL: {name},
        "trainyard.io/nodes": {"training"},
        "kubernetes.io/arch": {"amd64"},
        "kubernetes.io/os": {"linux"},
        "karpenter.sh/capacity-type": {CAPACITY_TYPES[pool.capacity]},
        "karpenter.sh/nodepool": {*node_type_names(name, pool)},
        "node.kubernetes.io/instance-type": {*pool.instance_types},
        "topology.kubernetes.io/zone": {environment.zone, *pool.fallback_zones},
        "topology.kubernetes.io/region": {environment.zone[:-1]},
        "karpenter.k8s.aws/instance-family": {kind.family for kind in kinds},
        "karpenter.k8s.aws/instance-cpu": {str(kind.vcpus) for kind in kinds},
        **dict.fromkeys(("kubernetes.io/hostname", "topology.k8s.aws/zone-id"), None),
    }
    if all(kind.gpus for kind in kinds):
        known |= {
            "karpenter.k8s.aws/instance-gpu-name": {kind.gpu for kind in kinds},
            "karpenter.k8s.aws/instance-gpu-count": {str(kind.gpus) for kind in kinds},
            "karpenter.k8s.aws/instance-gpu-manufacturer": {"nvidia"},
            "karpenter.k8s.aws/instance-gpu-memory": {str(kind.gpu_memory_mib) for kind in kinds},
        }
    return known | {old: known[new] for old, new in OLD_LABELS.items()}


def _tolerates(toleration: Mapping[str, Any], taint: str) -> bool:
    same = toleration.get("operator") == "Exists" or toleration.get("value") == TAINT_VALUE
    return (
        same
        and toleration.get("key") in (None, taint)
        and toleration.get("effect") in (None, "NoSchedule")
    )


def _ready(workload: Workload, claims: Mapping[str, str], namespace: str) -> dict[str, Any]:
    """The object with our claims, in our namespace; otherwise as it is."""
    given = workload.get("metadata")
    metadata = {**(given if isinstance(given, Mapping) else {}), "namespace": namespace}
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
