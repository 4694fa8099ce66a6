"""YAML files of training jobs, read into workloads that know the line of every value; judged in
rules.py."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import chain
from typing import Any

from trainyard.catalog.job_kinds import JOB_KINDS, MORE_KINDS
from trainyard.derive.scripts import script_of
from trainyard.objects.jobs.pod_template import GPU
from trainyard.objects.jobs.runtime_objects import ANCESTOR
from trainyard.problems import At, InputError
from trainyard.settings.reading.yaml_file import Document, Path, read_documents

JOBS: Path = ("spec", "template", "spec", "replicatedJobs")
POD: Path = ("template", "spec", "template", "spec")
"""From a replicated job to its pods."""
STEP: Path = ("template", "metadata", "labels", ANCESTOR)
"""From a replicated job to what it is to the Trainer."""
TRAINER: Path = ("spec", "trainer")
REPLICAS: Path = ("spec", "pytorchReplicaSpecs")
REPLICA_FIELDS = tuple(kind.replicas for kind in JOB_KINDS.values() if kind.replicas)
"""Fields of the spec of a job of the training-operator that have the pods of each role."""


@dataclass(frozen=True, kw_only=True)
class Container:
    """A container, whatever kind of object describes it."""

    path: Path
    body: Mapping[str, Any]
    command: tuple[str, ...]
    """Command and arguments."""
    env: Mapping[str, str | None]
    """None: the value comes from elsewhere, such as a Secret."""

    @property
    def script(self) -> str:
        """Script of the container, as text: what follows a shell's -c, or the whole command."""
        return script_of(self.command)

    def amount(self, resource: str) -> int:
        """Amount of an extended resource, from limits or else requests."""
        found = [
            str(look(self.body, "resources", part, resource)) for part in ("limits", "requests")
        ]
        return next((int(each) for each in found if each.isdecimal()), 0)

    def requests(self) -> dict[str, tuple[str, Path]]:
        """Resource → what the container requests of it, and where that stands: a limit without a
        request is one."""
        return {
            str(resource): (str(written), self.at("resources", part, str(resource)))
            for part in ("limits", "requests")
            for resource, written in mapping(look(self.body, "resources", part)).items()
        }

    def at(self, *path: str | int) -> Path:
        """Path of a value of the container in its object; a TrainJob calls its trainer's resources
        otherwise."""
        other = {"resources": "resourcesPerNode"} if self.path == TRAINER else {}
        return (*self.path, *(other.get(str(step), step) for step in path))

    @property
    def runs(self) -> Path:
        """Path of its script: arguments behind the text of a shell are not in it."""
        command = words(self.body.get("command"))
        has_text = len(command) > 1 and script_of(command) != " ".join(command)
        return self.at("args" if self.body.get("args") and not has_text else "command")

    def option(self, name: str) -> Path:
        """Path of an option of its launcher, which may stand in the command where `runs` is the arguments.
        `name`: with underscores, such as nproc_per_node."""
        command = words(self.body.get("command"))
        is_there = any(each.lstrip("-").replace("-", "_").startswith(name) for each in command)
        return self.at("command") if is_there else self.runs


@dataclass(frozen=True, kw_only=True)
class Pod:
    """A pod template, or what a TrainJob says of one."""

    role: str
    """Master or Worker; of a runtime, the replicated job; of a TrainJob, trainer or override."""
    path: Path
    jobs: tuple[str, ...]
    """The replicated jobs that an override is for."""
    nodes: int | None
    """Number of such pods; None where something else decides."""
    spec: Mapping[str, Any]
    containers: tuple[Container, ...]

    @property
    def init_containers(self) -> tuple[Container, ...]:
        """Containers that run before the others, by what they request and mount."""
        bodies = enumerate(items(self.spec.get("initContainers")))
        return tuple(_container(body, (*self.path, "initContainers", n)) for n, body in bodies)


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """Requirement of a selector for a node's label, in the words of node affinity."""

    path: Path
    label: str
    operator: str
    values: tuple[str, ...]

    def can_hold(self, labels: Mapping[str, Set[str] | None]) -> bool:
        """True where a node can fit the requirement. `labels`: label of the nodes → its values,
        None where they are not known."""
        if self.operator == "DoesNotExist" or self.label not in labels:
            return (
                self.label not in labels
                if self.operator == "DoesNotExist"
                else self.operator == "NotIn"
            )
        there = labels[self.label]
        return there is None or any(self._fits(value) for value in there)

    def _fits(self, value: str) -> bool:
        if self.operator in ("Gt", "Lt"):
            numbers = [int(each) for each in (value, *self.values) if each.isdecimal()]
            return len(numbers) == 2 and (
                numbers[0] > numbers[1] if self.operator == "Gt" else numbers[0] < numbers[1]
            )
        return {"In": value in self.values, "NotIn": value not in self.values}.get(
            self.operator, True
        )

    def __str__(self) -> str:
        wanted = ", ".join(self.values)
        return wanted if self.operator == "In" else f"{self.operator} {wanted or self.label}"


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One object of a file."""

    file: str
    kind: str
    """TrainingRuntime for a ClusterTrainingRuntime too, and for a fragment, which has no kind of
    its own."""
    name: str
    body: Mapping[str, Any]
    pods: tuple[Pod, ...]
    lines: Mapping[Path, int]

    def at(self, *path: str | int) -> At:
        """Path, file and line of a value, as a problem names them; the line of the nearest value
        above where there is none."""
        known = next((path[:n] for n in range(len(path), -1, -1) if path[:n] in self.lines), None)
        shown = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
        line = self.lines[known] if known is not None else 0
        return At(shown.lstrip("."), self.file, line)

    def where(self, *path: str | int) -> str:
        """Place of a value in the file, as text."""
        return self.at(*path).where

    def get(self, *path: str | int) -> Any:
        """The value at a path; None where there is none."""
        return look(self.body, *path)

    @property
    def replicas(self) -> Any:
        """The pods of each role of a job of the training-operator; None of any other object."""
        kind = JOB_KINDS.get(self.kind)
        return self.get("spec", kind.replicas) if kind and kind.replicas else None

    @property
    def training_pods(self) -> tuple[Pod, ...]:
        """Its pods, but for launchers, schedulers and servers without GPUs where others have some."""
        if self.kind not in MORE_KINDS:
            return self.pods
        with_gpus = [pod for pod in self.pods if any(it.amount(GPU) for it in pod.containers)]
        return tuple(with_gpus) or self.pods

    @cached_property
    def containers(self) -> list[Container]:
        return [each for pod in self.pods for each in pod.containers]

    @cached_property
    def _steps(self) -> dict[str, Path]:
        return {" ".join(map(str, path)): path for path in self.lines}

    def find(self, pattern: str) -> list[Path]:
        """Paths of the values that there are; in a pattern, * is any step and ** any number of
        them."""
        shape = _shape(pattern)
        return [path for steps, path in self._steps.items() if shape.fullmatch(steps)]

    @cached_property
    def selectors(self) -> list[list[list[Requirement]]]:
        """Labels that nodes of its pods must have: of each selector the terms, of which a node fits
        one, all of it."""
        found = [
            [
                [
                    Requirement(
                        path=path,
                        label=str(path[-1]),
                        operator="In",
                        values=words(str(self.get(*path))),
                    )
                ]
            ]
            for path in self.find("** nodeSelector *")
        ]
        return found + [
            [self._term((*path, number)) for number, _ in enumerate(items(self.get(*path)))]
            for path in self.find("** nodeSelectorTerms")
        ]

    def _term(self, path: Path) -> list[Requirement]:
        path = (*path, "matchExpressions")
        return [
            Requirement(
                path=(*path, number, "key"),
                label=str(each.get("key")),
                operator=str(each.get("operator")),
                values=words(each.get("values")),
            )
            for number, each in enumerate(items(self.get(*path)))
        ]


@cache
def _shape(pattern: str) -> re.Pattern[str]:
    steps = {"*": r"\S+", "**": ".+"}
    return re.compile(" ".join(steps.get(step) or re.escape(step) for step in pattern.split()))


def read_manifest(text: str, file: str) -> tuple[tuple[Workload, ...], tuple[InputError, ...]]:
    """Every object of a file, also in lists, and what is wrong with the file itself."""
    documents, errors = read_documents(text, file)
    secrets = [
        secret.error(_workload(document).at(*secret.path), of_object=True)
        for document in documents
        for secret in document.secrets
    ]
    objects = chain.from_iterable(map(_opened, documents))
    return tuple(_workload(each) for each in objects if mapping(each.value)), (*secrets, *errors)


def _opened(document: Document) -> Iterator[Document]:
    """The document, or the items of a list, each with the lines that it has in the file. kubectl prints several
    objects as a List (kubernetes/kubectl, pkg/cmd/get/get.go). The API server answers with a list such as
    PyTorchJobList, whose items have no kind."""
    body = mapping(document.value)
    kind, inside = str(body.get("kind")), body.get("items")
    if not kind.endswith("List") or not isinstance(inside, list):
        yield document
        return
    of_item = kind.removesuffix("List")
    known = {"apiVersion": body.get("apiVersion"), "kind": of_item} if of_item else {}
    for number, item in enumerate(items(inside)):
        at = ("items", number)
        lines = {path[2:]: line for path, line in document.lines.items() if path[:2] == at}
        yield from _opened(Document(file=document.file, value={**known, **item}, lines=lines))


def look(value: Any, *path: str | int) -> Any:
    """The value at a path below `value`; None where there is none or something of another shape."""
    for step in path:
        if isinstance(value, list) and isinstance(step, int):
            value = dict(enumerate(value))
        value = mapping(value).get(step)
    return value


def mapping(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, dict) else {}


def mount_path(mount: Mapping[str, Any]) -> str:
    """Path of a mount, with a slash at its end."""
    return f"{mount.get('mountPath')}/".replace("//", "/")


def items(value: Any) -> list[Mapping[str, Any]]:
    """The mappings of a list, in their places; an empty one for anything else in it."""
    return [mapping(item) for item in value] if isinstance(value, list) else []


def _workload(document: Document) -> Workload:
    made = of_body(mapping(document.value))
    lines = {
        path: line for path, line in document.lines.items() if look(made.body, *path) is not None
    }
    return replace(made, file=document.file, lines=lines)


def of_body(body: Mapping[str, Any]) -> Workload:
    """An object that no file has yet."""
    kind = str(body.get("kind", "TrainingRuntime" if "spec" in body else "")).removeprefix(
        "Cluster"
    )
    return Workload(
        file="",
        kind=kind,
        name=str(look(body, "metadata", "name") or ""),
        body=body,
        pods=tuple(pods_of(kind, body)),
        lines={},
    )


def pods_of(kind: str, body: Mapping[str, Any]) -> Iterator[Pod]:
    """The pods that the object describes; what a TrainJob says of its trainer comes first."""
    if kind == "TrainJob":
        trainer = mapping(look(body, *TRAINER))
        made = _container({**trainer, "resources": trainer.get("resourcesPerNode")}, TRAINER)
        yield Pod(
            role="trainer",
            path=TRAINER,
            jobs=(),
            nodes=trainer.get("numNodes"),
            spec={},
            containers=(made,),
        )
        for path in _each(body, "spec", "podTemplateOverrides"):
            targets = [str(each.get("name")) for each in items(look(body, *path, "targetJobs"))]
            yield _pod("override", None, body, (*path, "spec"), *targets)
        for path in _each(body, "spec", "runtimePatches"):
            for job in _each(body, *path, "trainingRuntimeSpec", *JOBS[1:]):
                yield _pod("override", None, body, (*job, *POD), str(look(body, *job, "name")))
    for field in REPLICA_FIELDS:
        for role, replica in mapping(look(body, "spec", field)).items():
            path = ("spec", field, role, "template", "spec")
            yield _pod(role, mapping(replica).get("replicas", 1), body, path)
    for job in _each(body, *JOBS):
        yield _pod(str(look(body, *job, "name")), None, body, (*job, *POD))


def _each(body: Mapping[str, Any], *path: str | int) -> list[Path]:
    return [(*path, index) for index, _ in enumerate(items(look(body, *path)))]


def _pod(role: str, nodes: Any, body: Mapping[str, Any], path: Path, *jobs: str) -> Pod:
    made = [_container(look(body, *at), at) for at in _each(body, *path, "containers")]
    return Pod(
        role=role,
        path=path,
        jobs=jobs,
        nodes=nodes,
        spec=mapping(look(body, *path)),
        containers=tuple(made),
    )


def _container(body: Any, path: Path) -> Container:
    env = {
        str(e.get("name")): None if "value" not in e else str(e["value"])
        for e in items(look(body, "env"))
    }
    return Container(
        path=path,
        body=mapping(body),
        env=env,
        command=(*words(look(body, "command")), *words(look(body, "args"))),
    )


def words(value: Any) -> tuple[str, ...]:
    """A list of words; a text in a list's place is one word, so that its script can be looked at
    too."""
    return (
        (value,)
        if isinstance(value, str)
        else tuple(map(str, value))
        if isinstance(value, list)
        else ()
    )
