"""The page at the end of `trainyard prove` names where the plan erred, and nothing else."""

from __future__ import annotations

import dataclasses

import pytest

from tests.trainyard.operations.prove.proofs import START, whole
from trainyard.catalog.aws.latencies import LATENCIES
from trainyard.operations.prove.page import page
from trainyard.operations.prove.record import PlannedStage, Proof, Seen


def _section(text: str, title: str) -> list[str]:
    """Lines below a title."""
    [found] = [part for part in text.split("\n\n") if part.startswith(title)]
    return [line.strip() for line in found.rstrip().splitlines()[1:]]


def _slower(proof: Proof, row: str, times: float) -> Proof:
    seen = [
        dataclasses.replace(one, seconds=one.seconds * times) if one.row == row else one
        for one in proof.seen
    ]
    return dataclasses.replace(proof, seen=seen)


def test_a_plan_that_was_right_is_not_blamed() -> None:
    text = page(whole())
    assert _section(text, "where the plan erred") == ["nothing"]
    assert [line.split()[-1] for line in _section(text, "stages")][1:] == ["right"] * 3
    assert _section(text, "rows of") == ["nothing"]


@pytest.mark.parametrize("row", ["eks.cluster", "ec2.nat-gateway", "all of small"])
def test_a_stage_that_took_three_times_as_long_is_named_and_no_other(row: str) -> None:
    text = page(_slower(whole(), row, 3))
    [stage] = [each for each in whole().plan if (each.row or each.stage) == row]
    [said] = [" ".join(_section(text, "where the plan erred"))]
    assert said.startswith(f"{stage.stage}: ") and "times the planned" in said
    assert "above one in ten" in said and said.count("times") == 1
    erred = [line for line in _section(text, "stages") if line.endswith("erred")]
    assert len(erred) == 1 and erred[0].startswith(stage.stage)
    changed = _section(text, "rows of")
    if row in LATENCIES:
        assert len(changed) == 1 and changed[0].startswith(f"{row}: typical ")
    else:
        assert changed == ["nothing"], "a sum of stages is no row"


def test_a_stage_that_took_a_third_of_its_time_is_named() -> None:
    [said] = _section(page(_slower(whole(), "eks.cluster", 1 / 3)), "where the plan erred")
    assert said.startswith("cluster: 187 s, only 0.3 times the planned 544 s")


def test_a_row_that_only_people_wrote_of_is_named_also_where_it_was_right() -> None:
    row = LATENCIES["eks.addon.delete"]
    assert row.n == 0
    seen = Seen(row="eks.addon.delete", step="destroy", start=START, seconds=row.typical)
    text = page(dataclasses.replace(whole(), seen=[seen]))
    [said] = _section(text, "rows of")
    assert said.endswith("n 0 → 1")


def test_a_stage_of_which_nothing_was_seen_is_left_out() -> None:
    plan = [PlannedStage(stage="VPC", row="ec2.vpc", typical=14, slow=17, logs=5)]
    assert "stages: none was seen" in page(dataclasses.replace(whole(), plan=plan))


def test_it_says_what_was_refused_word_for_word_what_is_left_and_what_was_spent() -> None:
    text = page(whole())
    assert "small: VpcLimitExceeded: the maximum number of VPCs has been reached" in text
    assert "gpu        not tried" in text and "gpu: Lustre client 2.15.6" in text
    assert "spent: 4.20 of at most 15 USD\n  by list price × time" in text
    assert _section(text, "left") == ["not looked for yet"]
    assert "no AWS account" in page(dataclasses.replace(whole(), live=False))
