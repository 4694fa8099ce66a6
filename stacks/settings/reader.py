"""The only place that reads a stack file: strictly, with all errors at once. What it may say:
environment.py."""

from __future__ import annotations

import copy
import difflib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pydantic
import yaml

from stacks.settings.aws import KEYS, PATTERNS, WAYS_OUT, AwsConfig
from stacks.settings.environment import EnvironmentConfig, StackConfig, TeamConfig
from stacks.settings.job import NO_SETTINGS, Name
from stacks.settings.problems import InputError
from stacks.settings.yaml_file import Document, Lines, read_documents


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A stack file as far as it could be read."""

    config: StackConfig | None
    """None where so much is wrong that nothing can be planned."""
    errors: tuple[InputError, ...]
    set_aside: frozenset[str] = frozenset()
    """Names of pools, stores and jobs that were left out because their own settings are wrong."""
    lines: Lines = Lines()


def read_file(stack: str, folder: Path = Path(".")) -> Reading:
    """Read Pulumi.<stack>.yaml without the engine. Raises FileNotFoundError for a stack without a
    file."""
    project, file = _project(folder), f"Pulumi.{stack}.yaml"
    documents, errors = read_documents((folder / file).read_text(), file)
    document = documents[0] if documents else Document(file=file)
    values = (document.value or {}).get("config") if _is_map(document.value) else document.value
    if errors or not _is_map(values):
        holds = InputError(
            path="",
            file=file,
            must="contain settings under `config:`",
            got=_shown(document.value),
            fix="copy Pulumi.dev.yaml",
        )
        return Reading(config=None, errors=errors or (holds,))
    reading = read(values or {}, stack=stack, project=project)
    return replace(reading, lines=_lines(document, project))


def _project(folder: Path) -> str:
    """The name of the Pulumi project."""
    return yaml.load((folder / "Pulumi.yaml").read_text(), yaml.CSafeLoader)["name"]


def _is_map(value: Any) -> bool:
    return value is None or isinstance(value, dict)


def _lines(document: Document, project: str) -> Lines:
    """Where the settings stand, by their paths in problems."""
    return Lines(
        file=document.file,
        of={
            ".".join(map(str, path[1:])).removeprefix(f"{project}:"): line
            for path, line in document.lines.items()
            if path[:1] == ("config",) and path[1:]
        },
    )


def read_engine() -> Reading:
    """Read the configuration the engine hands to this program."""
    import pulumi  # only here: `make check` needs no SDK

    values = {key: _decoded(text) for key, text in pulumi.runtime.config.CONFIG.get().items()}
    stack, project = pulumi.get_stack(), pulumi.get_project()
    reading = read(values, stack=stack, project=project)
    file = Path(f"Pulumi.{stack}.yaml")
    if not file.is_file():
        return reading
    documents, _ = read_documents(file.read_text(), file.name)
    return replace(reading, lines=_lines(documents[0], project)) if documents else reading


def read(values: Mapping[str, Any], *, stack: str, project: str) -> Reading:
    """Turn configuration keys into types; every error is reported, and what is sound is kept."""
    own, account = _namespace(values, project), _namespace(values, "aws")
    region = account.pop("region", None)
    errors = [
        InputError(
            path=key,
            must="not be a setting",
            got=_shown(own.pop(key)),
            fix="settings here: environment, team",
        )
        for key in ("stack", "project", "region", "aws")
        if key in own
    ]
    raw = copy.deepcopy(
        {"stack": stack, "project": project, "region": region, "aws": account, **own}
    )
    if raw["region"] is None:
        errors.append(
            InputError(
                path="aws:region",
                must="be set",
                got="nothing",
                fix="pulumi config set aws:region <region>",
            )
        )
        raw["region"] = "unknown"
    given = [kind for kind in ("environment", "team") if own.get(kind) is not None]
    if len(given) != 1:
        errors.append(
            InputError(
                path=project,
                must="contain exactly one of environment and team",
                got=" and ".join(given) or "neither",
                fix=f"{project}:environment: {{zone: …}}",
            )
        )
    return _salvaged(raw, errors)


def _namespace(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The settings `<name>:<key>`, by key."""
    return {
        str(key).partition(":")[2]: value
        for key, value in values.items()
        if str(key).startswith(f"{name}:")
    }


def json_schema() -> dict[str, Any]:
    """JSON schema of a stack file, for editors. Settings of other projects and of the engine stay
    free."""
    kinds = {
        kind: {"$ref": f"#/$defs/{made.__name__}"}
        for kind, made in (
            ("trainyard:environment", EnvironmentConfig),
            ("trainyard:team", TeamConfig),
        )
    }
    definitions = _on_one_line(pydantic.TypeAdapter(_Documented).json_schema()["$defs"])
    account = definitions.pop(AwsConfig.__name__)["properties"]
    config = {
        "type": "object",
        "required": ["aws:region"],
        "properties": {
            "aws:region": {"type": "string", "description": "AWS region of all resources."},
            **{f"aws:{key}": value for key, value in account.items()},
            **kinds,
        },
        "patternProperties": {
            f"^aws:(?!{'|'.join(f'{key}$' for key in ('region', *account))})": False,
            "^trainyard:(?!environment$|team$)": False,
        },
        "oneOf": [{"required": [kind]} for kind in kinds],
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A stack file of Trainyard",
        "type": "object",
        "required": ["config"],
        "properties": {"config": config},
        "$defs": definitions,
    }


def _on_one_line(schema: Any) -> Any:
    """The schema with each description on one line, however the docstring is wrapped."""
    if isinstance(schema, list):
        return [_on_one_line(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: " ".join(value.split())
        if key == "description" and isinstance(value, str)
        else _on_one_line(value)
        for key, value in schema.items()
    }


class _Documented(StackConfig):
    """StackConfig with the docstring of every setting, which only the schema needs."""

    __pydantic_config__ = pydantic.ConfigDict(extra="forbid", use_attribute_docstrings=True)


_ADAPTER = pydantic.TypeAdapter(StackConfig)
_PATTERNS = PATTERNS | {
    get_args(Name)[1].metadata[0].pattern: (
        "is a name",
        "lower-case letters, digits and dashes, starting with a letter, at most 32",
    )
}
_NAMED = ("pools", "storage", "jobs", "own_runtimes", "admins")


def _salvaged(raw: dict[str, Any], errors: list[InputError]) -> Reading:
    """Validate; set what is wrong aside and validate the rest, so that its plan can be checked
    too."""
    set_aside: set[str] = set()
    for _ in range(20):
        try:
            config = _ADAPTER.validate_python(raw)
            return Reading(config=config, errors=tuple(errors), set_aside=frozenset(set_aside))
        except pydantic.ValidationError as error:
            found = [
                {**each, "loc": _untagged(each["loc"])} for each in error.errors(include_url=False)
            ]
        errors += [error for error in _merged(map(_explained, found)) if error not in errors]
        spared = [_removed(raw, problem, set_aside) for problem in found]
        if not all(spared):
            break
    return Reading(config=None, errors=tuple(errors))


def _untagged(steps: Sequence[Any]) -> tuple[Any, ...]:
    """A problem's place in the file: after a job's name pydantic says which kind of job it took it
    for."""
    return tuple(step for at, step in enumerate(steps) if not (at > 1 and steps[at - 2] == "jobs"))


def _merged(errors: Iterable[InputError]) -> Iterable[InputError]:
    """One error a path: a value that fits no branch of a union is refused by each of them."""
    found: dict[str, InputError] = {}
    for error in errors:
        first = found.get(error.path)
        found[error.path] = replace(first, rule=f"{first.must} or {error.must}") if first else error
    return found.values()


def _removed(raw: dict[str, Any], problem: Any, set_aside: set[str]) -> bool:
    """Take the smallest part that holds the problem out of `raw`; False where it cannot be
    spared."""
    path = [p for p in problem["loc"] if p != "[key]"]
    if path[0] == "aws":
        return _without(raw, path[:2])
    if problem["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return _without(raw, path)
    for depth in range(len(path) - 1, 0, -1):
        if path[depth - 1] in _NAMED:
            set_aside.add(str(path[depth]))
            return _without(raw, path[: depth + 1])
    return False


def _without(raw: dict[str, Any], path: list[Any]) -> bool:
    holder: Any = raw
    for step in path[:-1]:
        holder = holder.get(step) if isinstance(holder, dict) else None
    if isinstance(holder, dict):
        holder.pop(path[-1], None)
    return isinstance(holder, dict)


def _explained(problem: Any) -> InputError:
    """A pydantic error in our words: path, rule, value, way out."""
    steps = [
        str(p)
        for p in problem["loc"]
        if not re.match(r"\[key\]$|constrained-int$|literal\[", str(p))
    ]
    path, kind, value = _path(steps), problem["type"], problem.get("input")
    if steps[0] == "aws" and (wrong := _no_account_setting(steps, kind, value)):
        return wrong
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        known = _keys_at(steps[:-1]) if steps[:-1] else ["environment", "team"]
        near = difflib.get_close_matches(steps[-1], known, n=1)
        meant = NO_SETTINGS.get(re.sub("[-_]", "", steps[-1]).lower()) if "jobs" in steps else None
        return InputError(
            path=path,
            must="not be a setting",
            got=_shown(value),
            fix=meant
            or (f"did you mean {near[0]}?" if near else f"settings here: {', '.join(known)}"),
        )
    if kind in ("missing", "missing_keyword_only_argument"):
        return InputError(path=path, must="be set", got="nothing", fix=f"add {steps[-1]}")
    if kind == "string_type" and isinstance(value, int | float):
        return InputError(
            path=path,
            must="be text",
            got=_shown(value),
            fix=f'quote it: "{_shown(value)}"',
        )
    if kind == "int_type" and isinstance(value, str) and value.isdecimal():
        return InputError(
            path=path,
            must="be a number",
            got=_shown(value),
            fix=f"without quotes: {value}",
        )
    if kind == "string_pattern_mismatch" and problem["ctx"]["pattern"] in _PATTERNS:
        rule, way_out = _PATTERNS[problem["ctx"]["pattern"]]
        return InputError(path=path, must=rule, got=_shown(value), fix=way_out)
    return InputError(
        path=path,
        must=problem["msg"][0].lower() + problem["msg"][1:],
        got=_shown(value),
        fix="see the sentence beside it in stacks/settings/environment.py",
    )


def _path(steps: list[str]) -> str:
    """aws:assumeRoles.0.roleArn, as the stack file writes it; anything else below its kind."""
    return f"aws:{'.'.join(steps[1:])}" if steps[0] == "aws" else ".".join(steps)


def _no_account_setting(steps: list[str], kind: str, value: Any) -> InputError | None:
    """A setting of Pulumi's AWS provider that a stack file cannot have; None where it is a typing
    mistake, or lies deeper."""
    if kind != "unexpected_keyword_argument" or len(steps) != 2 or steps[1] not in WAYS_OUT:
        return None
    return InputError(
        path=_path(steps),
        must="not be set in a stack file",
        got="a secret" if steps[1] in KEYS else _shown(value),
        fix=WAYS_OUT[steps[1]],
    )


def _keys_at(steps: list[str]) -> list[str]:
    """The settings of the dataclass that a path leads to; of a job, those of either kind."""
    here: list[Any] = [StackConfig]
    for step in steps:
        here = [
            kind
            for each in here
            for kind in _dataclasses(
                get_type_hints(each).get(step) if is_dataclass(each) else _inside(each)
            )
        ]
    return list(dict.fromkeys(f.name for each in here if is_dataclass(each) for f in fields(each)))


def _inside(kind: Any) -> Any:
    """What a dict or a tuple holds."""
    arguments = get_args(kind) or (None, None)
    return arguments[0] if get_origin(kind) is tuple else arguments[1]


def _dataclasses(kind: Any) -> list[Any]:
    """X and Y of `X | Y | None`; anything else as it is."""
    return (
        [each for each in get_args(kind) if is_dataclass(each)]
        if get_origin(kind) in (Union, UnionType)
        else [kind]
    )


def _shown(value: Any) -> str:
    return json.dumps(value, default=str)[:80]


def _decoded(text: str) -> Any:
    """The engine sends objects as JSON text and everything else as it is."""
    try:
        return json.loads(text) if text[:1] in ("{", "[") else text
    except ValueError:
        return text
