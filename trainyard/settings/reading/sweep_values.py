"""Values of a sweep that stand in `sweep` itself, and not under `over`."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from trainyard.problems import SIMILAR, At, InputError
from trainyard.settings.reading.yaml_file import as_yaml
from trainyard.settings.training.sweep import SweepConfig

_SETTINGS = [field.name for field in fields(SweepConfig)]


def gathered(raw: dict[str, Any]) -> Iterator[InputError]:
    """An error for each sweep with such values, which are put where they belong: the rest of the file is judged
    with them."""
    for section in ("environment", "team"):
        settings = raw.get(section)
        jobs = settings.get("jobs") if isinstance(settings, dict) else None
        for name, job in jobs.items() if isinstance(jobs, dict) else ():
            sweep = job.get("sweep") if isinstance(job, dict) else None
            if isinstance(sweep, dict) and (found := _values(sweep)):
                over = sweep.get("over") or {}
                given, sweep["over"] = as_yaml(found), {**over, **found}
                yield At(f"{section}.jobs.{name}.sweep").must(
                    "have its values under over",
                    got=given,
                    fix=f"write over: {as_yaml(sweep['over'])}",
                )
                for each in found:
                    del sweep[each]


def _values(sweep: dict[str, Any]) -> dict[str, Any]:
    """Names with lists that are no settings of a sweep, and look like none."""
    if not isinstance(sweep.get("over") or {}, dict):
        return {}
    return {
        name: value
        for name, value in sweep.items()
        if isinstance(value, list)
        and name not in _SETTINGS
        and not difflib.get_close_matches(str(name).lower(), _SETTINGS, n=1, cutoff=SIMILAR)
    }
