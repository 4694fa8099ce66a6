"""The reason why a run failed, noted on its job by the update that waited for it: a JobSet deletes the pods of a
failed run, and their logs go with them. `status`, `logs` and `runs` read it where no pod tells."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from trainyard.catalog.logs.cause import Cause

WHY = "trainyard.io/why"
"""Annotation of a job."""


def note(cause: Cause) -> str:
    """The text of the annotation."""
    return json.dumps({"sentence": cause.sentence, "do": cause.do})


def noted(job: Mapping[str, Any]) -> Cause | None:
    """The reason that an update has noted; None where none has."""
    text = (job["metadata"].get("annotations") or {}).get(WHY)
    return Cause(**json.loads(text)) if text else None
