"""Result for a job: an entry of `jobs:`, and a sentence for everything that changes or has no
counterpart."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from trainyard.problems import InputError
from trainyard.settings.section import LONGEST_NAME


@dataclass(kw_only=True)
class Migration:
    """An entry of `jobs:`, and what became of the other fields."""

    name: str
    entry: dict[str, Any] = field(default_factory=dict)
    """Fields of JobConfig."""
    changed: list[str] = field(default_factory=list)
    no_counterpart: list[str] = field(default_factory=list)
    left_over: list[str] = field(default_factory=list)
    """A sentence for each other field that the entry does not have."""
    pytorch_job: dict[str, Any] = field(default_factory=dict)
    """Settings that replace `runtime` where the job is to stay a PyTorchJob."""


class NotMigrated(Exception):
    """A job cannot become an entry."""

    def __init__(self, error: InputError) -> None:
        self.error = error
        super().__init__(str(error))


def setting_name(text: str, longest: int = LONGEST_NAME) -> str:
    """The text as a name of a setting."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower())[:longest]
    return re.sub(r"^[^a-z]+|[^a-z0-9]+$", "", name) or "job"
