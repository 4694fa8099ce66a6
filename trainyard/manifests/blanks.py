"""Blanks of a job file: places that hold a placeholder. Each is one error, and its value is unknown to all
rules.

A rule never sees a blank. The objects are judged several times, each time with other values in all blanks,
and once without them; what is said each time depends on no blank.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainyard.catalog.fields import Schema, resolved, schema
from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.derive.job_view import V1_ENV
from trainyard.derive.policies import RESERVED_ENV
from trainyard.manifests.document import Path, Workload, items, look, mapping, of_body, words
from trainyard.problems import InputError, InputWarning
from trainyard.settings.reading.placeholders import (
    WITHOUT_SHELL,
    is_placeholder,
    placeholder_error,
    placeholders,
    placeholders_of_value,
    placeholders_of_word,
    without,
)

Problems = list[InputError | InputWarning]
REMOVED = object()
COMMANDS = ("command", "args")
FREE_TEXT = ("data", "annotations", "description")
"""Fields of free text, in which a part that looks like a placeholder may be meant."""
GOOD: dict[str, tuple[Any, Any]] = {
    "image": ("registry.example.com/blank/a@sha256:" + "0" * 64, "a/b:1"),
    "restartPolicy": ("Never", "OnFailure"),
    "imagePullPolicy": ("Always", "IfNotPresent"),
    "cleanPodPolicy": ("Running", "None"),
    "operator": ("Exists", "In"),
    "effect": ("NoSchedule", ""),
    "medium": ("Memory", ""),
    "mountPath": ("/", "/blank-b"),
    "storageUri": ("hf://blank/a", "s3://blank/b/"),
    "containers": ("pytorch", "node"),
    "replicatedJobs": ("node", "launcher"),
    "args": ("rdzv-gloo", "blank"),
    "command": ("bash", "blank"),
    "runtimeRef": ("torch-distributed", "deepspeed-distributed"),
}
"""Field, or the list whose items have the name → two values that are sound there."""
MEANS = {"volumes": "volumeMounts", "volumeMounts": "volumes"}
"""List of named items → the list whose items name them."""
MARKS = ("blank-a", "blank-b")
"""Values of a text about which nothing else is known."""
SHAPES = {
    "pytorchReplicaSpecs": "PyTorchJob",
    "runtimeRef": "TrainJob",
    "mlPolicy": "TrainingRuntime",
}
"""Field of a spec → the kind of its object."""
VARIANTS = 3
OWN_NAME = ("metadata", "name")
"""Place of the name by which others of the file know the object."""


@dataclass(frozen=True, kw_only=True)
class Blank:
    """A placeholder in an object."""

    path: Path
    """Place of the value, or of the key."""
    text: str
    is_key: bool = False
    is_part: bool = False
    """Something stands around it."""

    @property
    def shown(self) -> Path:
        """Place of the error: a command as a whole, and a variable by its name."""
        for field in COMMANDS:
            if field in self.path:
                return self.path[: self.path.index(field) + 1]
        is_variable = self.path[-3:-2] == ("env",) and self.path[-1] == "value"
        return (*self.path[:-1], "name") if is_variable else self.path


def blanks_of(workload: Workload) -> list[Blank]:
    """Every blank of an object."""
    return [*_blanks(workload.body, ())]


def blank_errors(workload: Workload, *, scripts: bool = True) -> Iterator[InputError]:
    """The error of each blank, once where an alias repeats it or a command has it twice. `scripts`: also
    those in commands and variables, of which a rule of all jobs speaks."""
    seen = set[tuple[int, Path, str]]()
    for blank in blanks_of(workload):
        place = workload.at(*blank.shown)
        key = (place.line, blank.shown[-3:] if place.line else blank.shown, blank.text)
        if (scripts or not {*COMMANDS, "env"} & {*blank.path}) and key not in seen:
            seen.add(key)
            yield placeholder_error(place, blank.text)


def agreed(
    workloads: Sequence[Workload], judge: Callable[[Sequence[Workload]], Problems]
) -> Problems:
    """The errors of all blanks, and what `judge` says whatever their values are."""
    errors = [error for workload in workloads for error in blank_errors(workload)]
    if not errors:
        return judge(workloads)
    known = [workload for workload in workloads if _shape(workload)]
    first, *others = (
        judge([filled(workload, number) for workload in known]) for number in range(VARIANTS)
    )
    said = [{*map(str, problems)} for problems in others]
    places = {error.where for error in errors}
    same = [each for each in first if all(str(each) in texts for texts in said)]
    return [*errors, *(each for each in same if each.where not in places)]


def _blanks(value: Any, path: Path) -> Iterator[Blank]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _of_entry(value, key, item, path)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _blanks(item, (*path, number))
    elif isinstance(value, str):
        free = {*FREE_TEXT, *COMMANDS} & {*path} or path[-3:-2] == ("env",)
        if is_placeholder(value):
            yield Blank(path=path, text=value.strip())
            return
        for text in (placeholders if free else placeholders_of_value)(value):
            yield Blank(path=path, text=text, is_part=True)


def _of_entry(holder: Mapping[Any, Any], key: Any, item: Any, path: Path) -> Iterator[Blank]:
    """Blanks in the key or the value of an entry of a map."""
    in_key = [] if {*FREE_TEXT} & {*path} else placeholders_of_value(str(key))
    if in_key:
        yield from (Blank(path=(*path, key), text=text, is_key=True) for text in in_key)
    elif key in COMMANDS and isinstance(item, list):
        yield from _in_command(item, (*path, key), holder)
    else:
        yield from _blanks(item, (*path, key))


def _variables(container: Mapping[str, Any]) -> set[str]:
    """Variables that a container sets, or that may be set for it."""
    return {str(each.get("name")) for each in items(container.get("env"))} | {
        *RESERVED_ENV,
        *V1_ENV,
    }


def _in_command(
    command: Sequence[Any], path: Path, container: Mapping[str, Any]
) -> Iterator[Blank]:
    """Blanks of a command or its arguments."""
    has_shell, names = _may_be_read_by_a_shell(container), _variables(container)
    for number, word in enumerate(command):
        at, text = (*path, number), str(word)
        if is_placeholder(text) and not text.startswith("$"):
            yield Blank(path=at, text=text)
            continue
        if text[:1] == "$" and is_placeholder(text) and text.strip("${}") not in names:
            yield Blank(path=at, text=text)  # a shell that runs a variable which nobody sets
            continue
        found = placeholders(text) if has_shell else placeholders_of_word(text)
        if not has_shell:
            used = ((each[0], each[1] or each[2]) for each in WITHOUT_SHELL.finditer(text))
            found += [written for written, name in used if name not in names]
        yield from (Blank(path=at, text=each, is_part=True) for each in found)


def _may_be_read_by_a_shell(container: Mapping[str, Any]) -> bool:
    """True where $NAME in its words may be a variable: of a shell, or of an entrypoint that nobody knows."""
    all_words = [*words(container.get("command")), *words(container.get("args"))]
    if not container.get("command") or container.get("envFrom") or "-c" in all_words:
        return True
    return is_placeholder(all_words[0]) or all_words[0].endswith("sh")


def filled(workload: Workload, number: int) -> Workload:
    """The object with other values in its blanks; with the last number, without them."""
    blanks = blanks_of(workload)
    if not blanks:
        return workload
    body = copy.deepcopy(dict(workload.body))
    form = _form(workload)
    for blank in sorted(blanks, key=lambda each: each.is_key):
        _put(body, blank, _value(workload, form, blank, number))
        if number == 0 and blank.path[-3:-2] == ("env",) and blank.path[-1] == "name":
            _add_variables(body, blank.path[:-2])
    there = {path: line for path, line in workload.lines.items() if look(body, *path) is not None}
    return replace(of_body(body), file=workload.file, lines=there)


def _form(workload: Workload) -> Schema:
    return schema(_shape(workload), (2, 1))


def _shape(workload: Workload) -> str:
    """The kind of an object; where it is a blank, the kind that its fields show, or nothing."""
    if not placeholders_of_value(str(workload.get("kind"))):
        return workload.kind
    spec = mapping(workload.get("spec"))
    shown = next((kind for field, kind in SHAPES.items() if field in spec), "")
    return shown or ("ConfigMap" if "data" in workload.body else "")


def _value(workload: Workload, form: Schema, blank: Blank, number: int) -> Any:
    """A value for a blank."""
    path = blank.path
    if path in (("kind",), ("apiVersion",)):
        return _shape(workload) if path == ("kind",) else _served(workload)
    if blank.is_part and (path != OWN_NAME or number < VARIANTS - 1):
        text = str(look(workload.body, *path))
        return _part(text, ("8", "x", "1")[number], {*COMMANDS} & {*path})
    if number == VARIANTS - 1 and not isinstance(path[-1], int):
        return REMOVED
    numbers = {"boolean": (False, True, True), "": ()} | dict.fromkeys(
        ("integer", "quantity", "int-or-string"), (8, 1, 2)
    )
    known = numbers.get(_type(form, path), ())
    return known[number] if known else _text(workload, path, number)


def _served(workload: Workload) -> str:
    kind = JOB_KINDS.get(_shape(workload), JOB_KINDS["TrainJob"])
    return "v1" if _shape(workload) == "ConfigMap" else kind.api_version


def _text(workload: Workload, path: Path, number: int) -> str:
    """A text for a blank about which the place says something."""
    field = str(path[-1] if isinstance(path[-1], str) else path[-2])
    if field == "name" and len(path) > 2:
        field = str(path[-2] if isinstance(path[-2], str) else path[-3])
    if number == 0 and field in MEANS and (missing := _missing(workload, field)):
        return missing
    return GOOD.get(field, MARKS)[number % 2]


def _missing(workload: Workload, field: str) -> str:
    """A name that the other half of the pods has, and this one lacks: that of a volume, or of a mount."""
    ours, theirs = (
        {str(workload.get(*path)) for path in workload.find(f"** {each} * name")}
        for each in (field, MEANS[field])
    )
    return min((name for name in theirs - ours if not is_placeholder(name)), default="")


def _part(text: str, instead: str, in_command: Collection[str]) -> str:
    text = without(text, instead, free=bool(in_command))
    return WITHOUT_SHELL.sub(instead, text) if in_command else text


def _type(form: Schema, path: Path) -> str:
    for step in path:
        form = resolved(form)
        known = mapping(form.get("properties"))
        form = known.get(step) or form.get("items") or form.get("additionalProperties") or {}
        if not isinstance(form, Mapping):
            return ""
    return str(resolved(form).get("type", "")) if form else ""


def _add_variables(body: Any, path: Path) -> None:
    """Set every variable that a container's words use, since the name of one is a blank."""
    container = look(body, *path[:-1])
    text = " ".join(map(str, (container.get("command"), container.get("args"))))
    names = dict.fromkeys(re.findall(r"\$[{(]?([A-Za-z_]\w*)", text))
    there = {each.get("name") for each in items(container["env"])}
    container["env"] += [{"name": name, "value": "1"} for name in names if name not in there]


def _put(body: Any, blank: Blank, value: Any) -> None:
    *way, last = blank.path
    for step in way:
        body = look(body, step)
        if body is None:
            return  # a blank above it is gone
    if value is REMOVED or blank.is_key:
        kept = body.pop(last, None)
        if blank.is_key and value is not REMOVED:
            body[value if isinstance(value, str) else MARKS[0]] = kept
    else:
        body[last] = value
