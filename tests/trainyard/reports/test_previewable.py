"""The stacks that CI previews: those without existing resources, which an empty account lacks."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.support.existing_cluster import IN_CLUSTER
from tests.support.existing_stores import EXISTING_STORES
from tests.support.existing_vpc import EXISTING_VPC
from tests.support.stackfile import Edit, at, environment_plan, values
from trainyard.reports import previewable


def write(folder: Path, stack: str, *edits: Edit, of: str = "dev") -> None:
    config = values(*edits, stack=of)
    (folder / f"Pulumi.{stack}.yaml").write_text(yaml.safe_dump({"config": config}))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: trainyard\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_stack_on_something_existing_is_not_among_them(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, "dev")
    write(folder, "existing", EXISTING_VPC, at("jobs", {}))
    write(folder, "team-vision", of="team-vision")
    assert previewable.main([]) == 0
    said = capsys.readouterr()
    assert said.out.split() == ["dev", "team-vision"]
    assert said.err == (
        "existing: no preview, because an empty account has nothing of environment.network.vpc_id\n"
    )


def test_a_wrong_stack_file_is_an_error(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, "dev", at("zone", "nowhere-1a"))
    assert previewable.main([]) == 1
    said = capsys.readouterr()
    assert not said.out and "environment.zone" in said.err


def test_a_plan_says_which_settings_name_what_exists_before_the_stack() -> None:
    assert environment_plan().existing == ()
    assert environment_plan(EXISTING_VPC, EXISTING_STORES, at("jobs", {})).existing == (
        "environment.network.vpc_id",
        "environment.storage.scratch.lustre.file_system_id",
        "environment.storage.home.efs.file_system_id",
    )
    assert environment_plan(*IN_CLUSTER).existing == (
        "environment.network.vpc_id",
        "environment.cluster.name",
    )
