"""Questions of `trainyard check --live` about backups that Lustre stores are created from, and what
the answers mean. Source: FSx API, CreateFileSystemFromBackup; FSx user guide, using-backups-fsx."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from trainyard.live.questions.account import Account
from trainyard.plan import EnvironmentPlan
from trainyard.plans.stores import LustrePlan
from trainyard.problems import InputError

Check = Callable[[], Iterator[InputError]]


def backup_checks(account: Account, plan: EnvironmentPlan) -> dict[str, Check]:
    """The questions by name; none where no store is created from a backup."""
    restored = {
        name: (store, store.restore_from)
        for name, store in plan.stores.items()
        if isinstance(store, LustrePlan) and store.restore_from
    }
    return {
        f"backup {backup}": lambda name=name, store=store, backup=backup: _errors(
            account, name, store, backup
        )
        for name, (store, backup) in restored.items()
    }


def _errors(account: Account, name: str, store: LustrePlan, backup: str) -> Iterator[InputError]:
    """Nothing once the file system is there: FSx reads the backup when it creates it, and never again.
    It can have grown since, and the backup can be gone."""
    if not account.has_lustre(_tags(store, name)):
        path = f"environment.storage.{name}.lustre"
        yield from backup_errors(path, store, account.backup(backup))


def _tags(store: LustrePlan, name: str) -> dict[str, str]:
    """Tags that tell the store from a stranger's; tags of the stack file may have changed."""
    tags = store.identity.tags(name)
    return {key: value for key, value in tags.items() if key.startswith("trainyard:")}


def backup_errors(path: str, store: LustrePlan, found: Mapping[str, Any]) -> Iterator[InputError]:
    """A backup that the file system cannot be created from. `found`: as FSx describes it; empty where
    there is none."""
    state = found.get("Lifecycle", "unknown to this region and account")
    if state != "AVAILABLE":
        yield InputError(
            path=f"{path}.restore_from",
            must="be a backup that is AVAILABLE",
            got=f"{store.restore_from}, which is {state}",
            fix="write a BackupId that `aws fsx describe-backups` prints",
        )
        return
    was, lustre = found["FileSystem"], found["FileSystem"].get("LustreConfiguration", {})
    same = {
        "capacity_gib": (store.capacity_gib, was.get("StorageCapacity")),
        "deployment": (store.deployment, lustre.get("DeploymentType")),
        "throughput_mbps_per_tib": (
            store.throughput_mbps_per_tib,
            lustre.get("PerUnitStorageThroughput"),
        ),
        "efa": (store.efa, bool(lustre.get("EfaEnabled"))),
    }
    for setting, (wanted, had) in same.items():
        if wanted != had:
            yield InputError(
                path=f"{path}.{setting}",
                must=f"be that of the file system in {store.restore_from}; it can grow afterwards"
                if setting == "capacity_gib"
                else f"be that of the file system in {store.restore_from}",
                got=_shown(wanted),
                fix=f"write {_shown(had)}",
                write=had,
            )
    if store.repositories and lustre.get("AutomaticBackupRetentionDays"):
        # The provider sends no 0 at creation (terraform-provider-aws, lustre_file_system.go).
        yield InputError(
            path=f"{path}.repositories",
            must=f"not be set in the update that creates the file system from {store.restore_from}, whose daily backups"
            " it begins with: FSx makes no link to S3 beside them",
            got=", ".join(each.partition(".")[2] for each in store.repositories),
            fix="run `pulumi up` without repositories first, and with them and backup_days: 0 afterwards",
        )


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
