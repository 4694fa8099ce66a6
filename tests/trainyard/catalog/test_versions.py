"""Versions: each known-good set is made of what is pinned, and of releases that fit each other."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.support.stackfile import at, environment_plan, planned
from trainyard.catalog import versions
from trainyard.catalog.aws.storage import LUSTRE_KERNELS
from trainyard.catalog.versions import (
    AMI_RELEASE,
    DEFAULT_KUBERNETES,
    KARPENTER,
    KARPENTER_KUBERNETES,
    KARPENTERS,
    KNOWN_GOOD,
    KUBERNETES,
    NODE_AMI,
    PANICKING_AMI_RELEASES,
    TRAINER_LINES,
    TRAINERS,
)
from trainyard.reports import plan


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def test_every_choice_is_in_a_known_good_set_that_fits_together() -> None:
    assert {known.trainer for known in KNOWN_GOOD} == set(TRAINERS)
    tried = {one for known in KNOWN_GOOD for on in known.karpenter.values() for one in on}
    assert DEFAULT_KUBERNETES in tried and tried <= set(KUBERNETES)
    assert {KUBERNETES[version].kernel for version in tried} <= set(LUSTRE_KERNELS)
    for known in KNOWN_GOOD:
        line = TRAINER_LINES[_minor(known.trainer)]
        assert (
            known.jobset == line.jobset
            and _minor(known.kueue) in line.kueue
            and _minor(known.sdk) in line.sdk
        )
        assert known.karpenter[KARPENTER] and set(known.karpenter) <= set(KARPENTERS)
        for karpenter, kubernetes in known.karpenter.items():
            oldest, newest = KARPENTER_KUBERNETES[_minor(karpenter)]
            assert all(oldest <= version <= newest for version in kubernetes)
        assert known.ami == NODE_AMI and known.proof


def test_every_release_pins_the_same_add_ons_each_of_its_own_minor_version() -> None:
    names = {frozenset(release.add_ons) for release in KUBERNETES.values()}
    assert len(names) == 1
    for version, release in KUBERNETES.items():
        assert release.add_ons["kube-proxy"].startswith(f"v{version}.")
        assert release.system_nodes.startswith(f"{version}.")
        assert release.system_nodes.endswith(AMI_RELEASE.removeprefix("v"))


def test_a_version_that_is_refused_for_what_is_missing_is_later_than_all_that_are_not() -> None:
    known = [versions.minor(version) for version in KUBERNETES]
    assert all(versions.minor(later) > max(known) for later in versions.LATER_KUBERNETES)


def test_no_pinned_image_has_the_kernel_that_panics() -> None:
    assert AMI_RELEASE.removeprefix("v") not in PANICKING_AMI_RELEASES


def test_support_is_standard_then_extended_then_none() -> None:
    release = KUBERNETES["1.34"]
    day = timedelta(days=1)
    assert [
        release.support(one)
        for one in (release.standard_ends - day, release.standard_ends, release.extended_ends)
    ] == ["standard", "extended", "no"]


def test_an_hour_in_extended_support_costs_both_prices() -> None:
    def usd(support: versions.Support) -> list[str]:
        found = versions.control_plane_prices("us-east-1", support)
        return [f"{each.usd:.2f}" for each in found if each]

    assert (usd("standard"), usd("extended")) == (["0.10"], ["0.10", "0.50"])


def test_an_hour_in_a_tier_costs_the_tier_too() -> None:
    found = versions.control_plane_prices("us-east-1", "extended", "tier-4xl")
    assert [f"{each.usd:.2f}" for each in found if each] == ["0.10", "0.50", "6.90"]
    assert versions.control_plane_prices("eu-north-1", "standard", "tier-xl")[1] is None


def test_versions_that_were_never_tried_together_are_a_notice_and_nothing_is_said_to_go_with_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    newer = at("trainer.version", "2.3.0")
    assert not [notice for notice in planned(newer).warnings if "never tested" in notice.text]
    assert "matching releases: Kueue 0.19.2, SDK kubeflow 0.5.0" in plan.text(
        environment_plan(newer)
    )
    monkeypatch.setattr(versions, "KNOWN_GOOD", KNOWN_GOOD[:1])
    [said] = [str(notice) for notice in planned(newer).warnings if "never tested" in notice.text]
    assert said.endswith(
        "2.3.0 was never tested with Kubernetes 1.35; tested: 2.1.0 with 1.34 and 1.35 and 1.36"
    )
    assert "matching releases" not in plan.text(environment_plan(newer))
