"""AWS Backup's types: vaults, plans and selections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rehearsal.providers.aws.account import Account, Failed
from rehearsal.providers.aws.resource_type import Kind, Seen, Tagging
from rehearsal.providers.wire import Properties, words

RULE = {
    "ruleName": "RuleName",
    "targetVaultName": "TargetBackupVaultName",
    "schedule": "ScheduleExpression",
    "recoveryPointTags": "RecoveryPointTags",
}
"""Input of a rule → its field in AWS. `lifecycle` has fields of its own."""


def tagged(born: str) -> Tagging:
    """`born`: where tags stand in the call that makes the object."""
    return Tagging(
        target="ResourceArn",
        by="arn",
        keys="TagKeyList",
        born=born,
        paired=False,
        listed="list_tags",
    )


@dataclass(frozen=True, kw_only=True)
class Vault(Kind):
    def find(self, aws: Account, id_: str, hint: Properties) -> Seen | None:
        """AWS refuses access to a vault that does not exist. The genuine provider, too, takes that for
        an answer (internal/service/backup/vault.go)."""
        try:
            return super().find(aws, id_, hint)
        except Failed as fault:
            if fault.code == "AccessDeniedException":
                return None
            raise

    def remove(self, aws: Account, id_: str, state: Properties) -> None:
        """With the backups in it, where the program says so. The genuine provider waits ten minutes
        for the end of each."""
        vault = {"BackupVaultName": id_}
        listed = aws.call("backup", "list_recovery_points_by_backup_vault", **vault)
        for one in listed["RecoveryPoints"] if state.get("forceDestroy") else ():
            arn = one["RecoveryPointArn"]
            aws.call("backup", "delete_recovery_point", **vault, RecoveryPointArn=arn)
        super().remove(aws, id_, state)


@dataclass(frozen=True, kw_only=True)
class Plan(Kind):
    def outward(self, value: Any) -> Any:
        """Rules, of which tags have the user's own words."""
        return [_rule(one) for one in value] if isinstance(value, list) else value

    def inward(self, path: str, value: Any) -> Any:
        return [_told(one) for one in value] if isinstance(value, list) else value

    def update(
        self, aws: Account, operation: str, which: Properties, given: Properties, new: Properties
    ) -> None:
        """AWS takes a plan as a whole."""
        super().update(aws, operation, which, self.arguments(new), new)


def _rule(one: Properties) -> Properties:
    days = (one.get("lifecycle") or {}).get("deleteAfter")
    said = {there: one[here] for here, there in RULE.items() if one.get(here) is not None}
    return said | ({"Lifecycle": {"DeleteAfterDays": days}} if days else {})


def _told(one: Properties) -> Properties:
    days = (one.get("Lifecycle") or {}).get("DeleteAfterDays")
    said = {here: one[there] for here, there in RULE.items() if one.get(there) is not None}
    return said | ({"lifecycle": {"deleteAfter": days}} if days else {})


KINDS = (
    Vault(
        token="aws:backup/vault:Vault",
        service="backup",
        create="create_backup_vault",
        read="describe_backup_vault",
        delete="delete_backup_vault",
        id="{BackupVaultName}",
        asks={"BackupVaultName": "id"},
        local=words("forceDestroy"),
        chosen=words("kmsKeyArn"),
        names={"name": "BackupVaultName", "kmsKeyArn": "EncryptionKeyArn"},
        outputs={"arn": "BackupVaultArn"},
        tagging=tagged("BackupVaultTags"),
    ),
    Plan(
        token="aws:backup/plan:Plan",
        service="backup",
        create="create_backup_plan",
        read="get_backup_plan",
        delete="delete_backup_plan",
        id="{BackupPlanId}",
        asks={"BackupPlanId": "id"},
        updates={"rules": "update_backup_plan"},
        names={"name": "BackupPlan.BackupPlanName", "rules": "BackupPlan.Rules"},
        outputs={"arn": "BackupPlanArn"},
        tagging=tagged("BackupPlanTags"),
    ),
    Kind(
        token="aws:backup/selection:Selection",
        service="backup",
        create="create_backup_selection",
        read="get_backup_selection",
        delete="delete_backup_selection",
        id="{SelectionId}",
        import_id="{planId}|{id}",
        asks={"BackupPlanId": "planId", "SelectionId": "id"},
        names={
            "name": "BackupSelection.SelectionName",
            "planId": "BackupPlanId",
            "iamRoleArn": "BackupSelection.IamRoleArn",
            "resources": "BackupSelection.Resources",
        },
    ),
)
