"""Settings of the history of runs. Their plan: trainyard/parts/history.py."""

from dataclasses import dataclass
from typing import Annotated

import pydantic


@dataclass(frozen=True, kw_only=True)
class HistoryConfig:
    """A program on the system nodes that records each run: who, what, when, on which nodes and how it
    ended. `trainyard runs` and `trainyard spent` then also know runs whose job is deleted. Write `{}` for the
    default."""

    days: Annotated[int, pydantic.Field(ge=1, le=3650, strict=True)] = 180
    """Days after its end for which a run stays in the history, at most 2,000 runs."""
    progress: bool = False
    """`true`: the program also follows what the ranks of each run print: steps, and checkpoints.
    `trainyard runs` and `metrics` then have the step, its seconds, the age of the checkpoint and
    the goodput that was reached. The program gets the right to read the logs of all pods."""
