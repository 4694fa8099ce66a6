"""An IAM role with what is attached to it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

import pulumi
import pulumi_aws as aws

from trainyard.objects.iam.policies import Document, as_text
from trainyard.plans.identity import Identity


def role(
    parent: pulumi.Resource,
    name: str,
    identity: Identity,
    physical_name: str,
    trusts: Document | pulumi.Output[Document],
    *,
    managed: Sequence[str] = (),
    inline: Mapping[str, pulumi.Input[str]] | None = None,
) -> tuple[aws.iam.Role, list[pulumi.Resource]]:
    """The role, and the attachments that must exist before anybody relies on it."""
    made = aws.iam.Role(
        name,
        name=physical_name,
        # Output.json_dumps would make an output of each word of what it is given, 44 of a trust policy.
        assume_role_policy=(
            trusts.apply(as_text) if isinstance(trusts, pulumi.Output) else as_text(trusts)
        ),
        permissions_boundary=identity.permissions_boundary,
        tags=identity.tags(name),
        opts=pulumi.ResourceOptions(parent=parent),
    )
    attached: list[pulumi.Resource] = [
        aws.iam.RolePolicyAttachment(
            f"{name}-{arn.rpartition('/')[2]}",
            role=made.name,
            policy_arn=arn,
            opts=pulumi.ResourceOptions(parent=parent),
        )
        for arn in managed
    ]
    attached += [
        aws.iam.RolePolicy(
            f"{name}-{key}",
            name=key,
            role=made.name,
            policy=document,
            opts=pulumi.ResourceOptions(parent=parent),
        )
        for key, document in (inline or {}).items()
    ]
    return made, attached


def together(
    lists: Iterable[pulumi.Output[list[Document]]],
) -> pulumi.Output[list[Document]]:
    """All statements in one list. They go there as text: Output.all would make an output of each
    word in them."""
    texts = (each.apply(json.dumps) for each in lists)
    return pulumi.Output.all(*texts).apply(
        lambda all_: [one for text in all_ for one in json.loads(text)]
    )
