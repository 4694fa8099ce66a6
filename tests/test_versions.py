"""Versions: each known-good set is made of what is pinned, and of releases that fit each other."""

from __future__ import annotations

from catalog.versions import KARPENTER_KUBERNETES, KNOWN_GOOD, KUBERNETES, NODE_AMI, TRAINER_LINES, TRAINERS


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def test_every_choice_is_in_a_known_good_set_that_fits_together() -> None:
    assert {known.trainer for known in KNOWN_GOOD} == set(TRAINERS)
    assert {known.kubernetes for known in KNOWN_GOOD} == set(KUBERNETES)
    for known in KNOWN_GOOD:
        line, (oldest, newest) = TRAINER_LINES[_minor(known.trainer)], KARPENTER_KUBERNETES[_minor(known.karpenter)]
        assert known.jobset == line.jobset and _minor(known.kueue) in line.kueue and _minor(known.sdk) in line.sdk
        assert oldest <= known.kubernetes <= newest and known.ami == NODE_AMI and known.proof
