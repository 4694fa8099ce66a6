"""A run goes on in another environment from checkpoints in S3, by the files of docs/storage.md; what would
overwrite checkpoints is refused."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.support.recording import CHECKOUT, stack_values
from tests.support.stackfile import ENVIRONMENT
from trainyard.decide import plan_stack
from trainyard.settings.reading.reader import read_file

LINK = "environment.storage.scratch.lustre.repositories.checkpoints"
Files = dict[str, dict[str, Any]]


def documented() -> Files:
    """Name of a stack → its settings: what the page shows, in a whole stack file."""
    page = (CHECKOUT / "docs/storage.md").read_text()
    shown = re.findall(r"```yaml\n# Pulumi\.(\w+)\.yaml[^\n]*\n(.*?)```", page, re.DOTALL)
    assert [name for name, _ in shown] == ["dev", "again"]
    found: Files = {}
    for name, text in shown:
        whole = copy.deepcopy(stack_values("dev"))
        jobs = whole[ENVIRONMENT]["jobs"]
        jobs["ddp"] = jobs.pop("t5-large")
        found[name] = merged(whole, yaml.safe_load(text)["config"])
    return found


def merged(whole: Any, part: Any) -> Any:
    if not isinstance(part, Mapping) or not isinstance(whole, Mapping):
        return part
    return {**whole, **{key: merged(whole.get(key), value) for key, value in part.items()}}


def errors(folder: Path, files: Files, stack: str) -> list[str]:
    (folder / "Pulumi.yaml").write_text((CHECKOUT / "Pulumi.yaml").read_text())
    for name, config in files.items():
        (folder / f"Pulumi.{name}.yaml").write_text(yaml.safe_dump({"config": config}))
    return [str(each) for each in plan_stack(read_file(stack, folder), folder).errors]


def link(files: Files, stack: str) -> dict[str, Any]:
    lustre = files[stack][ENVIRONMENT]["storage"]["scratch"]["lustre"]
    return lustre["repositories"]["checkpoints"]


def test_the_documented_environments_work_beside_each_other(tmp_path: Path) -> None:
    files = documented()
    for stack in files:
        assert errors(tmp_path, files, stack) == []


def test_two_environments_cannot_export_to_one_prefix(tmp_path: Path) -> None:
    files = documented()
    link(files, "again")["auto_export"] = ["NEW"]
    [error] = errors(tmp_path, files, "again")
    assert (
        error.startswith(f"{LINK}.s3 ")
        and (
            "must not overlap with s3://our-bucket/checkpoints/, which stack dev exports to: files of"
        )
        in error
    )
    assert "which stack again exports to" in str(errors(tmp_path, files, "dev"))
    link(files, "again")["s3"] = "s3://our-bucket/again/"
    assert errors(tmp_path, files, "again") == errors(tmp_path, files, "dev") == []


def test_two_stores_of_an_environment_cannot_export_to_one_prefix(tmp_path: Path) -> None:
    """Each overwrites what the other one has exported (user guide, autoexport-data-repo-dra)."""
    files = {"dev": documented()["dev"]}
    storage = files["dev"][ENVIRONMENT]["storage"]
    storage["second"] = copy.deepcopy(storage["scratch"])
    theirs = storage["second"]["lustre"]["repositories"]["checkpoints"]
    for prefix in ("s3://our-bucket/checkpoints/", "s3://our-bucket/checkpoints/second"):
        theirs["s3"] = prefix
        [error] = errors(tmp_path, files, "dev")
        assert error.startswith(f"{LINK.replace('scratch', 'second')}.s3 ") and error.endswith(
            "must not overlap with s3://our-bucket/checkpoints/, which repository checkpoints of store scratch exports"
            f" to: files of the one would replace those of the other; got {prefix}. Fix: write a prefix of its own, or"
            " delete auto_export"
        )
    for apart in ({"s3": "s3://our-bucket/checkpoints-2/"}, {"auto_export": []}):
        storage["second"]["lustre"]["repositories"]["checkpoints"] = theirs | apart
        assert errors(tmp_path, files, "dev") == []


def test_a_run_cannot_save_where_another_one_deletes(tmp_path: Path) -> None:
    files = documented()
    del link(files, "again")["auto_import"]
    [error] = errors(tmp_path, files, "again")
    assert (
        "must not be in /checkpoints, the path of repository" in error
        and "changes in s3://our-bucket/checkpoints/ replace" in error
    )
    assert f"write auto_import: [] in {LINK}, which then imports once" in error
    link(files, "again")["path"] = "/data"
    assert errors(tmp_path, files, "again") == []


def test_a_stack_file_with_errors_says_nothing_of_its_exports(tmp_path: Path) -> None:
    files = documented()
    link(files, "again")["auto_export"] = ["NEW"]
    link(files, "dev")["auto_export"] = ["SOMETIMES"]
    assert errors(tmp_path, files, "again") == []
