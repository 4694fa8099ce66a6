"""What AWS refuses about IAM, SQS, EventBridge and Logs where moto lets it pass; and the events AWS itself sends."""

from __future__ import annotations

import json
import re
import secrets
import time
from typing import Any

from rehearsal.account import backends, principals
from rehearsal.account.clock import CLOCK
from rehearsal.account.operations import Call, Fields, Refused, checks, refuses

ATTACHED, MANAGED_CHARACTERS, INLINE_CHARACTERS = 10, 6144, 10240
"""IAM quotas: managed policies of a role, and a policy's size without white space."""
_SERVICE = re.compile(r"[a-z0-9.-]+\.amazonaws\.com(\.cn)?")
_QUEUE_RANGES = {"MessageRetentionPeriod": (60, 1209600), "VisibilityTimeout": (0, 43200), "DelaySeconds": (0, 900),
                 "ReceiveMessageWaitTimeSeconds": (0, 20), "MaximumMessageSize": (1024, 1048576)}
_RETENTION_DAYS = frozenset({1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557,
                             2922, 3288, 3653})
_deleted_queues: set[tuple[str, str]] = set()


def _size(call: Call) -> int:
    return len("".join(call["PolicyDocument"].split()))


def _policies_left(call: Call) -> int:
    held = backends.iam().get_role(call["RoleName"]).managed_policies
    return 1 if call["PolicyArn"] in held else ATTACHED - len(held)


def _bad_attributes(call: Call) -> list[str]:
    ranged = ((name, int(value), *_QUEUE_RANGES[name]) for name, value in (call["Attributes"] or {}).items()
              if name in _QUEUE_RANGES)
    return [name for name, value, low, high in ranged if not low <= value <= high]


def _may_assume(call: Call) -> bool:
    role = principals.role(call["RoleArn"])
    trust = json.dumps(backends.document(role.assume_role_policy_document)) if role else ""
    everybody = f"arn:aws:iam::{backends.ACCOUNT}:root"
    return any(f'"{who}"' in trust for who in (call.principal.entity, everybody, backends.ACCOUNT))


refuses("iam", "CreateRole", "ValidationError", "Value '{RoleName}' at 'roleName' failed to satisfy constraint: at "
        "most 64 of [\\w+=,.@-]", lambda call: not re.fullmatch(r"[\w+=,.@-]{1,64}", call["RoleName"], re.ASCII))
refuses("iam", "CreatePolicy CreatePolicyVersion", "LimitExceeded", f"Cannot exceed quota for PolicySize: "
        f"{MANAGED_CHARACTERS}", lambda call: _size(call) > MANAGED_CHARACTERS)
refuses("iam", "PutRolePolicy", "LimitExceeded", f"Maximum policy size of {INLINE_CHARACTERS} bytes exceeded",
        lambda call: _size(call) > INLINE_CHARACTERS)
refuses("iam", "AttachRolePolicy", "LimitExceeded", f"Cannot exceed quota for PoliciesPerRole: {ATTACHED}",
        lambda call: _policies_left(call) < 1)
refuses("iam", "DeletePolicy", "DeleteConflict", "Cannot delete a policy attached to entities.",
        lambda call: getattr(backends.iam().managed_policies.get(call["PolicyArn"]), "attachment_count", 0))
refuses("sts", "AssumeRole", "AccessDenied", "not authorized to perform: sts:AssumeRole on resource: {RoleArn}",
        lambda call: not _may_assume(call), status=403)
refuses("sqs", "CreateQueue", "QueueDeletedRecently", "You must wait 60 seconds after deleting a queue before you can "
        "create another with the same name.", lambda call: (call.region, call["QueueName"]) in _deleted_queues)
refuses("sqs", "CreateQueue SetQueueAttributes", "InvalidAttributeValue", "Invalid value for the parameter {hit}.",
        _bad_attributes)
refuses("logs", "PutRetentionPolicy", "InvalidParameterException", "{retentionInDays} is no retention period",
        lambda call: call["retentionInDays"] not in _RETENTION_DAYS)
refuses("arc-zonal-shift", "GetManagedResource", "ResourceNotFoundException", "{resourceIdentifier} is not registered",
        lambda call: True, status=404)


@checks("iam", "CreateRole", "UpdateAssumeRolePolicy")
def _sound_trust(call: Call) -> None:
    text = call["AssumeRolePolicyDocument"] or call["PolicyDocument"]
    statements = json.loads(text).get("Statement") if text.lstrip().startswith("{") else None
    if not statements:
        raise Refused("MalformedPolicyDocument", "The trust policy has no statement")
    for statement in statements if isinstance(statements, list) else [statements]:
        for kind, value in _named(statement.get("Principal") or {"Service": "nobody"}):
            if not (_SERVICE.fullmatch(value) if kind == "Service" else kind != "AWS" or _known(value)):
                raise Refused("MalformedPolicyDocument", f'Invalid principal in policy: "{kind}":"{value}"')


def _named(principal: Any) -> list[tuple[str, str]]:
    kinds = principal.items() if isinstance(principal, dict) else ()
    return [(kind, one) for kind, many in kinds for one in ([many] if isinstance(many, str) else many)]


def _known(value: str) -> bool:
    return value in ("*", backends.ACCOUNT, f"arn:aws:iam::{backends.ACCOUNT}:root") or principals.exists(value)


@checks("sqs", "DeleteQueue")
def _remember_deleted(call: Call) -> None:
    deleted = (call.region, call["QueueUrl"].rpartition("/")[2])
    if deleted[1] in backends.sqs(call.region).queues:
        _deleted_queues.add(deleted)
        CLOCK.later("sqs.queue.deleted", lambda: _deleted_queues.discard(deleted))


def emit(region: str, kind: str, resource: str, detail: Fields) -> None:
    """Send an event of EC2's to the queues that rules name, where the queue's policy lets EventBridge in."""
    event = {"version": "0", "id": secrets.token_hex(16), "detail-type": kind, "source": "aws.ec2",
             "account": backends.ACCOUNT, "time": time.time(), "region": region, "resources": [resource],
             "detail": detail}
    for rule in list(backends.events(region).event_buses["default"].rules.values()):
        if rule.state == "ENABLED" and all(_accepts(region, target["Arn"]) for target in rule.targets):
            rule.send_to_targets(event, transform_input=False)


def _accepts(region: str, queue_arn: str) -> bool:
    """Whether the queue's policy lets EventBridge send; by action, like all of the account's authorisation."""
    queue = backends.sqs(region).queues.get(queue_arn.rpartition(":")[2])
    statements = backends.document(getattr(queue, "policy", None) or "{}").get("Statement", [])
    return any(statement["Effect"] == "Allow" and "events.amazonaws.com" in json.dumps(statement.get("Principal"))
               and principals.concerns(statement, "sqs:SendMessage") for statement in statements)
