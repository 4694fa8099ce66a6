"""Home directories, code and data sets: one EFS file system, with a mount target in every zone that
a pool may launch nodes in.

Its data's fate: `storage.<name>.data` in the stack file.
"""

from __future__ import annotations

import json

import pulumi
import pulumi_aws as aws

from components.base.role import role
from components.base.security_group import allow, security_group
from components.jobs.namespace import Volume
from components.network.network import StorePlace
from components.stores.store import Roots
from trainyard.objects.iam.efs import (
    BACKUP_SERVICE,
    backup_document,
    mount_statement,
    plain_text_statement,
)
from trainyard.objects.iam.policies import as_text, document, trust
from trainyard.plans.directories import DirectoryPlan
from trainyard.plans.stores import KEPT, EfsBackups, EfsPlan

NFS = (2049, 2049)
MODE = "0770"
"""Mode of a team's directory. Everybody of the team acts as its owner."""
DAILY = "cron(0 5 ? * * *)"
"""05:00 UTC, AWS Backup's own default; a backup starts within eight hours of it (AWS Backup API, BackupRule,
StartWindowMinutes)."""


class Efs(pulumi.ComponentResource):
    """An NFS file system that grows."""

    volume: Volume

    def __init__(
        self,
        name: str,
        plan: EfsPlan,
        *,
        place: StorePlace,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("trainyard:storage:Efs", name, None, opts)
        group = security_group(self, name, plan.identity, place.vpc_id, "NFS servers")
        nfs = allow(self, f"{name}-nfs", plan.identity, group.id, source=place.clients, ports=NFS)
        file_system = aws.efs.FileSystem(
            name,
            creation_token=plan.creation_token,
            encrypted=True,
            kms_key_id=plan.identity.kms_key_arn,
            throughput_mode=plan.throughput,
            provisioned_throughput_in_mibps=plan.throughput_mibps,
            lifecycle_policies=[
                aws.efs.FileSystemLifecyclePolicyArgs(**{key: after})
                for key, after in plan.lifecycle
            ]
            or None,
            tags=plan.identity.tags(name),
            opts=pulumi.ResourceOptions(parent=self, protect=plan.keep),
        )
        targets = [
            # Named by its zone, so that another training zone moves none that both have: EFS takes one a zone. No
            # store has a dot in its name.
            aws.efs.MountTarget(
                f"{name}.{zone[-1]}",
                file_system_id=file_system.id,
                subnet_id=place.subnet_in[zone],
                security_groups=[group.id],
                opts=pulumi.ResourceOptions(
                    parent=self,
                    # Until the last volume is gone clients must reach it, or their unmount hangs.
                    depends_on=[nfs],
                    aliases=[pulumi.Alias(name=f"{name}-{zone[-1]}" if number else name)],
                ),
            )
            for number, zone in enumerate(plan.zones)
        ]

        # The file system's id, taken from all mount targets: its DNS name resolves only in a zone
        # with a mount target (EFS user guide, mounting-fs-mount-cmd-dns-name), so a volume waits
        # for every one of them, and they outlive it.
        # So does its policy: nobody mounts before it stands.
        policy = [self._policy(name, file_system)] if plan.only_this_cluster else []
        ids = pulumi.Output.all(*(each.file_system_id for each in (*targets, *policy)))
        self.volume = Volume(
            handle=ids.apply(lambda same: same[0]),
            statements=file_system.arn.apply(lambda arn: [mount_statement(arn)])
            if policy
            else None,
        )
        if plan.backups:
            self._back_up(f"{name}-backups", plan, plan.backups, file_system.arn)
        self._file_system_id = file_system.id
        self.register_outputs({"file_system_id": file_system.id, KEPT: plan.keep})

    def _policy(self, name: str, file_system: aws.efs.FileSystem) -> aws.efs.FileSystemPolicy:
        return aws.efs.FileSystemPolicy(
            name,
            file_system_id=file_system.id,
            policy=file_system.arn.apply(
                lambda arn: json.dumps(document(plain_text_statement(arn)), sort_keys=True)
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _back_up(
        self, name: str, plan: EfsPlan, backups: EfsBackups, file_system_arn: pulumi.Output[str]
    ) -> None:
        """The vault holds data, so it is kept where the file system is kept. AWS deletes no vault with
        backups in it: elsewhere the provider deletes them first."""
        me = plan.identity
        vault = aws.backup.Vault(
            name,
            name=backups.name,
            kms_key_arn=me.kms_key_arn,
            force_destroy=not plan.keep,
            tags=me.tags(name),
            opts=pulumi.ResourceOptions(
                parent=self,
                protect=plan.keep,
                # A region has one vault of a name.
                delete_before_replace=True,
            ),
        )
        daily = aws.backup.Plan(
            name,
            name=backups.name,
            rules=[
                aws.backup.PlanRuleArgs(
                    rule_name="daily",
                    target_vault_name=vault.name,
                    schedule=DAILY,
                    lifecycle=aws.backup.PlanRuleLifecycleArgs(delete_after=backups.days),
                    recovery_point_tags=me.tags(name),
                )
            ],
            tags=me.tags(name),
            opts=pulumi.ResourceOptions(parent=self),
        )
        allowed = pulumi.Output.all(file_system_arn, vault.arn).apply(
            lambda arns: as_text(backup_document(arns[0], arns[1], me.kms_key_arn))
        )
        copier, attached = role(
            self, name, me, backups.role, trust(BACKUP_SERVICE), inline={"copy": allowed}
        )
        aws.backup.Selection(
            name,
            name=backups.name,
            plan_id=daily.id,
            iam_role_arn=copier.arn,
            resources=[file_system_arn],
            # The first backup fails without the permissions of the role.
            opts=pulumi.ResourceOptions(parent=self, depends_on=attached),
        )

    def directory(self, plan: DirectoryPlan, roots: Roots, opts: pulumi.ResourceOptions) -> Volume:
        """An access point: EFS makes the directory at the first mount, and gives every file there the
        owner of the point, whoever the client says it is (user guide, efs-access-points)."""
        point = access_point(plan, self._file_system_id, opts)
        return Volume(handle=pulumi.Output.all(self.volume.handle, point.id).apply("::".join))


def access_point(
    plan: DirectoryPlan, file_system_id: pulumi.Input[str], opts: pulumi.ResourceOptions
) -> aws.efs.AccessPoint:
    """The door to a team's directory."""
    return aws.efs.AccessPoint(
        plan.name,
        file_system_id=file_system_id,
        posix_user={"uid": plan.owner, "gid": plan.owner},
        root_directory=aws.efs.AccessPointRootDirectoryArgs(
            path=f"/{plan.path}",
            creation_info=aws.efs.AccessPointRootDirectoryCreationInfoArgs(
                owner_uid=plan.owner, owner_gid=plan.owner, permissions=MODE
            ),
        ),
        tags=plan.identity.tags(plan.name),
        opts=opts,
    )
