"""The reference of the stack file is made from the types, and says something about every setting."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from tests.support.recording import CHECKOUT
from trainyard.catalog import versions
from trainyard.reports import reference
from trainyard.settings import aws, environment, job
from trainyard.settings.reading.reader import json_schema

PAGE = (CHECKOUT / "docs" / "stack-file.md").read_text()
ROWS = re.findall(r"^\| `([^`]+)` \| (.+?) \| (.*?) \| (.*?) \|$", PAGE, re.MULTILINE)
TYPES = sorted(
    {
        value
        for module in (environment, job, aws)
        for name, value in vars(module).items()
        if name.endswith("Config") and name not in ("StackConfig", "AwsConfig")
    },
    key=lambda value: value.__name__,
)
"""StackConfig is the whole file, AwsConfig the keys that begin with `aws:`."""


def _section(path: str) -> str:
    return PAGE.partition(f"\n## `{path}`\n")[2].partition("\n## ")[0]


def test_the_page_in_docs_is_the_one_that_the_types_give() -> None:
    assert reference.page() == PAGE, "trainyard schema --reference > docs/stack-file.md"


@pytest.mark.parametrize("type_", TYPES, ids=lambda value: value.__name__)
def test_every_setting_of_a_type_is_in_the_section_of_that_type(type_: type) -> None:
    path = reference._places(json_schema())[type_.__name__][0]
    section = _section(path)
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == [f.name for f in fields(type_)]
    assert section.strip().splitlines()[0] == " ".join((type_.__doc__ or "").split())


def test_every_setting_of_the_account_is_in_the_section_of_the_account() -> None:
    section = PAGE.partition("## The AWS account")[2].partition("\n## ")[0]
    named = re.findall(r"^\| `aws:(\w+)` \|", section, re.MULTILINE)
    assert named == ["region", *(f.name for f in fields(aws.AwsConfig))]


def test_every_setting_has_a_sentence() -> None:
    assert len(ROWS) > 130
    assert [name for name, _, _, meaning in ROWS if not re.match(r"[A-Z`h].+\.$", meaning)] == []


@pytest.mark.parametrize(
    ("path", "row"),
    [
        ("environment.pools.<name>", "| `max_nodes` | whole number, at least 1 | **required** |"),
        (
            "environment.pools.<name>",
            "| `root_volume_gib` | whole number (GiB), 100 to 16,384 | `200` |",
        ),
        ("environment.pools.<name>", "| `placement` | `anywhere` or `cluster` | `anywhere` |"),
        ("environment.jobs.<name>", "| `expected_hours` | number (hours), more than 0 |  |"),
        (
            "environment.jobs.<name>",
            "| `secrets` | map, each entry: [settings]"
            "(#environmenttrainerown_runtimesnametorchtunetoken) or [settings]"
            "(#environmentjobsnamesecretsname-with-secrets_manager) |  |",
        ),
        (
            "environment.storage.<name>.lustre.repositories.<name>",
            "| `auto_import` | list, each entry: `NEW`, `CHANGED` or `DELETED` |"
            " `[NEW, CHANGED, DELETED]` |",
        ),
    ],
)
def test_a_row_names_type_unit_bounds_and_default(path: str, row: str) -> None:
    assert row in _section(path)


def test_the_releases_that_a_sentence_names_are_those_of_the_catalogue() -> None:
    """Sentences are written by hand, and newcomers need the values."""
    for path, releases in {
        "environment.cluster": versions.KUBERNETES,
        "environment.karpenter": versions.KARPENTERS,
        "environment.trainer": versions.TRAINERS,
        "environment.training_operator": versions.TRAINING_OPERATORS,
    }.items():
        row = re.findall(r"^\| `version` \|.*$", _section(path), re.MULTILINE)[0]
        assert set(re.findall(r"\d+\.\d+(?:\.\d+)?", row)) == set(releases)


def test_every_word_for_a_unit_or_a_pattern_is_used() -> None:
    names = [name for name, *_ in ROWS]
    assert [end for end in reference.UNITS if not any(n.endswith(end) for n in names)] == []
    values = " ".join(value for _, value, *_ in ROWS)
    assert [word for word in reference.PATTERNS.values() if word not in values] == []


def test_a_pattern_without_a_word_stops_the_page() -> None:
    with pytest.raises(KeyError):
        reference._named({"type": "string", "pattern": "^new$"}, {})
