"""Facts about a run, as `trainyard runs` prints, lists and draws them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from trainyard.operations.runs.node_time import duration
from trainyard.operations.runs.reported import HowFar

NOT_KNOWN = "not known"
NOTHING = "NothingToDo"
"""Outcome of a run that was complete at once, because a run before it had finished."""


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """Place of a run in its sweep, as an annotation of its job has it."""

    entry: str
    """Entry of the stack file."""
    values: Mapping[str, str]
    metric: str | None
    """Name of the figure by which its runs are compared."""
    goal: str | None
    """minimize or maximize."""


@dataclass(frozen=True, kw_only=True)
class Told:
    """Facts about a run. None and "" stand for what is not known."""

    namespace: str
    """Namespace of the run: each team has its own."""
    job: str
    kind: str
    by_stack: bool
    """A stack file describes the job; otherwise somebody has sent it by hand."""
    image: str
    number: int | None
    """`run` of its entry, when it began; None for a job that no stack owns."""
    command: str
    """The command of its container, on one line; empty where the runtime or the image has the command."""
    created: datetime
    waited_seconds: int | None
    ran_seconds: int | None
    ended: datetime | None
    """None: it goes on."""
    nodes: int
    instance_types: tuple[str, ...]
    restarts: int
    evictions: int | None
    """Times that Kueue took its nodes; None where its job is deleted."""
    interrupted: tuple[str, ...]
    """Sentences on its last eviction, and on nodes that AWS took back within the hour."""
    gpu_hours: Decimal
    usd: Decimal | None
    usd_known: str
    usd_planned: Decimal | None
    """Cost of its nodes for the expected_hours of its entry; None where it has none."""
    hours_expected: float | None
    """`expected_hours` of its entry, when it began."""
    outcome: str
    """State of its job; NOTHING where it was complete at once, because a run before it had finished."""
    nothing_to_do: str
    """Sentence about such a run; empty for others."""
    reason: str
    """Reason and message of its controller."""
    why: str
    """Sentence about why it failed, or its last try; empty where no rank is known to have ended with an error."""
    fix: str
    """Advice about that; empty where none is known."""
    resumed_from: str | None
    checkpoint: str | None
    """The newest one that the script says it has written."""
    mounts_a_store: bool
    """False for a job of a stack file whose pods mount none: its checkpoints end with them."""
    checkpoint_age_seconds: int | None
    step: int | None
    """The newest one that it has printed."""
    step_seconds: float | None
    goodput_planned: float | None
    """Goodput from 0 to 1, as the plan says it."""
    goodput_measured: float | None
    """Share of the time it ran that is in its steps, those that were lost left out."""
    how_far: HowFar | None
    """Per cent and time to go as its script says it to the Trainer; None where it says nothing."""
    sms_at_work: float | None
    """Mean share of the SMs of its GPUs that worked, 0 to 1, from its first node to its end."""
    sweep: Sweep | None
    """None for a run that is of no sweep."""
    metric: float | None
    """The last figure of the metric of its sweep."""


def time_said(seconds: int | None) -> str:
    """A time of a run in words."""
    return NOT_KNOWN if seconds is None else duration(seconds)


def share_said(share: float | None) -> str:
    """A goodput in per cent."""
    return NOT_KNOWN if share is None else f"{share:.1%}"
