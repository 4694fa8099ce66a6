"""The program of a project outside a checkout finds its charts at the path that the program names."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.recording import CHECKOUT
from trainyard.cli import program


@pytest.fixture
def carried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that a wheel carries, and an empty project in the current folder."""
    home, project = tmp_path / "home", tmp_path / "project"
    (home / "components/charts").mkdir(parents=True)
    (home / "__main__.py").write_text("from pathlib import Path\n\nPath('ran').touch()\n")
    project.mkdir()
    monkeypatch.chdir(project)
    monkeypatch.setattr(program, "HOME", home)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return home


def test_without_a_wheel_it_is_the_program_of_the_checkout() -> None:
    assert program.HOME == CHECKOUT


def test_charts_are_reached_from_the_folder_of_the_project(carried: Path) -> None:
    for _ in range(2):
        program.run()
        assert Path("components").is_symlink() and Path("components/charts").is_dir()
        assert Path("ran").exists() and sys.path[0] == str(carried)


@pytest.mark.parametrize("target", ["/nowhere/components", "/"])
def test_the_link_of_another_virtual_environment_is_replaced(carried: Path, target: str) -> None:
    Path("components").symlink_to(target)
    program.run()
    assert Path("components").resolve() == carried / "components"


def test_a_folder_of_that_name_is_never_touched(carried: Path) -> None:
    Path("components").mkdir()
    Path("components/mine").touch()
    with pytest.raises(
        FileExistsError, match="components: a link to the charts of Trainyard needs"
    ):
        program.run()
    assert Path("components/mine").exists() and not Path("ran").exists()
