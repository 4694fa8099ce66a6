"""Versions: each known-good set is made of what is pinned, and of releases that fit each other."""

from __future__ import annotations

import pytest

from catalog import versions
from catalog.versions import (
    KARPENTER_KUBERNETES,
    KNOWN_GOOD,
    KUBERNETES,
    NODE_AMI,
    TRAINER_LINES,
    TRAINERS,
)
from stacks.reports import plan
from tests.support.stackfile import at, environment_plan, planned


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def test_every_choice_is_in_a_known_good_set_that_fits_together() -> None:
    assert {known.trainer for known in KNOWN_GOOD} == set(TRAINERS)
    assert {known.kubernetes for known in KNOWN_GOOD} == set(KUBERNETES)
    for known in KNOWN_GOOD:
        line, (oldest, newest) = (
            TRAINER_LINES[_minor(known.trainer)],
            KARPENTER_KUBERNETES[_minor(known.karpenter)],
        )
        assert (
            known.jobset == line.jobset
            and _minor(known.kueue) in line.kueue
            and _minor(known.sdk) in line.sdk
        )
        assert oldest <= known.kubernetes <= newest and known.ami == NODE_AMI and known.proof


def test_versions_that_were_never_tried_together_are_a_notice_and_nothing_is_said_to_go_with_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    newer = at("trainer.version", "2.3.0")
    assert not [notice for notice in planned(newer).warnings if "never tested" in notice.text]
    assert "made for them: Kueue 0.19.2, SDK kubeflow 0.5.0" in plan.text(environment_plan(newer))
    monkeypatch.setattr(versions, "KNOWN_GOOD", KNOWN_GOOD[:1])
    [said] = [str(notice) for notice in planned(newer).warnings if "never tested" in notice.text]
    assert said.endswith("2.3.0 was never tested with Kubernetes 1.34; tested: 2.1.0 with 1.34")
    assert "made for them" not in plan.text(environment_plan(newer))
