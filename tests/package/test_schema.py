"""The schema of the package says of each argument what the reference of stack files says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from package.schema import ENVIRONMENT, schema
from trainyard.settings.reading.reader import json_schema

MADE = schema()
POOL = MADE["types"]["trainyard:index:Pool"]


def _properties() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, found in MADE["types"].items():
        for key, value in found.get("properties", {}).items():
            yield f"{name}.{key}", value
    for name, found in MADE["resources"].items():
        for part in ("inputProperties", "properties"):
            for key, value in found[part].items():
                yield f"{name}.{key}", value


def test_every_property_has_a_sentence() -> None:
    found = dict(_properties())
    assert len(found) > 250
    assert [path for path, value in found.items() if not value["description"].rstrip(".")] == []


def test_the_package_has_names_that_pulumi_accepts() -> None:
    """Its own schema of packages (sdk/v3, schema/package.json) refuses others."""
    for name in (MADE["namespace"], MADE["name"]):
        assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name)


def test_arguments_are_the_settings_of_a_stack_file() -> None:
    settings = json_schema()["$defs"]["EnvironmentConfig"]
    component = MADE["resources"][ENVIRONMENT]
    assert {*component["inputProperties"]} == {*settings["properties"]}
    assert component["requiredInputs"] == sorted(settings["required"])


def test_a_sentence_has_unit_bounds_and_default() -> None:
    assert POOL["properties"]["root_volume_gib"]["description"].endswith(
        "Value: whole number (GiB), 100 to 16,384. Default: `200`."
    )
    assert POOL["required"] == ["instance_types", "max_nodes"]


def test_choices_are_enums() -> None:
    name = POOL["properties"]["capacity"]["$ref"].removeprefix("#/types/")
    values = [each["value"] for each in MADE["types"][name]["enum"]]
    assert values == ["on_demand", "spot", "reservation", "block"]


def test_every_type_that_is_referred_to_is_there() -> None:
    def references(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            if "$ref" in value:
                yield value["$ref"]
            value = [*value.values()]
        if isinstance(value, list):
            for each in value:
                yield from references(each)

    found = {*references(MADE)} - {"pulumi.json#/Any"}
    assert {each.removeprefix("#/types/") for each in found} == {*MADE["types"]}


def test_a_kubeconfig_is_a_secret() -> None:
    assert MADE["resources"][ENVIRONMENT]["properties"]["kubeconfig"]["secret"]
