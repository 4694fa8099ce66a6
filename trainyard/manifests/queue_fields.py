"""Fields of a TrainJob that do not survive a queue: Kueue writes the whole object with types of its
own. Zero values that mean nothing are left out instead: trainyard/catalog/kueue_types.py."""

from __future__ import annotations

from collections.abc import Iterator

from trainyard.catalog.job_kinds import ENTRY_KINDS, JOB_KINDS, MORE_KINDS
from trainyard.catalog.kueue_types import unknown_fields
from trainyard.manifests.context import ManifestContext
from trainyard.manifests.document import TRAINER, mapping
from trainyard.problems import InputError
from trainyard.settings.environment import EnvironmentConfig

CLEARED = ("command", "args")
"""Fields of the trainer whose empty list takes away what the runtime has (trainer v2.1.0 and v2.3.0,
plugins/jobset/builder.go: `args != nil`)."""


def queue_field_errors(
    context: ManifestContext, environment: EnvironmentConfig, release: str
) -> Iterator[InputError]:
    """Every field that Kueue would drop, and whose loss is another job or none. `release`: of the
    Trainer."""
    kind = JOB_KINDS.get(context.workload.kind)
    if environment.queues is None or kind is None or not kind.has_runtime:
        return
    for path in unknown_fields(mapping(context.get("spec")), release):
        yield context.error(
            ("spec", *path),
            f"not be set in {path[0]} of a job in a queue: Kueue drops it",
            context.get("spec", *path),
            f"set {path[-1]} in the pods of a TrainingRuntime, and delete it here",
        )
    for field in CLEARED:
        if context.get(*TRAINER, field) == [] and _of_runtime(context, field):
            yield context.error(
                (*TRAINER, field),
                f"not be an empty list in a queue: Kueue drops it, and pods get the runtime's {field}",
                "[]",
                f"take {field} out of the runtime, or write the whole command here",
            )


def _of_runtime(context: ManifestContext, field: str) -> bool:
    return any(each.body.get(field) for pod in context.runtime_pods for each in pod.containers)


def team_kind_errors(
    context: ManifestContext, namespace: str, environment: EnvironmentConfig
) -> Iterator[InputError]:
    """A kind that no team has a right to, and no queue counts."""
    if context.workload.kind in MORE_KINDS and namespace != environment.namespace:
        yield context.error(
            ("kind",),
            f"be {' or '.join(ENTRY_KINDS)} in a team, which has no right to other kinds",
            context.workload.kind,
            "write the job into environment.jobs of the environment's stack file",
        )
