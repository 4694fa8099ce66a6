"""`trainyard check`: what it says where a file has errors, about what only a sound file tells."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.support.recording import CHECKOUT
from tests.support.tool import run_word

NOT_COMPARED = "environment.budget.dollars_a_month [Pulumi.dev.yaml"


@pytest.fixture
def checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Checks dev with these settings of its environment; what is printed."""
    monkeypatch.chdir(tmp_path)

    def check(**settings: object) -> str:
        file = yaml.safe_load((CHECKOUT / "Pulumi.dev.yaml").read_text())
        file["config"]["trainyard:environment"] |= settings
        (tmp_path / "Pulumi.dev.yaml").write_text(yaml.safe_dump(file))
        (tmp_path / "Pulumi.yaml").write_text((CHECKOUT / "Pulumi.yaml").read_text())
        run_word("check", ["dev"])
        return capsys.readouterr().out

    return check


def test_a_budget_that_cannot_be_compared_yet_is_named(checked: Callable[..., str]) -> None:
    """It appeared as a new error once the others were corrected."""
    budget = {"dollars_a_month": 1, "emails": ["gpu@example.com"]}
    said = checked(budget=budget, zone="ap-northeast-2z")
    assert NOT_COMPARED in said
    assert "is not compared yet with what the plan costs" in said
    assert "compared yet" not in checked(zone="ap-northeast-2z")
    said = checked(budget=budget)
    assert "must be no less than an idle month costs" in said and "not compared yet" not in said
