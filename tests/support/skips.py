"""Skips that CI allows: tests/allowed_skips.toml lists them, each with its reason. Any other skip hides a
proof that nobody runs, and fails there."""

from __future__ import annotations

import functools
import os
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeVar

import pytest

ALLOWED = Path(__file__).parents[1] / "allowed_skips.toml"
REQUIRED = "TRAINYARD_REQUIRE_WORLD"
"""Variable that CI sets to 1: each test must run."""
Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


@dataclass(frozen=True, kw_only=True)
class Allowed:
    """One row of the file."""

    tests: str
    """Pattern of test ids; * stands for any text."""
    says: str
    """Words of the skip's reason."""
    why: str
    """Reason to allow it in CI."""

    def allows(self, test: str, said: str) -> bool:
        # fnmatch reads [ of a parameter as a set of letters.
        return fnmatchcase(test, self.tests.replace("[", "[[]")) and self.says in said


@functools.cache
def allowed() -> tuple[Allowed, ...]:
    """All rows of the file."""
    return tuple(Allowed(**row) for row in tomllib.loads(ALLOWED.read_text())["skip"])


def judged(report: Report) -> Report:
    """The report, as a failure where CI must not skip."""
    if os.environ.get(REQUIRED) != "1" or not report.skipped or hasattr(report, "wasxfail"):
        return report
    said = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if not any(row.allows(report.nodeid, said) for row in allowed()):
        report.outcome = "failed"
        report.longrepr = (
            f"{report.nodeid}: must run in CI; got {said}. Fix: build what it needs in .ci/run, or"
            f" add a row with its reason to {ALLOWED.parent.name}/{ALLOWED.name}"
        )
    return report
