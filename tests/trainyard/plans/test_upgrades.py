"""Which steps from one Kubernetes version to another EKS carries out."""

from __future__ import annotations

import pytest

from trainyard.plans.upgrades import refusal


@pytest.mark.parametrize(("now", "wanted"), [("1.34", "1.34"), ("1.34", "1.35"), ("1.9", "1.10")])
def test_the_next_minor_version_is_a_step_that_eks_takes(now: str, wanted: str) -> None:
    assert refusal(now, wanted) is None


def test_two_steps_at_once_are_refused_with_the_first_of_them() -> None:
    assert str(refusal("1.34", "1.36")) == (
        'environment.cluster.version: must be at most one minor version above the cluster\'s, "1.34";'
        ' got "1.36". Fix: write "1.35", run pulumi up, then write "1.36"'
    )


def test_a_step_back_is_refused() -> None:
    said = str(refusal("1.35", "1.34"))
    assert 'must not be lower than the cluster\'s, "1.35"; got "1.34". Fix: write' in said
