"""`trainyard check --live` of buckets that exist before the stack."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from unittest.mock import Mock

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from tests.support.stackfile import Edit, at, environment, environment_plan
from trainyard.existing.bucket_faults import BucketFound
from trainyard.live.existing.buckets import bucket_checks
from trainyard.live.questions.account import Account
from trainyard.live.questions.caller import NotAnswered
from trainyard.plan import EnvironmentPlan
from trainyard.plans.access import AccessPlan
from trainyard.settings.environment import EnvironmentConfig

HERE, AWAY = "ap-northeast-2", "eu-west-1"
KEY = f"arn:aws:kms:{HERE}:111122223333:key/0a1b2c3d-0000-4000-8000-000000000000"
ROLE = "arn:aws:iam::111122223333:role/nlp-deployer"
STORE = at("storage.sets", {"s3": {"bucket": "our-sets"}})
LINK = at(
    "storage.scratch.lustre.repositories", {"sets": {"s3": "s3://our-sets/a/", "path": "/sets"}}
)
TEAM = at("teams.vision", {"deployer": ROLE, "s3_reads": ["s3://our-sets/b/"]})


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        yield boto3.client("s3", HERE)


def made(s3: Any, region: str = HERE) -> None:
    client = s3 if region == HERE else boto3.client("s3", region)
    client.create_bucket(
        Bucket="our-sets", CreateBucketConfiguration={"LocationConstraint": region}
    )


def encrypted(s3: Any, key: str) -> None:
    default = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key}
    s3.put_bucket_encryption(
        Bucket="our-sets",
        ServerSideEncryptionConfiguration={
            "Rules": [{"ApplyServerSideEncryptionByDefault": default}]
        },
    )


def said(*edits: Edit, account: Any = None) -> list[str]:
    plan: EnvironmentPlan = environment_plan(*edits)
    wanted: EnvironmentConfig = environment(*edits)
    checks = bucket_checks(account or Account(AccessPlan(region=HERE)), plan, wanted)
    return [str(finding) for check in checks.values() for finding in check()]


def test_nothing_is_asked_where_nothing_names_a_bucket() -> None:
    assert bucket_checks(Mock(spec=Account), environment_plan(), environment()) == {}


def test_sound_buckets_are_not_mentioned(s3: Any) -> None:
    made(s3)
    assert said(STORE, LINK, TEAM) == []


def test_each_setting_that_names_a_bucket_which_is_not_there_is_an_error(s3: Any) -> None:
    errors = said(STORE, LINK, TEAM)
    assert [error.partition(":")[0] for error in errors] == [
        "environment.storage.scratch.lustre.repositories.sets.s3",
        "environment.storage.sets.s3.bucket",
        "environment.teams.vision.s3_reads",
    ]
    assert all("must name a bucket that exists; got our-sets" in error for error in errors)


def test_fsx_imports_from_no_other_region_and_pods_read_from_any(s3: Any) -> None:
    made(s3, AWAY)
    link, store = said(STORE, LINK)
    assert f"must name a bucket in {HERE}: FSx imports changes from no other region" in link
    assert f"our-sets is in {AWAY}, not in {HERE}" in store
    exports = {"s3": "s3://our-sets/a/", "path": "/sets", "auto_import": [], "auto_export": ["NEW"]}
    [remark] = said(at("storage.scratch.lustre.repositories", {"sets": exports}))
    assert f"our-sets is in {AWAY}" in remark


def test_a_load_is_from_this_region_only(s3: Any) -> None:
    source = {"address": "s3://our-sets/a/"}
    load = {"from_s3": source, "store": "scratch", "directory": "a"}
    edits = (
        at("pools.cpu", {"instance_types": ["m7i.4xlarge"], "max_nodes": 1}),
        at("jobs.t5-large.storage", {"scratch": {"path": "/scratch"}}),
        at("jobs.t5-large.data", {"a": load}),
    )
    place = "environment.jobs.t5-large.data.a.from_s3"
    [missing] = said(*edits)
    assert missing.startswith(f"{place}.address: must name a bucket that exists")
    made(s3, AWAY)
    [away] = said(*edits)
    assert away.startswith(f"{place}.address: must name a bucket in {HERE}: a load from another")


def test_nodes_without_the_internet_read_from_no_other_region(s3: Any) -> None:
    made(s3, AWAY)
    images = at("artifacts", {"images": f"111122223333.dkr.ecr.{HERE}.amazonaws.com/mirror"})
    alone = (at("network.internet", "none"), at("network.endpoints", "private"), images)
    [error] = [each for each in said(STORE, *alone) if "our-sets" in each]
    assert "nodes without the internet reach S3 in no other region" in error


def test_the_default_key_must_be_named(s3: Any) -> None:
    made(s3)
    encrypted(s3, KEY)
    store, team = said(STORE, TEAM)
    assert "sets.s3.kms_key_arn: must name the key that encrypts our-sets" in store
    assert "teams.vision.kms_key_arns: must name the key" in team
    assert said(STORE, at("storage.sets.s3.kms_key_arn", KEY)) == []


def test_the_key_of_aws_needs_no_name(s3: Any) -> None:
    made(s3)
    encrypted(s3, f"arn:aws:kms:{HERE}:111122223333:alias/aws/s3")
    assert said(STORE) == []


def test_a_public_bucket_is_a_warning(s3: Any) -> None:
    made(s3)
    everybody = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "*"}
    s3.put_bucket_policy(Bucket="our-sets", Policy=json.dumps({"Statement": [everybody]}))
    [warning] = said(STORE)
    assert "the policy of our-sets lets everybody in" in warning


def refused(code: str, region: str) -> Account:
    """An account of which S3 answers with that status, and says where the bucket is."""
    headers = {"x-amz-bucket-region": region} if region else {}
    answer: Any = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPHeaders": headers}}
    account = Account(AccessPlan(region=HERE))
    client = Mock()
    client.can_paginate.return_value = False
    client.head_bucket.side_effect = ClientError(answer, "HeadBucket")
    account.__dict__["_clients"] = {"s3": client}
    return account


def test_a_bucket_that_the_caller_may_not_list_is_a_warning() -> None:
    [warning] = said(STORE, account=refused("403", HERE))
    assert "our-sets exists, and S3 does not let the caller list it" in warning


def test_a_refusal_tells_the_region_of_the_bucket() -> None:
    assert refused("301", AWAY).bucket("our-sets") == BucketFound(region=AWAY, seen=False)
    errors = said(LINK, account=refused("403", AWAY))
    assert f"our-sets, which is in {AWAY}" in errors[0]


def test_another_refusal_is_a_question_without_an_answer() -> None:
    with pytest.raises(NotAnswered, match="s3:HeadBucket: 500"):
        said(STORE, account=refused("500", HERE))


def test_what_the_caller_may_not_ask_keeps_nothing_else_from_being_said() -> None:
    account = Mock(spec=Account)
    account.bucket.return_value = BucketFound(region=AWAY)
    account.bucket_key.side_effect = NotAnswered("s3:GetBucketEncryption: AccessDenied")
    account.is_public.return_value = False
    away, unknown = said(STORE, account=account)
    assert "our-sets is in" in away
    assert unknown.endswith(
        "a question about our-sets failed: s3:GetBucketEncryption: AccessDenied"
    )
