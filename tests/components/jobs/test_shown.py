"""Objects of the cluster, as an update asks for them before it begins."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from components.jobs.shown import can_ask, shown


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


def test_the_objects_of_a_kind_are_asked_for_in_one_call(shows: Any, tmp_path: Path) -> None:
    shows(trainjob=[{"metadata": {"name": f"j{number}"}} for number in range(30)])
    assert len(shown("{}", "trainjob", "training")) == 30
    [call] = (tmp_path / "calls").read_text().splitlines()
    assert call.split()[1:] == [
        *("--namespace=training", "--request-timeout=20s"),
        *("get", "trainjob", "--output=json"),
    ]


def test_all_namespaces_are_asked_in_one_call(shows: Any, tmp_path: Path) -> None:
    shows(trainjob=[{"metadata": {"name": "t5"}}])
    assert shown("{}", "trainjob", None) == [{"metadata": {"name": "t5"}}]
    [call] = (tmp_path / "calls").read_text().splitlines()
    assert call.split()[3:] == ["get", "trainjob", "--all-namespaces", "--output=json"]


def test_a_kind_that_is_not_served_has_no_objects(shows: Any) -> None:
    shows(pytorchjob=[])
    assert [*shown("{}", "trainjob", "training")] == []


def test_without_kubectl_nothing_is_known(
    shows: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shows()
    assert can_ask()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert [*shown("{}", "trainjob", "training")] == [] and not can_ask()
