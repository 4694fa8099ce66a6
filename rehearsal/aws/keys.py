"""KMS keys, which exist before a stack: moto keeps them, and here is who may use them.

A key is used by whoever its policy names, and by whoever IAM allows it where its policy names the
account (KMS developer guide, key-policies). Services use it as the caller or as themselves; EC2 finds
out only when an instance has its volumes, and then ends it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rehearsal.aws import backends, policies, principals
from rehearsal.aws.identity import ACCOUNT
from rehearsal.aws.operations import Call, Fields, Refused, answers, follows
from rehearsal.aws.policies import Ask
from rehearsal.aws.service import SERVICES, Use

ROOT = f"arn:aws:iam::{ACCOUNT}:root"
AUTO_SCALING = (
    f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/autoscaling.amazonaws.com/"
    "AWSServiceRoleForAutoScaling"
)
"""Launches the instances of managed node groups. No policy of IAM gives it a key."""
SOUND = ("SYMMETRIC_DEFAULT", "Enabled", "ENCRYPT_DECRYPT")
"""Kind, state and usage of a key that encrypts data."""
EBS_ALIAS = "alias/aws/ebs"
OF_A_VOLUME = ("CreateGrant", "Decrypt", "DescribeKey", "GenerateDataKeyWithoutPlaintext")
"""Actions of KMS that EC2 does as the launcher (EBS user guide, ebs-encryption-requirements)."""
LOST = ("Client.InternalError", "Client.InternalError: Client error on launch")
UNUSABLE = (
    "Client.InvalidKMSKey.InvalidState",
    "Client.InvalidKMSKey.InvalidState: The KMS key provided is in an incorrect state",
)
"""Code and message of EC2's state reason: nobody may use the key, or it is disabled or gone."""


def _of_cluster(call: Call) -> str | None:
    return next((one["provider"]["keyArn"] for one in call["encryptionConfig"] or ()), None)


def _of_queue(call: Call) -> str | None:
    queue = backends.sqs(call.region).queues.get((call["QueueUrl"] or "").rpartition("/")[2])
    return getattr(queue, "kms_master_key_id", None) or None


def _of_topic(call: Call) -> str | None:
    topic = backends.sns(call.region).topics.get(call["TopicArn"])
    key = getattr(topic, "kms_master_key_id", None)
    return None if not key or key.startswith("alias/aws/") else key


MADE = ("CreateGrant", "DescribeKey")
CLUSTER = Use(key=_of_cluster, via="eks", actions=MADE)
GROUP = Use(
    key=lambda call: call["kmsKeyId"],
    via="logs",
    actions=("Encrypt", "Decrypt", "GenerateDataKey"),
    service="logs.{region}.amazonaws.com",
    code="InvalidParameterException",
)
USES: Mapping[str, Use] = {
    "eks:CreateCluster": CLUSTER,
    "eks:AssociateEncryptionConfig": CLUSTER,
    "elasticfilesystem:CreateFileSystem": Use(
        key=lambda call: call["KmsKeyId"],
        via="elasticfilesystem",
        actions=(*MADE, "GenerateDataKeyWithoutPlaintext"),
    ),
    "fsx:CreateFileSystem": Use(
        key=lambda call: call["KmsKeyId"], via="fsx", actions=MADE, code="BadRequest"
    ),
    "fsx:CreateFileSystemFromBackup": Use(
        key=lambda call: call["KmsKeyId"], via="fsx", actions=MADE, code="BadRequest"
    ),
    "logs:CreateLogGroup": GROUP,
    "logs:AssociateKmsKey": GROUP,
    "sqs:ReceiveMessage": Use(
        key=_of_queue, via="sqs", actions=("Decrypt",), code="KMS.AccessDeniedException"
    ),
    "sns:Publish": Use(
        key=_of_topic, via="sns", actions=("Decrypt", "GenerateDataKey"), code="KMSAccessDenied"
    ),
}
"""Call of a service without a row of its own → what it asks KMS. Sources: the user guides
of trainyard/objects/iam/encryption.py and trainyard/objects/deployer.py."""


def authorize(call: Call) -> None:
    """Refused where the call names a key that whoever asks may not use."""
    use = (SERVICES[call.service].keys if call.service in SERVICES else USES).get(call.name)
    key = use.key(call) if use else None
    if use is None or key is None:
        return
    who = use.service.format(region=call.region) or call.principal.entity
    denied = [
        action
        for action in use.actions
        if not allows(key, who, action, _context(call, use, action))
    ]
    if denied or not enabled(key):
        why = f"may not call kms:{denied[0]}" if denied else f"cannot use it: {state(key)}"
        raise Refused(use.code, f"the KMS key {key}: {who} {why}")


def _context(call: Call, use: Use, action: str) -> dict[str, str]:
    context = through(use.via, call.region, action)
    if name := call["logGroupName"]:
        group = f"arn:aws:logs:{call.region}:{ACCOUNT}:log-group:{name}"
        context["kms:EncryptionContext:aws:logs:arn"] = group
    return context


def through(service: str, region: str, action: str) -> dict[str, str]:
    """The condition keys of a call of KMS that a service makes."""
    via = {"kms:ViaService": f"{service}.{region}.amazonaws.com", "kms:CallerAccount": ACCOUNT}
    return via | ({"kms:GrantIsForAWSResource": "true"} if action == "CreateGrant" else {})


def volume_fault(region: str, data: Fields, launcher: str) -> tuple[str, str] | None:
    """Reason why an instance ends at its launch: code and message. `data`: of its launch template.
    `launcher`: ARN of whoever launches it."""
    disks = [disk.get("Ebs") or {} for disk in data.get("BlockDeviceMappings") or ()]
    named = {disk.get("KmsKeyId") or default_key(region) for disk in disks if disk.get("Encrypted")}
    for key in named - {EBS_ALIAS}:
        if not enabled(key) or key.split(":")[3] != region:
            return UNUSABLE
        asked = ((action, through("ec2", region, action)) for action in OF_A_VOLUME)
        if not all(allows(key, launcher, action, context) for action, context in asked):
            return LOST
    return None


def default_key(region: str) -> str:
    """ARN of the key of disks that name none; EBS's own, which moto makes for the first disk, by its alias."""
    arn = backends.ec2(region).default_kms_key_id
    return EBS_ALIAS if not arn or EBS_ALIAS in find(arn).aliases else arn


answers("ec2", "GetEbsDefaultKmsKeyId")(lambda call: {"KmsKeyId": default_key(call.region)})


def find(arn: str) -> Any:
    """moto's key; None where there is none."""
    region, id_ = arn.split(":")[3], arn.rpartition("/")[2]
    return backends.kms(region).keys.get(id_) if arn.startswith("arn:aws:kms:") else None


@answers("logs", "AssociateKmsKey", "DisassociateKmsKey")
def _associate(call: Call) -> Fields:
    """Another key of a log group, for what is written from now on; moto has no such calls."""
    backends.logs(call.region).groups[call["logGroupName"]].kms_key_id = call["kmsKeyId"]
    return {}


@follows("kms", "CreateKey")
def _with_usage(call: Call, answer: Fields) -> None:
    """moto gives a key no usage where the call names none."""
    made, metadata = find(answer["KeyMetadata"]["Arn"]), answer["KeyMetadata"]
    made.key_usage = metadata["KeyUsage"] = made.key_usage or "ENCRYPT_DECRYPT"


def state(arn: str) -> str:
    """State of a key that nobody can use, in words."""
    key = find(arn)
    return f"{key.key_state}, for {key.key_usage}" if key else "it does not exist"


def enabled(arn: str) -> bool:
    """True where anybody can use the key to encrypt with."""
    key = find(arn)
    return bool(key) and (key.key_spec, key.key_state, key.key_usage) == SOUND


def allows(arn: str, who: str, action: str, context: Mapping[str, str]) -> bool:
    """True where somebody may do something with the key: ARN of a role or user, or a service."""
    key = find(arn)
    if key is None:
        return False
    ask = Ask(action=f"kms:{action}", resource=arn, context=context)
    said = {
        name: policies.verdict([{"Statement": [*naming(key.policy, names)]}], ask)
        for name, names in {"own": (who, "*"), "account": (ROOT, ACCOUNT)}.items()
    }
    if "Deny" in said.values():
        return False
    return said["own"] == "Allow" or said["account"] == "Allow" and principals.may(who, ask)


def naming(document: str, names: Iterable[str]) -> Iterator[Fields]:
    """The statements of a key's policy whose principal is one of them."""
    for statement in policies.statements(document):
        everybody = [("AWS", "*")] if statement.get("Principal") == "*" else []
        if {name for _, name in [*policies.named(statement), *everybody]} & {*names}:
            yield statement
