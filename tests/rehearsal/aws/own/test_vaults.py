"""AWS Backup: a file system that is selected is backed up as its role, and AWS deletes no full vault."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.rehearsal.aws.test_permissions import Somebody
from tests.rehearsal.aws_world import REGION, Account, refused, served
from trainyard.objects.iam.efs import BACKUP_SERVICE, backup_document
from trainyard.objects.iam.policies import Document, document, trust
from trainyard.operations.reach.lookup import ExistingObject, find

VAULT = f"arn:aws:backup:{REGION}:123456789012:backup-vault:dev-home"
RULE = {
    "RuleName": "daily",
    "TargetBackupVaultName": "dev-home",
    "Lifecycle": {"DeleteAfterDays": 35},
    "RecoveryPointTags": {"trainyard:stack": "dev"},
}
PLAN = {"BackupPlanName": "dev-home", "Rules": [RULE]}
IN_VAULT = {"BackupVaultName": "dev-home"}
INPUT = {
    "ruleName": "daily",
    "targetVaultName": "dev-home",
    "schedule": "cron(0 5 ? * * *)",
    "lifecycle": {"deleteAfter": 35},
    "recoveryPointTags": {"trainyard:stack": "dev"},
}
UPDATES = [("Plan", {"rules": [INPUT | {"lifecycle": {"deleteAfter": 7}}]})]


def things(make: Callable[..., Any], around: Mapping[str, Any]) -> Iterator[Any]:
    """Objects of the types of the aws plugin (tests/rehearsal/providers/test_aws.py). The role makes a
    backup, so that the vault goes with something in it."""
    system = around["FileSystem"].state["arn"]
    copier = make("Role", name="copier", assumeRolePolicy=json.dumps(trust(BACKUP_SERVICE)))
    vault = make("Vault", name="dev-home", forceDestroy=True)
    may = json.dumps(backup_document(system, vault.state["arn"], None))
    make("RolePolicy", name="copy", role=copier.id, policy=may)
    plan = make("Plan", name="dev-home", rules=[INPUT])
    selection = make(
        "Selection",
        name="dev-home",
        planId=plan.id,
        iamRoleArn=copier.state["arn"],
        resources=[system],
    )
    selection.imported = f"{plan.id}|{selection.id}"
    yield from (vault, plan, selection)


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    with served(tmp_path, monkeypatch) as found:
        yield found


@pytest.fixture
def system(account: Account) -> str:
    """ARN of a file system."""
    return str(account.client("efs").create_file_system(CreationToken="home")["FileSystemArn"])


@pytest.fixture
def select(account: Account, system: str) -> Callable[..., dict[str, Any]]:
    """Back a file system up, by a role of its own; the plan's id and the selection's."""
    iam, backup = account.client("iam"), account.client("backup")
    backup.create_backup_vault(**IN_VAULT)
    plan = backup.create_backup_plan(BackupPlan=PLAN)["BackupPlanId"]

    def selected(may: Document, service: str = BACKUP_SERVICE, arn: str = system) -> dict[str, Any]:
        role = iam.create_role(
            RoleName="copier", AssumeRolePolicyDocument=json.dumps(trust(service))
        )["Role"]["Arn"]
        iam.put_role_policy(RoleName="copier", PolicyName="it", PolicyDocument=json.dumps(may))
        selection = {"SelectionName": "dev-home", "IamRoleArn": role, "Resources": [arn]}
        made = backup.create_backup_selection(BackupPlanId=plan, BackupSelection=selection)
        return {"BackupPlanId": plan, "SelectionId": made["SelectionId"]}

    return selected


def test_the_role_of_the_product_makes_the_backup(
    account: Account, system: str, select: Callable[..., dict[str, Any]]
) -> None:
    select(backup_document(system, VAULT, None))
    backup = account.client("backup")
    [made] = backup.list_recovery_points_by_backup_vault(**IN_VAULT)["RecoveryPoints"]
    assert (made["ResourceArn"], made["Status"]) == (system, "COMPLETED")
    assert made["Lifecycle"] == {"DeleteAfterDays": 35}
    assert (
        backup.list_tags(ResourceArn=made["RecoveryPointArn"])["Tags"] == RULE["RecoveryPointTags"]
    )


@pytest.mark.parametrize(
    "missing", ["elasticfilesystem:Backup", "backup:CopyIntoBackupVault"], ids=["read", "write"]
)
def test_a_role_that_may_not_makes_none_and_the_job_says_why(
    account: Account, system: str, select: Callable[..., dict[str, Any]], missing: str
) -> None:
    whole = backup_document(system, VAULT, None)["Statement"]
    select(document(*(one for one in whole if missing not in one["Action"])))
    backup = account.client("backup")
    assert backup.list_recovery_points_by_backup_vault(**IN_VAULT)["RecoveryPoints"] == []
    [job] = backup.list_backup_jobs()["BackupJobs"]
    assert job["State"] == "FAILED" and missing in job["StatusMessage"]


def test_what_a_selection_cannot_be_is_refused(
    account: Account, system: str, select: Callable[..., dict[str, Any]]
) -> None:
    allowed = backup_document(system, VAULT, None)
    with refused("InvalidParameterValueException"):
        select(allowed, service="ec2.amazonaws.com")
    account.client("iam").delete_role_policy(RoleName="copier", PolicyName="it")
    account.client("iam").delete_role(RoleName="copier")
    with refused("InvalidParameterValueException"):
        select(allowed, arn=system.replace(REGION, "us-east-1"))


def test_a_vault_with_backups_and_a_plan_with_a_selection_are_not_deleted(
    account: Account, system: str, select: Callable[..., dict[str, Any]]
) -> None:
    selected, backup = select(backup_document(system, VAULT, None)), account.client("backup")
    plan = {"BackupPlanId": selected["BackupPlanId"]}
    with refused("InvalidRequestException"):
        backup.delete_backup_vault(**IN_VAULT)
    with refused("InvalidRequestException"):
        backup.delete_backup_plan(**plan)
    [made] = backup.list_recovery_points_by_backup_vault(**IN_VAULT)["RecoveryPoints"]
    backup.delete_recovery_point(**IN_VAULT, RecoveryPointArn=made["RecoveryPointArn"])
    backup.delete_backup_selection(**selected)
    backup.delete_backup_plan(**plan)
    backup.delete_backup_vault(**IN_VAULT)
    assert not {"backup-vault", "backup-plan", "recovery-point"} & account.types()


def test_whoever_may_not_make_the_service_linked_role_deletes_no_backup(
    account: Account, system: str, select: Callable[..., dict[str, Any]]
) -> None:
    """The call succeeds (AWS Backup API, DeleteRecoveryPoint)."""
    select(backup_document(system, VAULT, None))
    somebody = Somebody(account, "deployer")
    somebody.may({"Effect": "Allow", "Action": "backup:*", "Resource": "*"})
    backup = somebody.client("backup")
    [made] = backup.list_recovery_points_by_backup_vault(**IN_VAULT)["RecoveryPoints"]
    backup.delete_recovery_point(**IN_VAULT, RecoveryPointArn=made["RecoveryPointArn"])
    [left] = backup.list_recovery_points_by_backup_vault(**IN_VAULT)["RecoveryPoints"]
    assert left["Status"] == "EXPIRED"


def test_a_plan_needs_its_vault_and_a_day(account: Account) -> None:
    backup = account.client("backup")
    with refused("ResourceNotFoundException"):
        backup.create_backup_plan(BackupPlan=PLAN)
    backup.create_backup_vault(**IN_VAULT)
    short = {**PLAN, "Rules": [{**RULE, "Lifecycle": {"DeleteAfterDays": 0}}]}
    with refused("InvalidParameterValueException"):
        backup.create_backup_plan(BackupPlan=short)
    backup.create_backup_plan(BackupPlan=PLAN)
    with refused("AlreadyExistsException"):
        backup.create_backup_plan(BackupPlan=PLAN)
    with refused("AlreadyExistsException"):
        backup.create_backup_vault(**IN_VAULT)


def test_a_vault_that_does_not_exist_is_no_vault_that_one_may_see(account: Account) -> None:
    backup = account.client("backup")
    with refused("AccessDeniedException"):
        backup.describe_backup_vault(**IN_VAULT)
    backup.create_backup_vault(**IN_VAULT)
    assert backup.describe_backup_vault(**IN_VAULT)["NumberOfRecoveryPoints"] == 0


def test_whoever_may_not_pass_the_role_selects_nothing(
    account: Account, system: str, select: Callable[..., dict[str, Any]]
) -> None:
    made = select(backup_document(system, VAULT, None))
    somebody = Somebody(account, "deployer")
    somebody.may({"Effect": "Allow", "Action": "backup:*", "Resource": "*"})
    plan = {"BackupPlanId": made["BackupPlanId"]}
    role = account.client("iam").get_role(RoleName="copier")["Role"]["Arn"]
    again = {"SelectionName": "again", "IamRoleArn": role, "Resources": [system]}
    with refused("AccessDeniedException"):
        somebody.client("backup").create_backup_selection(**plan, BackupSelection=again)


def test_a_vault_is_encrypted_with_a_key_that_the_caller_may_use(account: Account) -> None:
    key = account.client("kms").create_key()["KeyMetadata"]["Arn"]
    somebody = Somebody(account, "deployer")
    may_backup = {"Effect": "Allow", "Action": ["backup:*", "backup-storage:*"], "Resource": "*"}
    somebody.may(may_backup)
    with refused("AccessDeniedException"):
        somebody.client("backup").create_backup_vault(**IN_VAULT, EncryptionKeyArn=key)
    somebody.may(may_backup, {"Effect": "Allow", "Action": "kms:*", "Resource": key})
    made = somebody.client("backup").create_backup_vault(**IN_VAULT, EncryptionKeyArn=key)
    assert made["BackupVaultName"] == "dev-home"


def test_what_a_killed_update_made_is_found_by_its_name(
    account: Account, system: str, select: Callable[..., dict[str, Any]]
) -> None:
    made = select(backup_document(system, VAULT, None))
    session: Any = account
    inputs = {"name": "dev-home", "planId": made["BackupPlanId"]}
    for kind, id_ in (
        ("vault:Vault", "dev-home"),
        ("plan:Plan", made["BackupPlanId"]),
        ("selection:Selection", f"{made['BackupPlanId']}|{made['SelectionId']}"),
    ):
        assert find(session, f"aws:backup/{kind}", inputs) == ExistingObject(id=id_)
        assert find(session, f"aws:backup/{kind}", inputs | {"name": "other"}) is None
