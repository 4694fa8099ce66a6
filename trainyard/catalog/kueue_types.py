"""Changes that Kueue makes to a TrainJob that it writes back, by release of Kueue:
kueue_types.json; and the releases that start no job without GPUs in a topology.

Kueue writes the whole object with Go types of its own. They leave out fields whose value is zero, and
fields that they do not have. From Trainer 2.3 on, the CRD compares what was there with what comes
(`self == oldSelf`), and refuses such a write: the job keeps its quota and never starts (kubeflow/trainer#3888,
kueue#14836). The CRD of 2.1 compares runtimeRef and managedBy only, so its Kueue is not here.

`python -m tests.support.kueue_types` writes the file from the types themselves.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from trainyard.catalog.versions import TRAINER_RELEASES

PLACES_GPUS_ONLY = frozenset({"0.19.2"})
"""Releases of Kueue that admit no job in which some pods request nothing that its queue counts, where all flavors of
the queue have a topology (tas_flavorassigner.go, ErrNoTASFlavorAssigned; kueue#14707). 0.16 starts such a job."""
TYPES_FILE = Path(__file__).with_name("kueue_types.json")
SPEC = "TrainJobSpec"
"""Name of the type of TrainJob.spec."""

Form = Mapping[str, Any]
"""A type: `drops`, its fields that are left out where they are zero; `keeps`, its other fields; `inside`,
field → type of what it holds, or of the entries of its list."""


@cache
def _forms(trainer: str) -> Mapping[str, Form]:
    """The types of the Kueue that goes with a release of the Trainer; none where nothing is compared."""
    return json.loads(TYPES_FILE.read_text()).get(TRAINER_RELEASES[trainer].kueue, {})


def as_written_back(spec: Mapping[str, Any], trainer: str) -> dict[str, Any]:
    """TrainJob.spec without the zero values that Kueue leaves out, which mean the same as none.
    `trainer`: release of the Trainer; KeyError for an unknown one."""
    return _written(spec, SPEC, _forms(trainer))


def _written(value: Any, name: str | None, forms: Mapping[str, Form]) -> Any:
    """A value of a type; `name`: of the type, None where it has no fields."""
    form = forms.get(name or "")
    if form is None:
        return value
    if isinstance(value, list):
        return [_written(each, name, forms) for each in value]
    if not isinstance(value, Mapping):
        return value
    return {
        key: _written(each, form["inside"].get(key), forms)
        for key, each in value.items()
        if each or key not in form["drops"]
    }


def unknown_fields(spec: Mapping[str, Any], trainer: str) -> Iterator[tuple[str | int, ...]]:
    """Paths of the fields that Kueue does not have, and so drops, whatever their value."""
    yield from _unknown(spec, SPEC, _forms(trainer), ())


def _unknown(
    value: Any, name: str | None, forms: Mapping[str, Form], path: tuple[str | int, ...]
) -> Iterator[tuple[str | int, ...]]:
    form = forms.get(name or "")
    if form is None:
        return
    if isinstance(value, list):
        for number, each in enumerate(value):
            yield from _unknown(each, name, forms, (*path, number))
    elif isinstance(value, Mapping):
        for key, each in value.items():
            if key not in (*form["drops"], *form["keeps"]):
                yield (*path, key)
            yield from _unknown(each, form["inside"].get(key), forms, (*path, key))
