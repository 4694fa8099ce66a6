"""Calls about IAM, SQS and pricing that AWS refuses, and moto lets pass or does not have; and the
events that EC2 sends."""

from __future__ import annotations

import json
import secrets
import time
from typing import Any

from rehearsal.aws import backends, keys, policies, principals
from rehearsal.aws.clock import CLOCK
from rehearsal.aws.operations import Call, Fields, answers, follows, refuses

INLINE_CHARACTERS = 10240
"""IAM's quota for a role's inline policies, without white space."""
PRICES = {"Shared": ("m5.large", 0.096), "Dedicated": ("m5.metal", 4.608)}
"""By tenancy, USD an hour in us-east-1, as Karpenter 1.14.1 ships them. Karpenter lays what it is
told over its own table and insists on one type and one metal type: no more is needed."""
_deleted_queues: set[tuple[str, str]] = set()


def _ids(document: str) -> list[str]:
    return [one["Sid"] for one in policies.statements(document) if "Sid" in one]


refuses(
    "iam",
    "CreateRole",
    "MalformedPolicyDocument",
    "Invalid principal in policy: {hit}",
    lambda call: ", ".join(
        who
        for statement in policies.statements(call["AssumeRolePolicyDocument"])
        for kind, who in policies.named(statement)
        if kind == "Service" and ".amazonaws.com" not in who
    ),
)
refuses(
    "iam",
    "CreateRole PutRolePermissionsBoundary",
    "NoSuchEntity",
    "Scope ARN: {PermissionsBoundary} does not exist or is not attachable.",
    lambda call: (
        call["PermissionsBoundary"]
        and call["PermissionsBoundary"] not in backends.iam().managed_policies
    ),
    status=404,
)
refuses(
    "iam",
    "PutRolePolicy",
    "MalformedPolicyDocument",
    "Statement IDs (SID) in a single policy must be unique.",
    lambda call: len(ids := _ids(call["PolicyDocument"])) != len({*ids}),
)
refuses(
    "iam",
    "PutRolePolicy",
    "LimitExceeded",
    f"Maximum policy size of {INLINE_CHARACTERS} bytes exceeded",
    lambda call: len("".join(call["PolicyDocument"].split())) > INLINE_CHARACTERS,
)
refuses(
    "sts",
    "AssumeRole",
    "AccessDenied",
    "not authorized to perform: sts:AssumeRole on resource: {RoleArn}",
    lambda call: (
        not principals.trusts(
            call["RoleArn"],
            call.principal.entity,
            f"arn:aws:iam::{backends.ACCOUNT}:root",
            request={"aws:PrincipalArn": call.principal.entity}
            | ({"sts:ExternalId": call["ExternalId"]} if call["ExternalId"] else {}),
        )
    ),
    status=403,
)
refuses(
    "sqs",
    "CreateQueue",
    "QueueDeletedRecently",
    "You must wait 60 seconds after deleting a queue before you can "
    "create another with the same name.",
    lambda call: (call.region, call["QueueName"]) in _deleted_queues,
)
refuses(
    "arc-zonal-shift",
    "GetManagedResource",
    "ResourceNotFoundException",
    "{resourceIdentifier} is not registered",
    lambda call: True,
    status=404,
)


@follows("sqs", "DeleteQueue")
def _remember_deleted(call: Call, answer: Fields) -> None:
    deleted = (call.region, call["QueueUrl"].rpartition("/")[2])
    _deleted_queues.add(deleted)
    CLOCK.later("sqs.queue.deleted", lambda: _deleted_queues.discard(deleted))


@answers("iam", "ListInstanceProfiles")
def _list_profiles(call: Call) -> Fields:
    """moto ignores PathPrefix: Karpenter would delete everybody's when one node class goes."""
    profiles = backends.iam().get_instance_profiles()
    return {
        "InstanceProfiles": [
            one for one in profiles if one.path.startswith(call["PathPrefix"] or "/")
        ]
    }


@answers("pricing", "GetProducts")
def _get_products(call: Call) -> Fields:
    """In the shape of AWS's price list as far as Karpenter reads it."""
    name, usd = PRICES[next(one["Value"] for one in call["Filters"] if one["Field"] == "tenancy")]
    term = {"priceDimensions": {"hourly": {"unit": "Hrs", "pricePerUnit": {"USD": str(usd)}}}}
    product = {
        "product": {"attributes": {"instanceType": name}},
        "terms": {"OnDemand": {"term": term}},
    }
    return {"FormatVersion": "aws_v1", "PriceList": [json.dumps(product)]}


def emit(region: str, kind: str, resource: str, detail: Fields, *, source: str = "aws.ec2") -> None:
    """Send an event of a service to the queues that rules name, where the queue's policy lets
    EventBridge in."""
    event = {
        "version": "0",
        "id": secrets.token_hex(16),
        "detail-type": kind,
        "source": source,
        "account": backends.ACCOUNT,
        "time": time.time(),
        "region": region,
        "resources": [resource],
        "detail": detail,
    }
    for rule in list(backends.events(region).event_buses["default"].rules.values()):
        if rule.state == "ENABLED" and all(
            _accepts(region, target["Arn"], rule.arn) for target in rule.targets
        ):
            rule.send_to_targets(event, transform_input=False)


def _accepts(region: str, queue_arn: str, rule_arn: str) -> bool:
    """True where the queue's policy lets EventBridge send for that rule, and the policy of its key
    lets EventBridge encrypt."""
    queue: Any = backends.sqs(region).queues.get(queue_arn.rpartition(":")[2])
    document = getattr(queue, "policy", None) or "{}"
    sender = ("Service", "events.amazonaws.com")
    about_it = [one for one in policies.statements(document) if sender in policies.named(one)]
    context = {"aws:SourceAccount": backends.ACCOUNT, "aws:SourceArn": rule_arn}
    ask = policies.Ask(action="sqs:SendMessage", resource=queue_arn, context=context)
    key, sends = getattr(queue, "kms_master_key_id", None), ("Decrypt", "GenerateDataKey")
    encrypts = not key or all(keys.allows(key, sender[1], action, context) for action in sends)
    return encrypts and policies.verdict([{"Statement": about_it}], ask) == "Allow"
