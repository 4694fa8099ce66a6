"""A line of `trainyard status` about an update that has not ended well: it runs, was killed, was repaired, or
failed."""

from __future__ import annotations

from trainyard.operations.reach.pulumi import Entry
from trainyard.operations.reach.target import update_command
from trainyard.operations.reach.updates import History
from trainyard.operations.reach.urn import title_of

NAMED = 3
"""Operations that are named."""


def line(stack: str, state: Entry, history: History, *, live: bool) -> str:
    """A sentence with the command that goes on; empty where the last update ended well. `live`: on an AWS
    account."""
    command = update_command(stack, live)
    if history.is_open(state):
        return (
            f"An update of {stack} runs, or was killed{_under_way(state)}. If none runs, `trainyard repair"
            f" --stack {stack}` lists what it left and mends the state; then `{command}` goes on."
        )
    if history.is_repaired(state):
        return (
            f"`trainyard repair` has mended the state of {stack} since the last update: `{command}` goes on"
            " from there."
        )
    if live and history.failed:  # the rehearsal says more about it
        return f"The last update of {stack} failed: `{command}` goes on from there."
    return ""


def _under_way(state: Entry) -> str:
    """Operations that have not ended, for the middle of a sentence; empty where there is none."""
    pending = state["deployment"].get("pending_operations") or []
    named = [f"{each['type']} {title_of(each['resource']['urn'])}" for each in pending[:NAMED]]
    more = [f"{len(pending) - NAMED} more"] if len(pending) > NAMED else []
    return f" while {', '.join([*named, *more])}" if pending else ""
