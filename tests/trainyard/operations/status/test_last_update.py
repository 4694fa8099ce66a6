"""What `trainyard status` says of an update that has not ended well."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from trainyard.operations.reach.updates import REPAIR, History, Update
from trainyard.operations.status.last_update import line
from trainyard.operations.status.locks import Lock

ENDED = datetime(2026, 11, 27, 9, 30, tzinfo=UTC)
POOL = "urn:pulumi:dev::trainyard::trainyard:nodes:GpuPool$kubernetes:karpenter.sh/v1:NodePool::g6e"


def update(result: str, kind: str = "update", message: str = "") -> Update:
    return Update(kind=kind, result=result, message=message, ended=ENDED)


def state(pending: int = 0) -> dict[str, Any]:
    operations = [{"type": "creating", "resource": {"urn": POOL}}] * pending
    return {"deployment": {"pending_operations": operations, "resources": []}}


def test_a_killed_update_is_named_with_what_it_did_and_the_words_that_go_on() -> None:
    history = History(entries=(update("succeeded"),))
    assert line("dev", state(), history, live=True) == ""
    assert line("dev", state(5), history, live=True) == (
        "An update of dev runs, or was killed while creating NodePool g6e, creating NodePool g6e, creating"
        " NodePool g6e, 2 more. If none runs, `trainyard repair --stack dev` lists what it left and mends the"
        " state; then `pulumi up --stack dev` goes on."
    )
    newer = {"deployment": {"manifest": {"time": "2026-11-27T09:40:00Z"}}}
    said = line("dev", newer, history, live=False)
    assert "runs, or was killed. If none runs" in said and "`make up STACK=dev` goes on" in said


def test_after_a_repair_the_update_is_what_is_left_to_do() -> None:
    mended = History(entries=(update("succeeded", "refresh", REPAIR), update("failed")))
    said = line("dev", state(), mended, live=True)
    assert said.startswith("`trainyard repair` has mended the state of dev")
    assert said.endswith("`pulumi up --stack dev` goes on from there.")


def test_a_failed_update_is_said_with_the_command_that_goes_on() -> None:
    """Of a `make up` that was killed the engine ends by itself, and nobody is left who says so."""
    failed = History(entries=(update("failed"),))
    assert line("dev", state(), failed, live=False) == (
        "The last update of dev failed: `make up STACK=dev` goes on from there."
    )
    assert line("dev", state(), failed, live=True) == (
        "The last update of dev failed: `pulumi up --stack dev` goes on from there."
    )


def test_a_refresh_that_no_update_has_followed_is_said_with_what_shows_its_changes() -> None:
    changed = replace(update("succeeded", "refresh"), registered={"same": 120, "update": 2})
    nothing, done = replace(changed, registered={"same": 122}), update("succeeded")
    said = line("dev", state(), History(entries=(changed, done)), live=True)
    assert said.startswith(
        "`pulumi refresh` has written into the state of dev at 2026-11-27 09:30 UTC"
    )
    assert said.endswith(
        "`pulumi preview --diff --stack dev` shows what the next update changes back"
    )
    assert line("dev", state(), History(entries=(done, changed)), live=True) == ""
    assert line("dev", state(), History(entries=(nothing, done)), live=True) == ""
    by_repair = replace(changed, message=REPAIR)
    assert "written into" not in line("dev", state(), History(entries=(by_repair, done)), live=True)
    both = line("dev", state(), History(entries=(update("failed"), changed)), live=True)
    assert both.startswith("The last update of dev failed: ") and "written into" in both


NOW = "2026-11-28T20:00:00Z"


@dataclass(frozen=True)
class _Known(Lock):
    """A lock of an engine of which it is known whether it runs."""

    runs: bool = True

    @property
    def lives(self) -> bool:
        return self.runs


def test_a_lock_tells_of_an_update_that_has_made_nothing_yet() -> None:
    """An engine that was killed before its first object leaves no trace but its lock."""
    history = History(entries=(update("succeeded"),))
    lock = _Known(pid=7, user="ana", host="here", since=NOW)
    assert line("dev", state(), history, live=True, locks=[lock]) == (
        "An update of dev runs, as process 7 of this machine."
    )
    dead = replace(lock, runs=False)
    assert line("dev", state(), history, live=True, locks=[dead]) == (
        "An update of dev was killed, and its lock is left. `pulumi cancel --stack dev` takes its lock away,"
        " `trainyard repair --stack dev` lists what it left and mends the state; then `pulumi up --stack dev`"
        " goes on."
    )
    said = line("dev", state(1), history, live=False, locks=[dead])
    assert "its lock is left while creating NodePool g6e. `trainyard repair" in said


def test_nobody_claims_to_know_whether_an_update_of_another_machine_runs() -> None:
    history = History(entries=(update("succeeded"),))
    lock = Lock(pid=7, user="ana", host="another", since=NOW)
    said = line("dev", state(), history, live=True, locks=[lock])
    assert said.startswith(
        "An update of dev runs, or was killed. Its lock is of process 7 on another (ana, 2026-11-28T20:00:00Z):"
        " whether that process still runs, this machine cannot know. If none runs, `pulumi cancel"
    )
    empty = Lock(pid=0, user="", host="", since="")
    said = line("dev", state(), history, live=False, locks=[empty])
    assert said.startswith("An update of dev runs, or was killed. If none runs, `trainyard repair")


def test_an_update_that_goes_on_in_pulumi_cloud_is_said_with_what_takes_its_lock_away() -> None:
    goes_on = replace(update("in-progress"), ended=None)
    history = History(entries=(goes_on, update("succeeded")))
    assert line("dev", state(), history, live=True) == (
        "An update of dev runs, or was killed. If none runs, `pulumi cancel --stack dev` takes its lock away,"
        " `trainyard repair --stack dev` lists what it left and mends the state; then `pulumi up --stack dev` goes on."
    )
