"""Names that the stack gives: claims of its stores, and its runtimes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.manifests.context import ManifestContext
from trainyard.manifests.document import look
from trainyard.manifests.names.around import Around
from trainyard.objects.iam.secrets import DRIVER
from trainyard.problems import InputError, one_of, write_one_of

CLUSTER_RUNTIME = "ClusterTrainingRuntime"
RUNTIMES = (CLUSTER_RUNTIME, "TrainingRuntime")


def given_problems(contexts: Sequence[ManifestContext], around: Around) -> Iterator[InputError]:
    """The error of each claim, each volume of the driver of secrets and each runtime that the stack does not
    give."""
    for context in contexts:
        yield from _claims(context, around)
        yield from _secrets(context)
        yield from _runtime(context, around)


def _claims(context: ManifestContext, around: Around) -> Iterator[InputError]:
    for path in context.workload.find("** persistentVolumeClaim claimName"):
        if (claim := str(context.get(*path))) not in around.claims:
            stores = one_of(
                around.environment.storage, "a store that you add to environment.storage"
            )
            fix = f"write claims: {{{claim}: …}} into the job's entry, with {stores}"
            yield context.error(path, "be a claim that has a store", claim, fix)


def _secrets(context: ManifestContext) -> Iterator[InputError]:
    """Volumes of the driver of secrets, which find no class: a file cannot bring one, and pods need a
    role that an entry asks for."""
    for path in context.workload.find("** volumes * csi driver"):
        if context.get(*path) == DRIVER:
            yield context.error(
                path,
                "not be the driver of secrets: a job of a file has no SecretProviderClass",
                DRIVER,
                "write the job as an entry of the stack file, with secrets: {HF_TOKEN: {secrets_manager:"
                " vision/hf-token, key: token}}; or delete the volume, and take the value from a Secret of Kubernetes:"
                " valueFrom: {secretKeyRef: {name: hf-token, key: token}}",
            )


def _runtime(context: ManifestContext, around: Around) -> Iterator[InputError]:
    kind = JOB_KINDS.get(context.workload.kind)
    if kind is None or not kind.has_runtime:
        return
    reference, trainer = context.get("spec", "runtimeRef"), around.environment.trainer
    ours = (*trainer.runtimes, *trainer.own_runtimes)
    named, name = look(reference, "kind") or CLUSTER_RUNTIME, look(reference, "name")
    if (named, name) not in {(CLUSTER_RUNTIME, each) for each in ours} and (
        not around.has(named, str(name))
    ):
        must = "be a runtime of the file or of the environment"
        fix = write_one_of(ours, "add one under environment.trainer.runtimes")
        other = next(
            (each for each in RUNTIMES if each != named and around.has(each, str(name))), ""
        )
        if name in ours:
            fix = f"write kind: {CLUSTER_RUNTIME}, which is the kind of the environment's {name}"
        elif other:
            fix = f"write kind: {other} beside it, which is the kind of {name} in the file"
        yield context.error(("spec", "runtimeRef", "name"), must, name, fix)
