"""A fix leads somewhere: what a machine can apply of it makes its message go, and brings no new one."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.corpus import bad_entries
from tests.support.cases import environment, jobs
from tests.support.stackfile import Edit, at, values
from trainyard.decide import plan_stack
from trainyard.problems import REMOVE, InputError
from trainyard.settings.reading.reader import read

SEED, SAMPLE = 38, 120


TWO_FAULTS: dict[str, str] = {
    "goodput_percent: must be less than 100": "needs parameters_billion too",
    "efs.throughput_mibps: must be at most": "is not for elastic throughput",
    "archive_after_days: must not be set with throughput": "was all that lifecycle said",
    "file_system_id: must be the id of a file system": "names one that exists, which nobody here knows",
    "zone: must be text": "is no zone either",
    "artifacts.images: must be text": "is no registry either",
    "allow_replace: must be a list": "names nothing either",
    "network.internet: must be one of": "asks for a network without the internet",
    "gpus_per_node: must be at least 1": "contradicts the script",
    "max_nodes: must be at least 1": "is less than the job needs",
    "max_nodes: must be at most 1, the instances of": "is more than is reserved, and the job needs it",
    "files.sources: must not be empty": "names no file, and nobody knows which one is meant",
    "files: must be settings": "names a file that is not there",
    "command: must be a list": "stands beside a script",
    "arguments: must be a list": "stands beside a script",
    "torchrun: must be settings": "stands beside a script",
}
"""Beginning of an error → the other fault of the same value, which shows when the first is gone."""


def _errors(made: dict[str, Any]) -> tuple[InputError, ...]:
    """Errors of the development environment in these words."""
    return plan_stack(read(made, stack="dev", project="trainyard")).errors


def _applied(made: dict[str, Any], error: InputError) -> dict[str, Any] | None:
    """The values with the fix of an error; None where its place is in no map."""
    fixed = copy.deepcopy(made)
    place: Any = fixed["trainyard:environment"]
    rest = error.path.removeprefix("environment.")
    while True:
        step = next((key for key in place if rest == key or rest.startswith(f"{key}.")), None)
        if rest == step or step is None:
            break
        place, rest = place[step], rest[len(step) + 1 :]
        if not isinstance(place, dict):
            return None
    if error.write is REMOVE:
        place.pop(rest, None)
    elif "." in rest:
        return None
    else:
        place[rest] = error.write
    return fixed


def _cases() -> dict[str, dict[str, Any]]:
    """Bad stack files by their names."""
    rows: dict[str, list[Edit]] = {
        f"{path} {str(value)[:40]}": [at(path, value)] for path, value, *_ in bad_entries.ROWS
    }
    for table in (environment.REFUSED, jobs.REFUSED):
        rows |= {name: row[0] for name, row in table.items()}
    return {name: values(*edits) for name, edits in rows.items()}


def _astray(name: str, made: dict[str, Any]) -> Iterator[str]:
    """Each fix with a value that does not end its error, or brings one that was not there."""
    errors = _errors(made)
    places = {(error.path, error.must) for error in errors}
    for error in errors:
        has_other = any(f".{words}" in f".{error}" for words in TWO_FAULTS)
        if error.write is None or has_other or not error.path.startswith("environment."):
            continue
        fixed = _applied(made, error)
        if fixed is None:
            continue
        after = _errors(fixed)
        stays = [each for each in after if (each.path, each.must) == (error.path, error.must)]
        new = [each for each in after if (each.path, each.must) not in places]
        if stays or new:
            yield f"{name}: {error}\n    -> {[*map(str, [*stays, *new])]}"


def test_a_fix_with_a_value_ends_its_error_and_brings_no_other() -> None:
    cases = [*_cases().items()]
    assert len(cases) > 400
    some = random.Random(SEED).sample(cases, SAMPLE)
    assert [each for case in some for each in _astray(*case)] == []


def test_a_wrong_range_and_a_gpu_in_a_type_s_place_have_the_fix_that_fits() -> None:
    """Both were led astray: to a /32, and to the first types of the catalogue."""
    for path, value, write in (
        ("network.cidr", "10.0.0.0", "10.0.0.0/16"),
        ("network.cidr", "10.0.0.0/30", "10.0.0.0/20"),
        ("pools.g6e.instance_types", ["H100"], "p5"),
    ):
        [error, *_] = _errors(values(at(path, value)))
        assert write in error.fix, str(error)


@pytest.mark.soak
def test_every_fix_with_a_value_ends_its_error_and_brings_no_other() -> None:
    assert [each for case in _cases().items() for each in _astray(*case)] == []
