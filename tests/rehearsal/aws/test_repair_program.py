"""The program of repair asks the account about instances, signed by itself, as the role that it has."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from botocore.exceptions import ClientError

from rehearsal.aws import instance_status
from tests.rehearsal.aws.test_instances import Fleet
from tests.rehearsal.aws.test_permissions import Somebody
from tests.rehearsal.aws_world import REGION, Account, served
from tests.support.programs import imported
from trainyard.objects.programs.repair import asking


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    with served(tmp_path, monkeypatch) as account:
        yield account


@pytest.fixture
def pod(account: Account, monkeypatch: pytest.MonkeyPatch) -> Somebody:
    """The role of the program, whose keys its pod has."""
    made = Somebody(account, "repair")
    monkeypatch.setenv("AWS_ENDPOINT_URL", account.url)
    for name, value in made.keys.items():
        monkeypatch.setenv(name, value)
    return made


@pytest.fixture
def instances() -> Iterator[ModuleType]:
    with imported("repair"):
        yield sys.modules["instances"]


def test_it_hears_of_instances_that_work_died_ended_and_never_were(
    account: Account,
    pod: Somebody,
    instances: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pod.may(*asking(REGION)["Statement"])
    fleet = Fleet(account)
    [works, dead, ended], _ = fleet.launch(count=3)
    fleet.ec2.terminate_instances(InstanceIds=[ended])
    account.world("POST", f"instances/{dead}/dead", {})
    monkeypatch.setattr(instance_status, "CHECK_SECONDS", 0.0)
    unknown = "i-0123456789abcdef0"
    said = instances.statuses(REGION, [works, dead, ended, unknown])
    assert {id_: word.works for id_, word in said.items()} == {
        works: True,
        dead: False,
        ended: False,
        unknown: False,
    }
    assert said[dead].words == "EC2 says that its instance status is impaired"
    assert said[unknown].words == "EC2 has no such instance"


def test_it_hears_nothing_with_the_policy_of_another_region(
    pod: Somebody, instances: ModuleType
) -> None:
    pod.may(*asking("us-east-1")["Statement"])
    with pytest.raises(sys.modules["query"].AwsError, match="UnauthorizedOperation"):
        instances.statuses(REGION, ["i-0123456789abcdef0"])


def test_it_may_ask_for_nothing_else(pod: Somebody) -> None:
    pod.may(*asking(REGION)["Statement"])
    for call in ("describe_instances", "describe_vpcs"):
        with pytest.raises(ClientError, match="UnauthorizedOperation"):
            getattr(pod.client("ec2"), call)()
