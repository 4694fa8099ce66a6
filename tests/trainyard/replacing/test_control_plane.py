"""A preview says that a control plane keeps a tier which its stack file does not name any more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.stackfile import Edit, at, environment_plan, planned, reading
from trainyard.replacing.compared import compared
from trainyard.replacing.control_plane import tier_warnings
from trainyard.replacing.deployed import Deployed
from trainyard.replacing.replacing import CLUSTER


def _before(tier: str | None) -> Deployed:
    scaling = {"controlPlaneScalingConfig": {"tier": tier}} if tier else {}
    return Deployed(resources={CLUSTER: {"name": "dev", "version": "1.35", **scaling}})


def _said(tier: str | None, *edits: Edit) -> list[str]:
    return [str(each) for each in tier_warnings(environment_plan(*edits), _before(tier))]


def test_a_tier_that_nobody_names_any_more_stays_and_is_paid() -> None:
    assert _said("tier-8xl") == [
        "environment.cluster.scaling_tier: it is not set, so the control plane stays tier-8xl, which costs about"
        " $12.51 to $19.46 an hour more, and `trainyard plan` counts standard. Write scaling_tier: standard,"
        " which ends that, or scaling_tier: tier-8xl"
    ]


@pytest.mark.parametrize("tier", ["standard", None])
def test_a_control_plane_without_a_tier_of_its_own_is_no_warning(tier: str | None) -> None:
    assert _said(tier) == []


def test_a_tier_that_the_stack_file_names_is_no_warning() -> None:
    assert _said("tier-8xl", at("cluster.scaling_tier", "standard")) == []
    assert not [*tier_warnings(environment_plan(), Deployed())]


def test_a_preview_says_it() -> None:
    before = _before("tier-xl")
    found = compared(planned(), reading().lines, lambda *_: before, lambda *_: [])
    assert "environment.cluster.scaling_tier" in [each.path for each in found.warnings]


def test_the_price_of_a_tier_is_that_of_its_region() -> None:
    plan = environment_plan()
    there = replace(plan, identity=replace(plan.identity, region="us-east-1"))
    [said] = tier_warnings(there, _before("tier-8xl"))
    assert "which costs $13.90 an hour more" in str(said)
