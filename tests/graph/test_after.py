"""The order of runs in the graph, and the hooks that wait."""

from __future__ import annotations

import pytest

from tests.graph.test_secrets import differ
from tests.support.graphs import environment
from tests.support.recording import Graph
from tests.support.stackfile import at
from tests.trainyard.derive.test_after import CHAIN, JOB, beside


@pytest.fixture(scope="module")
def chain() -> Graph:
    return environment(*CHAIN)


def test_a_run_waits_for_those_before_it_and_for_no_other(chain: Graph) -> None:
    order = ["prepare", "t5-large", "evaluate", "export"]
    made = [chain[f"TrainJob {name}"] for name in order]
    for number, run in enumerate(made):
        later = made[number + 1 :]
        assert all(chain.waits_for(other, run) for other in later)
        assert not any(chain.waits_for(run, other) for other in later)


def test_a_hook_waits_before_a_run_and_none_before_the_first(chain: Graph) -> None:
    hooks = {
        name: [*chain[f"TrainJob {name}"].options.hooks.before_create]
        for name in ("prepare", "export")
    }
    assert hooks["export"][0] == "export-after" and "prepare-after" not in hooks["prepare"]
    assert hooks["export"][1:] == hooks["prepare"]


def test_after_changes_the_job_that_has_it_and_those_behind_it_alone() -> None:
    before = environment(beside(evaluate=None, prepare=None))
    after = environment(beside(evaluate=None, prepare=None), at(f"{JOB}.after", ["prepare"]))
    assert differ(before, after) == (set(), {"t5-large"})
