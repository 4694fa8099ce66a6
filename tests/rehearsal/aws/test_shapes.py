"""What the services' own models forbid is refused before anything else, whoever asks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from rehearsal import paths
from rehearsal.aws import identity
from tests.rehearsal.aws_world import REGION, Account, served, trust

TRUST = trust("ec2.amazonaws.com")


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    with served(tmp_path, monkeypatch) as account:
        yield account


def _client(account: Account, service: str) -> Any:
    """One that sends whatever it is given, as Go programs do."""
    return boto3.client(
        service,
        endpoint_url=account.url,
        region_name=REGION,
        aws_access_key_id=identity.DEVELOPER_KEY,
        aws_secret_access_key=paths.world().developer_secret,
        config=Config(retries={"total_max_attempts": 1}, parameter_validation=False),
    )


@pytest.mark.parametrize(
    ("service", "operation", "arguments", "code", "words"),
    [
        (
            "iam",
            "create_role",
            {"RoleName": "a b", "AssumeRolePolicyDocument": TRUST},
            "ValidationError",
            "1 validation error detected: Value 'a b' at 'roleName' failed to satisfy constraint:"
            r" Member must satisfy regular expression pattern: [\w+=,.@-]+",
        ),
        (
            "iam",
            "create_role",
            {"RoleName": "r" * 65, "AssumeRolePolicyDocument": TRUST},
            "ValidationError",
            "Member must have length less than or equal to 64",
        ),
        (
            "iam",
            "create_role",
            {"RoleName": "r", "AssumeRolePolicyDocument": TRUST, "MaxSessionDuration": 60},
            "ValidationError",
            "Value '60' at 'maxSessionDuration' failed to satisfy constraint: Member must have"
            " value greater than or equal to 3600",
        ),
        (
            "iam",
            "create_role",
            {
                "RoleName": "r",
                "AssumeRolePolicyDocument": TRUST,
                "Tags": [{"Key": "team", "Value": "v" * 257}],
            },
            "ValidationError",
            "at 'tags.1.member.value' failed to satisfy constraint: Member must have length",
        ),
        (
            "events",
            "put_rule",
            {"Name": "my rule", "State": "ON"},
            "ValidationException",
            "2 validation errors detected: Value 'my rule' at 'name' failed",
        ),
        (
            "efs",
            "create_file_system",
            {"PerformanceMode": "fast"},
            "ValidationException",
            "Member must satisfy enum value set: [generalPurpose, maxIO]",
        ),
        (
            "ecr",
            "create_repository",
            {"repositoryName": "Upper"},
            "InvalidParameterException",
            "Invalid parameter at 'repositoryName' failed to satisfy constraint: 'must satisfy"
            " regular expression",
        ),
        (
            "eks",
            "create_addon",
            {"clusterName": "c", "addonName": "vpc-cni", "resolveConflicts": "FORCE"},
            "InvalidParameterException",
            "enum value set: [OVERWRITE, NONE, PRESERVE]",
        ),
        (
            "fsx",
            "create_file_system",
            {"FileSystemType": "LUSTRE", "SubnetIds": ["subnet-1"]},
            "BadRequest",
            "Value 'subnet-1' at 'subnetIds.1.member' failed to satisfy constraint",
        ),
        (
            "ec2",
            "create_vpc",
            {"CidrBlock": "10.0.0.0/16", "InstanceTenancy": "shared"},
            "InvalidParameterValue",
            "Value (shared) for parameter instanceTenancy is invalid.",
        ),
        (
            "ec2",
            "create_subnet",
            {"CidrBlock": "10.0.0.0/24"},
            "MissingParameter",
            "The request must contain the parameter vpcId",
        ),
    ],
)
def test_a_request_that_the_services_model_forbids_is_refused(
    account: Account,
    service: str,
    operation: str,
    arguments: dict[str, Any],
    code: str,
    words: str,
) -> None:
    with pytest.raises(ClientError) as caught:
        getattr(_client(account, service), operation)(**arguments)
    error = caught.value.response["Error"]
    assert error["Code"] == code and words in error["Message"]


def test_letters_of_all_scripts_may_stand_in_a_tag(account: Account) -> None:
    iam = _client(account, "iam")
    tags = [{"Key": "größe", "Value": "대형 1"}]
    iam.create_role(RoleName="r", AssumeRolePolicyDocument=TRUST, Tags=tags)
    assert iam.list_role_tags(RoleName="r")["Tags"] == tags
    with pytest.raises(ClientError, match=r"at 'tags.1.member.key' failed .* pattern"):
        iam.tag_role(RoleName="r", Tags=[{"Key": "a;b", "Value": ""}])
