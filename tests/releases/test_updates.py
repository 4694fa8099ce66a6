"""The environment that an older release has made is updated by today's program, with the real engine, in an
account without a cluster. What a gang notices of it, tests/worlds/test_releases_world.py tells."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from development import engine
from rehearsal import paths
from tests.support.alone import Alone, alone
from tests.support.recording import CHECKOUT
from tests.support.releases import FOLDER, OLDER, Release, lost_by, told, unpack
from trainyard.catalog.versions import TRAINYARD

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not (paths.BIN / "pulumi").exists(), reason="pulumi is not built"),
]


@dataclass(frozen=True, kw_only=True)
class Place:
    """The account, and the programs of a release and of today."""

    release: Release
    alone: Alone
    before: Path
    """Folder of the program of the release."""

    def pulumi(self, folder: Path, *words: str) -> str:
        """Output of the engine, which runs the program of a folder."""
        engine.refresh_copy(self.alone.stack)
        done = subprocess.run(
            [paths.BIN / "pulumi", *words, "--non-interactive", "--stack", "dev"],
            cwd=folder,
            env=engine.complete(self.alone.stack),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module", params=OLDER, ids=[each.name for each in OLDER])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """The environment of a release, made by its own program."""
    release: Release = request.param
    stack_file = (FOLDER / release.name / "Pulumi.dev.yaml").read_text()
    with alone("dev", {"Pulumi.dev.yaml": stack_file}) as made:
        before = unpack(release, made.checkout.parent / "before")
        engine.prepare(made.stack, lambda _: None)
        place = Place(release=release, alone=made, before=before)
        place.pulumi(before, "up", "--yes", "--skip-preview")
        yield place


def test_a_preview_loses_what_the_changelog_names_and_nothing_else(place: Place) -> None:
    said = place.pulumi(place.alone.checkout, "preview", "--json")
    lost = lost_by(json.loads(said[said.index("{") :])["steps"])
    assert lost == told(place.release, (CHECKOUT / "CHANGELOG.md").read_text())


def test_an_update_converges_and_the_stack_says_its_release(place: Place) -> None:
    today = place.alone.checkout
    place.pulumi(today, "up", "--yes", "--skip-preview")
    place.pulumi(today, "preview", "--expect-no-changes")
    assert place.pulumi(today, "stack", "output", "release").strip() == TRAINYARD
