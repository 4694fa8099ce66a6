"""The files of a release: the wheel, the source distribution, and the component package."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from development import artifacts
from tests.support.recording import CHECKOUT
from trainyard.catalog.versions import TRAINYARD


def test_a_tag_of_another_version_builds_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert artifacts.main(["v0.0.1", str(tmp_path / "dist")]) == 1
    assert capsys.readouterr().out == (
        f"tag: must be v{TRAINYARD}, the version of the program; got v0.0.1\n"
    )
    assert not (tmp_path / "dist").exists()


def test_three_files_are_built_and_the_section_of_the_changelog_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dist = tmp_path / "dist"
    assert artifacts.main([f"v{TRAINYARD}", str(dist)]) == 0
    assert {file.name for file in dist.iterdir()} == {
        f"trainyard-{TRAINYARD}-py3-none-any.whl",
        f"trainyard-{TRAINYARD}.tar.gz",
        (name := f"trainyard-package-{TRAINYARD}.tar.gz"),
    }
    notes = capsys.readouterr().out
    assert notes.startswith("### ") and notes.strip() in (CHECKOUT / "CHANGELOG.md").read_text()
    assert "\n## " not in notes
    with tarfile.open(dist / name) as archive:
        archive.extractall(tmp_path, filter="data")
    package = tmp_path / name.removesuffix(".tar.gz") / "package"
    assert (package / "PulumiPlugin.yaml").exists()
    loads = f"import sys; sys.path[0] = {str(package.parent)!r}; import package.provider as p; print(p.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", loads], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout == f"{package}/provider.py\n", done.stderr
