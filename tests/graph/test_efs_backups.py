"""An EFS store with backups: the vault, the plan, the selection, and the role of AWS Backup."""

from __future__ import annotations

import json

import pytest

from tests.support.graphs import environment
from tests.support.recording import Graph
from tests.support.stackfile import at, environment_plan, errors
from tests.support.stacks import recorded
from trainyard.catalog.aws.prices import price
from trainyard.live.service_roles import service_roles
from trainyard.plans.stores import EfsPlan
from trainyard.reports import policy
from trainyard.stores.kinds import plan_kind

BACKUPS = at("storage.home.efs.backup_days", 35)
KEY = "arn:aws:kms:ap-northeast-2:111122223333:key/0a1b2c3d-0000-4000-8000-000000000000"
OURS = ("Vault", "Plan", "Selection", "Role", "RolePolicy")


@pytest.fixture(scope="module")
def graph() -> Graph:
    return environment(BACKUPS)


def test_the_setting_adds_backups_and_changes_nothing(graph: Graph) -> None:
    before, after = json.loads(recorded("dev").golden()), json.loads(graph.golden())
    assert [each for each in before if each not in after] == []
    added = {
        (each["type"].rpartition(":")[2], each["name"]) for each in after if each not in before
    }
    inline = ("RolePolicy", "home-backups-copy")
    assert added == {*((kind, "home-backups") for kind in OURS if kind != "RolePolicy"), inline}


def test_a_backup_of_the_file_system_is_made_daily_and_kept_for_the_days(graph: Graph) -> None:
    vault = graph["Vault home-backups"].inputs
    [rule] = graph["Plan home-backups"].inputs["rules"]
    assert rule["schedule"] == "cron(0 5 ? * * *)"
    assert rule["lifecycle"] == {"deleteAfter": 35}
    assert rule["targetVaultName"] == vault["name"]
    assert rule["recoveryPointTags"]["trainyard:stack"] == "dev"
    [selected] = graph["Selection home-backups"].inputs["resources"]
    assert selected.endswith(":file-system/home")


def test_the_role_is_of_aws_backup_and_copies_this_file_system_into_this_vault(
    graph: Graph,
) -> None:
    role, inline = graph["Role home-backups"], graph["RolePolicy home-backups-copy"]
    trust = json.loads(role.inputs["assumeRolePolicy"])
    assert trust["Statement"][0]["Principal"] == {"Service": "backup.amazonaws.com"}
    copies = json.loads(inline.inputs["policy"])["Statement"][:2]
    system, vault = (one["Resource"].rpartition(":")[2] for one in copies)
    assert (system, vault) == ("file-system/home", "home-backups")
    assert graph.waits_for(graph["Selection home-backups"], inline)
    assert "kms" not in inline.inputs["policy"]


def test_the_vault_goes_with_its_backups_where_the_data_goes(graph: Graph) -> None:
    vault = graph["Vault home-backups"]
    assert vault.inputs["forceDestroy"] and not vault.options.protect
    kept = environment(BACKUPS, at("storage.home.data", "keep"))
    assert not kept["Vault home-backups"].inputs["forceDestroy"]
    protected = {str(node) for node in kept.nodes.values() if node.options.protect}
    assert protected == {
        "aws:efs/fileSystem:FileSystem home",
        "aws:backup/vault:Vault home-backups",
    }


def test_a_key_of_the_company_encrypts_the_backups() -> None:
    graph = environment(BACKUPS, at("kms_key_arn", KEY))
    assert graph["Vault home-backups"].inputs["kmsKeyArn"] == KEY
    inline = json.loads(graph["RolePolicy home-backups-copy"].inputs["policy"])
    of_key = [one["Action"] for one in inline["Statement"] if one["Resource"] == KEY]
    assert of_key == ["kms:DescribeKey", "kms:CreateGrant"]


def test_names_are_no_longer_than_aws_takes() -> None:
    long = "home-of-everybody-who-trains-mod"
    plan = environment_plan(at(f"storage.{long}", {"efs": {"backup_days": 1}}))
    store = plan.stores[long]
    assert isinstance(store, EfsPlan) and (backups := store.backups)
    assert len(backups.name) <= 50 and len(backups.role) <= 64


def test_it_is_billed_by_use_at_a_price_that_is_known() -> None:
    plan = environment_plan(BACKUPS).stores["home"]
    costs = [each for each in plan_kind(plan).usage_costs("home", plan) if "backups" in each.what]
    assert [(each.service, each.sku) for each in costs] == [("efs", "backup")]
    found = price("efs", "backup", "us-east-1")
    assert found and found.unit == "GB-month"


def test_the_deployer_hands_aws_backup_its_role_only_where_there_are_backups() -> None:
    policies = policy.policies(environment_plan(BACKUPS))
    written, without = json.dumps(policies), json.dumps(policy.policies(environment_plan()))
    for word in ("backup:CreateBackupVault", "backup-storage:MountCapsule", "backup.amazonaws.com"):
        assert word in written
    assert "backup:" not in without and "backup.amazonaws.com" not in without


def test_the_service_linked_role_is_asked_for() -> None:
    name = "AWSServiceRoleForBackup"
    assert name in {role.name for role in service_roles(environment_plan(BACKUPS))}
    assert name not in {role.name for role in service_roles(environment_plan())}


@pytest.mark.parametrize("days", [-1, 36_501])
def test_days_that_aws_backup_does_not_keep_are_refused(days: int) -> None:
    [said] = errors(at("storage.home.efs.backup_days", days))
    assert said.startswith("environment.storage.home.efs.backup_days: must be")


def test_the_plan_says_what_destroy_does_with_the_backups() -> None:
    for data, end in (("delete", "deletes the backups"), ("keep", "leaves the backups")):
        plan = environment_plan(BACKUPS, at("storage.home.data", data)).stores["home"]
        [note] = plan_kind(plan).notes("home", plan)
        assert "kept for 35 days" in note and note.endswith(end)


def test_a_file_system_that_exists_is_not_backed_up_by_the_stack() -> None:
    settings = {"file_system_id": "fs-0123456789abcdef0", "backup_days": 35}
    found = errors(
        at("network", {"vpc_id": "vpc-0123456789abcdef0"}),
        at("storage.home", {"efs": settings, "data": "keep"}),
    )
    assert any("storage.home.efs.backup_days: must not be set" in each for each in found), found
