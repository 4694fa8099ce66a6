"""A stack file gets a job, and nothing else of it changes."""

from __future__ import annotations

import pytest
import yaml

from trainyard.operations.reach.stack_lines import with_job

ENTRY = "mine:\n  nodes: 2\n  files:\n    sources: [a.py]\n"
HEAD = "config:\n  aws:region: us-east-1\n  trainyard:environment:\n"


@pytest.mark.parametrize(
    "jobs",
    [
        "    zone: a\n",
        "    zone: a\n    jobs: {}\n    tags: {a: b}\n",
        "    zone: a\n    jobs: {}  # none so far\n",
        "    jobs:\n    zone: a\n",
        "    zone: a\n    jobs:  # ours\n      other: {nodes: 1}  # the first\n",
        "    jobs:\n        # a comment\n        other:\n            script: |\n                x\n",
    ],
    ids=["no jobs", "in braces", "with a comment", "nothing", "another", "deeper"],
)
def test_the_entry_is_added_and_each_line_and_comment_stays(jobs: str) -> None:
    before = HEAD + jobs
    after = with_job(before, ENTRY)
    assert after
    old, new = (yaml.safe_load(text)["config"]["trainyard:environment"] for text in (before, after))
    assert new["jobs"] == {"mine": {"nodes": 2, "files": {"sources": ["a.py"]}}} | (
        old.get("jobs") or {}
    )
    assert {**new, "jobs": None} == {**old, "jobs": None}
    kept = [line.replace(" {}", "") for line in before.splitlines()]
    assert [line for line in kept if line not in after.splitlines()] == []


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "    jobs: {other: {nodes: 1}}\n",
        "config:\n  trainyard:environment: {zone: a}\n",
        "config: {}\n",
    ],
)
def test_jobs_in_braces_are_left_alone(text: str) -> None:
    assert with_job(text, ENTRY) is None
