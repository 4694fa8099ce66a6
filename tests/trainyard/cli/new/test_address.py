"""A project installs the tool from where the tool was installed, or from the origin of the clone."""

from __future__ import annotations

import json
import subprocess
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

from trainyard.cli.new.address import installed_from


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    done = subprocess.run(
        ["git", "-C", folder, *who, *words], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone with a space in its path, from which pip has installed the tool."""
    folder = tmp_path / "my clone"
    folder.mkdir()
    git(folder, "init", "--quiet")
    git(folder, "commit", "--quiet", "--allow-empty", "--message=first")
    text = json.dumps({"url": folder.as_uri(), "dir_info": {"editable": True}})
    told = SimpleNamespace(read_text=lambda _: text)
    monkeypatch.setattr(metadata, "distribution", lambda _: told)
    return folder


@pytest.mark.parametrize(
    ("origin", "address"),
    [
        ("https://git.example/a/trainyard.git", "git+https://git.example/a/trainyard.git"),
        ("https://me:secret@git.example:8443/a", "git+https://git.example:8443/a"),
        ("git@git.example:a/trainyard.git", "git+ssh://git@git.example/a/trainyard.git"),
        ("ssh://git@git.example:2222/a", "git+ssh://git@git.example:2222/a"),
    ],
)
def test_a_clone_is_installed_from_its_origin_without_a_password(
    origin: str, address: str, clone: Path
) -> None:
    git(clone, "remote", "add", "origin", origin)
    assert installed_from() == f"{address}@{git(clone, 'rev-parse', 'HEAD')}"


@pytest.mark.parametrize("origin", ["/srv/trainyard", "../trainyard", "file:///srv/trainyard"])
def test_a_clone_of_a_folder_is_reached_by_nobody_else(origin: str, clone: Path) -> None:
    assert installed_from() == ""
    git(clone, "remote", "add", "origin", origin)
    assert installed_from() == ""
