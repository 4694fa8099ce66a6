"""What `trainyard status` says of an update that has not ended well."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from trainyard.operations.reach.updates import REPAIR, History, Update
from trainyard.operations.status.last_update import line

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


def test_a_failed_update_is_said_where_no_rehearsal_says_more() -> None:
    failed = History(entries=(update("failed"),))
    assert line("dev", state(), failed, live=False) == ""
    assert line("dev", state(), failed, live=True) == (
        "The last update of dev failed: `pulumi up --stack dev` goes on from there."
    )
