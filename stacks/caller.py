"""The identity of a preview: by default that of the update, the roles and the profile that the stack file names.

A preview of a pull request runs code that nobody has read yet. With AS_CALLER it takes neither, and is whoever calls:
a role that only reads. A runner of CI has the keys of that role, and no profile: the AWS provider and the AWS CLI
refuse a name that ~/.aws/config does not have. An update never is.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pulumi

from components.jobs.shown import shown
from trainyard.plan import EnvironmentPlan, TeamPlan

AS_CALLER = "TRAINYARD_PREVIEW_AS_CALLER"
"""Environment variable of a preview; any text in it means yes."""
ROLE = "--role-arn"
OF_OTHERS = (ROLE, "--profile")
"""Options of `aws eks get-token` by which it is another one than the caller."""
Plan = TypeVar("Plan", EnvironmentPlan, TeamPlan)


def as_caller(plan: Plan) -> Plan:
    """The plan that is carried out: in a preview with AS_CALLER, one without roles and profile."""
    if not _asked():
        return plan
    access = replace(plan.access, roles=(), profile=None)
    if isinstance(plan, EnvironmentPlan):
        return replace(plan, access=access, cluster=replace(plan.cluster, access=access))
    return replace(plan, access=access)


def shown_to_caller(kubeconfig: str, kind: str, namespace: str | None) -> Sequence[Any]:
    """Find what `shown` finds. The kubeconfig of the last update names role and profile of that one."""
    return shown(_of_caller(kubeconfig) if _asked() else kubeconfig, kind, namespace)


def _asked() -> bool:
    return pulumi.runtime.is_dry_run() and bool(os.environ.get(AS_CALLER))


def _of_caller(kubeconfig: str) -> str:
    config = json.loads(kubeconfig)
    for each in config["users"]:
        words = each["user"]["exec"]["args"]
        for option in OF_OTHERS:
            if option in words:
                at = words.index(option)
                del words[at : at + 2]
    return json.dumps(config)
