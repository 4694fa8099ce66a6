"""The templates of `pulumi new` are the files of `trainyard new`, and ask for what `pulumi new` can ask."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from development import pulumi_templates as templates
from tests.support.recording import CHECKOUT
from trainyard.cli.new.project import PROJECT
from trainyard.decide import plan_stack
from trainyard.settings.reading.reader import read_file

KINDS = [*templates.KINDS]


def _written(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_templates_are_as_the_command_writes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fix: `python -m development.pulumi_templates`."""
    kept = {kind: _written(templates.FOLDER / kind) for kind in KINDS}
    monkeypatch.setattr(templates, "FOLDER", tmp_path)
    assert templates.main([]) == 0
    assert {kind: _written(tmp_path / kind) for kind in KINDS} == kept
    assert {path.name for path in tmp_path.iterdir()} == {*KINDS}


def test_a_release_names_its_own_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "FOLDER", tmp_path)
    assert templates.main(["--source", "git+https://a.example/b@v1"]) == 0
    for kind in KINDS:
        requirements = (tmp_path / kind / "requirements.txt").read_text()
        assert requirements.endswith("\ntrainyard[pulumi] @ git+https://a.example/b@v1\n")


def test_no_template_names_a_package_alone() -> None:
    """Of that name somebody else has one: pip must fail where nobody has changed the address."""
    for kind in KINDS:
        *_, line = (templates.FOLDER / kind / "requirements.txt").read_text().splitlines()
        assert line.startswith("trainyard[pulumi] @ git+https://example.com/")


@pytest.mark.parametrize("kind", KINDS)
def test_a_template_asks_for_the_region_under_a_name_that_its_stack_file_has(kind: str) -> None:
    project = yaml.safe_load((templates.FOLDER / kind / "Pulumi.yaml").read_text())
    assert project["name"] == PROJECT and project["template"]["description"]
    assert [*project["template"]["config"]] == ["aws:region"]
    [stack_file] = (templates.FOLDER / kind).glob("Pulumi.*.yaml")
    config = yaml.safe_load(stack_file.read_text())["config"]
    assert config["aws:region"] == project["template"]["config"]["aws:region"]["default"]
    assert f"{PROJECT}:{kind}" in config


def test_check_accepts_a_project_of_both_templates(tmp_path: Path) -> None:
    for kind in KINDS:
        shutil.copytree(templates.FOLDER / kind, tmp_path, dirs_exist_ok=True)
    for stack in ("dev", "team-vision"):
        assert plan_stack(read_file(stack, tmp_path), tmp_path).errors == ()


def test_the_page_says_what_the_template_of_a_team_overwrites_beside_its_environment() -> None:
    """An example overwrote the stack file that another one had made."""
    page = (CHECKOUT / "docs/projects.md").read_text()
    bullet = page[page.index("- The template `team`") :].partition("\n\n")[0]
    overwritten = bullet[bullet.index("--force") :]
    team = {each.partition("/")[0] for each in _written(templates.FOLDER / "team")}
    assert [name for name in team if name not in overwritten and name[0] != "."] == []
    assert "empty folder" in bullet
