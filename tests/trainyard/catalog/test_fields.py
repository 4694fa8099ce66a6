"""The table of fields is what the CRDs say that this checkout installs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trainyard.catalog import crds, refresh
from trainyard.catalog.fields import DEFINED_HERE, FIELDS_FILE, resolved, schema
from trainyard.manifests.field_rules import TYPES


def members(kind: str, *path: str, minor: tuple[int, int] = (2, 1)) -> dict[str, Any]:
    """Fields of the object at a place of a kind."""
    form = schema(kind, minor)
    for step in path:
        form = resolved(form["properties"][step])
    return form["properties"]


def test_the_committed_table_is_what_the_crds_say(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    written = tmp_path / "fields.json"
    monkeypatch.setattr(refresh, "FIELDS_FILE", written)
    assert refresh.main(["--fields"]) == 0
    assert written.read_text() == FIELDS_FILE.read_text(), (
        "python -m trainyard.catalog.refresh --fields"
    )


def test_every_reference_is_defined_and_every_type_is_one_that_is_judged() -> None:
    table = json.loads(FIELDS_FILE.read_text())
    forms = [*table["objects"].values(), *table["definitions"].values(), *DEFINED_HERE.values()]
    while forms:
        form = forms.pop()
        assert form.get("$ref", "metadata") in {*table["definitions"], *DEFINED_HERE}
        assert not isinstance(form.get("type"), str) or form["type"] in TYPES
        forms += [inner for inner in form.values() if isinstance(inner, dict)]


def test_shapes_that_are_alike_stand_once() -> None:
    definitions = json.loads(FIELDS_FILE.read_text())["definitions"].values()
    assert len({json.dumps(form) for form in definitions}) == len(definitions) > 100


def test_a_release_has_its_own_fields() -> None:
    def trainer(minor: tuple[int, int]) -> Any:
        return members("TrainJob", "spec", "trainer", minor=minor)["numProcPerNode"]["type"]

    assert (trainer((2, 1)), trainer((2, 3))) == ("int-or-string", "integer")
    assert "labels" in members("TrainJob", "spec")
    later = members("TrainJob", "spec", minor=(2, 3))
    assert "runtimePatches" in later and not {"podTemplateOverrides", "labels"} & {*later}


def test_a_release_without_crds_has_the_fields_of_the_next_later_one() -> None:
    for minor, same in (((2, 0), (2, 1)), ((2, 2), (2, 3)), ((2, 10), (2, 3))):
        for kind in crds.FILES:
            assert schema(kind, minor) is schema(kind, same)


def test_a_kind_without_a_crd_is_a_map_of_anything() -> None:
    assert schema("ConfigMap", (2, 1)) == {"type": "object"}


def test_a_template_of_pods_has_the_metadata_of_any_object() -> None:
    table = json.loads(FIELDS_FILE.read_text())["definitions"]
    template = table["PyTorchJob.spec.pytorchReplicaSpecs.template"]
    assert "labels" in resolved(template["properties"]["metadata"])["properties"]
    assert "labels" in members("TrainJob", "metadata")
