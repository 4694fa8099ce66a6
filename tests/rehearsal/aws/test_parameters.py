"""Parameters of Systems Manager, as the genuine provider asks for them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.rehearsal.aws_world import refused, served

NAME = "/trainyard/dev/teams/vision"


@pytest.fixture
def ssm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with served(tmp_path, monkeypatch) as found:
        yield found.client("ssm")


def described(ssm: Any) -> list[dict[str, Any]]:
    asked = {"Key": "Name", "Option": "Equals", "Values": [NAME]}
    return ssm.describe_parameters(ParameterFilters=[asked])["Parameters"]


def test_a_parameter_holds_8_kib_in_the_advanced_tier_and_4_in_the_standard_one(ssm: Any) -> None:
    with refused("ValidationException"):
        ssm.put_parameter(Name=NAME, Value="x" * 4097, Type="String")
    assert described(ssm) == []
    ssm.put_parameter(Name=NAME, Value="x" * 8192, Type="String", Tier="Advanced")
    with refused("ValidationException"):
        ssm.put_parameter(
            Name=NAME, Value="x" * 8193, Type="String", Tier="Advanced", Overwrite=True
        )
    assert len(ssm.get_parameter(Name=NAME)["Parameter"]["Value"]) == 8192


def test_a_parameter_changes_to_the_advanced_tier_and_not_back(ssm: Any) -> None:
    ssm.put_parameter(Name=NAME, Value="x", Type="String")
    [standard] = described(ssm)
    ssm.put_parameter(Name=NAME, Value="y", Type="String", Tier="Advanced", Overwrite=True)
    [advanced] = described(ssm)
    assert [(each["Tier"], each["Version"]) for each in (standard, advanced)] == [
        ("Standard", 1),
        ("Advanced", 2),
    ]
    with refused("ValidationException"):
        ssm.put_parameter(Name=NAME, Value="z", Type="String", Tier="Standard", Overwrite=True)
