"""Managed Prometheus: a workspace takes samples of whoever its owner lets, and of nobody else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest
import urllib3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from rehearsal import paths
from rehearsal.aws import principals
from rehearsal.aws.remote_write import names, uncompressed
from tests.rehearsal.aws_world import REGION, Account, refused, role, served
from trainyard.objects.metrics.managed_prometheus import remote_write, writing

HTTP = urllib3.PoolManager()


def things(make: Callable[..., Any], around: Mapping[str, Any]) -> Iterator[Any]:
    """Objects of the types of the aws plugin (tests/rehearsal/providers/test_aws.py)."""
    workspace = make("Workspace", alias="dev-metrics")
    yield workspace
    yield make("WorkspaceConfiguration", workspaceId=workspace.id, retentionPeriodInDays=90)


def field(number: int, content: bytes) -> bytes:
    """A field of a protobuf message, of less than 128 bytes."""
    return bytes([number << 3 | 2, len(content)]) + content


def request(*metrics: str) -> bytes:
    """A WriteRequest with one sample of each metric, in snappy's block format without any copy."""
    message = b""
    for metric in metrics:
        labels = [("Zone", "a"), ("__name__", metric)]
        pairs = [field(1, field(1, k.encode()) + field(2, v.encode())) for k, v in labels]
        sample = field(2, b"\x09" + bytes(8) + b"\x10\x01")
        message += field(1, b"".join(pairs) + sample)
    assert len(message) < 128
    return bytes([len(message), 60 << 2, len(message) - 1]) + message


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    with served(tmp_path, monkeypatch) as found:
        paths.remember(replace(paths.world(), account_port=int(found.url.rpartition(":")[2])))
        yield found


@pytest.fixture
def workspace(account: Account) -> dict[str, Any]:
    amp = account.client("amp")
    id_ = amp.create_workspace(alias="dev-metrics", tags={"trainyard:stack": "dev"})["workspaceId"]
    return amp.describe_workspace(workspaceId=id_)["workspace"]


def keys(account: Account, name: str, *statements: Any) -> dict[str, str]:
    """Those of a role that may do this."""
    arn = role(account, name, "pods.eks.amazonaws.com")
    if statements:
        document = json.dumps({"Version": "2012-10-17", "Statement": [*statements]})
        account.client("iam").put_role_policy(
            RoleName=name, PolicyName="write", PolicyDocument=document
        )
    return principals.credentials(arn, token_hex(8))  # no account has seen it before


def send(account: Account, path: str, body: bytes, who: dict[str, str] | None) -> tuple[int, bytes]:
    """As Prometheus sends samples: signed for the service aps, where it has keys."""
    headers = {"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf"}
    method, url = "POST" if body else "GET", f"{account.url}{path}"
    asked = AWSRequest(method, url, headers, body)
    if who:
        lent = Credentials(who["AccessKeyId"], who["SecretAccessKey"], who["SessionToken"])
        SigV4Auth(lent, "aps", REGION).add_auth(asked)
    answer = HTTP.request(method, url, body=body, headers=dict(asked.headers))
    return answer.status, answer.data


def test_samples_of_the_role_of_the_product_arrive(account: Account, workspace: Any) -> None:
    url = remote_write(workspace["prometheusEndpoint"], REGION)["url"]
    path = f"/{url.split('/', 3)[3]}"
    statement = writing(workspace["arn"])["Statement"][0]
    may, may_not = keys(account, "writer", statement), keys(account, "other")
    assert send(account, path, request("up", "train_loss"), may)[0] == 200
    assert send(account, path, request("up"), may_not)[0] == 403
    assert send(account, path, request("up"), None)[0] == 403
    read = f"/workspaces/{workspace['workspaceId']}/api/v1/label/__name__/values"
    assert send(account, read, b"", may)[0] == 403
    reads = {"Effect": "Allow", "Action": "aps:GetLabels", "Resource": workspace["arn"]}
    status, said = send(account, read, b"", keys(account, "reader", reads))
    assert (status, json.loads(said)["data"]) == (200, ["train_loss", "up"])


def test_a_role_writes_to_its_own_workspace_only(account: Account, workspace: Any) -> None:
    amp = account.client("amp")
    other = amp.create_workspace(alias="other")["workspaceId"]
    amp.describe_workspace(workspaceId=other)
    who = keys(account, "writer", writing(workspace["arn"])["Statement"][0])
    path = f"/workspaces/{other}/api/v1/remote_write"
    status, said = send(account, path, request("up"), who)
    assert status == 403, said


def test_a_workspace_keeps_samples_for_150_days_or_as_it_is_told(
    account: Account, workspace: Any
) -> None:
    amp, id_ = account.client("amp"), workspace["workspaceId"]

    def days() -> int:
        found = amp.describe_workspace_configuration(workspaceId=id_)
        return found["workspaceConfiguration"]["retentionPeriodInDays"]

    assert days() == 150
    amp.update_workspace_configuration(workspaceId=id_, retentionPeriodInDays=400)
    assert days() == 400


def test_a_workspace_is_in_the_inventory_until_it_is_deleted(
    account: Account, workspace: Any
) -> None:
    assert "aps-workspace" in account.types()
    account.client("amp").delete_workspace(workspaceId=workspace["workspaceId"])
    assert "aps-workspace" not in account.types()
    with refused("ResourceNotFoundException"):
        account.client("amp").describe_workspace(workspaceId=workspace["workspaceId"])


def test_a_copy_that_overlaps_with_itself_is_read_as_snappy_writes_it() -> None:
    """Ten letters from one: a literal of one byte, and a copy of nine from one byte before."""
    assert uncompressed(bytes([10, 0]) + b"a" + bytes([(9 - 4) << 2 | 1, 1])) == b"a" * 10
    assert uncompressed(bytes([10, 0]) + b"a" + bytes([(9 - 1) << 2 | 2, 1, 0])) == b"a" * 10
    with pytest.raises(ValueError, match="instead of"):
        uncompressed(bytes([11, 0]) + b"a")


def test_the_name_of_a_metric_is_found_behind_other_labels() -> None:
    assert [*names(uncompressed(request("up")))] == ["up"]


def test_a_workspace_delivers_no_logs(account: Account, workspace: dict[str, Any]) -> None:
    """Terraform's provider asks after each creation."""
    amp = account.client("amp")
    with pytest.raises(amp.exceptions.ResourceNotFoundException):
        amp.describe_logging_configuration(workspaceId=workspace["workspaceId"])
