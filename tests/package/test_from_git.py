"""The package from the address of a Git repository and a tag, as docs/package.md names it: Pulumi clones it, makes
its Python environment and asks it for its schema. What a program makes with it, tests/package/test_engine.py
tells."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from package.schema import schema
from rehearsal import paths
from rehearsal.providers import install
from tests.support.git_server import HOST, serving
from tests.support.recording import CHECKOUT
from trainyard.catalog.versions import TRAINYARD

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not (paths.BIN / "pulumi").exists(), reason="pulumi is not built"),
]
TAG = f"v{TRAINYARD}"


def _repository(folder: Path) -> None:
    """A repository of this commit, with the tag of its release."""
    subprocess.run(["git", "clone", "--quiet", "--bare", CHECKOUT, folder], check=True)
    subprocess.run(["git", "-C", folder, "tag", "--force", TAG, "HEAD"], check=True)


def test_pulumi_takes_the_package_from_a_git_address_and_a_tag(tmp_path: Path) -> None:
    home = tmp_path / "home"
    install.install(home, paths.BIN)
    _repository(tmp_path / "git" / "Some_Team.2" / "trainyard.git")
    try:
        with serving(tmp_path / "git", tmp_path) as certificate:
            address = f"https://{HOST}/Some_Team.2/trainyard/package@{TAG}"
            done = subprocess.run(
                [paths.BIN / "pulumi", "package", "get-schema", address, "--non-interactive"],
                cwd=tmp_path,
                env={
                    **os.environ,
                    "PATH": f"{paths.BIN}{os.pathsep}{os.environ['PATH']}",
                    "PULUMI_HOME": str(home),
                    "PULUMI_BACKEND_URL": f"file://{tmp_path}",
                    "PULUMI_SKIP_UPDATE_CHECK": "true",
                    "SSL_CERT_FILE": str(certificate),
                },
                capture_output=True,
                text=True,
            )
    except PermissionError:
        pytest.skip("this user must not listen on port 443")
    assert done.returncode == 0, done.stdout + done.stderr
    told, ours = json.loads(done.stdout[done.stdout.index("{\n") :]), schema()
    assert told["namespace"] == ours["namespace"], "an SDK has one name, whatever the address"
    assert told["version"] == TRAINYARD and told["resources"].keys() == ours["resources"].keys()
