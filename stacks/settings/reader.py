"""The only place that reads a stack file: strictly, with all errors at once. What it may say:
environment.py."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pydantic
import yaml

from catalog.zones import ZONE_LETTERS
from stacks.settings.aws import AwsConfig
from stacks.settings.environment import EnvironmentConfig, StackConfig, TeamConfig
from stacks.settings.explained import explained, shown
from stacks.settings.problems import REMOVE, InputError
from stacks.settings.yaml_file import Document, Lines, read_documents


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A stack file as far as it could be read."""

    config: StackConfig | None
    """None where so much is wrong that nothing can be planned."""
    errors: tuple[InputError, ...]
    skipped: frozenset[str] = frozenset()
    """Names of pools, stores and jobs that were left out because their own settings are wrong."""
    lines: Lines = Lines()


def read_file(stack: str, folder: Path = Path(".")) -> Reading:
    """Read Pulumi.<stack>.yaml without the engine. Raises FileNotFoundError for a stack without a
    file."""
    project, file = _project(folder), f"Pulumi.{stack}.yaml"
    documents, wrong = read_documents((folder / file).read_text(), file)
    errors = tuple(replace(error, path=_setting(error.path, project)) for error in wrong)
    document = documents[0] if documents else Document(file=file)
    values = (document.value or {}).get("config") if _is_map(document.value) else document.value
    if errors or not _is_map(values):
        no_settings = InputError(
            path="",
            file=file,
            must="contain settings under `config:`",
            got=shown(document.value),
            fix="copy Pulumi.dev.yaml and change it",
        )
        return Reading(config=None, errors=errors or (no_settings,))
    return read(values or {}, stack=stack, project=project, lines=_lines(document, project))


def environments(folder: Path = Path(".")) -> list[str]:
    """The stacks of a checkout whose stack files describe an environment."""
    key = re.compile(rf"^\s+{re.escape(_project(folder))}:environment:", re.MULTILINE)
    return [
        file.name.removeprefix("Pulumi.").removesuffix(".yaml")
        for file in sorted(folder.glob("Pulumi.*.yaml"))
        if key.search(file.read_text())
    ]


def _project(folder: Path) -> str:
    """The name of the Pulumi project."""
    return yaml.load((folder / "Pulumi.yaml").read_text(), yaml.CSafeLoader)["name"]


def _is_map(value: Any) -> bool:
    return value is None or isinstance(value, dict)


def _setting(path: str, project: str) -> str:
    """A path of the stack file as problems name it: from the project's key."""
    return path.removeprefix("config.").removeprefix(f"{project}:")


def _lines(document: Document, project: str) -> Lines:
    """Where the settings stand, by their paths in problems."""

    def by_setting(values: Mapping[Any, Any]) -> dict[str, Any]:
        return {
            _setting(".".join(map(str, path)), project): value
            for path, value in values.items()
            if path[:1] == ("config",) and path[1:]
        }

    return Lines(
        file=document.file, of=by_setting(document.lines), written=by_setting(document.written)
    )


def read_engine() -> Reading:
    """Read the configuration the engine hands to this program."""
    import pulumi  # only here: `make check` needs no SDK

    values = {key: _decoded(text) for key, text in pulumi.runtime.config.CONFIG.get().items()}
    stack, project = pulumi.get_stack(), pulumi.get_project()
    file, lines = Path(f"Pulumi.{stack}.yaml"), Lines()
    if file.is_file():
        documents, _ = read_documents(file.read_text(), file.name)
        lines = _lines(documents[0], project) if documents else lines
    return read(values, stack=stack, project=project, lines=lines)


def read(
    values: Mapping[str, Any], *, stack: str, project: str, lines: Lines | None = None
) -> Reading:
    """Turn configuration keys into types; every error is reported, and what is sound is kept.
    `lines`: of the file that the values are from."""
    own, account = _namespace(values, project), _namespace(values, "aws")
    errors = [*_misplaced(values, own, project)]
    own = {key: value for key, value in own.items() if key not in ENGINE_KEYS}
    region = account.pop("region", None)
    if region is None:
        region = _region_of(own.get("environment"))
        errors.append(_no_region(region))
    present = [kind for kind in ("environment", "team") if own.get(kind) is not None]
    if len(present) == 2:
        own.pop("team")  # what the environment says is judged all the same
    if len(present) != 1 and not {error.path for error in errors} & {"environment", "team"}:
        errors.append(_not_one_stack(present, project))
    raw = {
        "stack": stack,
        "project": project,
        "region": region or NO_REGION,
        "aws": account,
        **own,
    }
    return replace(_salvaged(copy.deepcopy(raw), errors, lines or Lines()), lines=lines or Lines())


def _misplaced(
    values: Mapping[str, Any], own: Mapping[str, Any], project: str
) -> Iterator[InputError]:
    """Keys that cannot stand where they do."""
    for key in ("environment", "team"):
        if key in values and key not in own:
            yield InputError(
                path=key,
                must="begin with the project's name",
                got=key,
                fix=f"did you mean {project}:{key}?",
            )
    for key in ENGINE_KEYS:
        if key in own:
            yield InputError(
                path=key,
                must="not be a setting",
                got=shown(own[key]),
                fix=f"delete {project}:{key}{'; write aws:region' * (key == 'region')}",
                write=REMOVE,
            )


def _region_of(environment: Any) -> str | None:
    """The region that an environment's zone lies in."""
    zone = str(environment.get("zone")) if isinstance(environment, dict) else ""
    return zone[:-1] if zone[-1:] in ZONE_LETTERS.get(zone[:-1], " ") else None


def _no_region(region: str | None) -> InputError:
    fix = f"write aws:region: {region}" if region else "run pulumi config set aws:region <region>"
    return InputError(path="aws:region", must="be set", got="nothing", fix=fix, write=region)


def _not_one_stack(present: Sequence[str], project: str) -> InputError:
    if present:
        fix = f"move {project}:team into the stack file of the team, such as Pulumi.team-a.yaml"
    else:
        fix = f"add {project}:environment, with the settings of Pulumi.dev.yaml"
    return InputError(
        path=project,
        must=f"have settings under either {project}:environment or {project}:team",
        got="both" if present else "neither",
        fix=fix,
    )


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
NO_REGION = "unknown"
"""Region of a stack whose stack file sets none: the rules say nothing of it."""
ENGINE_KEYS = ("stack", "project", "region", "aws")
"""What the engine or another namespace says, so that the project's own settings cannot."""
_NAMED = ("pools", "storage", "jobs", "own_runtimes", "admins")


def _salvaged(raw: dict[str, Any], errors: list[InputError], lines: Lines) -> Reading:
    """Validate; leave what is wrong out and validate the rest, so that its plan can be checked
    too."""
    skipped: set[str] = set()
    for _ in range(20):
        try:
            config = _ADAPTER.validate_python(raw)
            return Reading(config=config, errors=tuple(errors), skipped=frozenset(skipped))
        except pydantic.ValidationError as error:
            wrong = error.errors(include_url=False)
        new = _merged([_explained(one, lines) for one in wrong])
        errors += [error for error in new if error not in errors]
        spared = [_removed(raw, _steps(one["loc"]), one["type"], skipped) for one in wrong]
        if not all(spared):
            break
    return Reading(config=None, errors=tuple(errors))


def _explained(wrong: Any, lines: Lines) -> InputError:
    """An error of pydantic as one of ours."""
    location = wrong["loc"]
    written = lines.written.get(".".join(map(str, _steps(location))), "")
    if written and yaml.safe_load(written) != wrong.get("input"):
        written = ""  # the engine was given another value than the file has
    in_manifest = location[1:2] == ("jobs",) and "manifest" in location[3:4]
    return explained(_steps(location), wrong, in_manifest, written)


def _steps(location: Sequence[Any]) -> tuple[Any, ...]:
    """The path to a value: without the kind of job that pydantic names behind a job's name."""
    return tuple(
        step
        for index, step in enumerate(location)
        if not (index > 1 and location[index - 2] == "jobs")
    )


def _merged(errors: Iterable[InputError]) -> Iterable[InputError]:
    """One error for each path: a value that fits no branch of a union breaks each of them."""
    by_path: dict[str, InputError] = {}
    for error in errors:
        first = by_path.get(error.path)
        by_path[error.path] = (
            replace(
                first,
                must=f"{first.must} or {error.must}",
                fix=f"{first.fix}; or {error.fix}",
                write=error.write if first.write is None else first.write,
            )
            if first
            else error
        )
    return by_path.values()


def _removed(raw: dict[str, Any], steps: Sequence[Any], kind: str, skipped: set[str]) -> bool:
    """Take the smallest part with the error out of `raw`; False where it cannot be spared."""
    path = [step for step in steps if step != "[key]"]
    if path[0] == "aws":
        return _without(raw, path[:2])
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        return _without(raw, path)
    for depth in range(len(path) - 1, 0, -1):
        if path[depth - 1] in _NAMED:
            skipped.add(str(path[depth]))
            return _without(raw, path[: depth + 1])
    return False


def _without(raw: dict[str, Any], path: list[Any]) -> bool:
    holder: Any = raw
    for step in path[:-1]:
        holder = holder.get(step) if isinstance(holder, dict) else None
    if isinstance(holder, dict):
        holder.pop(path[-1], None)
    return isinstance(holder, dict)


def _decoded(text: str) -> Any:
    """The engine sends objects as JSON text and everything else as it is."""
    try:
        return json.loads(text) if text[:1] in ("{", "[") else text
    except ValueError:
        return text
