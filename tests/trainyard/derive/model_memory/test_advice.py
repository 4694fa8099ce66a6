"""A change that is advised makes the model fit, by the same arithmetic."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from trainyard.derive.model_memory import advice
from trainyard.derive.model_memory.memory import (
    Checkpointing,
    Optimizer,
    Precision,
    Sharding,
    Training,
    least,
    likely,
)
from trainyard.derive.model_memory.models import MODELS

ROOMS = (24e9, 48e9, 80 * 2**30, 141 * 2**30)


@st.composite
def trainings(draw: st.DrawFn) -> Training:
    model = draw(st.sampled_from([*MODELS.values()]))
    return Training(
        parameters=model.parameters,
        trainable=model.parameters * draw(st.sampled_from([1, 1, 0.01])),
        shape=model.shape,
        precision=draw(st.sampled_from(get_args(Precision))),
        optimizer=draw(st.sampled_from(get_args(Optimizer))),
        sharding=draw(st.sampled_from(get_args(Sharding))),
        gpus=8 * draw(st.sampled_from([1, 2, 4])),
        gpus_per_node=8,
        checkpointing=draw(st.sampled_from(get_args(Checkpointing))),
        sequence=draw(st.sampled_from([None, 512, 4096, 32_768])),
        batch=draw(st.sampled_from([None, 1, 8])),
    )


@given(trainings(), st.sampled_from(ROOMS))
def test_what_is_advised_fits(training: Training, room: float) -> None:
    for way in advice.ways(training, room):
        assert likely(way.training).total <= room and way.likely == likely(way.training)
        assert way.training != training and least(way.training).total <= room


@given(trainings(), st.sampled_from(ROOMS))
def test_no_single_change_is_missed_and_no_way_is_longer_than_it_must_be(
    training: Training, room: float
) -> None:
    single = [change(training) for change in advice.CHANGES.values()]
    fitting = [each for each in single if each != training and likely(each).total <= room]
    own = [way for way in advice.ways(training, room) if "nodes" not in way.changes]
    assert len(own) <= 1
    if fitting:
        assert len(own[0].changes) == 1 and own[0].training == fitting[0]


@given(trainings(), st.sampled_from(ROOMS))
def test_the_fewest_nodes_are_the_fewest(training: Training, room: float) -> None:
    nodes = advice.nodes_at_least(training, room)
    sizes = range(training.gpus // 8, (nodes or advice.MOST_NODES + 1))
    assert all(least(replace(training, gpus=8 * n)).total > room for n in sizes)
    if nodes:
        assert least(replace(training, gpus=8 * nodes)).total <= room
