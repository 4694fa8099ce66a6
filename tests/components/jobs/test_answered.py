"""A run that is complete is not replaced by a changed one before somebody has said where that begins."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pulumi
import pytest

from components.jobs.answered import answered
from tests.support.stackfile import environment_plan

JOB = environment_plan().jobs["t5-large"]
ASKS = replace(JOB, question="checkpoints.when_changed: must be set")


def job(condition: str) -> dict[str, Any]:
    return {"status": {"conditions": [{"type": condition, "status": "True"}]}}


@pytest.fixture
def shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Decide what kubectl shows of each kind; it answers nothing about others."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    def decide(**kinds: Any) -> None:
        for kind, items in kinds.items():
            (tmp_path / kind).write_text(json.dumps({"items": items}))
        program = tmp_path / "kubectl"
        program.write_text(f"#!/bin/bash\necho $* >> {tmp_path}/calls\ncat {tmp_path}/$5\n")
        program.chmod(0o755)

    return decide


def run_of(plan: Any) -> Any:
    """The identity that the engine is told."""

    async def known() -> Any:
        identities = answered({"it": plan}, pulumi.Output.from_input("{}"))
        return await pulumi.Output.from_input(identities["it"]).future()

    return asyncio.run(known())


@pytest.mark.parametrize(
    ("kind", "condition"), [("trainjob", "Complete"), ("pytorchjob", "Succeeded")]
)
def test_a_run_that_is_complete_is_refused_with_the_question(
    kind: str, condition: str, shows: Any
) -> None:
    shows(**{kind: [job(condition)]})
    with pytest.raises(pulumi.RunError, match="when_changed: must be set"):
        run_of(ASKS)


@pytest.mark.parametrize("condition", ["Failed", "Running"])
def test_a_run_that_goes_on_or_has_failed_is_replaced(condition: str, shows: Any) -> None:
    shows(trainjob=[job(condition)])
    assert run_of(ASKS) == JOB.run


def test_a_run_of_which_nothing_is_known_is_replaced(shows: Any, tmp_path: Path) -> None:
    shows(trainjob=[])
    assert run_of(ASKS) == JOB.run
    assert (
        "get trainjob --field-selector=metadata.name=t5-large" in (tmp_path / "calls").read_text()
    )


def test_without_kubectl_a_run_is_replaced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run_of(ASKS) == JOB.run


def test_a_job_without_a_question_asks_nobody(shows: Any, tmp_path: Path) -> None:
    shows(trainjob=[job("Complete")])
    assert run_of(JOB) == JOB.run
    assert not (tmp_path / "calls").exists()


def test_all_questions_are_asked_at_once(shows: Any) -> None:
    shows(trainjob=[job("Complete")])
    plans = {name: replace(ASKS, name=name, question=f"{name}: must be set") for name in "ab"}
    with pytest.raises(pulumi.RunError, match="a: must be set\nb: must be set"):

        async def known() -> Any:
            identities = answered(plans, pulumi.Output.from_input("{}"))
            return await pulumi.Output.from_input(identities["b"]).future()

        asyncio.run(known())
