"""Names of a team's objects in a program that makes several teams."""

from __future__ import annotations

from dataclasses import replace

from stacks.team import _named
from tests.support.stackfile import team_plan


def test_a_job_comes_after_the_jobs_of_its_own_team() -> None:
    [job] = team_plan().jobs.values()
    chain = {"prepare": job, "train": replace(job, after=("prepare",))}
    named = _named(chain, "vision-")
    assert {key: plan.after for key, plan in named.items()} == {
        "vision-prepare": (),
        "vision-train": ("vision-prepare",),
    }
    assert _named(chain, "") == chain
