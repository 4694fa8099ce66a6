"""Whether the checkpoints of jobs fit on an existing Lustre, as `trainyard check --live` says
it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import Mock

import pytest

from tests.support.existing_stores import EXISTING_STORES, LUSTRE
from tests.support.existing_vpc import EXISTING_VPC
from tests.support.grammar import begins_with_a_verb
from tests.support.stackfile import Edit, at, environment, environment_plan
from trainyard.live.existing.free_room import needs, room_findings
from trainyard.live.questions.account import Account
from trainyard.live.questions.caller import NotAnswered
from trainyard.plans.access import AccessPlan
from trainyard.plans.stores import ExistingStorePlan

JOB = "environment.jobs.t5-large.checkpoints.store"
STORE = "environment.storage.scratch.lustre.file_system_id"
GIB = 2**30
CAPACITY = 1200
"""GiB, of which files can fill 1128."""


def model(billion: float, keep: int | None = None) -> Edit:
    """An edit: the job trains a model of so many parameters; 12 bytes of a checkpoint are one."""

    def edit(settings: dict[str, Any]) -> None:
        job = settings["jobs"]["t5-large"]
        job["parameters_billion"] = billion
        job["checkpoints"] |= {"keep": keep} if keep else {}

    return edit


def said(*edits: Edit, free: Any = 1128 * GIB, capacity: int = CAPACITY) -> list[str]:
    """Findings where so many bytes are free, or where the question fails."""
    account = Mock(spec=Account)
    how = "side_effect" if isinstance(free, Exception) else "return_value"
    account.free_bytes.configure_mock(**{how: free})
    changes = (EXISTING_VPC, EXISTING_STORES, *edits)
    store = environment_plan(*changes).stores["scratch"]
    assert isinstance(store, ExistingStorePlan)
    needed = needs("scratch", environment(*changes))
    found = [str(one) for one in room_findings(account, store, capacity, needed)]
    account.free_bytes.assert_called_once_with(LUSTRE)
    return found


def test_how_much_is_free_is_always_said() -> None:
    [only] = said(free=412.4 * GIB)
    assert only.startswith(STORE) and only.endswith(": 412 of its 1,200 GiB are free")


def test_a_job_whose_checkpoints_fit_is_not_mentioned() -> None:
    """Three of 335 GiB."""
    assert len(said(model(30))) == 1
    assert len(said(model(30), free=1006 * GIB)) == 1


def test_too_little_free_room_is_a_warning_as_old_checkpoints_may_fill_it() -> None:
    _, tight = said(model(30), free=1005 * GIB)
    assert tight.startswith(JOB)
    assert "3 checkpoints take 1,006 GiB, and 1,005 GiB are free on scratch" in tight
    assert "unless some of these checkpoints lie there already" in tight


def test_as_many_checkpoints_are_counted_as_stay_and_one_more() -> None:
    assert len(said(model(20, keep=4), free=1118 * GIB)) == 1
    _, tight = said(model(20, keep=4), free=1117 * GIB)
    assert "5 checkpoints take 1,118 GiB" in tight


def test_what_no_empty_file_system_of_the_size_holds_is_an_error() -> None:
    wrong, free = said(model(70))
    assert wrong.startswith(JOB) and "free" in free
    assert "2 that stay, and the one being written; got scratch, which has room for 1" in wrong
    assert f"{LUSTRE} has 1,200 GiB" in wrong
    grow = f"aws fsx update-file-system --file-system-id {LUSTRE} --storage-capacity 4800"
    assert grow in wrong and begins_with_a_verb(wrong.partition("Fix: ")[2])
    assert len(said(model(70), free=4512 * GIB, capacity=4800)) == 1


def test_a_job_that_does_not_say_how_large_its_model_is_counts_for_nothing() -> None:
    [only] = said(free=0)
    assert ": 0 of its 1,200 GiB are free" in only


def test_a_job_that_saves_elsewhere_counts_for_nothing() -> None:
    elsewhere = at("jobs.t5-large.checkpoints.store", "home")
    assert len(said(model(70), elsewhere, free=0)) == 1


def test_no_value_of_cloudwatch_is_a_warning() -> None:
    [only] = said(model(30), free=None)
    assert only.startswith(STORE) and "CloudWatch has no FreeDataStorageCapacity" in only


def test_what_the_caller_may_not_ask_keeps_nothing_else_from_being_said() -> None:
    wrong, unknown = said(model(70), free=NotAnswered("cloudwatch:GetMetricData: AccessDenied"))
    assert "must have room for 3" in wrong
    assert unknown.endswith(f"{LUSTRE} failed: cloudwatch:GetMetricData: AccessDenied")


def asking(service: str, operation: str, answer: Any) -> tuple[Account, Mock]:
    """An account of which one call has that answer, and the call."""
    account, client = Account(AccessPlan(region="us-east-2")), Mock()
    client.can_paginate.return_value = False
    call = getattr(client, operation)
    call.return_value = answer
    account.__dict__["_clients"] = {service: client}
    return account, call


@pytest.mark.parametrize(("values", "free"), [([7.0, 9.0], 7), ([], None)])
def test_the_newest_whole_minute_of_all_disks_is_asked_for(
    values: list[float], free: int | None
) -> None:
    answer = {"MetricDataResults": [{"Values": values}]}
    account, call = asking("cloudwatch", "get_metric_data", answer)
    assert account.free_bytes(LUSTRE) == free
    asked = call.call_args.kwargs
    [query] = asked["MetricDataQueries"]
    assert (query["MetricStat"]["Stat"], query["MetricStat"]["Period"]) == ("Sum", 60)
    assert asked["ScanBy"] == "TimestampDescending" and asked["EndTime"].second == 0
    assert datetime.now(UTC) - asked["EndTime"] < timedelta(minutes=2)
    assert asked["EndTime"] - asked["StartTime"] == timedelta(minutes=15)


@pytest.mark.parametrize(("kind", "gib"), [("SSD", 1200), ("INTELLIGENT_TIERING", 0)])
def test_a_file_system_that_grows_by_itself_has_no_size(kind: str, gib: int) -> None:
    described = {
        "FileSystemType": "LUSTRE",
        "Lifecycle": "AVAILABLE",
        "StorageType": kind,
        "StorageCapacity": 1200,
        "LustreConfiguration": {"DeploymentType": "PERSISTENT_2"},
    }
    account, _ = asking("fsx", "describe_file_systems", {"FileSystems": [described]})
    told = account.lustre_file_system(LUSTRE)
    assert told and told.capacity_gib == gib


@pytest.mark.parametrize(
    ("squash", "becomes"), [({}, ""), ({"RootSquash": "0:0"}, ""), ({"RootSquash": "1:2"}, "1:2")]
)
def test_root_of_a_file_system_stays_root_unless_it_is_squashed(
    squash: dict[str, str], becomes: str
) -> None:
    described = {
        "FileSystemType": "LUSTRE",
        "Lifecycle": "AVAILABLE",
        "StorageCapacity": 1200,
        "LustreConfiguration": {
            "DeploymentType": "PERSISTENT_2",
            "RootSquashConfiguration": squash,
        },
    }
    account, _ = asking("fsx", "describe_file_systems", {"FileSystems": [described]})
    told = account.lustre_file_system(LUSTRE)
    assert told and told.root_becomes == becomes
