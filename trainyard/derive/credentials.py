"""A session of AWS's SDK as the identity that makes a stack: its profile, and its roles assumed one
from the other."""

from __future__ import annotations

from typing import Any

from trainyard.plans.access import AccessPlan, AssumedRole

SESSION_NAME = "trainyard"


class NotAssumed(Exception):
    """A role that may not be assumed: which, and AWS's reason."""

    def __init__(self, role: str, why: str) -> None:
        super().__init__(f"sts:AssumeRole of {role}: {why}")
        self.role = role


def aws_session(access: AccessPlan, settings: Any = None) -> Any:
    """A botocore session; NotAssumed where AWS refuses a role. `settings`: a botocore Config. The
    credentials of a role last an hour."""
    from botocore.session import Session  # only here: it is slow to load

    found = Session(profile=access.profile)
    for role in access.roles:
        keys = _assumed(found.create_client("sts", access.region, config=settings), role)
        found = Session(profile=access.profile)
        found.set_credentials(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"])
    return found


def _assumed(sts: Any, role: AssumedRole) -> dict[str, str]:
    from botocore.exceptions import ClientError

    external = {"ExternalId": role.external_id} if role.external_id else {}
    name = role.session_name or SESSION_NAME
    try:
        return sts.assume_role(RoleArn=role.arn, RoleSessionName=name, **external)["Credentials"]
    except ClientError as error:
        raise NotAssumed(role.arn, error.response["Error"]["Code"]) from error
