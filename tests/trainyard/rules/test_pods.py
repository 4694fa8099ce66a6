"""Warnings about the pods of a job that work, or that may."""

from __future__ import annotations

import pytest

from tests.support.stackfile import at, planned, without

JOB = "jobs.t5-large"


@pytest.mark.parametrize(
    ("script", "warned"),
    [("README.md", True), ("/workspace/README.md", False), ("train.py", False)],
)
def test_a_script_that_files_bring_is_looked_for_in_their_folder(script: str, warned: bool) -> None:
    """Six restarts, and no log that tells why."""
    said = planned(
        without(f"{JOB}.script"),
        at(f"{JOB}.files", {"sources": ["README.md"]}),
        at(f"{JOB}.torchrun", {"script": script}),
    )
    assert not said.errors
    found = [str(each) for each in said.warnings if "torchrun.script" in each.path]
    assert [("write /workspace/README.md" in each) for each in found] == [True] * warned
