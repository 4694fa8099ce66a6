"""Settings of a sweep: one entry of `jobs` that is a run for each combination of values.

What follows from them: trainyard/derive/sweep.py. What is refused: trainyard/rules/sweep.py.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import pydantic

from trainyard.settings.section import Section

Value = bool | int | float | str


@dataclass(frozen=True, kw_only=True)
class MetricConfig:
    """Figure that the runs of a sweep print, by which `trainyard runs` compares them."""

    name: Annotated[str, pydantic.Field(min_length=1)]
    """Name of the figure as the script prints it, such as eval_loss in `eval_loss: 0.51`. The last one that
    rank 0 prints counts."""
    goal: Literal["minimize", "maximize"]
    """`minimize`: the lowest figure is the best. `maximize`: the highest."""


@dataclass(frozen=True, kw_only=True)
class SweepConfig:
    """Makes the entry one run for each combination of values. `{name}` in any text of the entry stands for
    the run's value. See docs/jobs.md."""

    over: dict[str, tuple[Value, ...]]
    """Name → values, such as `lr: [0.0001, 0.0003]`. Several names make every combination."""
    at_most: Annotated[int, pydantic.Field(ge=1, strict=True)] | None = None
    """Number of runs that go on at the same time at most. `pulumi up` then waits, and makes the next run when one
    has ended. By default all runs are made at once, and the queue or the pool decides which begin."""
    metric: Section[MetricConfig] = None
    """By default `trainyard runs` lists the runs of the sweep in the order of the stack file."""
