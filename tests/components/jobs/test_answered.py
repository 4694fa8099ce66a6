"""Which runs are complete, as the cluster says before an update begins."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from components.jobs.answered import complete_runs


def job(name: str, condition: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "status": {"conditions": [{"type": condition, "status": "True"}]},
    }


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


def test_jobs_of_both_kinds_are_complete_that_have_ended_well(shows: Any) -> None:
    shows(
        trainjob=[job("a", "Complete"), job("b", "Failed"), job("c", "Running")],
        pytorchjob=[job("d", "Succeeded"), job("e", "Running")],
    )
    assert complete_runs("{}", {"training"}) == {("training", "a"), ("training", "d")}


def test_a_kind_that_is_not_served_hides_no_other(shows: Any) -> None:
    shows(pytorchjob=[job("d", "Succeeded")])
    assert complete_runs("{}", {"training"}) == {("training", "d")}


def test_the_cluster_is_asked_once_for_each_kind_of_a_namespace(shows: Any, tmp_path: Path) -> None:
    shows(trainjob=[job(f"j{number}", "Complete") for number in range(30)], pytorchjob=[])
    assert len(complete_runs("{}", {"training"})) == 30
    calls = (tmp_path / "calls").read_text().splitlines()
    assert [call.split()[3:] for call in calls] == [
        ["get", kind, "--output=json"] for kind in ("trainjob", "pytorchjob")
    ]


def test_without_kubectl_none_is_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert complete_runs("{}", {"training"}) == set()
