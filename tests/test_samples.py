"""Every sample that people bring reaches its end in a world, repaired where it is flawed: which
test takes it there."""

from __future__ import annotations

import ast

import pytest

from tests.support.recording import CHECKOUT

TESTS, T5 = (
    CHECKOUT / "tests",
    "test_rehearsal.py test_the_job_is_complete_and_its_sixteen_ranks_met",
)
FRAGMENTS = (
    "test_jobs_world.py"
    " test_a_runtime_with_every_fragment_that_people_bring_takes_their_job_to_its_end"
)
ENDS = {
    "a-t5-large.trainjob": T5,
    "a-max-restarts.runtime-fragment": FRAGMENTS,
    "a-torch-distributed.runtime": (
        "test_capacity_world.py "
        "test_the_node_that_appears_has_exactly_the_devices_the_plan_promised"
    ),
    "b-t5-large.flawed.trainjob": T5,
    "c-pytorch-dist-job.flawed": (
        "test_jobs_world.py test_the_sample_that_clones_is_repaired_as_a_file_and_succeeds"
    ),
    "d-elastic.flawed.runtime-fragment": "",
    "d-gpu.runtime-fragment": FRAGMENTS,
    "d-retry-and-ttl.runtime-fragment": FRAGMENTS,
    "d-training-runtime-demo": FRAGMENTS,
    "d-trainjob-with-configmap": (
        "test_training_world.py test_from_a_configmap_and_killed_in_the_middle_of_a_checkpoint"
    ),
    "d-trainjob-with-hostpath": (
        "test_training_world.py test_from_a_folder_of_the_node_and_one_rank_killed"
    ),
    "d-trainjob-with-image": "test_training_world.py test_from_an_image_and_a_node_asked_to_leave",
    "e-qwen3-30b-fullft.flawed.pytorchjob": (
        "test_jobs_world.py test_sixteen_ranks_met_on_two_nodes_with_claims_on_lustre"
    ),
}
"""File of tests/workloads → file and test; none where it is refused, and nothing can be
repaired."""


def test_every_sample_is_in_the_table():
    assert {path.stem for path in (TESTS / "workloads").glob("*.yaml")} == ENDS.keys()


@pytest.mark.parametrize("where", sorted({*ENDS.values()} - {""}))
def test_the_test_that_takes_it_to_its_end_is_there(where: str):
    file, _, test = where.partition(" ")
    functions = [
        node
        for node in ast.parse((TESTS / "worlds" / file).read_text()).body
        if isinstance(node, ast.FunctionDef)
    ]
    assert test in {function.name for function in functions}
