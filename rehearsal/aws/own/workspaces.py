"""Workspaces of Amazon Managed Service for Prometheus: what their API says of them, and the metrics that
a Prometheus sends them.

Samples arrive from the real Prometheus, after signature, role and network were checked, and only the names
of their metrics are kept: no query is answered but for those names.

Source: AMP user guide, AMP-APIReference. The form of samples: remote_write.py.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from rehearsal import paths
from rehearsal.aws import backends
from rehearsal.aws.clock import CLOCK
from rehearsal.aws.operations import Call, Fields, Refused, answers, refuse
from rehearsal.aws.remote_write import names, uncompressed
from rehearsal.aws.service import Service, Use, register

DEFAULT_DAYS = 150


@dataclass(kw_only=True)
class Workspace:
    """One workspace, and the names of the metrics that arrived in it."""

    id: str
    region: str
    alias: str | None
    key: str | None
    tags: dict[str, str]
    days: int = DEFAULT_DAYS
    status: str = "CREATING"
    metrics: set[str] = field(default_factory=set)

    @property
    def arn(self) -> str:
        return f"arn:aws:aps:{self.region}:{backends.ACCOUNT}:workspace/{self.id}"

    def view(self) -> Fields:
        return {
            "workspaceId": self.id,
            "arn": self.arn,
            "alias": self.alias,
            "kmsKeyArn": self.key,
            "status": {"statusCode": self.status},
            "prometheusEndpoint": f"{paths.world().account_url_for_pods}/workspaces/{self.id}/",
            "tags": self.tags,
        }


WORKSPACES: dict[str, Workspace] = {}
"""Id → workspace."""


def of(call: Call) -> Workspace | None:
    """The workspace that a call names, by its id or by its ARN."""
    named = call["workspaceId"] or (call["resourceArn"] or "").rpartition("/")[2]
    found = WORKSPACES.get(named)
    return found if found and found.region == call.region else None


def _known(call: Call) -> Workspace:
    if (found := of(call)) is None:
        raise Refused("ResourceNotFoundException", "Workspace not found", status=404)
    return found


@answers("amp", "CreateWorkspace")
def _create(call: Call) -> Fields:
    made = Workspace(
        id=f"ws-{secrets.token_hex(4)}-0000-4000-8000-{secrets.token_hex(6)}",
        region=call.region,
        alias=call["alias"],
        key=call["kmsKeyArn"],
        tags=dict(call["tags"] or {}),
    )
    WORKSPACES[made.id] = made
    CLOCK.later("aps.workspace", lambda: setattr(made, "status", "ACTIVE"))
    return made.view()


@answers("amp", "DescribeWorkspace")
def _describe(call: Call) -> Fields:
    return {"workspace": _known(call).view()}


@answers("amp", "ListWorkspaces")
def _list(call: Call) -> Fields:
    """`alias` is what the names begin with."""
    prefix = call["alias"] or ""
    mine = [one for one in WORKSPACES.values() if one.region == call.region]
    return {"workspaces": [one.view() for one in mine if (one.alias or "").startswith(prefix)]}


@answers("amp", "UpdateWorkspaceAlias")
def _rename(call: Call) -> Fields:
    _active(call).alias = call["alias"]
    return {}


@answers("amp", "DeleteWorkspace")
def _delete(call: Call) -> Fields:
    del WORKSPACES[_active(call).id]
    return {}


@answers("amp", "DescribeWorkspaceConfiguration")
def _configuration(call: Call) -> Fields:
    days = _known(call).days
    status = {"statusCode": "ACTIVE"}
    return {"workspaceConfiguration": {"status": status, "retentionPeriodInDays": days}}


@answers("amp", "UpdateWorkspaceConfiguration")
def _configure(call: Call) -> Fields:
    _active(call).days = call["retentionPeriodInDays"]
    return {"status": {"statusCode": "UPDATING"}}


@answers("amp", "DescribeLoggingConfiguration")
def _logging(call: Call) -> Fields:
    """No workspace delivers its logs."""
    name = _known(call).id
    message = f"Logging configuration not found for workspace {name}"
    raise Refused("ResourceNotFoundException", message, status=404)


@answers("amp", "ListTagsForResource", "TagResource", "UntagResource")
def _tag(call: Call) -> Fields:
    tags = _known(call).tags
    tags |= call["tags"] or {}
    for key in call["tagKeys"] or ():
        tags.pop(key, None)
    return {"tags": tags}


def _active(call: Call) -> Workspace:
    found = _known(call)
    refuse(
        found.status != "ACTIVE", "ConflictException", f"{found.id} is {found.status}, not ACTIVE"
    )
    return found


@answers("amp", "RemoteWrite")
def _write(call: Call) -> Fields:
    _active(call).metrics |= {*names(uncompressed(call["body"]))}
    return {}


@answers("amp", "GetLabels")
def _labels(call: Call) -> Fields:
    return {"status": "success", "data": sorted(_active(call).metrics)}


register(
    Service(
        name="amp",
        signs_as="aps",
        ours=True,
        arns=lambda call: [one.arn for one in [of(call)] if one],
        tags=lambda call: one.tags if (one := of(call)) else {},
        keys={
            "aps:CreateWorkspace": Use(
                key=lambda call: call["kmsKeyArn"],
                via="aps",
                actions=("CreateGrant", "DescribeKey", "Decrypt", "GenerateDataKey"),
            )
        },
        things=lambda: [
            ("aps-workspace", one.id, one.alias or "", one.status, one.tags)
            for one in WORKSPACES.values()
        ],
        kept=WORKSPACES,
    )
)
