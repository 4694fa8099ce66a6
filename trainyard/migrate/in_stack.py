"""Errors of `trainyard check` for entries of jobs that nobody has written into a stack file yet."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainyard.decide import plan_stack
from trainyard.problems import InputError
from trainyard.settings.reading.files import text_of
from trainyard.settings.reading.reader import project_name, read
from trainyard.settings.reading.yaml_file import read_documents


def errors_in_stack(
    stack: str, entries: Mapping[str, Any], folder: Path = Path(".")
) -> list[InputError]:
    """The errors that a stack file has only with these entries of `jobs`."""
    file = f"Pulumi.{stack}.yaml"
    documents, _ = read_documents(text_of(folder / file), file, by_engine=True)
    values = dict(documents[0].value["config"])
    project = project_name(folder)
    kind = next(kind for kind in ("environment", "team") if values.get(f"{project}:{kind}"))
    section = values[f"{project}:{kind}"]
    with_entries = {**section, "jobs": {**(section.get("jobs") or {}), **entries}}
    before, after = (
        plan_stack(
            read({**values, f"{project}:{kind}": each}, stack=stack, project=project), folder
        )
        for each in (section, with_entries)
    )
    return [error for error in after.errors if error not in before.errors]
