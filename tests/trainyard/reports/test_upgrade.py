"""What a plan says about versions."""

from __future__ import annotations

import pytest

from tests.support.stackfile import at, environment_plan, team_plan
from trainyard.catalog import versions
from trainyard.reports import plan
from trainyard.reports.upgrade import versions_section


def test_a_plan_says_how_long_its_version_is_supported_and_what_the_next_one_replaces() -> None:
    said = versions_section(environment_plan(at("cluster.version", "1.34")))
    assert " ".join(" ".join(said).split()) == (
        "versions"
        " Kubernetes 1.34 standard support until 2026-12-02, extended support until 2027-12-02"
        " system nodes AMI release 1.34.11-20261012"
        " GPU nodes AMI al2023@v20261012"
        " next: 1.35. It replaces the 2 system nodes one by one; GPU nodes that run keep their"
        " version (docs/upgrades.md)"
    )


def test_a_next_version_that_was_never_tested_is_said_to_be_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "next: 1.36. It replaces" in " ".join(versions_section(environment_plan()))
    monkeypatch.setattr(versions, "KNOWN_GOOD", ())
    said = " ".join(versions_section(environment_plan()))
    assert "next: 1.36, never tested with Trainer 2.1.0 and Karpenter 1.14.1. It replaces" in said


def test_after_the_newest_version_there_is_no_next_one() -> None:
    [*_, said] = versions_section(environment_plan(at("cluster.version", "1.36")))
    assert said == "  no version after 1.36 is known to this program"


def test_a_teams_plan_is_silent_about_the_versions_of_its_environment() -> None:
    assert "extended support" in plan.text(environment_plan())
    assert "extended support" not in plan.text(team_plan())
