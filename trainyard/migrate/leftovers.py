"""Fields of a file that are neither in the entry of its job nor named otherwise: each of them with
its line. `trainyard migrate` prints them, so nothing is lost silently."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.manifests.document import REPLICAS, Path, Workload, look
from trainyard.migrate.printed import Printed
from trainyard.migrate.replicas import alike
from trainyard.migrate.secrets_left_out import NOT_SHOWN
from trainyard.migrate.training import Training
from trainyard.settings.reading.secrets.secrets import HIDDEN

SAME_FOR_ALL = (*("apiVersion", "kind", "** containers * name", "spec runtimePatches * manager"),)
"""Fields that say the same of every job, or only link other fields of it: the kind of an object, the name
of the container that trains, and who writes a patch."""
USUAL = {
    "kind": "ClusterTrainingRuntime",
    "apiGroup": "trainer.kubeflow.org",
}
"""Field of a runtimeRef → value that it has without a word, too."""
RUNTIME = ": of the runtime; environment.trainer.own_runtimes describes runtimes"
TRAINING_JOBS = {"node", "launcher"}
"""Replicated jobs whose pods become the entry."""


def differences(job: Workload, trains: Training, named: Collection[Path]) -> list[str]:
    """A sentence for each pod of a job that is not like the one that becomes the entry. `named`: paths of
    fields that have a sentence."""
    return [
        *_differences(job, trains, named),
        *(
            f"{job.where(*pod.path)}: for the pods of {', '.join(other_jobs)}, and the entry has none"
            for pod in job.pods
            if (other_jobs := sorted({*pod.jobs} - TRAINING_JOBS))
        ),
    ]


def left_over(
    job: Workload,
    trains: Training,
    others: Sequence[Workload],
    named: Collection[Path],
    said: Printed,
) -> list[str]:
    """A line for each field of a job, its runtime and its ConfigMaps that is not printed otherwise, and for
    each other object. `trains`: what becomes the entry. `others`: objects of its files. `named`: paths of
    fields that have a sentence. `said`: what is printed of the job."""
    beside = [it for it in others if it.kind not in JOB_KINDS and it is not trains.runtime]
    mounted = [other for other in beside if _is_mounted(other, job, others)]
    of_files = [
        (job, named, ""),
        *((runtime, (), RUNTIME) for runtime in filter(None, [trains.runtime])),
        *((config_map, (), ": of the ConfigMap") for config_map in mounted),
    ]
    jobs = [other for other in (job, *others) if other.kind in JOB_KINDS]
    return [
        *(
            f"{workload.where(*path)}: {_short(value)}{words}"
            for workload, explained, words in of_files
            for path, value in _not_in_entry(workload, explained, said)
        ),
        *(
            f"{other.kind or 'object'} {other.name} [{other.file}:{other.at('kind').line}]:"
            f" no part of an entry; {_instead_of(other)}"
            for other in beside
            if other not in mounted and not _is_referred_to(other, jobs)
        ),
    ]


def _instead_of(other: Workload) -> str:
    """Advice about an object that is no part of an entry."""
    if other.kind == "TrainingRuntime":
        return "environment.trainer.own_runtimes describes runtimes"
    return "create it with kubectl where the stack has no such object"


def _is_referred_to(runtime: Workload, jobs: Sequence[Workload]) -> bool:
    """True where an object is the runtime of a job; a fragment without a kind counts as any."""
    if runtime.kind != "TrainingRuntime":
        return False
    names = [str(job.get("spec", "runtimeRef", "name")) for job in jobs]
    return "kind" not in runtime.body or runtime.name in names


def _not_in_entry(
    workload: Workload, named: Collection[Path], said: Printed
) -> Iterator[tuple[Path, Any]]:
    """(path, value) of fields; what is not in the entry as a whole comes as a whole, and what replicas have alike
    comes once."""
    same = {path for pattern in SAME_FOR_ALL for path in workload.find(pattern)}
    same |= {
        path
        for path in workload.find("spec runtimeRef *")
        if workload.get(*path) == USUAL.get(str(path[-1]))
    }
    same |= {
        path
        for path in workload.find("** replicatedJobs * name")
        if workload.get(*path) in TRAINING_JOBS
    }
    if workload.kind not in JOB_KINDS:
        same |= {*workload.find("metadata namespace")}
    leaves = (path for path, _ in _leaves(workload.body) if not _is_below(path, named))
    covered = same | {path for path in leaves if path not in same and said.has(workload, path)}
    seen = set[Path]()
    for path in _missing(workload.body, (), covered, named):
        if path not in seen:
            yield path, workload.get(*path)
        seen |= {*alike(workload, path)}


def _is_below(path: Path, named: Collection[Path]) -> bool:
    return any(path[:length] in named for length in range(1, len(path) + 1))


def _missing(
    value: Any, path: Path, covered: Collection[Path], named: Collection[Path]
) -> list[Path]:
    if path in named or value is None:
        return []
    inside = dict(enumerate(value)) if isinstance(value, list) else value
    if not inside or not isinstance(inside, dict):
        return [] if path in covered else [path]
    below = {
        (*path, step): _missing(inside[step], (*path, step), covered, named) for step in inside
    }
    if len(path) > 1 and _is_whole(below):
        return [path]
    return list(chain.from_iterable(below.values()))


def _is_whole(below: Mapping[Path, Sequence[Path]]) -> bool:
    """True where none of the values in a value is in the entry. A name alone is no value of an item: with
    another one the item would be another. `below`: path of each value → paths that are missing."""
    values = {step: found for step, found in below.items() if step[-1] != "name"} or below
    return all([*found] == [step] for step, found in values.items())


def _leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value that has no values inside it."""
    if isinstance(value, list):
        value = dict(enumerate(value)) or value
    if value and isinstance(value, dict):
        for step, each in value.items():
            yield from _leaves(each, (*path, step))
    elif value is not None:
        yield path, value


def _differences(job: Workload, trains: Training, named: Collection[Path]) -> Iterator[str]:
    """Differences of another replica's pods from those that become the entry: the entry makes all
    alike. Devices, CPU and memory count although resources have a sentence."""
    ours = trains.pod
    for pod in job.pods:
        if pod.path == ours.path or pod.path[: len(REPLICAS)] != REPLICAS:
            continue
        roots = [each.path[:-1] for each in (ours, pod)]
        values, others = (look(job.body, *root) for root in roots)
        for path in _unlike(values, others):
            places = [(*root, *path) for root in roots]
            is_named = any(_is_below(place, named) for place in places) and "resources" not in path
            if not is_named and not _is_variable(job, places[1], trains):
                said = _compared(look(values, *path), look(others, *path), ours.role, pod.role)
                yield f"{job.where(*places[1])}: {said}: the pods of an entry are all like {ours.role}"


def _unlike(one: Any, other: Any) -> list[Path]:
    """Paths at which two pods differ, one for each thing: what only one of them has counts as a whole, and a volume
    with its mounts."""
    leaves, others = dict(_leaves(one)), dict(_leaves(other))
    unlike = [path for path in {**leaves, **others} if leaves.get(path) != others.get(path)]
    things = [*dict.fromkeys(_thing(path, one, other) for path in unlike)]
    volumes = {name for path in things if "volumes" in path for name in _names(path, one, other)}
    return [
        path
        for path in things
        if "volumeMounts" not in path or not volumes.issuperset(_names(path, one, other) or {""})
    ]


def _thing(path: Path, one: Any, other: Any) -> Path:
    """The path of the whole of which a value is a part, where only one pod has it; otherwise the path itself. An
    object with one field is that field."""
    for length in range(1, len(path)):
        sides = [look(each, *path[:length]) for each in (one, other)]
        whole = next((each for each in sides if each is not None), None)
        if None in sides and not (isinstance(whole, dict) and len(whole) == 1):
            return path[:length]
    return path


def _names(path: Path, one: Any, other: Any) -> set[str]:
    """Names of the items that only one pod has at a path, of volumes or mounts; none where both have it."""
    sides = [look(each, *path) for each in (one, other)]
    whole = next((each for each in sides if each is not None), None)
    listed = whole if isinstance(whole, list) else [whole]
    if None not in sides:
        return set()
    return {str(each.get("name")) for each in listed if isinstance(each, dict)}


def _compared(value: Any, other: Any, role: str, other_role: str) -> str:
    """Words about a value of two roles."""
    if value is None or other is None:
        owner, whole = (other_role, other) if value is None else (role, value)
        listed = whole if isinstance(whole, list) else [whole]
        names = [str(each["name"]) for each in listed if isinstance(each, dict) and "name" in each]
        return f"only {owner} has {', '.join(names) or _short(whole)}"
    return f"{_short(other)} in {other_role}, {_short(value)} in {role}"


def _is_variable(job: Workload, path: Path, trains: Training) -> bool:
    """True where a path leads into a variable that the entry has."""
    if "env" not in path:
        return False
    return job.get(*path[: path.index("env") + 2]) in trains.variables


def _is_mounted(config_map: Workload, job: Workload, others: Sequence[Workload]) -> bool:
    """True where a volume of the job or its runtime is the ConfigMap."""
    return any(
        workload.get(*path) == config_map.name
        for workload in (job, *others)
        for path in workload.find("** volumes * configMap name")
    )


def _short(value: Any) -> str:
    if HIDDEN in str(value):
        return NOT_SHOWN
    return "nothing" if value is None else " ".join(str(value).split())[:60]
