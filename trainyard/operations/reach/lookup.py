"""Find an object in the account from the inputs that the program gives it: by its name or its tags.

How: the column `finder` of trainyard/catalog/aws_types.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.exceptions import ClientError

from trainyard.catalog.aws_types.row import Finder
from trainyard.catalog.aws_types.table import AWS_TYPES
from trainyard.replacing.deployed import UNKNOWN

Inputs = dict[str, Any]
TAGS = ("trainyard:project", "trainyard:stack", "trainyard:name")
ABSENT = (
    "NotFound",
    "NoSuchEntity",
    "NoSuchBucket",
    "ResourceNotFound",
    "NonExistentQueue",
    "DoesNotExist",
)
CREATING, DELETING = ("creating", "pending", "updating"), "deleting"
DELETED = ("deleted", "delete_complete")


@dataclass(frozen=True, kw_only=True)
class ExistingObject:
    """An object that exists."""

    id: str
    """The id that `pulumi import` takes."""
    settled: bool = True
    """False while AWS is still creating it."""
    leaving: bool = False
    """True while AWS is still deleting it."""


def find(
    session: boto3.Session, kind: str, inputs: Inputs, held: Collection[str] = ()
) -> ExistingObject | None:
    """The object that the inputs describe; None where it does not exist, or leaves, or its type needs
    no finder. `held`: ids of other objects, which can have the same tags."""
    every = _every(session, kind, inputs)
    return next((it for it in every if not it.leaving and it.id not in held), None)


def leaves(session: boto3.Session, resource: Inputs) -> bool:
    """True where AWS is still deleting the object of a resource of the state."""
    return any(it.leaving for it in _of(session, resource))


def changes(session: boto3.Session, resource: Inputs) -> bool:
    """True where AWS is still creating or changing the object of a resource of the state."""
    return any(not it.settled for it in _of(session, resource))


def _of(session: boto3.Session, resource: Inputs) -> list[ExistingObject]:
    described = (resource.get("outputs") or {}) | (resource.get("inputs") or {})
    return [it for it in _every(session, resource["type"], described) if it.id == resource["id"]]


def _every(session: boto3.Session, kind: str, inputs: Inputs) -> list[ExistingObject]:
    """Objects that the inputs describe: one object, or several with the same tags."""
    row = AWS_TYPES.get(kind)
    if row is None or row.finder is None or _unknown(inputs):
        return []
    try:
        found = [*_found(session, row.finder, inputs)]
    except ClientError as error:
        if any(word in error.response["Error"]["Code"] for word in ABSENT):
            return []
        raise
    return [it for it in found if it]


def _found(
    session: boto3.Session, finder: Finder, inputs: Inputs
) -> Iterator[ExistingObject | None]:
    """The objects that a finder finds; None for one that is deleted and that AWS still describes."""
    inputs = inputs | _around(session, finder)
    asks = {name: _filled(template, inputs) for name, template in finder.asks.items()}
    if finder.filters:
        asks[finder.filters] = [
            {"Name": f"tag:{tag}", "Values": [inputs["tags"][tag]]} for tag in TAGS
        ]
    for item in _described(session, finder, asks):
        if _is_meant(finder, item, inputs):
            state = _at(item, finder.state) if finder.state else None
            yield _state(finder.id.format_map(inputs | item), str(state or ""))


def _around(session: boto3.Session, finder: Finder) -> Inputs:
    """Values that templates may name beside inputs. The account is asked for where one does."""
    if "{account}" not in str(finder.asks):
        return {}
    region = session.region_name
    return {
        "account": session.client("sts").get_caller_identity()["Account"],
        "region": region,
        "partition": session.get_partition_for_region(region),
    }


def _filled(template: Any, inputs: Inputs) -> Any:
    if isinstance(template, list):
        return [_filled(one, inputs) for one in template]
    return template.format_map(inputs)


def _described(session: boto3.Session, finder: Finder, asks: Inputs) -> Iterator[Inputs]:
    """The objects that AWS describes, of all pages."""
    describe = getattr(session.client(finder.service), finder.call)
    while True:
        answer = describe(**asks)
        items = _at(answer, finder.items)
        yield from items if isinstance(items, list) else [items] if items else []
        if not finder.pages or not (following := answer.get(finder.pages)):
            return
        asks = asks | {finder.pages: following}


def _is_meant(finder: Finder, item: Inputs, inputs: Inputs) -> bool:
    """True where an object of the answer is the one that the inputs describe."""
    if finder.tagged:
        tags = {tag["Key"]: tag["Value"] for tag in item.get("Tags", [])}
        if any(tags.get(tag) != inputs["tags"][tag] for tag in TAGS):
            return False
    wanted = {path: _filled(template, inputs) for path, template in finder.matches.items()}
    return all(_at(item, path) == value for path, value in wanted.items())


def _at(value: Any, path: str) -> Any:
    """Value at a path; None where nothing is."""
    for step in path.split(".") if path else ():
        if isinstance(value, list):
            value = value[int(step)] if int(step) < len(value) else None
        else:
            value = (value or {}).get(step)
    return value


def _unknown(value: Any) -> bool:
    """True where an input is not known yet; such an object cannot exist."""
    if isinstance(value, dict):
        return any(map(_unknown, value.values()))
    if isinstance(value, list):
        return any(map(_unknown, value))
    return value == UNKNOWN


def _state(id_: str, state: str) -> ExistingObject | None:
    now = state.lower()
    if now in DELETED:
        return None
    return ExistingObject(id=id_, settled=now not in CREATING, leaving=now == DELETING)


def unwanted_egress_rules(session: boto3.Session, kind: str, id_: str) -> list[str]:
    """The ids of the egress rules that AWS adds to a new security group. The provider removes them
    after it has created the group; a killed provider has not. Rules with tags belong to a user."""
    if kind != "aws:ec2/securityGroup:SecurityGroup":
        return []
    rules = session.client("ec2").describe_security_group_rules(
        Filters=[{"Name": "group-id", "Values": [id_]}]
    )["SecurityGroupRules"]
    return [
        rule["SecurityGroupRuleId"]
        for rule in rules
        if rule["IsEgress"]
        and not rule.get("Tags")
        and (rule["IpProtocol"], rule.get("CidrIpv4")) == ("-1", "0.0.0.0/0")
    ]


def remove_unwanted_egress_rules(session: boto3.Session, kind: str, id_: str) -> None:
    """Remove the unwanted egress rules."""
    if rules := unwanted_egress_rules(session, kind, id_):
        session.client("ec2").revoke_security_group_egress(GroupId=id_, SecurityGroupRuleIds=rules)
