"""What Kueue drops when it writes a TrainJob back, against the fields that the Trainer's CRD has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from trainyard.catalog.fields import METADATA, Schema, resolved, schema
from trainyard.catalog.kueue_types import SPEC, _forms, as_written_back, unknown_fields
from trainyard.catalog.versions import TRAINER_RELEASES

FORMS = _forms("2.3.0")


def _fields(form: Schema, name: str, path: str, seen: set[str]) -> Iterator[tuple[str, str, str]]:
    """(path, type, field) of each field of the CRD, once for each type."""
    for field, inner in resolved(form)["properties"].items():
        at = f"{path}.{field}"
        yield at, name, field
        inside = FORMS[name]["inside"].get(field)
        entry = resolved(inner)
        while entry.get("type") == "array":
            entry = resolved(entry["items"])
        if "properties" in entry and inside and inside not in seen and field != METADATA:
            seen.add(inside)
            yield from _fields(entry, inside, at, seen)


def test_every_field_of_the_crd_is_known_but_one() -> None:
    """That one is refused in a queue: trainyard/manifests/queue_fields.py."""
    spec = resolved(schema("TrainJob", (2, 3)))["properties"]["spec"]
    found = list(_fields(spec, SPEC, "spec", {SPEC}))
    assert len(found) > 200 and len({name for _, name, _ in found}) > 60
    unknown = [
        path
        for path, name, field in found
        if field not in (*FORMS[name]["drops"], *FORMS[name]["keeps"])
    ]
    assert [path.rsplit(".", 1)[-1] for path in unknown] == ["terminationGracePeriodSeconds"]


def test_a_field_is_left_out_by_its_type_and_not_by_its_name() -> None:
    """`name` of a LocalObjectReference goes where it is empty, `name` of a variable stays; a pointer's zero
    and the entries of maps and lists stay."""
    trainer: dict[str, Any] = {
        "env": [
            {"name": "", "value": ""},
            {
                "name": "A",
                "valueFrom": {"secretKeyRef": {"name": "", "key": "", "optional": False}},
            },
        ],
        "command": [""],
        "args": [],
        "numNodes": 0,
        "image": "",
        "resourcesPerNode": {"limits": {"cpu": 0}, "requests": {}},
    }
    assert as_written_back({"trainer": trainer, "suspend": False}, "2.3.0") == {
        "suspend": False,
        "trainer": {
            "env": [
                {"name": ""},
                {"name": "A", "valueFrom": {"secretKeyRef": {"key": "", "optional": False}}},
            ],
            "command": [""],
            "numNodes": 0,
            "image": "",
            "resourcesPerNode": {"limits": {"cpu": 0}},
        },
    }


def test_a_value_of_another_shape_is_left_as_it_is() -> None:
    spec = {"trainer": ["?"], "runtimePatches": {"manager": 5}, "runtimeRef": "torch"}
    assert as_written_back(spec, "2.3.0") == spec
    assert [*unknown_fields({"trainer": [{"env": [{"nmae": 1}]}]}, "2.3.0")] == [
        ("trainer", 0, "env", 0, "nmae")
    ]


@pytest.mark.parametrize("release", TRAINER_RELEASES)
def test_only_the_crd_of_2_3_compares_what_kueue_may_drop(release: str) -> None:
    spec = {"trainer": {"args": []}, "podTemplateOverrides": []}
    kept = as_written_back(spec, release)
    assert (kept == spec) is (release == "2.1.0") and [*unknown_fields(spec, release)] == (
        [] if release == "2.1.0" else [("podTemplateOverrides",)]
    )
