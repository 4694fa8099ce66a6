"""What is taken back into the state after a killed update, with a Pulumi and an account that only
answer."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any, ClassVar

import boto3
import moto
import pytest
from botocore.exceptions import ClientError

from operations import finders, repair
from operations.finders import Found

URN = "urn:pulumi:dev::trainyard::trainyard:network:Network$aws:ec2/vpc:Vpc::network"
ENTRY = {"type": "aws:ec2/vpc:Vpc", "name": "networkVpc", "logicalName": "network"}
COMPONENT = {"type": "trainyard:network:Network", "name": "network", "component": True}


class Stack:
    """The commands that were given to it, and a state with one pending create."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *, pending: bool, failed: bool, found: Found | None
    ) -> None:
        self.commands: list[tuple[str, ...]] = []
        self.imported: dict[str, Any] = {}
        operation = {"type": "creating", "resource": {"urn": URN}}
        self.state = {
            "deployment": {"resources": [], "pending_operations": [operation] if pending else []}
        }
        monkeypatch.setattr(repair, "deployment", lambda _: self.state)
        monkeypatch.setattr(repair, "last_update_failed", lambda _: failed)
        monkeypatch.setattr(repair, "pulumi", self.pulumi)
        monkeypatch.setattr(repair, "find", lambda *_: found)
        monkeypatch.setattr(repair.boto3, "Session", lambda: None)

    def pulumi(self, stack: str, *words: str, text: str | None = None) -> str:
        self.commands.append(words)
        if words[0] == "preview":
            with open(words[words.index("--import-file") + 1], "w") as file:
                json.dump({"resources": [COMPONENT, ENTRY], "nameTable": {}}, file)
            step = {"op": "create", "urn": URN, "newState": {"inputs": {"tags": {}}}}
            return json.dumps({"steps": [step]})
        if words[0] == "import":
            with open(words[words.index("--file") + 1]) as file:
                self.imported = json.load(file)
        return ""


def test_after_an_update_that_ended_well_nothing_is_asked(monkeypatch: pytest.MonkeyPatch):
    stack = Stack(monkeypatch, pending=False, failed=False, found=None)
    assert repair.repair("dev") == []
    assert stack.commands == []


def test_an_object_that_a_killed_engine_forgot_is_imported_under_its_component(
    monkeypatch: pytest.MonkeyPatch,
):
    stack = Stack(monkeypatch, pending=True, failed=False, found=Found(id="vpc-1"))
    assert [line for line in repair.repair("dev") if "vpc-1" in line]
    assert stack.imported["resources"] == [COMPONENT, ENTRY | {"id": "vpc-1"}]


def test_what_was_never_made_is_left_to_the_next_update(monkeypatch: pytest.MonkeyPatch):
    stack = Stack(monkeypatch, pending=True, failed=False, found=None)
    assert repair.repair("dev") == ["forgotten in the middle of creating: network"]
    assert stack.imported == {}


def test_a_lost_answer_leaves_no_pending_operation_and_is_looked_for_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
):
    stack = Stack(monkeypatch, pending=False, failed=True, found=Found(id="vpc-1"))
    repair.repair("dev")
    assert ("stack", "import") not in stack.commands
    assert stack.imported["resources"][1]["id"] == "vpc-1"


def test_the_kubeconfig_that_the_cluster_is_asked_with_is_gone_afterwards(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    asked: list[str] = []

    def run(words: list[str], *, env: dict[str, str], **_: Any) -> subprocess.CompletedProcess[str]:
        asked.append(Path(env["KUBECONFIG"]).read_text())
        return subprocess.CompletedProcess(words, 0, "{}" if "view" in words else "found")

    monkeypatch.setattr(subprocess, "run", run)
    provider = {
        "type": "pulumi:providers:kubernetes",
        "urn": "a",
        "inputs": {"kubeconfig": "of the cluster"},
    }
    with repair.Cluster.of({"deployment": {"resources": [provider]}}) as cluster:
        assert cluster.object(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}
        ) == Found(id="a")
    assert asked == ["of the cluster"] * 2 and [*tmp_path.iterdir()] == []
    with repair.Cluster.of({"deployment": {}}) as cluster:
        assert (
            cluster.object({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}})
            is None
        )


def test_the_account_is_asked_as_the_stacks_own_provider_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    (tmp_path / "config").write_text(
        "[profile corp]\naws_access_key_id = x\naws_secret_access_key = x\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    role = {"roleArn": "arn:aws:iam::123456789012:role/deployer", "sessionName": "ci"}
    inputs = {"region": "eu-west-1", "profile": "corp", "assumeRoles": json.dumps([role])}
    provider = {"type": "pulumi:providers:aws", "urn": "a", "inputs": inputs}
    with moto.mock_aws():
        session = repair._session({"deployment": {"resources": [provider]}})
        arn = session.client("sts").get_caller_identity()["Arn"]
    assert (arn, session.region_name) == (
        "arn:aws:sts::123456789012:assumed-role/deployer/ci",
        "eu-west-1",
    )


@moto.mock_aws
def test_a_group_that_is_taken_back_reaches_nobody_as_one_that_was_made_whole():
    session = boto3.Session(
        region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x"
    )
    ec2 = session.client("ec2")
    group = ec2.create_security_group(GroupName="nodes", Description="nodes")["GroupId"]
    ec2.authorize_security_group_egress(
        GroupId=group,
        IpPermissions=[
            {
                "IpProtocol": "tcp",
                "FromPort": 1,
                "ToPort": 2,
                "IpRanges": [{"CidrIp": "10.0.0.0/8"}],
            }
        ],
    )
    for kind in ("aws:ec2/vpc:Vpc", "aws:ec2/securityGroup:SecurityGroup"):
        finders.finish(session, kind, group)
    rules = ec2.describe_security_group_rules(Filters=[{"Name": "group-id", "Values": [group]}])[
        "SecurityGroupRules"
    ]
    assert [rule["CidrIpv4"] for rule in rules if rule["IsEgress"]] == ["10.0.0.0/8"]


class Fsx:
    """Associations on two pages: a stranger's, one of ours on its way out, and ours."""

    TAGS: ClassVar = dict.fromkeys(finders.TAGS, "it")

    def client(self, service: str) -> Fsx:
        return self

    def describe_data_repository_associations(self, NextToken: str = "") -> dict[str, Any]:
        ours = [{"Key": key, "Value": value} for key, value in self.TAGS.items()]
        first = {
            "Associations": [
                {"AssociationId": "dra-1", "Lifecycle": "AVAILABLE", "Tags": ours[:2]},
                {"AssociationId": "dra-2", "Lifecycle": "DELETING", "Tags": ours},
            ],
            "NextToken": "n",
        }
        return (
            {"Associations": [{"AssociationId": "dra-3", "Lifecycle": "CREATING", "Tags": ours}]}
            if NextToken
            else first
        )


def test_a_link_to_s3_that_a_killed_update_left_is_found_by_its_tags_on_any_page():
    found = finders.find(
        Fsx(),  # type: ignore[arg-type]
        "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation",
        {"tags": Fsx.TAGS},
    )
    assert found == Found(id="dra-3", settled=False)


def test_an_object_whose_inputs_are_not_known_yet_cannot_exist():
    unknown = {"vpcId": "04da6b54-80e4-46f7-96ec-b56ff0331ba9"}
    assert finders.find(None, "aws:ec2/subnet:Subnet", unknown) is None  # type: ignore[arg-type]


def test_what_aws_lets_us_make_twice_is_not_looked_for():
    assert finders.find(None, "aws:iam/rolePolicy:RolePolicy", {}) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "code",
    [
        "NoSuchEntity",
        "ResourceNotFoundException",
        "InvalidVpcID.NotFound",
        "AWS.SimpleQueueService.NonExistentQueue",
    ],
)
def test_every_way_in_which_aws_says_no_such_thing_is_understood(
    monkeypatch: pytest.MonkeyPatch, code: str
):
    def absent(*_: Any) -> None:
        raise ClientError({"Error": {"Code": code, "Message": ""}}, "Describe")

    monkeypatch.setitem(finders._FINDERS, "aws:iam/role:Role", absent)
    assert finders.find(None, "aws:iam/role:Role", {}) is None  # type: ignore[arg-type]


def test_an_object_that_aws_is_still_making_is_not_settled():
    assert finders._state("c", "CREATING") == Found(id="c", settled=False)
    assert finders._state("c", "ACTIVE") == Found(id="c")
    assert finders._state("c", "DELETING") is None
