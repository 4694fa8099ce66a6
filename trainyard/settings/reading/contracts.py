"""Contracts, as an environment hands them over: a file beside the stack file of a team, or plain data that
is published. Their writer: trainyard/derive/contract.py.

The environment in a contract is read by the reader of stack files, so that each setting has one type and
one error. A contract of another release can say what this one does not know: that is one error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trainyard.catalog.versions import TRAINYARD
from trainyard.plans.identity import digest
from trainyard.problems import At, InputError
from trainyard.settings.environment import TeamConfig
from trainyard.settings.reading.files import is_inside, text_of
from trainyard.settings.reading.mistake import shown
from trainyard.settings.reading.reader import Reading, read
from trainyard.settings.reading.yaml_file import Document, Lines, read_documents

VERSION = 2
"""Version of the contracts that this release writes."""
BEFORE = 1
"""Version that an environment published before. It is read where it is deployed, and is no file: it says
too little to plan a team."""
PROMISED = ("stack", "region", "team", "environment")
"""Keys of a contract that say something of their own. The others say who wrote it, or follow from these."""
KEYS = ("version", "release", *PROMISED, "digest")
"""Keys of a contract that this release reads. What follows from them is for people."""
RELEASE = "release"
"""Path of the error of a contract that says what this release does not know."""
PATH = "team.contract"
"""The setting that names the file of a contract."""


@dataclass(frozen=True, kw_only=True)
class ContractReading:
    """A contract as far as it could be read."""

    reading: Reading
    """Its environment, as if that were a stack file of its own."""
    promised: Mapping[str, Any]
    """The contract itself; empty where it has errors."""
    errors: tuple[InputError, ...]
    release: str = TRAINYARD
    """Release of Trainyard that wrote it."""


def signature(contract: Mapping[str, Any]) -> str:
    """SHA-256 of what a contract promises, whoever wrote it. `contract`: without dates, which JSON lacks."""
    return digest({key: contract.get(key) for key in ("version", *PROMISED)})


def core(contract: Mapping[str, Any]) -> dict[str, Any]:
    """A contract without what follows from it and without what AWS has added."""
    return {key: whole_numbers(contract[key]) for key in KEYS if key in contract}


def whole_numbers(value: Any) -> Any:
    """Plain data in which 4.0 is 4: the engine hands over every number as one with a point."""
    if isinstance(value, Mapping):
        return {key: whole_numbers(each) for key, each in value.items()}
    if isinstance(value, list):
        return [whole_numbers(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def command(stack: str, team: str | None) -> str:
    """The command that hands over a contract. `team`: that the environment lists; None: it lists none of
    this name."""
    return f"trainyard contract --stack {stack}{f' --team {team}' if team else ''}"


def read_contract_file(team: TeamConfig, folder: Path) -> ContractReading:
    """The contract that a team's stack file names. `folder`: of the stack file."""
    name = team.contract or ""
    if not is_inside(folder, name):
        anew = f"{command(team.environment, team.name)} > {name or 'contract.yaml'}"
        missing = At(PATH).must(
            "be a file in the folder of the stack file",
            got=shown(name),
            fix=f"ask whoever runs the environment for `{anew}`",
        )
        return _wrong([missing])
    documents, wrong = read_documents(text_of(folder / name), name)
    if wrong or len(documents) != 1 or (documents[0].errors or documents[0].secrets):
        one = At("", name).must(
            "be one YAML document without secrets",
            got=f"{len(documents)} documents",
            fix=_anew(team.environment, team.name),
        )
        return _wrong(wrong or [one])
    lines = _lines(documents[0])
    found = read_contract(documents[0].value, team.environment, team.name, lines)
    return replace(found, errors=tuple(_located(lines, error, name) for error in found.errors))


def read_contract(
    value: Any, stack: str, team: str | None, lines: Lines | None = None
) -> ContractReading:
    """A contract of the version that this release writes. `stack`, `team`: whose contract it must be.
    `lines`: of its file."""
    if errors := _form_errors(value, stack, team):
        return _wrong(errors)
    given = {"aws:region": value["region"], "trainyard:environment": value["environment"]}
    found = read(given, stack=stack, project="trainyard", lines=lines)
    errors = unknown_to_this_release(value["release"], found.errors)
    if not errors and value.get("digest") != signature(value):
        errors = [
            At("digest").must(
                "be that of the contract, which nobody edits",
                got=_got(value, "digest"),
                fix=_anew(stack, team),
            )
        ]
    return ContractReading(
        reading=replace(found, errors=tuple(errors)),
        promised={} if errors else core(value),
        errors=tuple(errors),
        release=value["release"],
    )


def within_setting(found: ContractReading) -> ContractReading:
    """A contract that stands in the setting itself: its errors have their places there."""
    errors = tuple(replace(each, path=f"{PATH}.{each.path}") for each in found.errors)
    return replace(found, errors=errors)


def unknown_to_this_release(release: str, errors: Iterable[InputError]) -> list[InputError]:
    """The errors of a contract: one for all of them where another release wrote it, which may know what
    this one does not."""
    errors = list(errors)
    if not errors or release == TRAINYARD:
        return errors
    return [
        At(RELEASE).must(
            f"be {TRAINYARD}, the release that reads this contract, because it says what this release"
            f" does not know: {errors[0].path} must {errors[0].must}",
            got=shown(release),
            fix=f"install Trainyard {release}, or ask for a contract of {TRAINYARD}",
        )
    ]


def version_error(value: Any) -> InputError:
    """Error about a contract whose version this release does not read. `value`: the contract."""
    version, release = _value(value, "version"), _value(value, "release")
    newer = isinstance(version, int) and version > VERSION
    named = f"Trainyard {release}" if isinstance(release, str) else "a newer Trainyard"
    return At("version").must(
        f"be {BEFORE} or {VERSION}, which Trainyard {TRAINYARD} reads",
        got="nothing" if version is None else shown(version),
        fix=f"install {named}" if newer else "ask for a new contract: run trainyard contract",
    )


def _value(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, Mapping) else None


_FORM: tuple[tuple[str, type, str], ...] = (
    ("release", str, "the release of Trainyard that wrote it"),
    ("stack", str, "the name of the environment"),
    ("region", str, "the AWS region of the environment"),
    ("environment", dict, "the settings of the environment"),
)
"""Key, its type, and what it must be."""


def _form_errors(value: Any, stack: str, team: str | None) -> list[InputError]:
    """Errors of a contract around its environment."""
    version, anew = _value(value, "version"), _anew(stack, team)
    if type(version) is not int or version not in (BEFORE, VERSION):
        return [version_error(value)]
    if version == BEFORE:
        too_old = f"be {VERSION} in a file: version {BEFORE} says too little to plan a team"
        return [At("version").must(too_old, got=BEFORE, fix=anew)]
    errors = [
        At(key).must(f"be {noun}", got=_got(value, key), fix=anew)
        for key, kind, noun in _FORM
        if not isinstance(value.get(key), kind)
    ]
    if not errors and value["stack"] != stack:
        must = f"be the environment of the team, {stack}"
        errors.append(At("stack").must(must, got=value["stack"], fix=anew))
    return [*errors, *_team_errors(value.get("team"), stack, team)]


def _team_errors(value: Any, stack: str, team: str | None) -> list[InputError]:
    """A contract of another team. `value`: what it says of its team."""
    named = _value(value, "name")
    if value is None and team is None or isinstance(named, str) and named == team:
        return []
    must = f"be that of team {team}" if team else "not be set for a stack without team.name"
    got = "nothing" if value is None else shown(named or value)
    return [At("team").must(must, got=got, fix=_anew(stack, team))]


def _got(value: Mapping[str, Any], key: str) -> str:
    return shown(value[key]) if value.get(key) is not None else "nothing"


def _anew(stack: str, team: str | None) -> str:
    return f"ask whoever runs the environment for a new contract: `{command(stack, team)}`"


def _lines(document: Document) -> Lines:
    """Lines of a contract, by the paths of its problems."""

    def by_path(values: Mapping[Any, Any]) -> dict[str, Any]:
        return {".".join(map(str, path)): value for path, value in values.items() if path}

    return Lines(file=document.file, of=by_path(document.lines), written=by_path(document.written))


def _located(lines: Lines, error: InputError, file: str) -> InputError:
    """The error with its line in the contract, or with the file alone."""
    found = lines.locate(error)
    return found if found.file else replace(found, file=file)


def _wrong(errors: Iterable[InputError]) -> ContractReading:
    """A contract of which nothing is known."""
    found = tuple(errors)
    return ContractReading(reading=Reading(configs=(), errors=found), promised={}, errors=found)
