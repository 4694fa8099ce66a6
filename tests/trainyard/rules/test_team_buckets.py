"""Which parts of S3 the entry of a team cannot give to its pods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.stackfile import Edit, at
from tests.support.sweep import lines_not_reached
from tests.support.teams import both, checkout, environment_of, listed, planned
from trainyard.objects.iam.s3 import S3Plan
from trainyard.plans.identity import Identity
from trainyard.rules import team_buckets


def nothing(settings: dict[str, Any]) -> None:
    """No edit."""


def link(s3: str, path: str, **more: Any) -> dict[str, Any]:
    return {"repositories": {"data": {"s3": s3, "path": path, **more}}}


def stores(settings: dict[str, Any]) -> None:
    """A store of each kind that keeps something from teams."""
    lustre = settings["storage"]["scratch"]["lustre"]
    settings["storage"] = {
        "scratch": {"lustre": lustre | link("s3://lake/raw", "/"), "teams": "apart"},
        "fast": {"lustre": lustre | link("s3://lake/sets/", "/sets"), "teams": "read_only"},
        "results": {"s3": {"bucket": "our-results", "writable": True}, "teams": "apart"},
        "own": {"s3": {"writable": True}, "teams": "apart"},
        "corpus": {"s3": {"bucket": "our-corpus"}, "teams": "read_only"},
        "code": {"s3": {"bucket": "our-code"}},
    }
    settings["teams"]["vision"]["stores"] = ["scratch"]
    settings["jobs"] = {}


OWN = Identity(project="trainyard", stack="dev", region="ap-northeast-2").short_name("own", 50)
REFUSED: dict[str, tuple[str, str, str]] = {
    "the whole bucket of a store that keeps teams apart": (
        "s3_writes",
        "s3://our-results/",
        "must lie outside of store results, which shows team vision its own teams/vision alone: objects there are"
        " files of the store; got s3://our-results/. Fix: delete it, or write another part of S3",
    ),
    "directories of all teams": ("s3_writes", "s3://our-results/teams/", "store results"),
    "the directory of another team": ("s3_reads", "s3://our-results/teams/nlp/", "store results"),
    "a team whose name begins alike": ("s3_reads", "s3://our-results/teams/vision2/", "store res"),
    "the bucket that the stack makes": ("s3_reads", f"s3://{OWN}-111122223333/", "store own"),
    "a data set": (
        "s3_writes",
        "s3://our-corpus/images/",
        "must lie outside of store corpus, which teams only read: objects there are files of the store; got",
    ),
    "a prefix that Lustre imports": ("s3_writes", "s3://lake/raw/teams/nlp/", "store scratch"),
    "a prefix around one that Lustre imports": ("s3_writes", "s3://lake/", "store fast"),
    "a data set that Lustre imports": ("s3_writes", "s3://lake/sets/a/", "store fast"),
}
"""What is wrong → setting of the team, its prefix, part of the error."""
SOUND = {
    "its own directory": ("s3_writes", "s3://our-results/teams/vision/"),
    "its own directory, to read": ("s3_reads", f"s3://{OWN}-111122223333/teams/vision/logs/"),
    "its own directory on Lustre": ("s3_writes", "s3://lake/raw/teams/vision/"),
    "what stands beside directories of teams": ("s3_writes", "s3://our-results/reports/"),
    "a data set, to read": ("s3_reads", "s3://our-corpus/"),
    "a data set of Lustre, to read": ("s3_reads", "s3://lake/sets/"),
    "a prefix beside it": ("s3_writes", "s3://lake/sets2/"),
    "a store of all": ("s3_writes", "s3://our-code/"),
    "another bucket": ("s3_writes", "s3://our-results-2/"),
    "a bucket that is called alike": ("s3_writes", f"s3://{OWN}-archive/"),
}


def edited(setting: str, *prefixes: str) -> Edit:
    return both(listed, stores, at(f"teams.vision.{setting}", [*prefixes]))


@pytest.mark.parametrize("case", REFUSED)
def test_files_that_a_store_keeps_from_a_team_are_refused_in_s3(case: str, tmp_path: Path) -> None:
    setting, prefix, says = REFUSED[case]
    found = planned("dev", checkout(tmp_path, edited(setting, prefix), nothing)).errors
    errors = [str(each) for each in found if each.path == f"environment.teams.vision.{setting}"]
    assert any(says in each for each in errors), [*map(str, found)]
    assert len(errors) == len(found)


@pytest.mark.parametrize("case", SOUND)
def test_other_parts_of_s3_are_not_refused(case: str, tmp_path: Path) -> None:
    folder = checkout(tmp_path, edited(*SOUND[case]), nothing)
    assert [*map(str, planned("dev", folder).errors)] == []


def test_each_prefix_of_a_file_has_its_error(tmp_path: Path) -> None:
    prefixes = ("s3://our-results/", "s3://our-corpus/", "s3://lake/sets/")
    found = planned("dev", checkout(tmp_path, edited("s3_writes", *prefixes), nothing)).errors
    assert [each.got for each in sorted(found, key=lambda each: prefixes.index(each.got))] == [
        *prefixes
    ]


def test_a_link_that_imports_nothing_shows_no_new_object(tmp_path: Path) -> None:
    path = "storage.fast.lustre.repositories.data.auto_import"
    edit = both(edited("s3_writes", "s3://lake/sets/"), at(path, []))
    assert planned("dev", checkout(tmp_path, edit, nothing)).errors == ()


def test_the_bucket_that_is_judged_is_the_one_that_is_made(tmp_path: Path) -> None:
    plan = environment_of(checkout(tmp_path, both(listed, stores), nothing))
    own = plan.stores["own"]
    assert isinstance(own, S3Plan) and own.name == OWN


def test_every_line_of_the_rules_is_reached_by_a_case_above(tmp_path: Path) -> None:
    def run() -> None:
        for setting, prefix, _ in REFUSED.values():
            planned("dev", checkout(tmp_path, edited(setting, prefix), nothing))
        twice = both(edited("s3_writes", "s3://a/"), at("teams.nlp.s3_writes", ["s3://a/b/"]))
        planned("dev", checkout(tmp_path, twice, nothing))

    assert lines_not_reached((team_buckets,), run) == []
