"""The AWS account of a stack, as the stack itself reaches it."""

from __future__ import annotations

import json
from typing import Any

import boto3

from trainyard.derive.credentials import aws_session
from trainyard.plans.access import AccessPlan, AssumedRole


def session_of(state: dict[str, Any], region: str | None = None) -> boto3.Session:
    """A session with the region, the profile and the roles of the stack's own AWS provider."""
    provider = next(
        (
            resource["inputs"]
            for resource in state["deployment"].get("resources") or []
            if resource["type"] == "pulumi:providers:aws"
        ),
        None,
    )
    if provider is None:  # then the stack has created nothing in AWS
        return boto3.Session(region_name=region)
    roles = json.loads(provider.get("assumeRoles", "[]"))
    access = AccessPlan(
        region=provider["region"],
        profile=provider.get("profile"),
        roles=tuple(
            AssumedRole(
                arn=role["roleArn"],
                session_name=role.get("sessionName"),
                external_id=role.get("externalId"),
            )
            for role in roles
        ),
    )
    return boto3.Session(botocore_session=aws_session(access), region_name=access.region)
