"""The columns of the table of AWS types: what more than one room asks about a resource type.

Whether a type takes tags is no column: the SDK says so of every type (policy_pack/taggable.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class When(StrEnum):
    """Stacks that have resources of a type; trainyard/reports/policy.py answers for a plan."""

    ALWAYS = "in every environment"
    OWN_CLUSTER = "where the stack makes the cluster"
    OWN_NETWORK = "where the stack makes the VPC"
    WAY_OUT = "where the stack makes the VPC, and it leads to the internet"
    ENDPOINTS = "where the stack makes the VPC, or adds endpoints to an existing one"
    SETTING = "where a setting asks for it, such as a store"


@dataclass(frozen=True)
class Finder:
    """Way to find an object in the account from the inputs that the program gives it.

    A template is a text with names in braces: inputs, fields of the object as AWS describes it, and
    `account`, `region` and `partition`. A path is a text such as `Routes.0.State`: names of fields, and
    places in lists."""

    service: str
    """boto3's name of the service."""
    call: str
    """boto3's method that describes or lists such objects."""
    asks: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Parameter of the call → a template, or a list of templates."""
    filters: str = field(default="", kw_only=True)
    """Parameter of the call that takes filters. With it, AWS answers with the objects that have the tags
    for project, stack and logical name."""
    tagged: bool = field(default=False, kw_only=True)
    """Take only those objects of the answer that have these tags."""
    pages: str = field(default="", kw_only=True)
    """Parameter that asks for the next page, and field of the answer that says it."""
    items: str = field(default="", kw_only=True)
    """Path of the object, or of the list of objects, in the answer. Empty: the answer is the object."""
    matches: Mapping[str, str] = field(default_factory=dict[str, str], kw_only=True)
    """Path in the object → template of what stands there in the one that is meant."""
    id: str = field(kw_only=True)
    """Template of the id that `pulumi import` takes."""
    state: str = field(default="", kw_only=True)
    """Path of the object's state. Empty: an object is there, or it is gone."""


@dataclass(frozen=True, kw_only=True)
class AwsType:
    """One resource type of Pulumi's AWS provider."""

    cloudformation: str
    """CloudFormation's name of it. Some types are a property of another one there."""
    when: When = When.SETTING
    replaces: tuple[str, ...]
    """Paths of inputs that AWS changes in no object: another value makes another object."""
    calls: Mapping[str, str] = field(default_factory=dict[str, str])
    """Handler of CloudFormation → all calls that the type needs in its place. CloudFormation has such a
    type as a property of another one, or its handlers call for what no resource of this program has."""
    calls_beside: Mapping[str, str] = field(default_factory=dict[str, str])
    """Handler of CloudFormation → calls that Terraform's provider makes beside those of the handler."""
    finder: Finder | None = None
    """None: a second creation has the same result, and the object ends with what it belongs to (policies
    of queues and buckets, subscriptions of topics)."""
    awaited: bool = False
    """AWS takes minutes for its deletion, and describes it meanwhile."""
    untold: str = ""
    """Input that would replace an object and that AWS does not tell, so that an import has none."""
    key: str = ""
    """Path of the input with the one KMS key that encrypts the object."""
    holds_data: bool = False
    """Users' data is in it."""
    deletions: tuple[str, ...] = ()
    """Commands of a shell with the AWS CLI that delete the object and all data in it, in the order in which they
    work. `{id}` and `{region}` stand for its own. Each type that a stack can protect has them."""


def by_tags(
    call: str, items: str, id_: str, *, state: str = "", filters: str = "Filters"
) -> Finder:
    """A finder for EC2: by the tags for project, stack and logical name."""
    return Finder("ec2", call, filters=filters, items=items, id=id_, state=state)


def each_of(listed: str, path: str, deleted: str) -> str:
    """A command that lists what is in an object and deletes it one by one. `listed`: the call, with its options.
    `path`: of the ids in its answer. `deleted`: the call, which an option that takes an id ends."""
    return (
        f"aws {listed} --region {{region}} --query '{path}' --output text"
        f" | xargs -r -n 1 aws {deleted}"
    )


def written(put: str, read: str, delete: str = "") -> dict[str, str]:
    """Calls of a part of another object, which is created and updated by one call, and by that one
    deleted, too, where no other is named."""
    return {"create": put, "read": read, "update": put, "delete": delete or put}
