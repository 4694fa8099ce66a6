"""The IAM documents of a team's pods. What they refuse: tests/rehearsal/aws/test_team_identity.py."""

from __future__ import annotations

from trainyard.objects.iam.policies import pod_identity_trust
from trainyard.objects.teams.team_identity import pod_trust, s3_statements

CLUSTER = pod_identity_trust(account="111122223333", region="eu-west-1", cluster="dev")
KEY = "arn:aws:kms:eu-west-1:111122223333:key/1"


def test_the_role_trusts_pods_of_one_namespace_of_one_cluster() -> None:
    [statement] = pod_trust(CLUSTER, "team-vision")["Statement"]
    assert statement["Principal"] == {"Service": "pods.eks.amazonaws.com"}
    assert statement["Condition"] == {
        "StringEquals": {
            "aws:SourceAccount": "111122223333",
            "aws:RequestTag/kubernetes-namespace": "team-vision",
            "aws:RequestTag/kubernetes-service-account": "default",
        },
        "ArnEquals": {"aws:SourceArn": "arn:aws:eks:eu-west-1:111122223333:cluster/dev"},
    }


def test_prefixes_become_what_s3_asks_for() -> None:
    reads, writes = ["s3://data/imagenet/"], ["s3://results/vision/", "s3://data/cache/"]
    found = {
        each["Sid"]: each for each in s3_statements(reads=reads, writes=writes, keys=[KEY, KEY])
    }
    assert found["List0"]["Resource"] == "arn:aws:s3:::data"
    assert found["List0"]["Condition"] == {
        "StringLike": {"s3:prefix": ["cache/", "cache/*", "imagenet/", "imagenet/*"]}
    }
    assert found["Read"]["Resource"] == [
        "arn:aws:s3:::data/cache/*",
        "arn:aws:s3:::data/imagenet/*",
        "arn:aws:s3:::results/vision/*",
    ]
    assert found["Write"]["Resource"] == [
        "arn:aws:s3:::data/cache/*",
        "arn:aws:s3:::results/vision/*",
    ]
    assert found["Key1"]["Action"] == ["kms:Decrypt", "kms:GenerateDataKey"]


def test_who_only_reads_cannot_write_or_encrypt() -> None:
    read, key = s3_statements(reads=["s3://data/"], writes=(), keys=[KEY])[-2:]
    assert read["Action"] == ["s3:GetObject"] and key["Action"] == ["kms:Decrypt"]


def test_a_whole_bucket_is_listed_without_a_prefix() -> None:
    listing, *_ = s3_statements(reads=["s3://data/", "s3://data/a/"], writes=(), keys=())
    assert "Condition" not in listing


def test_without_prefixes_there_is_nothing_to_allow() -> None:
    assert s3_statements(reads=(), writes=(), keys=[KEY]) == ()
