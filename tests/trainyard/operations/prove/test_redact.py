"""Nothing that names an account, a machine or a secret is in the file of `trainyard prove`."""

from __future__ import annotations

import json

import pytest

from trainyard.operations.prove.redact import own_values, redacted

PLANTED = {
    "account": "123456789012",
    "account with hyphens": "1234-5678-9012",
    "arn": "arn:aws:iam::123456789012:role/deployer",
    "arn of china": "arn:aws-cn:eks:cn-north-1:123456789012:cluster/prove",
    "address": "203.0.113.77",
    "range": "10.20.30.0/24",
    "address of a NID": "10.20.30.41@tcp",
    "address at the end of a sentence": "198.51.100.23.",
    "address with a port": "203.0.113.77:6443",
    "address of version 6": "2600:1f18:abc:de00:1234:5678:9abc:def0",
    "short address of version 6": "fd00:ec2::254",
    "hardware address": "0a:1b:2c:3d:4e:5f",
    "host of a node": "ip-10-20-30-41.us-east-2.compute.internal",
    "short host of a node": "ip-10-20-30-41",
    "endpoint of a cluster": "https://0123456789ABCDEF0123.gr7.us-east-1.eks.amazonaws.com",
    "registry": "123456789012.dkr.ecr.us-east-1.amazonaws.com/trainer:1",
    "host of a company": "vault.intra.acme-motors.com",
    "file system": "fs-0123456789abcdef0.fsx.us-east-1.amazonaws.com",
    "person": "jane.doe@acme-motors.com",
    "session of a role": "AROAEXAMPLEID1234567:jane",
    "access key": "AKIAIOSFODNN7EXAMPLE",
    "secret key": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "session token": "IQoJb3JpZ2luX2VjEHoaCXVzLWVhc3QtMSJHMEUCIQDtr0000abcdefghijklmnop",
    "token of EKS": "k8s-aws-v1.aHR0cHM6Ly9zdHMudXMtZWFzdC0xLmFtYXpvbmF3cy5jb20v",
    "token of a service account": "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlIn0.c2lnbmF0dXJl",
    "password": "password=hunter2!",
    "header": "Authorization: Bearer abc.def.ghi",
    "user of an address": "https://joe:s3cret@example.net/x",
    "token of GitHub": "ghp_abcdefghijklmnop1234",
    "key": "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----",
    "instance": "i-0123456789abcdef0",
    "network": "vpc-0a1b2c3d",
    "request": "b25f48e8-84fd-11e6-80d9-574e0c4664cb",
}
"""Name → a text, of which `_TELLS` says what must not be left."""
SENTENCES = ("{}", "creating it failed: {} is not there, try again", '{{"a": "{}"}}', "({})")
PARTS = (
    *(
        "123456789012",
        "9012",
        "203.0.113",
        "198.51.100",
        "10.20.30",
        "10-20-30",
        "1f18",
        "fd00",
        "EXAMPLEID",
    ),
    *(
        "0a:1b",
        "0123456789",
        "acme",
        "jane",
        "IOSFODNN7",
        "FEMI",
        "IQoJ",
        "aHR0",
        "eyJh",
        "hunter2",
    ),
    *("abc.def", "s3cret", "abcdefgh", "MIIEow", "0a1b2c3d", "b25f48e8", "deployer"),
)
"""Parts of the planted texts, none of which can be left."""


@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED)
@pytest.mark.parametrize("sentence", SENTENCES)
def test_what_is_planted_is_gone(planted: str, sentence: str) -> None:
    text = redacted(sentence.format(planted))
    assert any(part in planted for part in PARTS), "the plant has a part that tells"
    assert [part for part in PARTS if part in text] == []
    assert "<" in text


KEPT = (
    "DependencyViolation: the subnet has dependencies and cannot be deleted",
    "environment.pools.gpu [Pulumi.prove.yaml:14]: must be offered in the zone; got g6.8xlarge",
    "6.12.46-66.121.amzn2023.x86_64",
    "v1.35.8-eks-1a2b3c4",
    "580.95.05",
    "Lustre 2.15.6_3_gd5b8b0c",
    "2026-11-27T10:11:18Z",
    "vpc.amazonaws.com/efa 1, nvidia.com/gpu 1, karpenter.sh/nodepool",
    "trainjobs.trainer.kubeflow.org t5 in namespace training",
    "public.ecr.aws/deep-learning-containers/pytorch:2.11.0-cu130-amzn2023",
    "trainyard/catalog/aws/latencies.py eks.addon.aws-fsx-csi-driver",
    "L-DB2E81BA Running On-Demand G and VT instances",
    "std::bad_alloc at torch::autograd",
    "AL2023 al2023@v20261012, us-east-1a, use1-az4",
)


@pytest.mark.parametrize("text", KEPT)
def test_a_refusal_stays_word_for_word(text: str) -> None:
    assert redacted(text) == text


def test_every_depth_and_every_key_is_redacted_once_and_for_all() -> None:
    value = {"a": [{"arn:aws:s3:::bucket": ["203.0.113.9", 123456789012, 3, 1.5, True, None]}]}
    once = redacted(value)
    assert once == {"a": [{"<arn>": ["<address>", "<account>", 3, 1.5, True, None]}]}
    assert redacted(once) == once
    text = redacted(json.dumps(PLANTED))
    assert redacted(text) == text


def test_what_this_machine_is_told_is_redacted_wherever_it_stands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("platform.node", lambda: "janes-laptop")
    told = {"AWS_SECRET_ACCESS_KEY": "short1", "USER": "jane", "HOME": "/home/jane", "PATH": "/bin"}
    own = own_values(told, {"aws:profile": "acme-prod", "aws:allowedAccountIds": ["123456789012"]})
    assert {"short1", "jane", "/home/jane", "janes-laptop", "acme-prod", "123456789012"} <= own
    assert "/bin" not in own
    assert redacted("short1 of jane in acme-prod on janes-laptop", own) == (
        "<own> of <own> in <own> on <own>"
    )
