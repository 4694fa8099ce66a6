"""The reason why a run or a try of it failed, noted on its job by the update that waits for it: a JobSet deletes the
pods of a failed try, and their logs go with them. `status`, `logs` and `runs` read it where no pod tells."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from trainyard.catalog.logs.cause import Cause

WHY = "trainyard.io/why"
"""Annotation of a job."""


def noting(kind: str, name: str, cause: Cause) -> tuple[str, ...]:
    """Words of kubectl that note a reason on a job."""
    return ("annotate", "--overwrite", kind.lower(), name, f"{WHY}={note_of(cause)}")


def note_of(cause: Cause) -> str:
    """The text of the annotation."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return json.dumps({"sentence": cause.sentence, "do": cause.do, "at": now})


def noted(job: Mapping[str, Any]) -> Cause | None:
    """The reason that an update has noted; None where none has."""
    text = _text(job)
    return Cause(text["sentence"], text["do"]) if text else None


def noted_at(job: Mapping[str, Any]) -> datetime | None:
    """Time at which an update has noted a reason; None where none has."""
    text = _text(job)
    return datetime.fromisoformat(text["at"]) if text else None


def _text(job: Mapping[str, Any]) -> Mapping[str, str] | None:
    text = (job.get("metadata", {}).get("annotations") or {}).get(WHY)
    return json.loads(text) if text else None
