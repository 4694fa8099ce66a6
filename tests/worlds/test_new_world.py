"""A project that `trainyard new` has written comes up from the wheel, in a folder that has nothing of this
checkout: an environment, then a team with its first job, and both go again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from sysconfig import get_path

import pytest

from development.pulumi_templates import FOLDER as TEMPLATES
from development.wheel import build_wheel
from rehearsal import paths, world
from rehearsal.aws.identity import ACCOUNT
from tests.support.worlds import NEEDS_A_WORLD

pytestmark = [pytest.mark.world, pytest.mark.apart, NEEDS_A_WORLD]
REGION = "us-east-1"
MINUTES = 10
"""How long one command may take."""
JOB_SECONDS = 180
"""How long the first job may take."""
QUIET = "--yes --skip-preview --non-interactive --color never"


@dataclass(frozen=True, kw_only=True)
class Project:
    """An empty folder with a virtual environment that has the wheel, and a world beside it."""

    folder: Path
    state: Path

    def rehearsal(self, *words: str) -> None:
        """A word of the rehearsal of this checkout."""
        command = [sys.executable, "-m", "rehearsal", *words]
        subprocess.run(command, cwd=paths.HOME, env=self._environment(), check=True)

    def shell(self, command: str, *, fails: bool = False) -> str:
        """A command line in the folder, in the shell that `python -m rehearsal env` sets up. It knows
        nothing of this checkout."""
        exports = f"cd {paths.HOME} && {sys.executable} -m rehearsal env --region {REGION}"
        told = f'eval "$({exports})"; PATH="$PWD/.venv/bin:$PATH"; {command}'
        done = subprocess.run(
            ["/bin/bash", "-c", told],
            cwd=self.folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=MINUTES * 60,
        )
        assert (done.returncode != 0) is fails, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr * fails

    def tool(self, *words: str) -> str:
        """The output of the tool of the wheel."""
        return self.shell(f"python -P -m trainyard {' '.join(words)}")

    def _environment(self) -> dict[str, str]:
        given = world.environment() | {"TRAINYARD_REHEARSAL": str(self.state)}
        return {name: value for name, value in given.items() if name != "PYTHONPATH"}


def _environment_with_the_wheel(folder: Path) -> None:
    """A virtual environment with the wheel of this checkout, and beside it the packages that the extra
    `pulumi` names, as they are installed here."""
    venv.create(folder, symlinks=True, with_pip=False)
    [packages] = folder.glob("lib/python*/site-packages")
    with tempfile.TemporaryDirectory() as built:
        name = build_wheel(built)
        zipfile.ZipFile(Path(built) / name).extractall(packages)
    (packages / "installed_here.pth").write_text(f"{get_path('purelib')}\n")


@pytest.fixture(scope="module")
def project() -> Iterator[Project]:
    """Short paths, since Unix sockets want them."""
    folder = Path(tempfile.mkdtemp(prefix="new-", dir="/tmp"))
    made = Project(folder=folder / "p", state=folder / "s")
    made.folder.mkdir()
    _environment_with_the_wheel(made.folder / ".venv")
    made.rehearsal("up", "--speed", "240")
    try:
        yield made
    finally:
        made.rehearsal("down", "--force")
        shutil.rmtree(folder)


def _with_charts_of_the_rehearsal(project: Project) -> None:
    """Write where charts are, for a machine that reaches no registry."""
    file, key = project.folder / "Pulumi.dev.yaml", "  trainyard:environment:\n"
    text, charts = file.read_text(), project.shell('printf %s "$REHEARSAL_CHARTS"')
    assert text.count(key) == 1
    file.write_text(text.replace(key, f"{key}    artifacts: {{charts: {charts}}}\n"))


def test_a_new_environment_comes_up_from_the_wheel_and_then_nothing_changes(
    project: Project,
) -> None:
    project.tool(
        *("new", "environment", "--region", REGION, "--zone", f"{REGION}a"),
        *("--public-cidrs", "203.0.113.7/32", "--account", ACCOUNT),
        *("--source", "git+https://example.com/trainyard"),
    )
    _with_charts_of_the_rehearsal(project)
    assert "dev: no errors" in project.tool("check", "dev")
    project.shell("pulumi stack init dev --no-select --non-interactive")
    assert " created" in project.shell(f"pulumi up --stack dev {QUIET}")
    project.shell("pulumi preview --stack dev --expect-no-changes --non-interactive")
    assert os.readlink(project.folder / "components").startswith(str(project.folder / ".venv"))


def test_a_new_team_trains_its_first_job(project: Project) -> None:
    project.tool("new", "team", "--name", "vision")
    project.shell("pulumi stack init team-vision --no-select --non-interactive")
    project.shell(f"pulumi up --stack team-vision {QUIET}")
    began, status = time.monotonic(), ""
    while "Complete" not in status:
        assert time.monotonic() - began < JOB_SECONDS, status
        time.sleep(2)
        status = project.tool("status", "team-vision", "--rehearsal", "|| true")
    logs = project.tool("logs", "first", "--stack", "team-vision", "--rehearsal")
    assert "all ranks met" in logs and "/workspace/train.py" in logs


def test_both_go_again(project: Project) -> None:
    for stack in ("team-vision", "dev"):
        assert " deleted" in project.shell(f"pulumi destroy --stack {stack} {QUIET}")


def test_pulumi_new_makes_a_project_of_the_template_that_can_be_previewed(project: Project) -> None:
    """The address in the template's requirements has no package, so that `pulumi new` ends with an error, after
    everything else. It refuses the name of a project that the backend has: this one is empty."""
    own = replace(project, folder=project.state.parent / "n")
    shutil.copytree(TEMPLATES / "environment", project.state.parent / "t")
    for folder in (own.folder, project.state.parent / "b"):
        folder.mkdir()
    elsewhere = 'export PULUMI_BACKEND_URL="file://$PWD/../b";'
    said = own.shell(
        f"{elsewhere} pulumi new ../t --yes --stack dev --config aws:region=us-west-2", fails=True
    )
    assert "Created stack 'dev'" in said and "Saved config" in said
    shutil.rmtree(own.folder / ".venv", ignore_errors=True)  # where nothing is installed
    (own.folder / ".venv").symlink_to(project.folder / ".venv")
    zone = "trainyard:environment.zone us-west-2a"
    own.shell(f"{elsewhere} pulumi config set --stack dev --path {zone}")
    _with_charts_of_the_rehearsal(own)
    assert "dev: no errors" in own.tool("check", "dev")
    text = (own.folder / "Pulumi.dev.yaml").read_text()
    assert "# decide: " in text and "aws:region: us-west-2" in text
    assert " to create" in own.shell(f"{elsewhere} pulumi preview --stack dev --non-interactive")
