"""`trainyard check --live` of a Lustre store that is created from a backup."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from tests.support.stackfile import Edit, at, environment_plan, lustre
from trainyard.live.backups import backup_checks
from trainyard.live.questions.account import Account

BACKUP = "backup-0123456789abcdef0"
RESTORED = at("storage.scratch.lustre.restore_from", BACKUP)
STORE = lustre(environment_plan(RESTORED))
FILE_SYSTEM = {
    "StorageCapacity": STORE.capacity_gib,
    "LustreConfiguration": {
        "DeploymentType": "PERSISTENT_2",
        "PerUnitStorageThroughput": STORE.throughput_mbps_per_tib,
    },
}


def said(found: dict[str, Any], *edits: Edit) -> list[str]:
    told = Mock(spec=Account)
    told.backup.return_value, told.has_lustre.return_value = found, False
    checks = backup_checks(told, environment_plan(RESTORED, *edits))
    findings = [str(finding) for check in checks.values() for finding in check()]
    told.backup.assert_called_once_with(BACKUP)
    return findings


def test_a_backup_of_the_same_size_and_speed_will_do() -> None:
    assert said({"Lifecycle": "AVAILABLE", "FileSystem": FILE_SYSTEM}) == []
    assert backup_checks(Mock(spec=Account), environment_plan()) == {}


@pytest.mark.parametrize("found", [{}, {"Lifecycle": "CREATING"}])
def test_a_backup_that_is_not_there_or_not_ready_is_refused(found: dict[str, Any]) -> None:
    [error] = said(found)
    assert "must be a backup that is AVAILABLE" in error and BACKUP in error


@pytest.mark.parametrize(
    ("was", "error"),
    [
        ({"StorageCapacity": 2400}, "capacity_gib: must be that of the file system in"),
        (
            {"LustreConfiguration": {"DeploymentType": "PERSISTENT_1"}},
            "deployment: must be that of the file system in",
        ),
    ],
)
def test_what_is_not_as_in_the_backup_is_an_error_with_the_value_to_write(
    was: dict[str, Any], error: str
) -> None:
    lines = said({"Lifecycle": "AVAILABLE", "FileSystem": FILE_SYSTEM | was})
    assert lines[0].startswith(f"environment.storage.scratch.lustre.{error}")
    assert all("Fix: write " in line for line in lines)


@pytest.mark.parametrize("found", [{}, {"Lifecycle": "AVAILABLE", "FileSystem": FILE_SYSTEM}])
def test_a_file_system_that_is_there_needs_the_backup_no_more(found: dict[str, Any]) -> None:
    told, grown = Mock(spec=Account), at("storage.scratch.lustre.capacity_gib", 9600)
    told.backup.return_value, told.has_lustre.return_value = found, True
    [check] = backup_checks(told, environment_plan(RESTORED, grown)).values()
    assert [*check()] == []
    [asked] = told.has_lustre.call_args.args
    assert asked["trainyard:stack"] == "dev" and asked["trainyard:name"] == "scratch"


@pytest.mark.parametrize("days", [None, 0, 7])
def test_links_wait_for_the_update_after_the_one_that_restores_backups_with_the_files(
    days: int | None,
) -> None:
    was = FILE_SYSTEM | {
        "LustreConfiguration": {
            **FILE_SYSTEM["LustreConfiguration"],
            "AutomaticBackupRetentionDays": days,
        }
    }
    linked = at("storage.scratch.lustre.repositories", {"a": {"s3": "s3://sets", "path": "/a"}})
    lines = said({"Lifecycle": "AVAILABLE", "FileSystem": was}, linked)
    assert len(lines) == bool(days)
    if days:
        assert lines[0].startswith("environment.storage.scratch.lustre.repositories: must not be")
        assert "got a. Fix: run `pulumi up` without repositories first" in lines[0]
