"""CloudWatch's answer about the free room of Lustre file systems."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rehearsal import paths
from tests.rehearsal.aws.test_permissions import Somebody
from tests.rehearsal.aws.test_storage import create
from tests.rehearsal.aws_world import AT_ONCE, NEVER, Account, Network, refused, served
from trainyard.catalog.aws.storage import LUSTRE_USABLE

EMPTY = 1200 * 2**30 * LUSTRE_USABLE


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    with served(tmp_path, monkeypatch) as account:
        monkeypatch.setattr(paths, "FILE_SYSTEMS", tmp_path / "file-systems")
        yield account


@pytest.fixture
def network(account: Account) -> Network:
    network = Network(account)
    network.ec2.authorize_security_group_ingress(
        GroupId=network.group, IpProtocol="tcp", FromPort=988, ToPort=988, CidrIp="10.20.0.0/16"
    )
    return network


def values(client: Any, system: str, minutes: int = 15, **changes: Any) -> list[float]:
    dimensions = [{"Name": "FileSystemId", "Value": system}]
    name = "FreeDataStorageCapacity"
    metric = {"Namespace": "AWS/FSx", "MetricName": name, "Dimensions": dimensions}
    until = datetime.now(UTC)
    return client.get_metric_data(
        MetricDataQueries=[
            {"Id": "m", "MetricStat": {"Metric": metric, "Period": 60, "Stat": "Sum"} | changes}
        ],
        StartTime=until - timedelta(minutes=minutes),
        EndTime=until,
    )["MetricDataResults"][0]["Values"]


def test_what_lies_on_a_file_system_is_not_free(account: Account, network: Network) -> None:
    system, client = create(account, network)["FileSystemId"], account.client("cloudwatch")
    assert values(client, system) == [EMPTY]
    folder = paths.FILE_SYSTEMS / system / "checkpoints"
    folder.mkdir(parents=True)
    (folder / "shard").write_bytes(b"x" * 2**20)
    [free] = values(client, system)
    assert 2**20 <= EMPTY - free < 2**21


def test_a_file_that_a_job_deletes_meanwhile_counts_for_nothing(
    account: Account, network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = create(account, network)["FileSystemId"]
    monkeypatch.setattr(Path, "rglob", lambda self, pattern: [self / "gone"])
    assert values(account.client("cloudwatch"), system) == [EMPTY]


def test_only_a_file_system_of_the_region_that_is_there_has_a_value(
    account: Account, network: Network
) -> None:
    account.speed(NEVER)
    system, client = create(account, network)["FileSystemId"], account.client("cloudwatch")
    assert values(client, system) == [] == values(client, "fs-0123456789abcdef0")
    account.speed(AT_ONCE)
    system = create(account, network)["FileSystemId"]
    assert values(client, system) == [EMPTY]
    assert values(account.client("cloudwatch", region="us-east-1"), system) == []


def test_a_minute_that_is_not_over_has_no_value(account: Account, network: Network) -> None:
    system = create(account, network)["FileSystemId"]
    assert values(account.client("cloudwatch"), system, minutes=0) == []


def test_another_statistic_is_not_built(account: Account, network: Network) -> None:
    system = create(account, network)["FileSystemId"]
    with refused("NotImplemented"):
        values(account.client("cloudwatch"), system, Stat="Average")


def test_who_may_not_ask_is_refused(account: Account) -> None:
    somebody = Somebody(account, "stranger")
    with refused("AccessDeniedException"):
        values(somebody.client("cloudwatch"), "fs-0123456789abcdef0")
    somebody.may({"Effect": "Allow", "Action": "cloudwatch:GetMetricData", "Resource": "*"})
    assert values(somebody.client("cloudwatch"), "fs-0123456789abcdef0") == []
