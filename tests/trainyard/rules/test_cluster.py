"""Warnings about the Kubernetes version: the end of its support, by the day of the plan."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.support.stackfile import Edit, at, reading
from trainyard.decide import plan_stack

OLD = at("cluster.version", "1.34")
LEAVE = at("cluster.upgrade_policy", "standard")


def said(day: str, *edits: Edit) -> list[str]:
    """What is said of the version on that day."""
    now = datetime.fromisoformat(day).replace(tzinfo=UTC)
    warnings = plan_stack(reading(*edits), now=now).warnings
    return [one.text for one in warnings if one.path == "environment.cluster.version"]


def test_nothing_is_said_until_90_days_before_the_end_of_standard_support() -> None:
    assert said("2026-09-02", OLD) == [] and len(said("2026-09-03", OLD)) == 1


@pytest.mark.parametrize(
    ("day", "edits", "text"),
    [
        (
            "2026-11-22",
            [OLD],
            "standard support of Kubernetes 1.34 ends on 2026-12-02, in 10 days: the control plane"
            ' then costs $0.60 an hour instead of $0.10 (us-east-1); write "1.35",'
            " docs/upgrades.md has the order",
        ),
        (
            "2026-11-22",
            [OLD, LEAVE],
            "standard support of Kubernetes 1.34 ends on 2026-12-02, in 10 days: EKS then upgrades"
            ' the control plane by itself, at a time that it chooses; write "1.35",'
            " docs/upgrades.md has the order",
        ),
        (
            "2026-12-02",
            [OLD],
            "standard support of Kubernetes 1.34 ended on 2026-12-02: the control plane costs $0.60"
            ' an hour instead of $0.10 (us-east-1), until 2027-12-02; write "1.35",'
            " docs/upgrades.md has the order",
        ),
        (
            "2027-12-02",
            [OLD],
            "support of Kubernetes 1.34 ended on 2027-12-02: EKS upgrades the control plane by"
            ' itself, at a time that it chooses; write "1.35", docs/upgrades.md has the order',
        ),
        (
            "2027-08-01",
            [at("cluster.version", "1.36")],
            "standard support of Kubernetes 1.36 ends on 2027-08-02, tomorrow: the control plane"
            " then costs $0.60 an hour instead of $0.10 (us-east-1)",
        ),
    ],
)
def test_the_end_of_support_is_said_with_its_price_and_the_way_out(
    day: str, edits: list[Edit], text: str
) -> None:
    assert said(day, *edits) == [text]


def test_a_control_plane_is_priced_by_its_support_in_the_month_that_comes() -> None:
    for day, support in (("2026-11-01", "standard"), ("2026-11-02", "extended")):
        now = datetime.fromisoformat(day).replace(tzinfo=UTC)
        plan = plan_stack(reading(OLD), now=now).accepted()
        assert plan.cluster.support == support  # type: ignore[union-attr]
