"""A key of a company: who may use it, and what becomes of whoever may not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from rehearsal.aws import keys, services
from tests.rehearsal.aws.test_eks import create_group, template
from tests.rehearsal.aws.test_instances import Fleet
from tests.rehearsal.aws.test_permissions import Somebody
from tests.rehearsal.aws_world import (
    REGION,
    Account,
    Network,
    create_cluster,
    refused,
    served,
    speak_to,
)
from trainyard.live.questions.account import Account as Asked
from trainyard.objects.deployer import KEY_CALLS
from trainyard.objects.iam import encryption, policies
from trainyard.plans.access import AccessPlan

STACK = "demo"
LAUNCH = policies.LAUNCHES


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    with served(tmp_path, monkeypatch) as account:
        yield account


class Key:
    """A key whose policy changes from test to test; at first it has the printed one."""

    def __init__(self, account: Account) -> None:
        self.kms = account.client("kms")
        self.arn = self.kms.create_key()["KeyMetadata"]["Arn"]
        self.printed = encryption.key_policy(self.arn, STACK)
        self.allow(*(one["Sid"] for one in self.printed["Statement"]))

    def allow(self, *sids: str) -> None:
        kept = [one for one in self.printed["Statement"] if one["Sid"] in sids]
        self.kms.put_key_policy(
            KeyId=self.arn,
            PolicyName="default",
            Policy=json.dumps(self.printed | {"Statement": kept}),
        )


@pytest.fixture
def key(account: Account) -> Key:
    return Key(account)


def sealed(key: Key) -> list[dict[str, Any]]:
    ebs = {"VolumeSize": 100, "Encrypted": True, "KmsKeyId": key.arn}
    return [{"DeviceName": "/dev/xvda", "Ebs": ebs}]


def reason(fleet: Fleet, client: Any, key: Key) -> str:
    """Why an instance with an encrypted disk ended; empty where it runs."""
    [id_], errors = fleet.launch(client=client, BlockDeviceMappings=sealed(key))
    assert errors == [], "EC2 launches it, and finds out about the key later"
    found = fleet.describe(id_)
    return found["StateReason"]["Code"] if found["State"]["Name"] == "terminated" else ""


def karpenter(account: Account, *statements: policies.Document) -> Any:
    launches = {"Action": [*LAUNCH, "ec2:CreateTags", "iam:PassRole"], "Resource": "*"}
    somebody = Somebody(account, "karpenter")
    somebody.may(*policies.document(launches, *statements)["Statement"])
    return somebody.client("ec2")


def test_an_instance_runs_where_its_launcher_may_use_the_key_of_its_disk(
    account: Account, key: Key
) -> None:
    launcher = karpenter(account, *encryption.node_volumes(key.arn)["Statement"])
    assert reason(Fleet(account), launcher, key) == ""


@pytest.mark.parametrize("lost", ["EncryptVolumes", "GrantVolumes"])
def test_an_instance_ends_without_a_statement_of_its_launchers_role(
    account: Account, key: Key, lost: str
) -> None:
    statements = encryption.node_volumes(key.arn)["Statement"]
    launcher = karpenter(account, *(one for one in statements if one["Sid"] != lost))
    assert reason(Fleet(account), launcher, key) == "Client.InternalError"


def test_an_instance_ends_where_the_key_leaves_nothing_to_iam(account: Account, key: Key) -> None:
    launcher = karpenter(account, *encryption.node_volumes(key.arn)["Statement"])
    key.allow("LaunchSystemNodes", "GrantSystemNodes")
    assert reason(Fleet(account), launcher, key) == "Client.InternalError"


def test_an_instance_ends_where_the_key_is_disabled(account: Account, key: Key) -> None:
    key.kms.disable_key(KeyId=key.arn.rpartition("/")[2])
    fleet = Fleet(account)
    assert reason(fleet, fleet.ec2, key) == "Client.InvalidKMSKey.InvalidState"


def test_a_disk_that_names_no_key_has_the_default_of_the_account(
    account: Account, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A launcher needs no right to AWS's own key, and the same rights to a key of a company."""
    speak_to(account, monkeypatch)
    fleet, asked = Fleet(account), Asked(AccessPlan(region=REGION))
    unnamed = [{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 100, "Encrypted": True}}]

    launches = {"Action": [*LAUNCH, "ec2:CreateTags", "iam:PassRole"], "Resource": "*"}
    somebody = Somebody(account, "karpenter")

    def ends(*statements: policies.Document) -> bool:
        somebody.may(*policies.document(launches, *statements)["Statement"])
        client = somebody.client("ec2")
        [id_], errors = fleet.launch(client=client, BlockDeviceMappings=unnamed)
        assert errors == []
        return fleet.describe(id_)["State"]["Name"] == "terminated"

    assert not ends() and asked.default_key() == {}
    account.client("ec2").modify_ebs_default_kms_key_id(KmsKeyId=key.arn)
    default = asked.default_key()
    assert (default["Arn"], default["KeyManager"], default["KeyState"]) == (
        key.arn,
        "CUSTOMER",
        "Enabled",
    )
    assert ends() and not ends(*encryption.node_volumes(key.arn)["Statement"])


@pytest.mark.parametrize("lost", ["", "LaunchSystemNodes", "GrantSystemNodes"])
def test_auto_scaling_needs_the_policy_of_the_key_itself(
    account: Account, key: Key, lost: str
) -> None:
    """Nobody can give a service-linked role a policy."""
    network = Network(account)
    create_cluster(account, network)
    account.client("eks").describe_cluster(name="demo")
    key.allow(*({one["Sid"] for one in key.printed["Statement"]} - {lost}))
    create_group(
        account, network, launchTemplate=template(network, BlockDeviceMappings=sealed(key))
    )
    group = account.client("eks").describe_nodegroup(clusterName="demo", nodegroupName="system")
    issues = group["nodegroup"]["health"]["issues"]
    assert [one["code"] for one in issues] == (["AsgInstanceLaunchFailures"] if lost else [])
    assert not lost or "Client.InternalError: Client error on launch" in issues[0]["message"]


def test_eventbridge_sends_to_an_encrypted_queue_only_where_the_key_lets_it(
    account: Account, key: Key
) -> None:
    sqs, events = account.client("sqs"), account.client("events")
    url = sqs.create_queue(QueueName="q", Attributes={"KmsMasterKeyId": key.arn})["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"][
        "QueueArn"
    ]
    rule = events.put_rule(Name="r", EventPattern=json.dumps({"source": ["aws.ec2"]}))["RuleArn"]
    policy = json.dumps(policies.interruption_queue(arn, [rule]))
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
    events.put_targets(Rule="r", Targets=[{"Id": "t", "Arn": arn}])

    def received() -> int:
        services.emit(REGION, "EC2 Instance State-change Notification", "arn", {})
        return len(sqs.receive_message(QueueUrl=url, WaitTimeSeconds=0).get("Messages", ()))

    assert received() == 1
    key.allow("LetIamDecide")
    assert received() == 0


def test_a_queue_is_read_by_whoever_may_decrypt_with_its_key(account: Account, key: Key) -> None:
    url = account.client("sqs").create_queue(QueueName="q", Attributes={"KmsMasterKeyId": key.arn})[
        "QueueUrl"
    ]
    somebody, reads = Somebody(account, "reader"), {"Action": "sqs:*", "Resource": "*"}
    statements = encryption.node_volumes(key.arn)["Statement"]
    somebody.may(*policies.document(reads, *statements)["Statement"])
    somebody.client("sqs").receive_message(QueueUrl=url)
    somebody.may(*policies.document(reads)["Statement"])
    with refused("KMS.AccessDeniedException"):
        somebody.client("sqs").receive_message(QueueUrl=url)


def test_a_topic_takes_alerts_of_whoever_may_encrypt_with_its_key(
    account: Account, key: Key
) -> None:
    sns = account.client("sns")
    topic = sns.create_topic(Name="t", Attributes={"KmsMasterKeyId": key.arn})["TopicArn"]
    somebody, publish = Somebody(account, "alerts"), {"Action": "sns:Publish", "Resource": topic}
    somebody.may(*policies.document(publish, encryption.publishing_key(key.arn))["Statement"])
    somebody.client("sns").publish(TopicArn=topic, Message="m")
    somebody.may(*policies.document(publish)["Statement"])
    with refused("KMSAccessDenied"):
        somebody.client("sns").publish(TopicArn=topic, Message="m")


def test_a_log_group_needs_the_key_to_let_cloudwatch_in(account: Account, key: Key) -> None:
    logs = account.client("logs")
    logs.create_log_group(logGroupName=f"/aws/eks/{STACK}-cluster/cluster", kmsKeyId=key.arn)
    with refused("InvalidParameterException"):
        logs.create_log_group(logGroupName="/aws/eks/other/cluster", kmsKeyId=key.arn)
    logs.create_log_group(logGroupName=f"{encryption.POD_LOGS}{STACK}-pod-logs-0", kmsKeyId=key.arn)


@pytest.mark.parametrize("lost", ["", "GenerateDataKey", "Decrypt"])
def test_a_workspace_of_metrics_needs_what_its_deployer_may_do_with_the_key(
    account: Account, key: Key, lost: str
) -> None:
    calls = [f"kms:{call}" for call in KEY_CALLS if call != lost]
    somebody = Somebody(account, "deployer")
    creates = {"Action": ["aps:CreateWorkspace", "aps:TagResource"], "Resource": "*"}
    uses = {"Action": calls, "Resource": key.arn}
    somebody.may(*policies.document(creates, uses)["Statement"])
    with refused("AccessDeniedException") if lost else nullcontext():
        somebody.client("amp").create_workspace(alias="dev-metrics", kmsKeyArn=key.arn)


@pytest.mark.parametrize("arn", ["another region", "gone"])
def test_a_file_system_is_refused_with_a_key_that_does_not_exist(
    account: Account, key: Key, arn: str
) -> None:
    wrong = {
        "another region": key.arn.replace(REGION, "eu-west-1"),
        "gone": key.arn[:-4] + "0000",
    }
    with refused("AccessDeniedException"):
        account.client("efs").create_file_system(
            CreationToken="t", Encrypted=True, KmsKeyId=wrong[arn]
        )


def test_a_cluster_gets_its_key_once(account: Account, key: Key) -> None:
    eks, network = account.client("eks"), Network(account)
    create_cluster(account, network)
    eks.describe_cluster(name="demo")
    wanted = [{"resources": ["secrets"], "provider": {"keyArn": key.arn}}]
    eks.associate_encryption_config(clusterName="demo", encryptionConfig=wanted)
    assert eks.describe_cluster(name="demo")["cluster"]["encryptionConfig"] == wanted
    with refused("InvalidParameterException"):
        eks.associate_encryption_config(clusterName="demo", encryptionConfig=wanted)


def test_a_protected_cluster_is_not_deleted(account: Account) -> None:
    eks, network = account.client("eks"), Network(account)
    create_cluster(account, network, deletionProtection=True)
    eks.describe_cluster(name="demo")
    with refused("InvalidRequestException"):
        eks.delete_cluster(name="demo")
    eks.update_cluster_config(name="demo", deletionProtection=False)
    assert eks.describe_cluster(name="demo")["cluster"]["deletionProtection"] is False
    eks.delete_cluster(name="demo")


def test_the_account_of_the_rehearsal_has_the_role_that_the_printed_policy_names(key: Key) -> None:
    assert keys.AUTO_SCALING in json.dumps(key.printed)
