"""The only place that reads a stack file: strictly, with all errors at once. What it may say:
environment.py."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pydantic

from trainyard.catalog.aws.zones import every_zone_name
from trainyard.catalog.scalars import engine_time, engine_value
from trainyard.problems import At, InputError
from trainyard.settings.aws import AwsConfig
from trainyard.settings.environment import EnvironmentConfig, StackConfig, TeamConfig
from trainyard.settings.reading.files import text_of
from trainyard.settings.reading.mistake import shown
from trainyard.settings.reading.namespaces import ENGINE_KEYS, misplaced
from trainyard.settings.reading.salvage import salvaged
from trainyard.settings.reading.secrets.secrets import Secret, withheld
from trainyard.settings.reading.stand_ins import StandIns
from trainyard.settings.reading.yaml_file import Document, Lines, read_documents


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A stack file as far as it could be read."""

    configs: tuple[StackConfig, ...]
    """Settings of the stack file; if values are wrong, once with each of their stand-ins. Empty
    where so much is wrong that nothing can be planned."""
    errors: tuple[InputError, ...]
    stand_ins: StandIns = StandIns()
    """The wrong values, which have an error already."""
    lines: Lines = Lines()

    @property
    def config(self) -> StackConfig | None:
        """Settings of the stack file, with the first stand-in of each wrong value."""
        return self.configs[0] if self.configs else None


def read_file(stack: str, folder: Path = Path(".")) -> Reading:
    """Read Pulumi.<stack>.yaml without the engine. Raises FileNotFoundError for a stack without a
    file."""
    file = f"Pulumi.{stack}.yaml"
    try:
        text, project = text_of(folder / file), project_name(folder)
    except FileNotFoundError:
        raise
    except OSError as error:  # a name that is too long, a folder
        raise FileNotFoundError(error.errno, error.strerror, file) from None
    if not project:
        return Reading(configs=(), errors=(NO_PROJECT,))
    aligned = _read_text(text, file, stack, project)
    if not any(error.file for error in aligned.errors):
        return aligned
    # A line that is no YAML may belong elsewhere: only what does not depend on it is known.
    dropped = _read_text(text, file, stack, project, drop=True)
    configs = (*aligned.configs[:1], *dropped.configs[-1:])
    no_yaml = [error for error in aligned.errors if error.file]
    keys = {error.got.partition(":")[0] for error in no_yaml}
    both = [error for error in aligned.errors if error in dropped.errors and not error.file]
    both = [error for error in both if error.path.rpartition(".")[2] not in keys]
    return replace(aligned, configs=configs if len(configs) == 2 else (), errors=(*no_yaml, *both))


def _read_text(text: str, file: str, stack: str, project: str, *, drop: bool = False) -> Reading:
    """Read the text of a stack file. `drop`: without lines that are no YAML."""
    documents, wrong = read_documents(text, file, drop=drop, by_engine=True)
    errors = tuple(_of_settings(wrong, project))
    document = documents[0] if documents else Document(file=file)
    values = (document.value or {}).get("config") if _is_map(document.value) else document.value
    if not _is_map(values):
        no_settings = InputError(
            path="",
            file=file,
            must="contain settings under `config:`",
            got=shown(document.value),
            fix="copy Pulumi.dev.yaml and change it",
        )
        return Reading(configs=(), errors=errors or (no_settings,))
    if errors and not documents:
        return Reading(configs=(), errors=errors)
    values = {key: _handed_over(value) for key, value in (values or {}).items()}
    found = _typed(values, stack, project, _lines(document, project))
    return replace(
        found, errors=(*_secret_errors(document.secrets, project), *errors, *found.errors)
    )


def _secret_errors(secrets: Sequence[Secret], project: str) -> Iterator[InputError]:
    for secret in secrets:
        yield secret.error(At(_setting(".".join(map(str, secret.path)), project)))


def environments(folder: Path = Path(".")) -> list[str]:
    """The stacks of a checkout whose stack files describe an environment."""
    key = re.compile(rf"^\s+{re.escape(project_name(folder))}:environment:", re.MULTILINE)
    return [stack for stack, file in stack_files(folder).items() if key.search(text_of(file))]


def stack_files(folder: Path) -> dict[str, Path]:
    """Name of each stack of a checkout → its stack file."""
    return {
        file.name.removeprefix("Pulumi.").removesuffix(".yaml"): file
        for file in sorted(folder.glob("Pulumi.*.yaml"))
        if file.is_file()
    }


def project_name(folder: Path) -> str:
    """The name of the Pulumi project; empty where Pulumi.yaml has none."""
    text = text_of(folder / "Pulumi.yaml")
    documents, _ = read_documents(text, "Pulumi.yaml", by_engine=True)
    value = documents[0].value if documents else None
    return str(value.get("name") or "") if isinstance(value, dict) else ""


NO_PROJECT = InputError(
    path="name",
    file="Pulumi.yaml",
    must="be the name of the Pulumi project",
    got="nothing",
    fix="write name: trainyard",
)


def _is_map(value: Any) -> bool:
    return value is None or isinstance(value, dict)


def _setting(path: str, project: str) -> str:
    """A path of the stack file as problems name it: from the project's key."""
    return path.removeprefix("config.").removeprefix(f"{project}:")


def _of_settings(errors: Iterable[InputError], project: str) -> Iterator[InputError]:
    """The errors of a file, with their paths as problems name them."""
    return (replace(error, path=_setting(error.path, project)) for error in errors)


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


def read_given(texts: Mapping[str, str], *, stack: str, project: str) -> Reading:
    """Read the configuration as the engine hands it to a program: a text for each key. The stack file of
    the working folder tells the lines, and which texts are times."""
    given = {key: _decoded(text) for key, text in texts.items()}
    file = Path(f"Pulumi.{stack}.yaml")
    found, _ = (
        read_documents(text_of(file), file.name, by_engine=True) if file.is_file() else ((), ())
    )
    document = found[0] if found else Document(file=file.name)
    lines = _lines(document, project)
    values = {key: _with_times(it, _setting(key, project), lines) for key, it in given.items()}
    reading = read(values, stack=stack, project=project, lines=lines)
    return replace(reading, errors=(*_of_settings(document.errors, project), *reading.errors))


def read_arguments(
    kind: str, given: Mapping[str, Any], texts: Mapping[str, str], *, stack: str, project: str
) -> Reading:
    """Read the settings that a program gives to a component, as if a stack file said them. `kind`:
    environment or team. `texts`: the configuration of the program's stack, of which the `aws:` settings
    count."""
    account = {key: _decoded(text) for key, text in texts.items() if key.startswith("aws:")}
    return read({**account, f"{project}:{kind}": dict(given)}, stack=stack, project=project)


def _with_times(value: Any, path: str, lines: Lines) -> Any:
    """A value of the engine with its times, which the engine hands over as text in a form of its
    own."""
    if isinstance(value, dict):
        return {key: _with_times(item, f"{path}.{key}", lines) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_times(item, f"{path}.{n}", lines) for n, item in enumerate(value)]
    time = engine_time(value) if isinstance(value, str) else None
    written = engine_value(lines.written.get(path, ""))
    if time is None or path in lines.of and path not in lines.written:  # a text in quotes
        return value
    if isinstance(written, datetime) and (written == time or written == time.replace(tzinfo=None)):
        return written
    return time


def read(
    values: Mapping[str, Any], *, stack: str, project: str, lines: Lines | None = None
) -> Reading:
    """Turn configuration keys into types; every error is reported, and what is sound is kept.
    `lines`: of the file that the values are from."""
    values, secrets = withheld(dict(values))
    found = _typed(values, stack, project, lines or Lines())
    return replace(found, errors=(*_secret_errors(secrets, project), *found.errors))


def _typed(values: Mapping[str, Any], stack: str, project: str, lines: Lines) -> Reading:
    """Turn configuration keys, which hold no secrets any more, into types."""
    own, account = _namespace(values, project), _namespace(values, "aws")
    errors = [*misplaced(values, own, project)]
    own = {key: value for key, value in own.items() if key not in ENGINE_KEYS and value != ""}
    region = account.pop("region", None)
    if region in (None, ""):
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
    found = salvaged(raw, lines)
    return Reading(
        configs=found.configs,
        errors=(*errors, *found.errors),
        stand_ins=found.stand_ins,
        lines=lines,
    )


def any_environment(region: str) -> Reading:
    """An environment of which nothing is known: there are stand-ins for all its settings."""
    wrong = dict.fromkeys((each.name for each in fields(EnvironmentConfig)), 0)
    values = {"aws:region": region, "trainyard:environment": wrong}
    return read(values, stack="dev", project="trainyard")


def _region_of(environment: Any) -> str | None:
    """The region that an environment's zone lies in."""
    zone = str(environment.get("zone")) if isinstance(environment, dict) else ""
    return zone[:-1] if zone in every_zone_name(zone[:-1]) else None


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


NO_REGION = "unknown"
"""Region of a stack whose stack file sets none: the rules say nothing of it."""


def _handed_over(value: Any) -> Any:
    """A value right under `config` as the engine hands it to the program: what is no map and no list
    is text."""
    if isinstance(value, dict | list):
        return value
    if value is None:
        return ""
    return _decoded(value if isinstance(value, str) else json.dumps(value, default=str).strip('"'))


def _decoded(text: str) -> Any:
    """The engine sends objects as JSON text and everything else as it is."""
    try:
        return json.loads(text) if text[:1] in ("{", "[") else text
    except ValueError:
        return text
