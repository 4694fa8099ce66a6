"""Faults of every kind that people make, written from the kinds before anybody looked at what is said of them:
each is named whole, at its place; what people write rightly is not named."""

from __future__ import annotations

import copy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.corpus.test_corpus import cases_of
from tests.corpus.written import absent, blanks, files, owned, replaced, stores
from tests.support.stackfile import Edit, at, planned
from tests.trainyard.manifests.test_admission import NO_SHM
from trainyard.problems import InputError, Problem

TABLES = (blanks.BLANKS, absent.ABSENT, owned.OWNED, replaced.REPLACED, stores.STORES)
ROWS = {name: row for table in TABLES for name, row in table.items()}
CLAIMS = {"fsx": "scratch", "s3": "results", "efs": "home"}
AROUND: tuple[Edit, ...] = (
    at("training_operator", {"version": "1.8.1"}),
    at("storage.results", {"s3": {"writable": True}}),
)


def _said_of_a_file(text: str, folder: Path) -> list[Problem]:
    """What is said of a file, as the job of the development environment."""
    (folder / "job.yaml").write_text(text)
    claims = {
        name: store
        for name, store in CLAIMS.items()
        if f"claimName: {name}" in text or f'"{name}"' in text
    }
    entry = {"manifest": "job.yaml", "pool": "g6e"} | ({"claims": claims} if claims else {})
    found = planned(*AROUND, at("jobs", {"x": entry}), folder=folder)
    return [each for each in (*found.errors, *found.warnings) if NO_SHM not in str(each)]


def _said_of_an_entry(*edits: Edit) -> list[Problem]:
    """What is said of an entry that is not said of the sound one."""
    found = planned(*AROUND, at("jobs.w", files.ENTRY_JOB), *edits)
    return [each for each in (*found.errors, *found.warnings) if str(each) not in _usual()]


@cache
def _usual() -> set[str]:
    found = planned(*AROUND, at("jobs.w", files.ENTRY_JOB))
    return {*map(str, (*found.errors, *found.warnings))}


def _said(row: blanks.Row, folder: Path) -> list[Problem]:
    file, there, instead, *_ = row
    if file == "entry":
        return _said_of_an_entry(at(there, instead))
    assert there in files.FILES[file], there
    text = files.FILES[file].replace(there, instead, 1)
    said = _said_of_a_file(text, folder)
    return [each for each in said if each.file == "job.yaml"]


@pytest.mark.parametrize("case", ROWS)
def test_a_fault_is_named_at_its_place(case: str, tmp_path: Path) -> None:
    *_, where, says, is_error = ROWS[case]
    said = _said(ROWS[case], tmp_path)
    said = [each for each in said if "was not checked; correct" not in str(each)]
    places = {
        each.line or str(each): each for each in said
    }  # an alias repeats the pods of a Master
    assert len(places) == 1, [*map(str, said)]
    assert where in said[0].path and says in str(said[0]), str(said[0])
    assert isinstance(said[0], InputError) is is_error, str(said[0])


@pytest.mark.parametrize("file", files.FILES)
def test_the_files_that_faults_are_made_in_are_sound(file: str, tmp_path: Path) -> None:
    said = _said_of_a_file(files.FILES[file], tmp_path)
    assert [str(each) for each in said if each.file == "job.yaml"] == []


SOUND = {
    f"{path.stem}: {name}": text
    for path in sorted(Path(__file__).parent.glob("sound_t*.yaml"))
    for name, text in cases_of(f"written/{path.name}").items()
}
ENTRIES: dict[str, dict[str, Any]] = {
    name: yaml.safe_load(text) for name, text in cases_of("written/sound_entries.yaml").items()
}


@pytest.mark.parametrize("case", SOUND)
def test_a_sound_file_is_not_blamed(case: str, tmp_path: Path) -> None:
    said = _said_of_a_file(SOUND[case], tmp_path)
    assert [str(each) for each in said if each.file == "job.yaml"] == []


@pytest.mark.parametrize("case", ENTRIES)
def test_a_sound_entry_is_not_blamed(case: str) -> None:
    made = copy.deepcopy(files.ENTRY_JOB)
    edits = [
        at(f"jobs.w.{path.removeprefix('jobs.w.')}", value)
        for path, value in ENTRIES[case].items()
        if value is not None
    ]
    gone = [path.removeprefix("jobs.w.") for path, value in ENTRIES[case].items() if value is None]
    for name in gone:
        made.pop(name)
    found = planned(*AROUND, at("jobs.w", made), *edits)
    said = [str(each) for each in (*found.errors, *found.warnings)]
    assert [each for each in said if each not in _usual() and BY_HAND not in each] == []


BY_HAND = "must be in the job's namespace before `pulumi up`"
"""A warning about what every sound entry needs that names a Secret: nothing of a stack makes it."""


def test_the_corpus_is_large() -> None:
    assert len(ROWS) >= 120 and len(SOUND) + len(ENTRIES) >= 60
