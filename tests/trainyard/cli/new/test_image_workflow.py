"""The workflow of a new project that builds an image: its scripts run here with real git, and with programs beside them
that note how they are called."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainyard.cli.main import read
from trainyard.cli.new.project import TEXTS

NAME = ".github/workflows/image.yaml"
WORKFLOW = (TEXTS / "project.txt").read_text().partition(f"=== {NAME}\n")[2].partition("\n=== ")[0]
NOTES = '#!/usr/bin/env bash\nprintf "%s\\n" "$@" > {notes}\n{then}\n'
PUSHED = 'sed -i "s/old/new/" Pulumi.dev.yaml'
ANSWERS = {
    "STACK": "dev",
    "JOB": "train; touch stolen",
    "FOLDER": "my folder",
    "REGISTRY": "",
    "BRANCH": "image-7-1",
}


def _job() -> dict[str, Any]:
    return yaml.safe_load(WORKFLOW)["jobs"]["image"]


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A clone whose `trainyard` writes a digest, and whose `gh` opens nothing."""
    _git(tmp_path, "init", "--quiet", "--bare", "--initial-branch", "main", "origin")
    _git(tmp_path, "clone", "--quiet", "origin", "clone")
    clone = tmp_path / "clone"
    programs = {".venv/bin/trainyard": PUSHED, ".venv/bin/gh": ""}
    for name, then in programs.items():
        file = clone / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(NOTES.format(notes=tmp_path / file.name, then=then))
        file.chmod(0o755)
    (clone / "Pulumi.dev.yaml").write_text("image: old\n")
    (clone / "note").write_text("not of the pull request\n")
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    _git(clone, "add", "Pulumi.dev.yaml")
    _git(clone, *identity, "commit", "--quiet", "--message", "first")
    _git(clone, "push", "--quiet", "origin", "HEAD:main")
    return clone


def _run(project: Path, **answers: str) -> None:
    for step in _job()["steps"]:
        if "name" in step:
            environment = {**os.environ, **ANSWERS, **answers}
            environment["PATH"] = f"{project / '.venv/bin'}:{environment['PATH']}"
            script = ["bash", "-e", "-o", "pipefail", "-c", step["run"]]
            subprocess.run(script, cwd=project, env=environment, check=True, capture_output=True)


def test_the_tool_gets_each_answer_as_one_word_and_a_branch_has_the_digest(project: Path) -> None:
    _run(project)
    words = (project.parent / "trainyard").read_text().splitlines()
    options = read(words)
    assert (options.job, options.folder, options.stack) == (ANSWERS["JOB"], "my folder", "dev")
    assert options.live and options.yes and options.registry is None
    origin = project.parent / "origin"
    assert _git(origin, "diff", "--name-only", "main", "image-7-1") == "Pulumi.dev.yaml\n"
    assert "+image: new" in _git(origin, "diff", "main", "image-7-1")
    asked = (project.parent / "gh").read_text().splitlines()
    assert asked[:2] == ["pr", "create"] and asked[-1] == "image-7-1"
    assert not (project / "stolen").exists()


def test_a_registry_is_named_where_somebody_names_one(project: Path) -> None:
    _run(project, REGISTRY="other")
    assert read((project.parent / "trainyard").read_text().splitlines()).registry == "other"


def test_an_answer_stands_in_no_script_and_the_role_only_pushes() -> None:
    """GitHub writes an expression into the script before bash reads it."""
    job = _job()
    assert [step["run"] for step in job["steps"] if "${{" in step.get("run", "")] == []
    assert job["permissions"] == {
        "contents": "write",
        "id-token": "write",
        "pull-requests": "write",
    }
    assert {*yaml.safe_load(WORKFLOW)[True]["workflow_dispatch"]["inputs"]} == {
        "stack",
        "job",
        "folder",
        "registry",
    }
