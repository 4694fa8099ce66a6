"""The loader reads a bucket of the account, signed by itself, as the role that its pod has."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.rehearsal.aws.test_permissions import Somebody
from tests.rehearsal.aws_world import REGION, Account, served
from tests.support.programs import program_fixture
from trainyard.objects.iam.policies import document
from trainyard.objects.teams.team_identity import s3_statements

program = program_fixture("loader")
FILES = {f"tokens/{n:04}.bin": bytes([n % 251]) * 17 for n in range(1003)}
"""More than one answer lists."""


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    with served(tmp_path, monkeypatch) as account:
        yield account


def test_it_lists_and_reads_a_prefix_and_nothing_else(
    account: Account, program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3 = account.client("s3")
    where = {"LocationConstraint": REGION}
    s3.create_bucket(Bucket="our-sets", CreateBucketConfiguration=where)
    for name, content in FILES.items():
        s3.put_object(Bucket="our-sets", Key=f"corpus/{name}", Body=content)
    s3.put_object(Bucket="our-sets", Key="corpus/tokens/", Body=b"")
    s3.put_object(Bucket="our-sets", Key="secret/x", Body=b"no")
    pod = Somebody(account, "loads")
    monkeypatch.setenv("AWS_ENDPOINT_URL", account.url)
    for name, value in pod.keys.items():
        monkeypatch.setenv(name, value)
    sources, place = sys.modules["sources"], sys.modules["place"]

    def load(prefix: str, to: str) -> None:
        bucket = sources.Bucket("our-sets", prefix, REGION, ())
        program.load(bucket, place.Place(tmp_path / to, f"s3://our-sets/{prefix}"), {}, pause=0.0)

    with pytest.raises(sources.Broken, match="S3 answers 403"):
        load("corpus/", "to")
    may = s3_statements(reads=["s3://our-sets/corpus/"], writes=(), keys=())
    pod.may(*document(*may)["Statement"])
    load("corpus/", "to")
    found = {
        str(each.relative_to(tmp_path / "to")): each.read_bytes()
        for each in (tmp_path / "to/tokens").iterdir()
    }
    assert found == FILES
    with pytest.raises(sources.Broken, match="S3 answers 403"):
        load("secret/", "other")
    assert not (tmp_path / "other/.trainyard-whole").exists()
