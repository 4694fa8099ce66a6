"""Objects that a killed or repeated update has made twice."""

from __future__ import annotations

from tests.worlds.harness import Object
from tests.worlds.soak import made_twice


def _thing(kind: str) -> Object:
    return {"type": kind, "tags": {"trainyard:name": "home-backups"}}


def test_a_store_that_is_there_twice_is_named() -> None:
    things = [_thing("file-system"), _thing("file-system"), _thing("vault")]
    assert made_twice(things) == "made twice: [('file-system', 'home-backups')]"


def test_the_backups_of_two_days_are_no_object_that_was_made_twice() -> None:
    things = [_thing(kind) for kind in ("recovery-point", "backup-job", "vault")]
    assert made_twice([*things, *things[:2]]) is None
