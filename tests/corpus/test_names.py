"""Whatever a job file names is there, or is named as missing, once, at its place, with what must be done;
what is there is not named."""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.corpus import bad_names
from tests.corpus.test_corpus import cases_of
from tests.corpus.test_placeholders import documents_of, release_of, texts, without_line
from tests.support.stackfile import Edit, at, environment, planned
from tests.trainyard.manifests.test_admission import NO_SHM
from trainyard.manifests.admission import KINDS, judged
from trainyard.objects.queues.queues import QUEUE_LABEL
from trainyard.problems import InputError, Problem
from trainyard.settings.environment import EnvironmentConfig

ENTRY = {"manifest": "job.yaml", "pool": "g6e", "claims": {"fsx": "scratch", "s3": "results"}}


def _said(text: str, folder: Path, *more: Edit, **entry: Any) -> list[Problem]:
    """What is said of a file, as a job of the development environment."""
    (folder / "job.yaml").write_text(text)
    operator = at("training_operator", {"version": "1.8.1"})
    results = at("storage.results", {"s3": {"writable": True}})
    found = planned(at("jobs", {"x": ENTRY | entry}), operator, results, *more, folder=folder)
    said = [each for each in (*found.errors, *found.warnings) if each.file == "job.yaml"]
    return [each for each in said if NO_SHM not in str(each)]


@pytest.mark.parametrize("file", bad_names.FILES)
def test_a_file_that_names_only_what_is_there_passes_without_a_word(
    file: str, tmp_path: Path
) -> None:
    assert [*map(str, _said(bad_names.FILES[file], tmp_path))] == []


@pytest.mark.parametrize("case", bad_names.NAMES)
def test_a_name_of_what_is_not_there_is_one_problem_at_its_place(case: str, tmp_path: Path) -> None:
    file, there, instead, where, says, is_error = bad_names.NAMES[case]
    assert there in bad_names.FILES[file]
    said = _said(bad_names.FILES[file].replace(there, instead, 1), tmp_path)
    places = {each.line: each for each in said}  # an alias repeats the pods of a Master
    assert len(places) == 1 and len({*map(str, places)}) == 1, [*map(str, said)]
    problem = said[0]
    assert problem.path.endswith(where) and says in str(problem), str(problem)
    assert isinstance(problem, InputError) is is_error


SOUND = cases_of("sound_jobs_of_names.yaml")


@pytest.mark.parametrize("case", SOUND)
def test_a_file_in_anybody_s_style_that_names_what_is_there_passes_without_a_word(
    case: str, tmp_path: Path
) -> None:
    assert [*map(str, _said(SOUND[case], tmp_path))] == []


def test_the_corpus_of_names_is_large() -> None:
    assert len(bad_names.NAMES) >= 75 and len(SOUND) >= 20


OTHER, DEVICE = "zz-not-there", "example.com/zz"
SEED, SAMPLE = 38, 60
NAMING = re.compile(
    r".*[nN]ames?|driver|server|rdzvHost|managedBy|serviceAccount|fieldPath|resource|apiGroup|target\w*Jobs"
)
"""Fields that hold names."""
DEFINES = {
    "containers",
    "initContainers",
    "volumes",
    "env",
    "ports",
    "replicatedJobs",
    "resourceClaims",
}
"""Lists whose items have names of their own."""
AMOUNTS = ("limits", "requests")
NOT_KNOWN = {("trainjob-unknown-runtime.yaml", "targetJobs")}
"""Files, and lists of names that nobody can judge there: jobs of a runtime that is not known, an error."""
Steps = tuple[str | int, ...]


@cache
def _config() -> EnvironmentConfig:
    wide = {"max_nodes": 64}
    found = environment(
        at("pools.g6e", wide | {"instance_types": ["g6e.48xlarge"]}),
        at("pools.p5", wide | {"instance_types": ["p5.48xlarge"]}),
    )
    return found


def _judged(name: str, documents: list[Any], claims: Iterable[str]) -> list[Problem]:
    """What is said of the documents, each of whose claims has a store."""
    text = yaml.safe_dump_all(documents, sort_keys=False)
    found = judged(
        text,
        "x.yaml",
        trainer=release_of(name),
        operator="1.8.1",
        environment=_config(),
        pool="p5" if "p5" in text else "g6e",
        claims=dict.fromkeys(claims, "scratch-1"),
        namespace="training",
        production=False,
        privileged_pods=True,
    )
    return [*found.errors, *found.warnings]


def _claims(documents: Any) -> set[str]:
    return {str(each[1]) for each in _leaves(documents) if each[0][-1] == "claimName"}


def _leaves(value: Any, path: Steps = ()) -> Iterator[tuple[Steps, Any]]:
    if isinstance(value, dict | list) and value:
        inside = value.items() if isinstance(value, dict) else enumerate(value)
        for step, each in inside:
            yield from _leaves(each, (*path, step))
    elif value is not None:
        yield path, value


def _at(value: Any, path: Iterable[Any]) -> Any:
    for step in path:
        value = value[step]
    return value


def _names(name: str) -> Iterator[Steps]:
    """Path of each name in a file: the value of a field, or the key of a device. Not those in objects that
    are refused as a whole."""
    made = documents_of(name)
    for path, value in _leaves(made):
        if _at(made, path[:1]).get("kind") not in KINDS or path[1:3] == ("metadata", "name"):
            continue
        field, *above = [str(each) for each in path[:0:-1] if isinstance(each, str)]
        is_item = isinstance(path[-1], int)
        is_device = path[-2] in AMOUNTS and "/" in field
        is_own = field == "name" and not is_item and above[0] in DEFINES
        is_key = field == "key" and {"configMapKeyRef", "items"} & {*path}
        may_lack = "optional" in (_at(made, path[:-1]) if not is_item else ())
        is_free = bool({"data", "annotations", "labels", "metadata"} & {*path})
        named = NAMING.fullmatch(field) or is_key or field == QUEUE_LABEL
        is_told = any((name, step) in NOT_KNOWN for step in path)
        unsure = is_own or may_lack or is_told or (is_free and field != QUEUE_LABEL)
        if is_device or (isinstance(value, str) and named and not unsure):
            yield path


def _cases() -> list[tuple[str, Steps]]:
    return [(name, path) for name in sorted(texts()) for path in _names(name)]


@cache
def _usual(name: str) -> set[str]:
    made = documents_of(name)
    return {without_line(each) for each in _judged(name, made, _claims(made))}


def _silent(name: str, path: Steps) -> list[str]:
    """The case, where nothing new is said at the path of a name that is another one."""
    made = copy.deepcopy(documents_of(name))
    holder, last = _at(made, path[:-1]), path[-1]
    place = [*path[1:]]
    if path[-2] in AMOUNTS:
        holder[DEVICE] = holder.pop(last)
        place[-1] = DEVICE
    else:
        holder[last] = OTHER
    said = _judged(name, made, _claims(documents_of(name)))
    shown = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in place).lstrip(
        "."
    )
    new = [each for each in said if without_line(each) not in _usual(name)]
    of_item = shown.removesuffix(".name")  # a job of an override is named as a whole
    return (
        []
        if any(each.path in (shown, of_item) for each in new)
        else [f"{name} {shown}", *map(str, new)]
    )


def test_there_are_many_names_in_the_files_of_many_people() -> None:
    assert len(_cases()) > 200


def test_a_name_that_is_another_one_is_named_where_it_stands() -> None:
    cases = random.Random(SEED).sample(_cases(), SAMPLE)
    assert [silent for case in cases if (silent := _silent(*case))] == []


@pytest.mark.soak
def test_every_name_that_is_another_one_is_named_where_it_stands() -> None:
    assert [silent for case in _cases() if (silent := _silent(*case))] == []
