"""What a team cannot do with stores that keep teams apart, or that teams only read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.directories import kept_apart
from tests.support.stackfile import Edit, at, without
from tests.support.sweep import lines_not_reached
from tests.support.teams import both, by_name, checkout, environment_of, listed, planned, team_of
from trainyard.reports.plan import storage
from trainyard.rules import team_stores

JOB = "jobs.vit-base"
READ_ONLY = at("storage.scratch.teams", "read_only")
CACHE = both(by_name, at(f"{JOB}.storage", {"corpus": {"path": "/corpus"}}))


def nothing(settings: dict[str, Any]) -> None:
    """No edit."""


def recipe(settings: dict[str, Any]) -> None:
    """An own runtime that fetches its model to corpus."""
    settings["trainer"]["own_runtimes"]["tuned"] = {
        "kind": "torchtune",
        "torchtune": {"model": "llama3.2-1b", "store": "corpus", "directory": "models"},
    }


REFUSED: dict[str, tuple[Edit, Edit, str, str]] = {
    "a team that makes its volumes itself, beside a wall": (
        at("storage.home.teams", "apart"),
        nothing,
        "team",
        "must be listed by the environment, because teams do not see all of its store home; got"
        " namespace team-vision. Fix: add an entry under environment.teams in Pulumi.dev.yaml",
    ),
    "a team that makes its volumes itself, beside a store that teams read": (
        at("storage.home.teams", "read_only"),
        nothing,
        "team",
        "because teams do not see all of its store home",
    ),
    "checkpoints where nothing can be written": (
        both(kept_apart, READ_ONLY),
        by_name,
        f"{JOB}.checkpoints.store",
        "must be a store that teams can write to; got scratch, which is teams: read_only. Fix: write one of"
        " home, results",
    ),
    "logs where nothing can be written": (
        kept_apart,
        both(by_name, at(f"{JOB}.tensorboard", {"store": "corpus", "directory": "logs"})),
        f"{JOB}.tensorboard.store",
        "must be a store that teams can write to; got corpus",
    ),
    "a cache where nothing can be written": (
        kept_apart,
        both(CACHE, at(f"{JOB}.env", {"TRITON_CACHE_DIR": "/corpus/triton"})),
        f"{JOB}.env.TRITON_CACHE_DIR",
        "must be a folder that the job can write to; got /corpus/triton, on corpus, which is teams:"
        " read_only. Fix: write a folder on another store or under local_scratch",
    ),
    "a cache that downloads to where nothing can be written": (
        kept_apart,
        both(CACHE, at(f"{JOB}.env", {"HF_HOME": "/corpus", "HF_HUB_OFFLINE": "0"})),
        f"{JOB}.env.HF_HOME",
        'under local_scratch, or set HF_HUB_OFFLINE: "1"',
    ),
    "a runtime that fetches a model to where nothing can be written": (
        both(kept_apart, recipe),
        both(by_name, at(f"{JOB}.runtime", "tuned"), without(f"{JOB}.script")),
        f"{JOB}.runtime",
        "must be a runtime whose model lies on a store that teams can write to; got tuned, which"
        " writes to corpus",
    ),
}
"""What is wrong → edits of the environment and of the team, path of the error, part of its text."""
SOUND: dict[str, tuple[Edit, Edit]] = {
    "checkpoints in the own directory": (kept_apart, by_name),
    "a model cache that is only read": (
        kept_apart,
        both(CACHE, at(f"{JOB}.env", {"HF_HOME": "/corpus/hf", "HF_HUB_OFFLINE": "1"})),
    ),
    "a data set that is read": (
        kept_apart,
        both(CACHE, at(f"{JOB}.env", {"DATA_DIR": "/corpus", "HF_HOME": "/corpus2"})),
    ),
}


def errors(folder: Path, environment: Edit, team: Edit) -> list[Any]:
    return [*planned("team-vision", checkout(folder, environment, team)).errors]


@pytest.mark.parametrize("case", REFUSED)
def test_a_job_that_would_fail_at_a_store_is_refused(case: str, tmp_path: Path) -> None:
    environment, team, path, says = REFUSED[case]
    found = errors(tmp_path, environment, team)
    at_path = [str(error) for error in found if error.path in (path, f"team.{path}")]
    assert at_path and says in at_path[0], list(map(str, found))


@pytest.mark.parametrize("case", SOUND)
def test_a_job_that_works_is_not_refused(case: str, tmp_path: Path) -> None:
    assert errors(tmp_path, *SOUND[case]) == []


def test_every_error_of_the_rules_is_caused_above(tmp_path: Path) -> None:
    def run() -> None:
        for environment, team, _, _ in REFUSED.values():
            errors(tmp_path, environment, team)

    assert lines_not_reached((team_stores,), run) == []


@pytest.mark.parametrize(
    ("edit", "warned"),
    [
        (nothing, []),
        (at("storage.home.teams", "together"), ["environment.storage.home"]),
        (both(at("storage.home.teams", "together"), at("teams.vision.stores", ["scratch"])), []),
        (without("teams.nlp"), []),
    ],
)
def test_a_hole_in_the_wall_is_a_warning(edit: Edit, warned: list[str], tmp_path: Path) -> None:
    """One store of several teams, beside one that keeps them apart; a store of one team is none."""
    found = planned("dev", checkout(tmp_path, both(kept_apart, edit), nothing))
    assert found.errors == ()
    holes = [each for each in found.warnings if "keeps teams apart" in each.text]
    assert [each.path for each in holes] == warned
    assert all("vision, nlp read and write all of it" in each.text for each in holes)


def test_teams_that_share_all_stores_are_warned_of_nothing(tmp_path: Path) -> None:
    found = planned("dev", checkout(tmp_path, listed, nothing)).warnings
    assert not [each for each in found if "keeps teams apart" in each.text]


def test_the_same_directory_of_two_teams_is_two_directories(tmp_path: Path) -> None:
    """On a store that keeps them apart, and one on a store that they share."""

    def nlp(settings: dict[str, Any]) -> None:
        by_name(settings)
        settings["name"] = "nlp"

    for store, refused in (("apart", False), ("together", True)):
        edit = both(kept_apart, at("storage.scratch.teams", store))
        folder = checkout(tmp_path, edit, by_name, team_nlp=nlp)
        found = [str(e) for e in planned("team-vision", folder).errors]
        assert (
            any("must be apart from " in each and "the directory of job" in each for each in found)
            is refused
        )


def test_a_job_of_the_environment_in_the_directory_of_a_team_is_in_its_way(tmp_path: Path) -> None:
    edit = both(kept_apart, at("jobs.t5-large.checkpoints.directory", "teams/vision/vit-base"))
    [error] = errors(tmp_path, edit, by_name)
    assert "must be apart from teams/vision/vit-base, the directory of job t5-large of dev" in str(
        error
    )


def test_the_plan_of_a_team_says_what_it_sees_of_its_stores(tmp_path: Path) -> None:
    folder = checkout(tmp_path, kept_apart, by_name)
    assert storage(team_of(folder)) == [
        "storage",
        "  home is the directory teams/vision",
        "  results is the directory teams/vision",
        "  scratch is the directory teams/vision",
        "  corpus is for reading only",
    ]
    assert "  scratch has a directory for each team: teams/<team>" in storage(
        environment_of(folder)
    )
    assert storage(team_of(checkout(tmp_path, listed, by_name))) == []


def test_the_plan_says_which_teams_write_to_all_of_a_store(tmp_path: Path) -> None:
    line = "  scratch is one for all: vision, nlp read, write and delete all of it"
    said = storage(environment_of(checkout(tmp_path, listed, by_name)))
    assert line in said, "the team nlp lists no stores, and so has each of them"
    assert not [each for each in said if "home is one for all" in each], "vision does not have it"
    for sees in ("read_only", "apart"):
        edit = both(listed, at("storage.scratch.teams", sees))
        assert line not in storage(environment_of(checkout(tmp_path, edit, by_name)))
