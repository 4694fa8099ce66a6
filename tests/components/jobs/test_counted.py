"""The first jobs of a team in a new cluster wait until Kubernetes counts them, with a stand-in for
kubectl."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from components.jobs import counted
from components.jobs.counted import until_counted

TRAIN, TORCH = "count/trainjobs.trainer.kubeflow.org", "count/pytorchjobs.kubeflow.org"


def quota(*used: str, hard: tuple[str, ...] = (TRAIN, TORCH)) -> dict[str, Any]:
    return {
        "metadata": {"name": "objects"},
        "spec": {"hard": dict.fromkeys(hard, "100")},
        "status": {"used": dict.fromkeys(used, "0")} if used else {},
    }


@pytest.fixture
def looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Decide which quotas kubectl shows, look by look, the last for ever; None stands for a refusal."""
    monkeypatch.setattr(counted, "POLL_SECONDS", 0.01)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    def decide(*shown: list[Any] | None) -> None:
        for number, quotas in enumerate(shown):
            text = "" if quotas is None else json.dumps({"items": quotas})
            (tmp_path / f"{number}.json").write_text(text)
        program = tmp_path / "kubectl"
        program.write_text(f"""#!/bin/bash
[ "$*" = "get resourcequotas --output=json" ] || exit 9
n=$(cat {tmp_path}/n 2>/dev/null || echo 0); echo $((n + 1)) > {tmp_path}/n
[ -e {tmp_path}/$n.json ] || n={len(shown) - 1}
cat {tmp_path}/$n.json; [ -s {tmp_path}/$n.json ]
""")
        program.chmod(0o755)

    return decide


def waited(kind: str = "TrainJob") -> list[str]:
    said: list[str] = []
    until_counted(("kubectl",), kind, say=said.append)
    return said


@pytest.mark.parametrize(
    ("shown", "kind", "count", "waits"),
    [
        ([[quota(), quota(hard=())], [quota(TORCH)], [quota(TORCH, TRAIN)]], "TrainJob", 3, True),
        ([[quota(TORCH)]], "PyTorchJob", 1, False),
        ([[quota(hard=("pods",))]], "TrainJob", 1, False),
        ([[]], "TrainJob", 1, False),
        ([None], "TrainJob", 1, False),
    ],
    ids=["younger kind", "counted", "no limit of jobs", "no quota", "not readable"],
)
def test_it_waits_until_each_quota_counts_the_kind(
    looks: Any, tmp_path: Path, shown: list[Any], kind: str, count: int, waits: bool
) -> None:
    looks(*shown)
    said = waited(kind)
    assert int((tmp_path / "n").read_text()) == count
    assert bool(said) is waits and len(said) <= 1
    assert not said or said[0].startswith("waits until Kubernetes counts TrainJobs")


def test_after_some_minutes_the_api_server_says_what_is_wrong(
    looks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counted, "MINUTES", 0.001)
    looks([quota()])
    assert len(waited()) == 1
