"""AWS Backup: vaults, plans, and the EFS file systems that a plan selects.

A file system is backed up once, when it is selected and not at the hour of its plan, by the role of the
selection: no day passes here, no backup ends, and a backup holds no files.

Source: AWS Backup API reference and developer guide; of a vault that does not exist, aws/aws-sdk-js#2625.
moto knows neither selections nor backups.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field

from rehearsal.aws import backends, principals
from rehearsal.aws.operations import Call, Fields, answers, refuse, refuses
from rehearsal.aws.policies import Ask
from rehearsal.aws.service import Passed, Row, Service, Use, register

SERVICE = "backup.amazonaws.com"
LINKED = f"arn:aws:iam::{backends.ACCOUNT}:role/aws-service-role/{SERVICE}/AWSServiceRoleForBackup"
VAULT, PLAN, SELECTION, BACKUP, JOB = (
    *("backup-vault", "backup-plan", "backup-selection"),
    *("recovery-point", "backup-job"),
)
"""Kinds of parts, as their ARNs name them. Selections and jobs have none in AWS."""
LISTS = {
    "ListBackupVaults": ("BackupVaultList", VAULT),
    "ListBackupPlans": ("BackupPlansList", PLAN),
    "ListBackupSelections": ("BackupSelectionsList", SELECTION),
    "ListRecoveryPointsByBackupVault": ("RecoveryPoints", BACKUP),
    "ListBackupJobs": ("BackupJobs", JOB),
}
"""Call → field of its answer, and what it lists."""


@dataclass(kw_only=True)
class Part:
    """A vault, a plan, a selection, a backup, or an attempt to make one."""

    view: Fields
    tags: dict[str, str] = field(default_factory=dict)


PARTS: dict[str, Part] = {}
"""ARN → part."""


def _arn(call: Call, kind: str, id_: str) -> str:
    return f"arn:aws:backup:{call.region}:{backends.ACCOUNT}:{kind}:{id_}"


def arns(call: Call) -> Iterator[str]:
    """The ARN that the call is about; nothing for a list, and for a plan that is created."""
    if named := call["RecoveryPointArn"] or call["ResourceArn"]:
        yield named
    elif name := call["BackupVaultName"]:
        yield _arn(call, VAULT, name)
    elif id_ := call["BackupPlanId"]:
        yield _arn(call, PLAN, id_)


def of(call: Call) -> Part | None:
    """The part that the call is about; None where there is none."""
    return PARTS.get(next(arns(call), ""))


def things() -> Iterator[Row]:
    """Things that cost money or are in somebody's way. A backup has the name of its vault."""
    for arn, part in PARTS.items():
        _, kind, id_ = arn.rsplit(":", 2)
        if kind != JOB:
            name = part.view.get("BackupVaultName", id_)
            yield kind, arn, name, part.view.get("Status", ""), part.tags


def _known(call: Call, arn: str = "") -> Part:
    """The part with the ARN; by default that which the call is about."""
    arn = arn or next(arns(call))
    refuse(arn not in PARTS, "ResourceNotFoundException", f"{arn} does not exist")
    return PARTS[arn]


def _listed(call: Call, kind: str) -> list[Fields]:
    """Parts of a kind in the region, in the vault or plan that the call names."""
    start, within = _arn(call, kind, ""), ("BackupVaultName", "BackupPlanId")
    views = [part.view for arn, part in PARTS.items() if arn.startswith(start)]
    return [view for view in views if all(call[key] in (None, view.get(key)) for key in within)]


def _cannot_mount(call: Call) -> bool:
    region = {"aws:RequestedRegion": call.region}
    ask = Ask(action="backup-storage:MountCapsule", context=region)
    return not principals.may(call.principal.entity, ask)


for _call, _code, _said, _hit in (
    (
        "CreateBackupVault",
        "AccessDeniedException",
        "not authorized to perform: backup-storage:MountCapsule",
        _cannot_mount,
    ),
    ("CreateBackupVault", "AlreadyExistsException", "the vault exists already", of),
    (
        "DescribeBackupVault",
        "AccessDeniedException",
        "Insufficient privileges to perform this action.",
        lambda call: of(call) is None,
    ),
    (
        "DeleteBackupVault",
        "InvalidRequestException",
        "Backup vault cannot be deleted because it contains recovery points",
        lambda call: _listed(call, BACKUP),
    ),
    (
        "DeleteBackupPlan",
        "InvalidRequestException",
        "Related backup plan selections must be deleted prior to backup plan deletion",
        lambda call: _listed(call, SELECTION),
    ),
):
    refuses("backup", _call, _code, _said, _hit)


@answers("backup", *LISTS)
def _list(call: Call) -> Fields:
    name, kind = LISTS[call.action]
    return {name: _listed(call, kind)}


@answers("backup", "GetBackupPlan", "DescribeRecoveryPoint")
def _describe(call: Call) -> Fields:
    return _known(call).view


@answers("backup", "DeleteBackupVault", "DeleteBackupPlan")
def _delete(call: Call) -> Fields:
    _known(call)
    del PARTS[next(arns(call))]
    return {}


@answers("backup", "ListTags", "TagResource", "UntagResource")
def _tag(call: Call) -> Fields:
    tags = _known(call).tags
    tags |= call["Tags"] or {}
    for key in call["TagKeyList"] or ():
        tags.pop(key, None)
    return {"Tags": tags}


@answers("backup", "CreateBackupVault")
def _create_vault(call: Call) -> Fields:
    name, arn = call["BackupVaultName"], next(arns(call))
    key = call["EncryptionKeyArn"] or f"arn:aws:kms:{call.region}:{backends.ACCOUNT}:key/aws-backup"
    view = {"BackupVaultName": name, "BackupVaultArn": arn, "EncryptionKeyArn": key}
    PARTS[arn] = Part(view=view, tags=dict(call["BackupVaultTags"] or {}))
    return view


@answers("backup", "DescribeBackupVault")
def _describe_vault(call: Call) -> Fields:
    return {**_known(call).view, "NumberOfRecoveryPoints": len(_listed(call, BACKUP))}


@answers("backup", "DeleteRecoveryPoint")
def _delete_backup(call: Call) -> Fields:
    """The call succeeds, and the backup stays, for whoever may not make the service-linked role."""
    found, context = _known(call), {"iam:AWSServiceName": SERVICE}
    linking = Ask(action="iam:CreateServiceLinkedRole", resource=LINKED, context=context)
    if principals.may(call.principal.entity, linking):
        del PARTS[call["RecoveryPointArn"]]
    else:
        found.view["Status"] = "EXPIRED"
    return {}


@answers("backup", "CreateBackupPlan")
def _create_plan(call: Call) -> Fields:
    wanted, id_ = _sound(call), str(uuid.uuid4())
    same = [one for one in _listed(call, PLAN) if one["BackupPlan"] == wanted]
    refuse(same, "AlreadyExistsException", "Backup plan with the same plan document already exists")
    arn, name = _arn(call, PLAN, id_), wanted["BackupPlanName"]
    view = {"BackupPlanId": id_, "BackupPlanArn": arn, "BackupPlanName": name, "BackupPlan": wanted}
    PARTS[arn] = Part(view=view, tags=dict(call["BackupPlanTags"] or {}))
    return view


@answers("backup", "UpdateBackupPlan")
def _update_plan(call: Call) -> Fields:
    found = _known(call).view
    found["BackupPlan"] = _sound(call)
    return found


def _sound(call: Call) -> Fields:
    """The plan. Every rule has a vault that exists, and keeps its backups for a day or longer."""
    for rule in call["BackupPlan"]["Rules"]:
        _known(call, _arn(call, VAULT, rule["TargetBackupVaultName"]))
        days = (rule.get("Lifecycle") or {}).get("DeleteAfterDays", 1)
        refuse(days < 1, "InvalidParameterValueException", "DeleteAfterDays must be 1 or more")
    return call["BackupPlan"]


@answers("backup", "CreateBackupSelection")
def _select(call: Call) -> Fields:
    plan, selected, code = _known(call), call["BackupSelection"], "InvalidParameterValueException"
    role, resources = selected["IamRoleArn"], selected.get("Resources") or []
    assumed = principals.trusts(role, SERVICE)
    refuse(not assumed, code, f"IAM Role {role} cannot be assumed by AWS Backup")
    refuse(not resources, code, "Resources must not be empty")
    for arn in resources:
        said = f"Invalid ARN: {arn}. Expected region is {call.region}"
        refuse(arn.split(":")[3] != call.region, code, said)
    view = {
        "SelectionId": str(uuid.uuid4()),
        "SelectionName": selected["SelectionName"],
        "BackupPlanId": call["BackupPlanId"],
        "BackupSelection": selected,
    }
    PARTS[_arn(call, SELECTION, view["SelectionId"])] = Part(view=view)
    for rule in plan.view["BackupPlan"]["Rules"]:
        for arn in resources:
            _back_up(call, rule, arn, role)
    return view


def _back_up(call: Call, rule: Fields, source: str, role: str) -> None:
    """Make a backup of one file system as the role; the job is FAILED where the role may not."""
    name = rule["TargetBackupVaultName"]
    asks = (
        Ask(action="elasticfilesystem:Backup", resource=source),
        Ask(action="backup:CopyIntoBackupVault", resource=_arn(call, VAULT, name)),
    )
    why = [f"{role} may not call {ask.action}" for ask in asks if not principals.may(role, ask)]
    if source.rpartition("/")[2] not in backends.efs(call.region).file_systems_by_id:
        why.append(f"{source} does not exist")
    job = {"BackupJobId": str(uuid.uuid4()), "ResourceArn": source, "BackupVaultName": name}
    job |= {"State": "FAILED", "StatusMessage": why[0]} if why else {"State": "COMPLETED"}
    PARTS[_arn(call, JOB, job["BackupJobId"])] = Part(view=job)
    if not why:
        arn = _arn(call, BACKUP, str(uuid.uuid4()))
        view = {
            "RecoveryPointArn": arn,
            "BackupVaultName": name,
            "ResourceArn": source,
            "ResourceType": "EFS",
            "IamRoleArn": role,
            "Status": "COMPLETED",
            "Lifecycle": rule.get("Lifecycle"),
        }
        PARTS[arn] = Part(view=view, tags=dict(rule.get("RecoveryPointTags") or {}))


@answers("backup", "GetBackupSelection")
def _get_selection(call: Call) -> Fields:
    return _known(call, _arn(call, SELECTION, call["SelectionId"])).view


@answers("backup", "DeleteBackupSelection")
def _unselect(call: Call) -> Fields:
    _get_selection(call)
    del PARTS[_arn(call, SELECTION, call["SelectionId"])]
    return {}


def _passed(call: Call) -> Iterator[Passed]:
    """The role that makes the backups."""
    if call.action == "CreateBackupSelection":
        yield call["BackupSelection"]["IamRoleArn"], SERVICE


register(
    Service(
        name="backup",
        ours=True,
        arns=arns,
        tags=lambda call: part.tags if (part := of(call)) else {},
        passes=_passed,
        keys={
            "backup:CreateBackupVault": Use(
                key=lambda call: call["EncryptionKeyArn"],
                via="backup",
                actions=("CreateGrant", "Decrypt", "DescribeKey", "GenerateDataKey", "RetireGrant"),
            )
        },
        things=things,
        kept=PARTS,
    )
)
