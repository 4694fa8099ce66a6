"""A workload of a YAML file, and what it is judged against: a release of the Trainer, its runtime,
its nodes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from catalog import versions
from catalog.instances import InstanceType
from plans.pod_template import GPU
from plans.upstream_runtimes import upstream_runtimes
from stacks.derive.capacity import TYPES
from stacks.derive.jobs import own_spec
from stacks.manifests.document import Path, Pod, Workload, look, pods_of
from stacks.settings.environment import EnvironmentConfig
from stacks.settings.problems import InputError, InputWarning


@dataclass(frozen=True, kw_only=True)
class Case:
    """A workload, and what it is judged against."""

    job: Workload
    line: int
    """Place of the release's minor in TRAINER_LINES: 0 is 2.1, 2 is 2.3."""
    who: str
    runtime: Mapping[str, Any] | None
    """The body of the runtime that a TrainJob refers to, or of the workload itself. None: not
    known."""
    pool_type: InstanceType | None
    production: bool

    @cached_property
    def base(self) -> tuple[Pod, ...]:
        """Pods of the runtime; the role of each is its job."""
        return tuple(pods_of("TrainingRuntime", self.runtime or {}))

    @cached_property
    def nodes(self) -> int:
        """How many pods train; 0 where it is not known."""
        counts = [pod.nodes for pod in self.job.pods if isinstance(pod.nodes, int)] or [
            self.policy("numNodes")
        ]
        return sum(counts) if isinstance(counts[0], int) else 0

    @cached_property
    def gpus(self) -> int:
        """GPUs of a pod: the job's, or else its runtime's."""
        of_runtime = [each.amount(GPU) for pod in self.base for each in pod.containers]
        return max((each.amount(GPU) for each in self.job.containers), default=0) or max(
            of_runtime, default=0
        )

    @cached_property
    def type(self) -> InstanceType | None:
        """The instance type: the pool's, or what the pods select by its name or its GPU."""
        chosen = [
            (each.label, str(value).lower())
            for terms in self.job.selectors
            if len(terms) == 1
            for each in terms[0]
            if each.operator == "In"
            for value in each.values
        ]
        return self.pool_type or next(
            (
                kind
                for key, value in chosen
                for kind in TYPES.values()
                if value == kind.name
                or "gpu" in key
                and kind.gpus == self.gpus > 0
                and re.search(rf"\b{kind.gpu}\b", value)
            ),
            None,
        )

    def policy(self, *path: str) -> Any:
        return look(self.runtime, "spec", "mlPolicy", *path)

    def error(self, path: Path, must: str, got: Any, fix: str) -> InputError:
        return InputError(
            **self.job.at(*path), must=must, got=" ".join(str(got).split())[:60], fix=fix
        )

    def warning(self, path: Path, text: str) -> InputWarning:
        return InputWarning(**self.job.at(*path), text=text)


def cases_of(
    workloads: Sequence[Workload],
    *,
    release: str = next(iter(versions.TRAINERS)),
    production: bool = False,
    environment: EnvironmentConfig | None = None,
    pool_type: InstanceType | None = None,
) -> list[Case]:
    """Workloads that belong together, ready to be judged."""
    line = list(versions.TRAINER_LINES).index(release.rpartition(".")[0])
    return [
        Case(
            job=job,
            line=line,
            runtime=runtime_of(job, workloads, release, environment),
            pool_type=pool_type,
            who="training-operator v1.8.1" if job.kind == "PyTorchJob" else f"Trainer {release}",
            production=production,
        )
        for job in workloads
    ]


def runtime_of(
    job: Workload, beside: Sequence[Workload], release: str, environment: EnvironmentConfig | None
) -> Any:
    """The body of a TrainJob's runtime: in the files, of the environment, of upstream; a fragment
    counts as any."""
    if job.kind != "TrainJob":
        return job.body
    name = str(job.get("spec", "runtimeRef", "name"))
    found = [
        w.body
        for w in beside
        if w.kind == "TrainingRuntime" and ("kind" not in w.body or w.name == name)
    ]
    if found:
        return min(found, key=lambda body: "kind" not in body)
    known = dict(upstream_runtimes(release)) if release in versions.TRAINERS else {}
    if environment and (own := environment.trainer.own_runtimes.get(name)):
        known[name] = own_spec(release, own, environment)
    return {"spec": known[name][1]} if name in known else None
