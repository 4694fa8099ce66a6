"""Values of a TrainJob over those of its runtime: some are merged, and others take the place of all
that was there.

Sources: Kubeflow Trainer at v2.1.0 and v2.3.0, pkg/runtime: plugins/jobset/builder.go, plugins/torch/torch.go,
plugins/mpi/mpi.go and core/trainingruntime.go. Variables are merged by name, in both releases."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from trainyard.catalog.quantities import amount
from trainyard.derive.scripts import launches
from trainyard.derive.shell import text_at
from trainyard.manifests.context import ManifestContext
from trainyard.manifests.document import JOBS, STEP, TRAINER, Container, items, look, mapping, words
from trainyard.problems import InputError, InputWarning

RESOURCES = (*TRAINER, "resourcesPerNode")
PARTS = ("limits", "requests")
NAME = "node"
"""The container of a runtime that gets the values of a TrainJob's trainer."""


def lost_resources(context: ManifestContext) -> Iterator[InputError | InputWarning]:
    """Resources of the runtime that resourcesPerNode leaves out. On nodes without GPUs that is meant."""
    own = context.get(*RESOURCES)
    if not isinstance(own, Mapping) or (context.pool_type and not context.pool_type.gpus):
        return
    lost = _lost(context, own)
    gpus = next((name for name in lost if _is_gpu(name) and amount(lost[name])), None)
    if context.trainer_minor < (2, 3) and any(own.get(part) is not None for part in PARTS):
        yield from _replaced(context, lost, gpus)
    elif gpus and _counted(context) and not any(map(_is_gpu, _amounts(own))):
        yield _miscounted(context, gpus, lost[gpus])


def _lost(context: ManifestContext, own: Mapping[str, Any]) -> dict[str, Any]:
    """Resource of the runtime that is not in `own` → how much of it."""
    of_runtime = _amounts(*(each.body.get("resources") for each in _given_resources(context)))
    return {name: of_runtime[name] for name in sorted(of_runtime.keys() - _amounts(own).keys())}


def _replaced(
    context: ManifestContext, lost: Mapping[str, Any], gpus: str | None
) -> Iterator[InputError | InputWarning]:
    """Trainer 2.1 puts resourcesPerNode in the place of all resources of the runtime."""
    listed = ", ".join(f"{name}: {value}" for name, value in lost.items())
    if lost and gpus is None:
        yield context.warning(
            RESOURCES,
            f"resourcesPerNode takes the place of all resources of the runtime, so pods lose {listed};"
            " write it here too, if they need it",
        )
    if gpus is None:
        return
    yield context.error(
        RESOURCES,
        f"list the GPUs of its runtime too: {context.controller} puts it in the place of all resources"
        " there, so pods get no GPU",
        ", ".join(_amounts(context.get(*RESOURCES))),
        f"add {listed} to its limits",
    )


def _miscounted(context: ManifestContext, gpus: str, count: Any) -> InputError:
    """Pods keep their GPUs, and get a number of processes that has nothing to do with them."""
    own = mapping(context.get(*RESOURCES))
    cpus = next(filter(None, (amount(look(own, part, "cpu")) for part in reversed(PARTS))), 1)
    started = max(1, math.ceil(cpus)) if context.policy("mpi") is None else 1
    return context.error(
        RESOURCES,
        f"list the GPUs of its runtime too: {context.controller} counts processes by this field alone,"
        f" and starts {started} on the {count} GPUs of a pod",
        ", ".join(_amounts(own)) or "nothing",
        f"add {gpus}: {count} to its limits",
    )


def _counted(context: ManifestContext) -> bool:
    """True where the Trainer counts processes, and a start goes by its number: neither job nor
    runtime says how many."""
    wanted = context.get(*TRAINER, "numProcPerNode")
    if context.policy("mpi") is not None:
        return wanted is None and context.policy("mpi", "numProcPerNode") in (None, 1)
    if context.policy("torch") is None:
        return False
    given = context.policy("torch", "numProcPerNode") if wanted is None else wanted
    starts = [each.script for each in (*context.workload.containers, *_trained(context))]
    found = [launch for script in starts for launch in launches(script)]
    return given in (None, "auto") and not (found and all(launch.ranks for launch in found))


def request_over_limit(context: ManifestContext) -> Iterator[InputError]:
    """A request above the runtime's limit, which stays from Trainer 2.3 on: the API server refuses every
    pod."""
    own = mapping(context.get(*RESOURCES))
    if context.trainer_minor < (2, 3) or not own:
        return
    for container in _given_resources(context):
        limits = mapping(look(container.body, "resources", "limits"))
        for name, request in mapping(own.get("requests")).items():
            limit = None if name in mapping(own.get("limits")) else limits.get(name)
            if (most := amount(limit)) is not None and (amount(request) or 0) > most:
                yield context.error(
                    (*RESOURCES, "requests", str(name)),
                    f"be at most the limit of its runtime, {limit}, which stays: the API server refuses"
                    " the pods",
                    request,
                    f"add {name}: {request} to limits here",
                )


def arguments_stay(context: ManifestContext) -> Iterator[InputWarning]:
    """A command over the runtime's, whose arguments stay behind it. A shell's own text ignores them."""
    command = words(context.get(*TRAINER, "command"))
    if not command or context.get(*TRAINER, "args") is not None:
        return
    if text_at((*command, "a text from args")) is not None:
        return
    for container in _trained(context):
        if args := words(container.body.get("args")):
            yield context.warning(
                (*TRAINER, "command"),
                f"the runtime's args stay behind this command: {' '.join(args)[:60]}; write the args that it"
                " needs here, which take the place of those",
            )


_TERMS = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
REPLACED = (("tolerations",), (*_TERMS, "nodeSelectorTerms"))
"""Lists of pods that an override puts in the place of the runtime's; others are merged by a name
(k8s.io/api v0.34, core/v1 types.go: no patchMergeKey)."""


def replaced_arguments(context: ManifestContext) -> Iterator[InputWarning]:
    """Arguments in the place of the runtime's, which are not merged."""
    own = words(context.get(*TRAINER, "args"))
    for container in _trained(context) if own and not context.get(*TRAINER, "command") else ():
        lost = [word for word in words(container.body.get("args")) if word not in own]
        if lost:
            yield context.warning(
                (*TRAINER, "args"),
                f"args takes the place of the runtime's args, so the program loses {' '.join(lost)[:160]};"
                " write it here too, if it needs it",
            )


def lost_lists(context: ManifestContext) -> Iterator[InputWarning]:
    """Entries of the runtime's lists that an override does not repeat."""
    for pod in context.workload.pods:
        if pod.role != "override":
            continue
        for field in REPLACED:
            own = items(look(pod.spec, *field))
            lost = [
                each
                for base in context.runtime_pods
                if base.role in pod.jobs
                for each in items(look(base.spec, *field))
                if each not in own
            ]
            if own and lost:
                listed = "; ".join(_shown(each) for each in lost)
                every = ", in each term" if field[-1] == "nodeSelectorTerms" else ""
                yield context.warning(
                    (*pod.path, *field),
                    f"{field[-1]} takes the place of the runtime's list, so pods lose {listed[:160]}; if they"
                    f" need it, write it here too{every}",
                )


def clashing_volumes(context: ManifestContext) -> Iterator[InputError]:
    """A volume of an override with the name and not the kind of one of its runtime: the merged one has both
    kinds."""
    for pod in context.workload.pods:
        bases = [base for base in context.runtime_pods if base.role in pod.jobs]
        theirs = {
            str(volume.get("name")): {*volume} - {"name"}
            for base in bases
            for volume in items(base.spec.get("volumes"))
        }
        for number, volume in enumerate(items(pod.spec.get("volumes"))):
            name, kinds = str(volume.get("name")), {*volume} - {"name"}
            if kinds and theirs.get(name, kinds) != kinds:
                both = " and ".join(sorted({*theirs[name], *kinds}))
                yield context.error(
                    (*pod.path, "volumes", number, "name"),
                    f"not be the name of a volume of the runtime, with which it is merged into {both}: the API"
                    " server refuses a volume of two kinds",
                    name,
                    f"write another name, such as my-{name}",
                )


def _shown(value: Any) -> str:
    """A value as YAML writes it on one line."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {_shown(each)}' for key, each in value.items())}}}"
    return f"[{', '.join(map(_shown, value))}]" if isinstance(value, list) else str(value)


def _trained(context: ManifestContext, *more: str) -> list[Container]:
    """Containers of the runtime that get the values of the trainer. `more`: names of other jobs that
    do."""
    jobs = items(look(context.runtime, *JOBS))
    names = {str(job.get("name")) for job in jobs if look(job, *STEP) == "trainer"} | {*more}
    return [
        each
        for pod in context.runtime_pods
        for each in pod.containers
        if pod.role in names and each.body.get("name") == NAME
    ]


def _given_resources(context: ManifestContext) -> list[Container]:
    """Containers that get its resources: with MPI the nodes beside the launcher, too."""
    return _trained(context, *([NAME] if context.policy("mpi", "runLauncherAsNode") else []))


def _amounts(*resources: Any) -> dict[str, Any]:
    """Resource → its limit, or else its request, of the first that has it."""
    found: dict[str, Any] = {}
    for each in resources:
        for part in PARTS:
            found = {**mapping(look(each, part)), **found}
    return found


def _is_gpu(name: str) -> bool:
    """True where the Trainer takes the resource for GPUs (runtime.go, numGPU)."""
    return "gpu" in name.lower()
