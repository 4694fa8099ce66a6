"""Fields of a job or a runtime that a controller writes itself: another value has no effect, is refused, or
keeps ranks from each other.

Sources: training-operator v1.8.1 (common/pod.go: setRestartPolicy; pytorch_defaults.go), Trainer v2.1.0
(webhooks/trainingruntime_webhook.go; plugins/jobset/builder.go; plugins/torch/torch.go: PET_MASTER_ADDR has
the job's name as subdomain), JobSet v0.10.1 (jobset_webhook.go: Indexed, and DNS names by default).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.manifests.context import ManifestContext
from trainyard.manifests.document import JOBS, REPLICAS, STEP, Path, look
from trainyard.plans.jobs import Spec
from trainyard.problems import InputError, InputWarning

_JOBS = " ".join(map(str, JOBS))
TIME_TO_LIVE = "ttlSecondsAfterFinished"
DEFAULT_RESTART = "OnFailure"
"""restartPolicy of a replica that has none (training-operator v1.8.1)."""


@dataclass(frozen=True, kw_only=True)
class OwnedField:
    """A field, and what its owner makes of it."""

    kind: str
    place: str
    """Pattern of its path."""
    is_theirs: Callable[[ManifestContext, Path, Any], bool]
    """True for a value that is the owner's, too."""
    text: str
    """Warning; where `fix` is set, what the value must be. {theirs}: the owner's value."""
    fix: str = ""
    """Advice of an error."""
    theirs: Callable[[ManifestContext, Path], Any] = lambda context, path: None


def _of_replica(context: ManifestContext, path: Path) -> Any:
    given = context.get(*path[: len(REPLICAS) + 1], "restartPolicy") or DEFAULT_RESTART
    return "Never" if given == "ExitCode" else given


def _nodes(context: ManifestContext, path: Path) -> Any:
    return context.policy("numNodes") or 1


def _trains(context: ManifestContext, path: Path) -> bool:
    return look(context.workload.body, *path[: len(JOBS) + 1], *STEP) == "trainer"


def _meets(context: ManifestContext) -> bool:
    """True where ranks find each other by PET_MASTER_ADDR."""
    return context.policy("torch") is not None


OWNED: tuple[OwnedField, ...] = (
    *(
        OwnedField(
            kind=name,
            place=f"spec {kind.replicas} * template spec restartPolicy",
            theirs=_of_replica,
            is_theirs=lambda context, path, value: value == _of_replica(context, path),
            text=(
                "the training-operator writes {theirs} over it, from restartPolicy of the replica; write that"
                " one, and delete this"
            ),
        )
        for name, kind in JOB_KINDS.items()
        if kind.replicas
    ),
    *(
        OwnedField(
            kind="TrainingRuntime",
            place=f"{_JOBS} * template spec {field}",
            theirs=_nodes,
            is_theirs=lambda context, path, value: (
                not _trains(context, path) or value == _nodes(context, path)
            ),
            text="the Trainer writes numNodes over it: {theirs}, or what a job says; delete it",
        )
        for field in ("parallelism", "completions")
    ),
    OwnedField(
        kind="TrainingRuntime",
        place=f"{_JOBS} * template spec completionMode",
        is_theirs=lambda context, path, value: value == "Indexed",
        text="be Indexed, as JobSet writes it: pods have no names of their own otherwise",
        fix="delete it",
    ),
    OwnedField(
        kind="TrainingRuntime",
        place=f"{_JOBS} * replicas",
        is_theirs=lambda context, path, value: value == 1,
        text="be 1: the Trainer's webhook refuses others, and numNodes says how many pods there are",
        fix="delete it, and set mlPolicy.numNodes",
    ),
    OwnedField(
        kind="TrainingRuntime",
        place="spec template spec suspend",
        is_theirs=lambda context, path, value: value is False,
        text="the Trainer writes suspend of the job over it; delete it",
    ),
    OwnedField(
        kind="TrainingRuntime",
        place="spec template spec network subdomain",
        is_theirs=lambda context, path, value: not _meets(context),
        text="not be set: PET_MASTER_ADDR has the job's name in its place, so ranks never find the first one",
        fix="delete it",
    ),
    OwnedField(
        kind="TrainingRuntime",
        place="spec template spec network enableDNSHostnames",
        is_theirs=lambda context, path, value: value is not False or not _meets(context),
        text="not be false: PET_MASTER_ADDR is such a name, so ranks never find the first one",
        fix="delete it",
    ),
)
"""Every such field."""


def owned_fields(context: ManifestContext) -> Iterator[InputError | InputWarning]:
    """The problem of each field whose value is not that of its owner."""
    for owned in OWNED:
        if owned.kind != context.workload.kind:
            continue
        for path in context.workload.find(owned.place):
            value = context.get(*path)
            if owned.is_theirs(context, path, value):
                continue
            if owned.fix:
                yield context.error(path, owned.text, str(value).lower(), owned.fix)
            else:
                theirs = owned.theirs(context, path)
                yield context.warning(path, owned.text.format(theirs=theirs))


OWNERS = "ownerReferences"
IDENTITY = ("uid", "resourceVersion", "managedFields", OWNERS)
"""Metadata of an object that is in a cluster. With one of the first three the API server creates none (Kubernetes 1.35,
apiserver, pkg/registry/rest/create.go and pkg/endpoints/handlers/patch.go); one without its owner it deletes."""


def left_out_warnings(context: ManifestContext) -> Iterator[InputWarning]:
    """Warnings about owners and times to live that are left out of the object. Nothing is wrong with a file because
    of what else kubectl prints."""
    for path in context.workload.find(f"metadata {OWNERS}"):
        yield context.warning(
            path, "it is left out: a cluster deletes an object whose owner is not there"
        )
    for path in context.workload.find(f"spec runPolicy {TIME_TO_LIVE}"):
        yield context.warning(
            path,
            "it is left out: `pulumi up` would start a job again that it has deleted; a job that has ended"
            " holds no node",
        )


def without_identity(metadata: Any) -> Mapping[str, Any]:
    """Metadata of an object that is to be created."""
    given = metadata if isinstance(metadata, Mapping) else {}
    return {name: value for name, value in given.items() if name not in IDENTITY or not value}


def without_time_to_live(spec: Mapping[str, Any]) -> Spec:
    """The spec of a job that nothing deletes when it has ended (docs/decisions/0037). Files could set the
    field before this was decided, so it is part of the identity of a run: call it after that."""
    policy = spec.get("runPolicy")
    if not isinstance(policy, Mapping) or TIME_TO_LIVE not in policy:
        return dict(spec)
    kept = {name: value for name, value in policy.items() if name != TIME_TO_LIVE}
    return {**spec, "runPolicy": kept}
