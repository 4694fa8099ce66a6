"""A line of `trainyard status` about an update that has not ended well: it runs, was killed, was repaired, or
failed; or about a refresh that no update has followed."""

from __future__ import annotations

from collections.abc import Sequence

from trainyard.operations.reach.pulumi import Entry
from trainyard.operations.reach.target import update_command
from trainyard.operations.reach.updates import History
from trainyard.operations.status.locks import Lock
from trainyard.replacing.urn import title_of

NAMED = 3
"""Operations that are named."""


def line(
    stack: str, state: Entry, history: History, *, live: bool, locks: Sequence[Lock] = ()
) -> str:
    """A sentence with the command that goes on; empty where the last update ended well. `live`: on an AWS
    account. `locks`: those of the stack."""
    command = update_command(stack, live)
    if locks or history.is_open(state):
        locked = live and bool(locks or history.goes_on)
        return _open(stack, state, command, locked=locked, locks=locks)
    if history.is_repaired(state):
        return (
            f"`trainyard repair` has mended the state of {stack} since the last update: `{command}` goes on"
            " from there."
        )
    if history.failed:
        failed = f"The last update of {stack} failed: `{command}` goes on from there."
        return " ".join(filter(None, [failed, refreshed(stack, history)]))
    return refreshed(stack, history)


def refreshed(stack: str, history: History) -> str:
    """A sentence about a refresh that has made changes by hand pass for what the last update left; empty without
    one."""
    if history.refreshed is None:
        return ""
    return (
        f"`pulumi refresh` has written into the state of {stack} at {history.refreshed:%Y-%m-%d %H:%M} UTC what"
        " somebody had changed, and no update has succeeded since. Those changes are no drift any more: `pulumi preview"
        f" --diff --stack {stack}` shows what the next update changes back"
    )


def _open(stack: str, state: Entry, command: str, *, locked: bool, locks: Sequence[Lock]) -> str:
    """A sentence about an update that has not ended. Only an engine of this machine is known to run, or to be
    gone. `locked`: `pulumi cancel` takes a lock away, which Pulumi Cloud keeps itself."""
    runs = next((each for each in locks if each.lives), None)
    if runs:
        return (
            f"An update of {stack} runs, as process {runs.pid} of this machine{_under_way(state)}."
        )
    unknown = next((each for each in locks if each.lives is None), None)
    how, first = "runs, or was killed", "If none runs, "
    if locks and not unknown:
        how, first = "was killed, and its lock is left", ""
    holder = ""
    if unknown and unknown.pid:
        holder = (
            f" Its lock is of process {unknown.pid} on {unknown.host} ({unknown.user}, {unknown.since}):"
            " whether that process still runs, this machine cannot know."
        )
    # The rehearsal's own words take the lock of a killed engine away.
    away = f"`pulumi cancel --stack {stack}` takes its lock away, " if locked else ""
    then = f"{first}{away}`trainyard repair --stack {stack}` lists what it left and mends the state"
    return (
        f"An update of {stack} {how}{_under_way(state)}.{holder} {then}; then `{command}` goes on."
    )


def _under_way(state: Entry) -> str:
    """Operations that have not ended, for the middle of a sentence; empty where there is none."""
    pending = state["deployment"].get("pending_operations") or []
    named = [f"{each['type']} {title_of(each['resource']['urn'])}" for each in pending[:NAMED]]
    more = [f"{len(pending) - NAMED} more"] if len(pending) > NAMED else []
    return f" while {', '.join([*named, *more])}" if pending else ""
