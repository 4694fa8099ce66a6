"""The file of `trainyard prove` is read as it was written, and a secret in any field of it is not written."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pydantic
import pytest

from tests.trainyard.operations.prove.proofs import whole
from tests.trainyard.operations.prove.test_redact import PARTS, PLANTED
from trainyard.operations.prove.record import NotReadable, Proof, epoch, iso, load, save

Path_ = tuple[Any, ...]


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "prove.json"
    assert load(file) is None
    save(whole(), (), file)
    assert load(file) == whole()
    assert [each.name for each in tmp_path.iterdir()] == ["prove.json"], "no half of it is left"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": 2}', '{"schema": 1, "other": 1}'])
def test_another_file_is_refused_and_stays(text: str, tmp_path: Path) -> None:
    file = tmp_path / "prove.json"
    file.write_text(text)
    with pytest.raises(NotReadable, match="must be a file of trainyard prove.*Fix: move it away"):
        load(file)
    assert file.read_text() == text


def _texts(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    """Places of all texts."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _texts(one, (*path, key))
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from _texts(one, (*path, number))
    elif isinstance(value, str):
        yield path


def _planted(path: Path_, text: str) -> Proof:
    data = copy.deepcopy(dataclasses.asdict(whole()))
    place: Any = data
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = text
    return pydantic.TypeAdapter(Proof).validate_python(data)


FIELDS = [
    path
    for path in _texts(dataclasses.asdict(whole()))
    if path[-1] not in ("state", "start", "end", "began", "created")
]
"""Every text of the file but states and times, which this program writes itself."""


def test_every_field_is_tried() -> None:
    names = {each.name for each in dataclasses.fields(Proof)}
    tried = {path[0] for path in FIELDS}
    assert names - tried == {"schema", "live", "began"}


@pytest.mark.parametrize("path", FIELDS, ids=lambda path: ".".join(map(str, path)))
def test_what_is_planted_in_a_field_is_not_in_the_file(path: Path_, tmp_path: Path) -> None:
    file = tmp_path / "prove.json"
    told = "; ".join([*PLANTED.values(), "word-of-this-machine"])
    save(_planted(path, told), {"word-of-this-machine"}, file)
    written = file.read_text()
    assert [part for part in (*PARTS, "word-of-this-machine") if part in written] == []
    assert json.loads(written)["schema"] == 1 and load(file) is not None


@pytest.mark.parametrize("name", ["versions", "probes"])
def test_what_is_planted_in_a_key_is_not_in_the_file(name: str, tmp_path: Path) -> None:
    file, proof = tmp_path / "prove.json", whole()
    for planted in PLANTED.values():
        getattr(proof, name)[planted] = "1" if name == "versions" else []
    save(proof, (), file)
    assert [part for part in PARTS if part in file.read_text()] == []


def test_times_are_utc() -> None:
    assert iso(0) == "1970-01-01T00:00:00Z" and epoch("1970-01-01T01:00:00+01:00") == 0
    assert epoch(iso(1_764_237_600)) == 1_764_237_600
