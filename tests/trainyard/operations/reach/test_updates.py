"""What the history and the state tell about the last update."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trainyard.operations.reach import updates
from trainyard.operations.reach.updates import REPAIR, History

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
