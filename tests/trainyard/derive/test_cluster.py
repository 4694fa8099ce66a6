"""What a cluster has besides its control plane."""

from __future__ import annotations

from datetime import date

import pytest

from tests.support.stackfile import Edit, at, environment_plan, without
from trainyard.derive.cluster import _support
from trainyard.settings.cluster import ClusterConfig


def test_drivers_are_installed_for_the_kinds_of_storage_there_are() -> None:
    def drivers(*edits: Edit) -> list[str]:
        return [a.name for a in environment_plan(*edits).add_ons.after_nodes]

    bare: list[Edit] = [at("storage", {}), at("jobs", {})]
    assert drivers() == ["coredns", "aws-fsx-csi-driver", "aws-efs-csi-driver"]
    assert drivers(without("storage.home")) == ["coredns", "aws-fsx-csi-driver"]
    assert drivers(*bare) == ["coredns"]


@pytest.mark.parametrize(
    ("day", "policy", "support", "since"),
    [
        ("2026-10-01", "extended", "standard", None),
        ("2026-11-29", "extended", "extended", "2026-12-02"),
        ("2026-11-29", "standard", "standard", None),
        ("2026-12-02", "extended", "extended", None),
        ("2027-11-29", "extended", "no", "2027-12-02"),
    ],
)
def test_the_month_is_paid_for_the_support_that_begins_in_it(
    day: str, policy: str, support: str, since: str | None
) -> None:
    """A month at $0.10 an hour was promised three days before an hour cost $0.60."""
    cluster = ClusterConfig(version="1.34", upgrade_policy=policy)  # pyright: ignore[reportArgumentType]
    found, begins = _support(cluster, date.fromisoformat(day))
    assert (found, begins and begins.isoformat()) == (support, since)
