"""Changes of a store that stays, and what an update would lose by them."""

from __future__ import annotations

from typing import Any

import pulumi
import pytest

from tests.support.deployed import deployed
from tests.support.graphs import environment
from tests.support.recording import deploy
from tests.support.stackfile import ENVIRONMENT, Edit, at, environment_plan
from trainyard.replacing.deployed import Deployed
from trainyard.replacing.stores import store_errors, store_warnings

ALONE = at("jobs", {})
LUSTRE = "environment.storage.scratch.lustre"
LINK: dict[str, Any] = {
    "s3": "s3://runs/a/",
    "path": "/a",
    "auto_export": ["NEW", "CHANGED"],
    "delete_data_in_filesystem": True,
}


def _linked(**more: Any) -> Edit:
    return at("storage.scratch.lustre.repositories", {"runs": LINK | more})


def _said(before: tuple[Edit, ...], *after: Edit) -> list[str]:
    found = deployed(environment(ALONE, *before))
    return [str(each) for each in store_errors(environment_plan(ALONE, *after), found)]


def test_a_link_that_would_delete_its_files_when_it_is_made_anew_is_refused() -> None:
    [error] = _said((_linked(),), _linked(auto_export=[]))
    assert error == (
        f"{LUSTRE}.repositories.runs.auto_export: must stay [NEW, CHANGED] in this update: another value makes the"
        " link anew, and the link was deployed with delete_data_in_filesystem: true, so FSx deletes the files in /a"
        " with it; got []. Fix: write [NEW, CHANGED] again with delete_data_in_filesystem: false, run `pulumi up`, and"
        " change it in the next update"
    )


@pytest.mark.parametrize(
    ("setting", "value"),
    [("auto_import", []), ("s3", "s3://runs/b/"), ("path", "/b"), ("auto_export", [])],
)
def test_each_setting_that_makes_a_link_anew_is_refused_while_the_deployed_link_deletes(
    setting: str, value: Any
) -> None:
    """In two updates it works: the first only writes delete_data_in_filesystem: false."""
    safe = {"delete_data_in_filesystem": False}
    for after in ({setting: value}, {setting: value, **safe}):
        [error] = _said((_linked(),), _linked(**after))
        assert error.startswith(f"{LUSTRE}.repositories.runs.{setting}: must stay ")
    assert _said((_linked(),), _linked(**safe)) == []
    assert _said((_linked(**safe),), _linked(**safe, **{setting: value})) == []


def test_a_link_that_stays_is_removed_or_changes_its_events_is_not_refused() -> None:
    before = (_linked(),)
    for after in (_linked(), _linked(auto_export=["NEW"]), at(f"{LUSTRE[12:]}.repositories", {})):
        assert _said(before, after) == []
    assert _said((), _linked()) == []
    assert [*store_errors(environment_plan(_linked()), Deployed())] == []


def test_a_link_of_a_store_that_is_replaced_has_the_error_of_the_store_alone() -> None:
    other = at("zone", "ap-northeast-2b"), at("allow_replace", ["storage.scratch"])
    assert _said((_linked(),), _linked(path="/b"), *other) == []


def test_a_preview_says_it_with_the_line_of_the_stack_file() -> None:
    def changed(values: dict[str, Any]) -> None:
        for edit in (ALONE, _linked(path="/b")):
            edit(values[ENVIRONMENT])

    with pytest.raises(pulumi.RunError) as refused:
        deploy("dev", changed, preview=True, deployed=deployed(environment(ALONE, _linked())))
    assert f"{LUSTRE}.repositories.runs.path [Pulumi.dev.yaml:" in str(refused.value)


BACKUP = at("storage.scratch.lustre.restore_from", "backup-0123456789abcdef0")
KEPT_BACKUPS = at("storage.scratch.lustre.backup_days", 7)
NO_BACKUPS = at("storage.scratch.lustre.backup_days", 0)


def test_links_of_a_restored_file_system_need_its_backups_to_end() -> None:
    [error] = _said((BACKUP, KEPT_BACKUPS), BACKUP, _linked())
    assert error.startswith(f"{LUSTRE}.backup_days: must be 0 with repositories")
    assert error.endswith("got nothing. Fix: write 0")
    assert _said((BACKUP, KEPT_BACKUPS), BACKUP, _linked(), NO_BACKUPS) == []
    assert _said((KEPT_BACKUPS,), _linked()) == [], "the update ends the backups first"
    assert _said((BACKUP, KEPT_BACKUPS), BACKUP) == []


def test_links_in_the_update_that_restores_a_backup_are_warned_of() -> None:
    plan = environment_plan(ALONE, BACKUP, _linked(), NO_BACKUPS)
    [warning] = store_warnings(plan, Deployed())
    assert warning.path == f"{LUSTRE}.repositories"
    assert "run `pulumi up` without repositories first" in warning.text
    found = deployed(environment(ALONE, BACKUP))
    assert [*store_warnings(plan, found)] == []
    assert [*store_warnings(environment_plan(ALONE, BACKUP), Deployed())] == []
    assert [*store_warnings(environment_plan(ALONE, _linked()), Deployed())] == []


def test_another_speed_is_said_with_the_hour_that_it_takes() -> None:
    faster = environment_plan(ALONE, at("storage.scratch.lustre.throughput_mbps_per_tib", 1000))
    [warning] = store_warnings(faster, deployed(environment(ALONE)))
    assert warning.path == f"{LUSTRE}.throughput_mbps_per_tib"
    assert "the speed of scratch from 500 to 1000" in warning.text
    assert "not available for up to an hour. Let jobs end first" in warning.text
    assert [*store_warnings(environment_plan(ALONE), deployed(environment(ALONE)))] == []
    assert [*store_warnings(faster, Deployed())] == []


def test_a_speed_that_another_file_system_gets_is_no_warning() -> None:
    size = {"capacity_gib": 9600, "throughput_mbps_per_tib": 500, "efa": True}
    before = at("storage.scratch.lustre", size)
    after = at("storage.scratch.lustre", {**size, "throughput_mbps_per_tib": 1000})
    found = deployed(environment(ALONE, before))
    assert [*store_warnings(environment_plan(ALONE, after), found)] == []


FIRST, SECOND = (f"arn:aws:kms:ap-northeast-2:123456789012:key/{n * 8}" for n in "12")


def _with_key(key: str | None) -> Edit:
    return at("storage.sets", {"s3": {"kms_key_arn": key} if key else {}, "data": "delete"})


@pytest.mark.parametrize(
    ("key", "sse"), [(SECOND, f"aws:kms --sse-kms-key-id {SECOND}"), (None, "AES256")]
)
def test_another_key_of_a_bucket_or_none_says_which_objects_jobs_cannot_read(
    key: str | None, sse: str
) -> None:
    found = deployed(environment(ALONE, _with_key(FIRST)))
    [warning] = store_warnings(environment_plan(ALONE, _with_key(key)), found)
    assert warning.path == "environment.storage.sets.s3.kms_key_arn"
    assert f"keep their key, {FIRST}, which jobs cannot use after this update" in warning.text
    bucket = found.output("aws:s3/bucket:Bucket", "sets", "bucket")
    assert warning.text.endswith(f"s3 cp s3://{bucket}/ s3://{bucket}/ --recursive --sse {sse}")


def test_a_key_that_a_bucket_keeps_or_gets_first_is_no_warning() -> None:
    for before, after in ((FIRST, FIRST), (None, FIRST), (None, None)):
        found = deployed(environment(ALONE, _with_key(before)))
        assert [*store_warnings(environment_plan(ALONE, _with_key(after)), found)] == []
    assert [*store_warnings(environment_plan(ALONE, _with_key(FIRST)), Deployed())] == []


def _efs(**settings: Any) -> Edit:
    return at("storage.home", {"efs": settings})


ARCHIVES = {"infrequent_after_days": 30, "archive_after_days": 90}
BURSTING = {"throughput": "bursting"}
PROVISIONED = {"throughput": "provisioned", "throughput_mibps": 128}


@pytest.mark.parametrize("after", [BURSTING, PROVISIONED], ids=lambda after: after["throughput"])
def test_another_throughput_of_a_store_that_archives_says_that_efs_may_refuse_it(
    after: dict[str, Any],
) -> None:
    found = deployed(environment(ALONE, _efs(lifecycle=ARCHIVES)))
    plan = environment_plan(ALONE, _efs(**after))
    [warning] = store_warnings(plan, found)
    assert warning.path == "environment.storage.home.efs.throughput"
    assert f"EFS refuses {after['throughput']} once home has a file in Archive" in warning.text
    assert "describe-file-systems --region ap-northeast-2 --creation-token dev-home" in warning.text


def test_a_throughput_without_archive_or_that_stays_elastic_is_no_warning() -> None:
    for before, after in (
        ({"lifecycle": {"infrequent_after_days": 30}}, BURSTING),
        ({"lifecycle": ARCHIVES}, {}),
        ({}, PROVISIONED),
    ):
        found = deployed(environment(ALONE, _efs(**before)))
        assert [*store_warnings(environment_plan(ALONE, _efs(**after)), found)] == []
    assert [*store_warnings(environment_plan(ALONE, _efs(**BURSTING)), Deployed())] == []
