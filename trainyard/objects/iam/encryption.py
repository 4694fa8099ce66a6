"""Rights that a KMS key of a company must give, so that a stack can encrypt with it: statements for
the policy of the key, whose owner adds them, and for roles of the stack.

Services that encrypt on behalf of the caller ask IAM about the caller's role, where the policy of the
key leaves that to IAM. Others call KMS as themselves: only the policy of the key lets them.
"""

from __future__ import annotations

from trainyard.objects.iam.policies import Document, account_of, document

KEY_ARN = r"^arn:aws[a-z-]*:kms:[-a-z0-9]+:\d{12}:key/[-\w]+$"
"""Pattern of a key's ARN. An alias does not match: IAM allows an alias to nobody."""
AUTO_SCALING = "role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"
"""Launches the system nodes. Nobody can add permissions to a service-linked role."""
CONTROL_PLANE, FLOW, POD_LOGS = "/aws/eks/", "/aws/vpc-flow-logs/", "/trainyard/pods/"
"""Beginnings of the names of log groups, before the name of the stack."""
USES = ("kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKeyWithoutPlaintext", "kms:ReEncrypt*")
"""Calls of EC2 about the volume of an instance, as whoever launches it."""


def region_of(key_arn: str) -> str:
    """The region of a key: no key works in another one."""
    return key_arn.split(":")[3]


def key_policy(key_arn: str, stack: str) -> Document:
    """The statements that the policy of the key must have.

    Sources: KMS developer guide, key-policy-default (the account); EC2 Auto Scaling user guide,
    key-policy-requirements-EBS-encryption; SQS developer guide, sqs-key-management (compatibility
    between event sources and encrypted queues); CloudWatch Logs user guide, encrypt-log-data-kms.
    """
    account, region = account_of(key_arn), region_of(key_arn)
    auto_scaling = {"AWS": f"arn:aws:iam::{account}:{AUTO_SCALING}"}
    logs = f"arn:aws:logs:{region}:{account}:log-group:"
    named = [f"{logs}{prefix}{stack}-*" for prefix in (CONTROL_PLANE, FLOW, POD_LOGS)]
    return document(
        {
            "Sid": "LetIamDecide",
            "Principal": {"AWS": f"arn:aws:iam::{account}:root"},
            "Action": "kms:*",
            "Resource": "*",
        },
        {
            "Sid": "LaunchSystemNodes",
            "Principal": auto_scaling,
            "Action": [*USES, "kms:Encrypt", "kms:GenerateDataKey*"],
            "Resource": "*",
        },
        {
            "Sid": "GrantSystemNodes",
            "Principal": auto_scaling,
            "Action": "kms:CreateGrant",
            "Resource": "*",
            "Condition": {"Bool": {"kms:GrantIsForAWSResource": "true"}},
        },
        {
            "Sid": "SendInterruptions",
            "Principal": {"Service": "events.amazonaws.com"},
            "Action": ["kms:Decrypt", "kms:GenerateDataKey"],
            "Resource": "*",
        },
        {
            "Sid": "WriteLogs",
            "Principal": {"Service": f"logs.{region}.amazonaws.com"},
            "Action": [
                "kms:Decrypt*",
                "kms:Describe*",
                "kms:Encrypt*",
                "kms:GenerateDataKey*",
                "kms:ReEncrypt*",
            ],
            "Resource": "*",
            "Condition": {"ArnLike": {"kms:EncryptionContext:aws:logs:arn": named}},
        },
    )


def node_volumes(key_arn: str) -> Document:
    """Right that the role that launches instances needs for their volumes, and only through EC2:
    Karpenter itself makes no call to KMS (kubernetes/kops#18671)."""
    through = f"ec2.{region_of(key_arn)}.amazonaws.com"
    return document(
        {
            "Sid": "EncryptVolumes",
            "Action": list(USES),
            "Resource": key_arn,
            "Condition": {"StringEquals": {"kms:ViaService": through}},
        },
        {
            "Sid": "GrantVolumes",
            "Action": "kms:CreateGrant",
            "Resource": key_arn,
            "Condition": {
                "Bool": {"kms:GrantIsForAWSResource": "true"},
                "StringEquals": {"kms:ViaService": through},
            },
        },
        {
            "Sid": "ReadQueue",
            "Action": "kms:Decrypt",
            "Resource": key_arn,
            "Condition": {
                "StringEquals": {"kms:ViaService": f"sqs.{region_of(key_arn)}.amazonaws.com"}
            },
        },
    )


def publishing_key(key_arn: str) -> Document:
    """Right that whoever publishes to an encrypted topic needs (SNS developer guide,
    sns-key-management)."""
    return {
        "Sid": "Key",
        "Action": ["kms:Decrypt", "kms:GenerateDataKey*"],
        "Resource": key_arn,
        "Condition": {
            "StringEquals": {"kms:ViaService": f"sns.{region_of(key_arn)}.amazonaws.com"}
        },
    }
