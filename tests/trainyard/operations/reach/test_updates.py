"""What the history and the state tell about the last update."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trainyard.operations.reach import updates
from trainyard.operations.reach.updates import REPAIR, History, history_of

ENDED = "2026-11-27T09:30:00.000Z"
LATER = "2026-11-27T09:31:00.7Z"


def history(
    monkeypatch: pytest.MonkeyPatch, *entries: tuple[str, str] | tuple[str, str, str]
) -> History:
    listed = [
        {"kind": kind, "result": end, "endTime": ENDED, **({"message": more[0]} if more else {})}
        for kind, end, *more in entries
    ]
    monkeypatch.setattr(updates, "pulumi", lambda *_: json.dumps(listed) if entries else "")
    return updates.history_of("dev")


def state(*pending: str, written: str = ENDED) -> dict[str, Any]:
    operations = [{"type": each, "resource": {}} for each in pending]
    left = {"manifest": {"time": written}, "pending_operations": operations, "resources": [{}]}
    return {"deployment": left}


@pytest.mark.parametrize(
    ("entries", "result"),
    [
        ([], None),
        ([("refresh", "succeeded")], None),
        ([("refresh", "succeeded"), ("update", "failed"), ("update", "succeeded")], "failed"),
        ([("resource-import", "failed"), ("destroy", "succeeded")], "succeeded"),
    ],
)
def test_the_last_update_is_not_the_refresh_of_a_repair(
    monkeypatch: pytest.MonkeyPatch, entries: list[tuple[str, str]], result: str | None
) -> None:
    found = history(monkeypatch, *entries)
    assert (found.last.result if found.last else None) == result
    assert found.failed == (result == "failed")


def test_an_update_is_open_until_the_history_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = history(monkeypatch, ("update", "succeeded"))
    assert not ended.is_open(state())
    assert ended.is_open(state("creating")) and ended.is_open(state(written=LATER))
    first = history(monkeypatch)
    assert first.is_open(state()) and not first.is_open({"deployment": {}})


def test_a_repair_counts_until_another_update_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    by_repair, by_hand = ("refresh", "succeeded", REPAIR), ("refresh", "succeeded", "by hand")
    killed = ("update", "succeeded")
    assert history(monkeypatch, by_repair, killed).is_repaired(state())
    assert history(monkeypatch, by_hand, by_repair).is_repaired(state())
    assert not history(monkeypatch, by_hand, killed).is_repaired(state())
    assert not history(monkeypatch, ("refresh", "failed", REPAIR), killed).is_repaired(state())
    assert not history(monkeypatch, killed, by_repair).is_repaired(state())
    assert not history(monkeypatch, by_repair, killed).is_repaired(state(written=LATER))


BEGAN = "2026-11-27T09:28:00.123456789Z"
LATE = "2026-11-27T09:32:00.000Z"
SECTIONS = {"trainyard:environment": {}, "aws:region": {}}
SUCCEEDED = {"kind": "update", "result": "succeeded", "endTime": ENDED, "config": SECTIONS}
FAILED = SUCCEEDED | {"result": "failed"}
REFUSED = FAILED | {"endTime": LATE, "resourceChanges": {"same": 1}}
"""As the engine writes them: the stack alone where the stack file is refused, and the provider with it where a
role is missing."""


def told(monkeypatch: pytest.MonkeyPatch, *entries: dict[str, Any]) -> History:
    monkeypatch.setattr(updates, "pulumi", lambda *_: json.dumps(entries))
    return history_of("dev")


def left(*changed: str, written: str = LATE, pending: bool = False) -> dict[str, Any]:
    """A state whose objects were changed then."""
    made = [{"type": "aws:ec2/vpc:Vpc", "created": BEGAN, "modified": when} for when in changed]
    own = [
        {"type": f"pulumi:{each}", "created": LATE, "modified": LATE}
        for each in ("pulumi:Stack", "providers:aws")
    ]
    found = state(*(["creating"] if pending else []), written=written)
    found["deployment"]["resources"] = [*own, *made]
    return found


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ({"resourceChanges": {"same": 1}}, True),
        ({"resourceChanges": {"create": 1}}, True),
        ({"resourceChanges": {"create": 1, "same": 1}}, True),
        ({"resourceChanges": {"same": 3}}, False),
        ({"resourceChanges": {}}, False),
        ({"resourceChanges": {"same": 1}, "result": "succeeded"}, False),
        ({"resourceChanges": {"same": 1}, "kind": "destroy"}, False),
        ({"resourceChanges": {"same": 1}, "config": {"aws:region": {}}}, False),
        ({"resourceChanges": None}, False),
    ],
)
def test_an_update_was_refused_where_it_ended_before_its_first_object(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], refused: bool
) -> None:
    history = told(monkeypatch, FAILED | changes)
    assert history.entries[0].refused == refused
    assert (history.last is None) == refused


def test_a_refused_update_leaves_what_the_one_before_it_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    history = told(monkeypatch, REFUSED, REFUSED, SUCCEEDED)
    assert history.is_settled(left(BEGAN, ENDED)) and not history.failed
    assert not told(monkeypatch, REFUSED, FAILED).is_settled(left(BEGAN))
    assert told(monkeypatch, REFUSED).is_settled(left()), "the first update was refused"


def test_a_kill_before_a_refused_update_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """The refused update writes the state anew, so that its time tells nothing any more."""
    killed = "2026-11-27T09:31:00Z"
    history = told(monkeypatch, REFUSED, SUCCEEDED)
    assert not history.is_settled(left(BEGAN, killed))
    assert not told(monkeypatch, REFUSED).is_settled(left(killed))
    undated = left(BEGAN)
    del undated["deployment"]["resources"][-1]["created"]
    del undated["deployment"]["resources"][-1]["modified"]
    assert not history.is_settled(undated), "it may have changed at any time"


def test_a_kill_after_a_refused_update_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    after = "2026-11-27T09:40:00Z"
    for history in (told(monkeypatch, REFUSED, SUCCEEDED), told(monkeypatch, REFUSED)):
        assert not history.is_settled(left(written=after))
        assert history.is_open(left(written=after)) and history.is_open(left(pending=True))


def test_a_repair_before_a_refused_update_counts_unless_one_was_killed_between_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mended = {"kind": "refresh", "result": "succeeded", "endTime": ENDED, "message": REPAIR}
    history = told(monkeypatch, REFUSED, mended, FAILED)
    assert history.is_repaired(left(BEGAN, ENDED))
    assert not history.is_repaired(left(BEGAN, "2026-11-27T09:31:00Z"))


GOES_ON = {"kind": "update", "result": "in-progress", "config": SECTIONS}
"""An update in Pulumi Cloud that runs, or that was killed and not cancelled: without endTime and resourceChanges."""


def test_an_update_that_the_history_has_without_an_end_is_open_and_nothing_has_ended_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    history = told(monkeypatch, GOES_ON, SUCCEEDED)
    assert history.goes_on and history.is_open(left(BEGAN, written=ENDED))
    assert not history.is_settled(left(BEGAN, written=ENDED))
    assert history.last == told(monkeypatch, SUCCEEDED).last
    assert not (history.failed or history.ends_refused or history.refreshed)
    assert not history.is_repaired(left(BEGAN, written=ENDED))
    first = told(monkeypatch, GOES_ON)
    assert first.last is None and first.is_open(left()) and not first.is_settled(left())


def test_a_killed_update_that_another_has_followed_is_open_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Pulumi Cloud lets no update begin while another goes on."""
    history = told(monkeypatch, SUCCEEDED, GOES_ON)
    assert not history.goes_on and not history.is_open(left(BEGAN, written=ENDED))
    assert history.is_settled(left(BEGAN, written=ENDED))
