"""What a bucket that exists must be, and what should be known of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trainyard.existing.bucket_faults import (
    ANOTHER,
    BucketFound,
    BucketUse,
    bucket_faults,
    bucket_remarks,
)

HERE, AWAY = "us-east-2", "eu-west-1"
KEY, OTHER = (f"arn:aws:kms:{HERE}:111122223333:key/{n * 8}" for n in ("0", "1"))
USE = BucketUse(
    bucket="ours",
    path="environment.storage.sets.s3.bucket",
    region=HERE,
    keys_path="environment.storage.sets.s3.kms_key_arn",
)
FOUND = BucketFound(region=HERE)


def faults(use: BucketUse, found: BucketFound | None) -> list[str]:
    return [str(fault) for fault in bucket_faults(use, found)]


def remarks(use: BucketUse, found: BucketFound) -> list[str]:
    return [*bucket_remarks(use, found)]


def test_a_bucket_of_the_region_that_the_caller_sees_is_sound() -> None:
    assert faults(USE, FOUND) == remarks(USE, FOUND) == []


def test_a_bucket_that_does_not_exist_is_refused() -> None:
    [fault] = faults(USE, None)
    assert fault.startswith(f"{USE.path}: must name a bucket that exists; got ours, which S3 does")
    assert "`aws s3 mb s3://ours --region us-east-2`" in fault


def test_a_bucket_that_the_caller_may_not_list_is_a_remark() -> None:
    unseen = replace(FOUND, seen=False)
    assert faults(USE, unseen) == []
    [remark] = remarks(USE, unseen)
    assert "S3 does not let the caller list it" in remark


@pytest.mark.parametrize("region", [AWAY, ANOTHER])
def test_a_bucket_in_another_region_is_refused_only_where_it_cannot_be_used(region: str) -> None:
    away, linked = replace(FOUND, region=region), replace(USE, only_here="FSx imports none")
    [remark] = remarks(USE, away)
    assert f"ours is in {region}, not in us-east-2" in remark and faults(USE, away) == []
    [fault] = faults(linked, away)
    assert (
        f"must name a bucket in us-east-2: FSx imports none; got ours, which is in {region}"
        in fault
    )
    assert remarks(linked, away) == []


def test_a_key_that_nobody_names_is_refused_with_its_arn() -> None:
    [fault] = faults(USE, replace(FOUND, key=KEY))
    assert fault.startswith(f"{USE.keys_path}: must name the key that encrypts ours")
    assert f"Fix: write {KEY};" in fault


@pytest.mark.parametrize("named", [KEY, KEY.rpartition("/")[2]])
def test_the_named_key_is_the_default_one_by_arn_or_id(named: str) -> None:
    use, found = replace(USE, keys=(OTHER, KEY), written=True), replace(FOUND, key=named)
    assert faults(use, found) == remarks(use, found) == []


def test_another_key_than_the_named_one_may_have_the_objects_that_are_read() -> None:
    found = replace(FOUND, key=OTHER)
    reads, writes = replace(USE, keys=(KEY,)), replace(USE, keys=(KEY,), written=True)
    assert faults(reads, found) == [] and len(remarks(reads, found)) == 1
    [fault] = faults(writes, found)
    assert "pods cannot read and write objects" in fault and remarks(writes, found) == []


def test_an_alias_may_stand_for_the_key_that_is_named() -> None:
    alias = replace(FOUND, key=f"arn:aws:kms:{HERE}:111122223333:alias/ours")
    [fault] = faults(USE, alias)
    assert "Fix: write the ARN of that key" in fault
    assert faults(replace(USE, keys=(KEY,), written=True), alias) == []


def test_a_link_of_lustre_names_no_key() -> None:
    assert faults(replace(USE, keys_path=""), replace(FOUND, key=KEY)) == []


def test_a_public_bucket_is_a_remark_with_the_command_that_closes_it() -> None:
    [remark] = remarks(USE, replace(FOUND, public=True))
    assert "put-public-access-block --bucket ours" in remark
