"""Newest releases of upstream: none is older than what this program pins."""

from __future__ import annotations

from trainyard.catalog import versions
from trainyard.catalog.upstream.releases import NEWEST, PACKAGES
from trainyard.live.releases import in_order

PINNED = {
    "Karpenter": [*versions.KARPENTERS],
    "Trainer": [*versions.TRAINERS],
    "JobSet": [line.jobset for line in versions.TRAINER_LINES.values()],
    "Kueue": [versions.KUEUE, versions.NEWEST_KUEUE],
    "NVIDIA device plugin": [versions.NVIDIA_DEVICE_PLUGIN],
}


def test_the_table_has_each_part_and_nothing_older_than_what_is_pinned() -> None:
    """A pin that overtakes the table would silence `trainyard due`."""
    assert {*PINNED, *PACKAGES} == set(NEWEST)
    for part, pinned in PINNED.items():
        assert in_order(NEWEST[part].release) >= max(map(in_order, pinned)), part


def test_moving_is_one_sentence_that_goes_on_after_a_colon() -> None:
    for newest in NEWEST.values():
        assert newest.moving == newest.moving.strip().removesuffix(".")
        assert ". " not in newest.moving


def test_a_trainer_that_is_named_as_newer_is_installed_or_refused_with_what_is_missing() -> None:
    """`due` names it, and somebody writes it in a stack file."""
    newest = NEWEST["Trainer"].release
    assert (newest in versions.TRAINERS) != (newest in versions.LATER_TRAINERS)
