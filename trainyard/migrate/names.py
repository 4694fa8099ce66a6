"""Names of entries: that of the job, as a stack file can have it, and another one for each job."""

from __future__ import annotations

import itertools
from collections.abc import Collection

from trainyard.manifests.document import Workload
from trainyard.migrate.result import setting_name
from trainyard.settings.reading.secrets.secrets import HIDDEN
from trainyard.settings.section import LONGEST_NAME


def entry_name(job: Workload, taken: Collection[str]) -> tuple[str, list[str]]:
    """The name of the entry of a job, and a sentence where it is not the job's own. `taken`: names of other
    entries."""
    field = "name" if job.name or not job.get("metadata", "generateName") else "generateName"
    written = str(job.get("metadata", field) or "").rstrip("-")
    written = "" if HIDDEN in written else written
    name = _free(setting_name(written), taken)
    why = _why(name, written, field)
    return name, [f"{job.where('metadata', field)}: the entry is {name}: {why}"] if why else []


def _free(first: str, taken: Collection[str]) -> str:
    """A name, with a number where another entry has it."""
    ends = (f"-{number}" for number in itertools.count(2))
    numbered = (f"{setting_name(first, LONGEST_NAME - len(end))}{end}" for end in ends)
    return next(name for name in itertools.chain([first], numbered) if name not in taken)


def _why(name: str, written: str, field: str) -> str:
    """Reason for the name of an entry; empty where it is the job's own."""
    if name != setting_name(written):
        return f"another job of the files is {setting_name(written)}"
    if field != "name":
        return "an entry has one name, and no random end"
    if name == written or not written:
        return ""
    return (
        f"a name of an entry has at most {LONGEST_NAME} characters, of a-z, 0-9 and -, and begins with"
        " a letter"
    )
