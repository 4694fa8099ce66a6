"""A project of two stacks with a state folder of its own, for tests of what drives engine and
world."""

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from development import engine, steps
from rehearsal import environment, paths

FAKE = Path(__file__).with_name("fake_pulumi.py")
ENVIRONMENT = {
    "aws:region": "eu-north-1",
    "trainyard:environment": {"zone": "a", "cluster": {"version": "1.34"}},
}
TEAM = {"aws:region": "eu-north-1", "trainyard:team": {"environment": "dev"}}


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with an environment and a team, a world that is said to run, and a fake pulumi."""
    state, folder = tmp_path / "state", tmp_path / "project"
    for name in ("LOGS", "BACKEND", "PULUMI_HOME"):
        monkeypatch.setattr(paths, name, state / getattr(paths, name).name)
    for name, place in {"STATE": state, "BIN": tmp_path / "bin"}.items():
        monkeypatch.setattr(paths, name, place)
    for name, place in {
        "CONFIG": "config",
        "PROFILES": "config/aws",
        "KUBECONFIG": "kubeconfig",
    }.items():
        monkeypatch.setattr(environment, name, state / place)
    monkeypatch.setattr(environment.install, "install", lambda *_: None)
    monkeypatch.setattr(engine, "CHECKOUT", folder)
    # The fake pulumi needs no whole stack file.
    monkeypatch.setattr(steps, "refusals", lambda _: ())
    paths.remember(paths.World(api_port=1, account_port=2, speed=60))
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text("name: trainyard\n")
    write_stack_file(folder / "Pulumi.dev.yaml", ENVIRONMENT)
    write_stack_file(folder / "Pulumi.team.yaml", TEAM)
    _install_fake(tmp_path / "bin/pulumi")
    return folder


def write_stack_file(file: Path, config: dict[str, Any]) -> None:
    file.write_text(yaml.safe_dump({"config": config}))


def _install_fake(program: Path) -> None:
    """A copy of the shell under the engine's name, so that the process is called pulumi."""
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\nexec -a pulumi {sys.executable} {FAKE} "$@"\n'.replace("/bin/sh", "/bin/bash")
    )
    program.chmod(0o755)
