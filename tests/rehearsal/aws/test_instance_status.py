"""What EC2's status checks say of instances whose machines live, die, stop and end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from rehearsal.aws import instance_status
from rehearsal.aws.instance_status import CHECK_SECONDS
from rehearsal.aws.instances import GONE
from tests.rehearsal.aws.test_instances import Fleet
from tests.rehearsal.aws_world import Account, served


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    with served(tmp_path, monkeypatch) as account:
        yield account


@pytest.fixture
def fleet(account: Account) -> Fleet:
    return Fleet(account)


class Later:
    """The clock of the checks, some seconds ahead."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def time(self) -> float:
        return time.time() + self.ahead


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Later:
    clock = Later()
    monkeypatch.setattr(instance_status, "time", clock)
    return clock


def checks(fleet: Fleet, *ids: str, **more: Any) -> dict[str, tuple[str, str, str]]:
    """Instance → state, and what its two checks say."""
    found = fleet.ec2.describe_instance_status(InstanceIds=[*ids], **more)["InstanceStatuses"]
    return {
        one["InstanceId"]: (
            one["InstanceState"]["Name"],
            one["InstanceStatus"]["Status"],
            one["SystemStatus"]["Status"],
        )
        for one in found
    }


def test_a_new_instance_is_checked_for_minutes_before_it_passes(fleet: Fleet, later: Later) -> None:
    [id_], _ = fleet.launch()
    assert checks(fleet, id_) == {id_: ("running", "initializing", "initializing")}
    later.ahead = CHECK_SECONDS + 1
    assert checks(fleet, id_) == {id_: ("running", "ok", "ok")}


def test_a_machine_that_died_passes_for_minutes_and_is_then_impaired(
    account: Account, fleet: Fleet, later: Later
) -> None:
    [id_, other], _ = fleet.launch(count=2)
    later.ahead = CHECK_SECONDS + 1
    account.world("POST", f"instances/{id_}/dead", {})
    later.ahead += CHECK_SECONDS - 10
    assert checks(fleet, id_) == {id_: ("running", "ok", "ok")}
    later.ahead += 20
    assert checks(fleet, id_, other) == {
        id_: ("running", "impaired", "ok"),
        other: ("running", "ok", "ok"),
    }
    impaired = [{"Name": "instance-status.status", "Values": ["impaired"]}]
    assert {*checks(fleet, Filters=impaired)} == {id_}, "as Karpenter asks"
    [said] = fleet.ec2.describe_instance_status(InstanceIds=[id_])["InstanceStatuses"]
    [detail] = said["InstanceStatus"]["Details"]
    assert (detail["Name"], detail["Status"]) == ("reachability", "failed")
    assert abs(later.time() - 10 - detail["ImpairedSince"].timestamp()) < 5


def test_an_instance_that_does_not_run_has_no_checks_and_is_said_only_where_asked_for(
    fleet: Fleet,
) -> None:
    [id_], _ = fleet.launch()
    fleet.ec2.terminate_instances(InstanceIds=[id_])
    assert checks(fleet, id_) == {}
    [(state, *passed)] = checks(fleet, id_, IncludeAllInstances=True).values()
    assert state in GONE and passed == ["not-applicable", "not-applicable"]


def test_an_instance_that_never_was_is_an_error_that_names_it(fleet: Fleet) -> None:
    with pytest.raises(ClientError, match="InvalidInstanceID.NotFound.*i-0123456789abcdef0"):
        checks(fleet, "i-0123456789abcdef0")


def test_a_filter_that_nobody_has_built_is_no_answer(fleet: Fleet) -> None:
    with pytest.raises(ClientError, match="does not implement the filter event.not-after"):
        checks(fleet, Filters=[{"Name": "event.not-after", "Values": ["x"]}])
