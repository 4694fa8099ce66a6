"""An environment with every kind of store, on which two teams have directories of their own, and one
that they only read."""

from __future__ import annotations

from typing import Any

from tests.support.teams import listed


def kept_apart(settings: dict[str, Any]) -> None:
    """The environment with teams vision and nlp: scratch, home and results keep them apart, and they
    read corpus."""
    listed(settings)
    del settings["teams"]["vision"]["stores"]
    storage = settings["storage"]
    storage["results"] = {"s3": {"writable": True}}
    for name in ("scratch", "home", "results"):
        storage[name]["teams"] = "apart"
    storage["corpus"] = {"efs": {}, "teams": "read_only"}
