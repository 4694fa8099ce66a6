"""What a permissions boundary takes away from a role, and from whoever deploys under one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from tests.rehearsal.aws.test_permissions import Somebody, _refused
from tests.rehearsal.aws_world import REGION, Account, policy, role, served
from trainyard.catalog.aws.service_roles import ROLES, ServiceRole
from trainyard.objects.deployer import Scope, deployer_policies
from trainyard.objects.iam.policies import document, trust

NONE = "arn:aws:iam::123456789012:policy/none"
ALLOWED = {"Action": ["s3:GetObject"], "Resource": "*"}
TRUST = json.dumps(trust("ec2.amazonaws.com"))


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    with pytest.MonkeyPatch.context() as patch:
        folder: Path = tmp_path_factory.mktemp("account")
        with served(folder, patch) as account:
            yield account


def test_a_role_gets_no_boundary_that_does_not_exist(account: Account) -> None:
    iam = account.client("iam")
    role(account, "unbound", "ec2.amazonaws.com")
    with pytest.raises(ClientError, match=f"NoSuchEntity.*Scope ARN: {NONE} does not exist"):
        iam.create_role(RoleName="bound", AssumeRolePolicyDocument=TRUST, PermissionsBoundary=NONE)
    with pytest.raises(ClientError, match=f"NoSuchEntity.*Scope ARN: {NONE} does not exist"):
        iam.put_role_permissions_boundary(RoleName="unbound", PermissionsBoundary=NONE)


def test_a_role_may_do_what_both_its_policies_and_its_boundary_allow(account: Account) -> None:
    somebody, iam = Somebody(account, "limited"), account.client("iam")
    somebody.may({"Effect": "Allow", "Action": ["ec2:*", "sqs:*"], "Resource": "*"})
    calls = {
        "ec2": lambda: somebody.client("ec2").describe_vpcs(),
        "sqs": lambda: somebody.client("sqs").list_queues(),
        "iam": lambda: somebody.client("iam").list_roles(),
    }
    assert _refused(calls) == {"iam"}
    limit = policy(account, "no-queues", Action=["ec2:*", "iam:*"], Resource="*")
    iam.put_role_permissions_boundary(RoleName="limited", PermissionsBoundary=limit)
    assert _refused(calls) == {"iam", "sqs"}
    with pytest.raises(ClientError, match="no permissions boundary allows the sqs:ListQueues"):
        calls["sqs"]()
    iam.delete_role_permissions_boundary(RoleName="limited")
    assert _refused(calls) == {"iam"}


def test_who_deploys_under_a_boundary_makes_no_role_without_it(account: Account) -> None:
    limit = policy(account, "limit", Action="*", Resource="*")
    scope = Scope(stack="demo", region=REGION, boundary=limit)
    types = {"aws:iam/role:Role": "", "aws:iam/rolePolicy:RolePolicy": ""}
    documents = deployer_policies(types, scope).values()
    deployer, arns = Somebody(account, "ci"), ("demo-bound", "demo-unbound")
    deployer.may(*(one for document in documents for one in document["Statement"]))
    iam, theirs = deployer.client("iam"), account.client("iam")
    theirs.create_role(RoleName=arns[0], AssumeRolePolicyDocument=TRUST, PermissionsBoundary=limit)
    theirs.create_role(RoleName=arns[1], AssumeRolePolicyDocument=TRUST)
    inline = {"PolicyName": "p", "PolicyDocument": json.dumps(document(ALLOWED))}
    assert _refused(
        {
            "read": lambda: iam.get_policy(PolicyArn=limit),
            "read another": lambda: iam.get_policy(PolicyArn=NONE),
            "make": lambda: iam.create_role(
                RoleName="demo-new", AssumeRolePolicyDocument=TRUST, PermissionsBoundary=limit
            ),
            "make without": lambda: iam.create_role(
                RoleName="demo-other", AssumeRolePolicyDocument=TRUST
            ),
            "widen": lambda: iam.put_role_policy(RoleName=arns[0], **inline),
            "widen without": lambda: iam.put_role_policy(RoleName=arns[1], **inline),
            "take away": lambda: iam.delete_role_permissions_boundary(RoleName=arns[0]),
        }
    ) == {"read another", "make without", "widen without", "take away"}


def test_a_parameter_is_asked_for_by_its_name_when_its_tags_are(account: Account) -> None:
    ours, reader = "/trainyard/demo/teams/a", Somebody(account, "reader")
    for name in (ours, "/other"):
        account.client("ssm").put_parameter(Name=name, Value="{}", Type="String")
    arn = f"arn:aws:ssm:{REGION}:*:parameter/trainyard/demo/*"
    reader.may({"Effect": "Allow", "Action": ["ssm:ListTagsForResource"], "Resource": arn})
    ssm = reader.client("ssm")
    assert _refused(
        {
            name: lambda name=name: ssm.list_tags_for_resource(
                ResourceType="Parameter", ResourceId=name
            )
            for name in (ours, "/other")
        }
    ) == {"/other"}


@pytest.mark.parametrize("linked", ROLES, ids=lambda linked: linked.service)
def test_the_command_for_a_service_linked_role_makes_the_one_that_check_looks_for(
    account: Account, linked: ServiceRole
) -> None:
    iam = account.client("iam")
    made = iam.create_service_linked_role(AWSServiceName=linked.service)["Role"]
    assert made["RoleName"] == linked.name
    assert iam.get_role(RoleName=linked.name)["Role"]["Arn"] == made["Arn"]
