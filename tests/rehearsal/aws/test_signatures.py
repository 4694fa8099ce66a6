"""Only who has a caller's secret speaks for that caller; and only the rehearsal's parts are answered
under /_world/."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from rehearsal import paths
from rehearsal.aws import identity
from tests.rehearsal.aws_world import REGION, Account, refused, served

STRANGER = {"AccessKeyId": identity.DEVELOPER_KEY, "SecretAccessKey": "guessed"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
DESCRIBE = "Action=DescribeVpcs&Version=2016-11-15"


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    with served(tmp_path, monkeypatch) as account:
        yield account


@pytest.mark.parametrize(
    ("service", "operation", "code"),
    [
        ("ec2", "describe_vpcs", "AuthFailure"),
        ("iam", "list_roles", "SignatureDoesNotMatch"),
        ("sts", "get_caller_identity", "SignatureDoesNotMatch"),
        ("s3", "list_buckets", "SignatureDoesNotMatch"),
        ("eks", "list_clusters", "InvalidSignatureException"),
        ("fsx", "describe_file_systems", "InvalidSignatureException"),
    ],
)
def test_a_call_that_is_signed_with_another_secret_is_refused(
    account: Account, service: str, operation: str, code: str
) -> None:
    getattr(account.client(service), operation)()
    with refused(code):
        getattr(account.client(service, STRANGER), operation)()


def test_names_with_blanks_and_letters_of_all_scripts_are_signed_as_aws_does(
    account: Account,
) -> None:
    s3 = account.client("s3")
    where = {"LocationConstraint": REGION}
    s3.create_bucket(Bucket="some-bucket", CreateBucketConfiguration=where)
    s3.put_object(Bucket="some-bucket", Key="größe 1/ä+b~c.txt", Body=b"x")
    assert s3.get_object(Bucket="some-bucket", Key="größe 1/ä+b~c.txt")["Body"].read() == b"x"
    assert s3.list_objects_v2(Bucket="some-bucket", Prefix="größe 1/")["KeyCount"] == 1
    vpc = account.client("ec2").create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    tags = [{"Key": "a b", "Value": "ü & = + %"}]
    account.client("ec2").create_tags(Resources=[vpc], Tags=tags)


def _signed(account: Account, body: str) -> dict[str, str]:
    request = AWSRequest(method="POST", url=f"{account.url}/", data=body, headers=dict(FORM))
    keys = Credentials(identity.DEVELOPER_KEY, paths.world().developer_secret)
    SigV4Auth(keys, "ec2", REGION).add_auth(request)
    return dict(request.headers.items())


def _send(account: Account, body: str, headers: dict[str, str]) -> tuple[int, str]:
    answer = urllib3.request("POST", f"{account.url}/", body=body, headers=headers)
    return answer.status, answer.data.decode()


def test_what_was_changed_after_it_was_signed_is_refused(account: Account) -> None:
    headers = _signed(account, DESCRIBE)
    assert _send(account, DESCRIBE, headers)[0] == 200
    for body, more in (
        ("Action=DescribeSubnets&Version=2016-11-15", {}),
        (DESCRIBE, {"X-Amz-Date": "20200101T000000Z"}),
        (DESCRIBE, {"Content-Type": "application/x-www-form-urlencoded; charset=latin1"}),
        (DESCRIBE, {"Authorization": headers["Authorization"].replace(REGION, "us-east-1")}),
    ):
        status, answer = _send(account, body, headers | more)
        assert status == 403 and "does not match the signature you provided" in answer


def test_a_request_that_was_signed_long_ago_is_refused(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("botocore.auth.get_current_datetime", _noon)
    status, answer = _send(account, DESCRIBE, _signed(account, DESCRIBE))
    assert status == 403 and "Signature expired" in answer


def _noon() -> Any:
    from datetime import datetime

    return datetime(2020, 1, 1, 12)


@pytest.mark.parametrize("path", ["health", "inventory", "instances/i-1/credentials", "nothing"])
def test_the_worlds_own_endpoints_are_closed_to_everybody_else(account: Account, path: str) -> None:
    """To pods, whose address reaches them; to other users; and to the program itself."""
    url = f"{account.url}/_world/{path}"
    for bearer in ("", "Bearer ", f"Bearer {paths.world().developer_secret}", "Bearer é"):
        answer = urllib3.request("GET", url, headers={"Authorization": bearer} if bearer else {})
        assert answer.status == 403 and b"AccessKeyId" not in answer.data
    assert account.world("GET", path)[0] != 403


def test_an_api_server_without_the_worlds_secret_has_its_tokens_reviewed(account: Account) -> None:
    url = f"{account.url}/_world/token-review"
    answer = urllib3.request("POST", url, json={"spec": {"token": "k8s-aws-v1.rubbish"}})
    assert answer.status == 200 and answer.json()["status"] == {"authenticated": False}


def test_keys_are_others_in_each_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "STATE", tmp_path / "state")
    held = [paths.World(api_port=1, account_port=2, speed=1) for _ in range(2)]
    assert len({secret for one in held for secret in (one.developer_secret, one.world_secret)}) == 4
    assert paths.remember(held[0]) == paths.world()


@pytest.mark.parametrize("before", [None, 0o755], ids=["new", "from an older rehearsal"])
def test_only_its_owner_enters_the_state_folder(
    before: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "STATE", tmp_path / "state")
    if before:
        paths.STATE.mkdir(mode=before)
        (paths.STATE / "world.json").touch(mode=0o644)
    paths.remember(paths.World(api_port=1, account_port=2, speed=1))
    assert stat.S_IMODE(paths.STATE.stat().st_mode) == 0o700
    assert stat.S_IMODE((paths.STATE / "world.json").stat().st_mode) == 0o600


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_another_user_of_the_machine_cannot_read_the_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(f"/tmp/trainyard-keys-{os.getpid()}")  # pytest's own folders are closed, too
    monkeypatch.setattr(paths, "STATE", folder)
    try:
        paths.remember(paths.World(api_port=1, account_port=2, speed=1))
        nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        read = subprocess.run([*nobody, "cat", str(folder / "world.json")], capture_output=True)
        assert read.returncode and b"secret" not in read.stdout
    finally:
        (folder / "world.json").unlink()
        folder.rmdir()
