"""Home directories, code and data sets: one EFS file system, with a mount target in every zone that
a pool may launch nodes in.

Its data's fate: `storage.<name>.data` in the stack file.
"""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
import pulumi_aws as aws

from components.namespace import Volume
from components.security_group import allow, security_group
from plans.parts import EfsPlan

NFS = (2049, 2049)


class Efs(pulumi.ComponentResource):
    """An elastic NFS file system."""

    volume: Volume

    def __init__(
        self,
        name: str,
        plan: EfsPlan,
        *,
        vpc_id: pulumi.Input[str],
        subnet_in: Mapping[str, pulumi.Input[str]],
        clients: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("trainyard:storage:Efs", name, None, opts)
        group = security_group(self, name, plan.identity, vpc_id, "NFS servers")
        nfs = allow(self, f"{name}-nfs", plan.identity, group.id, source=clients, ports=NFS)
        file_system = aws.efs.FileSystem(
            name,
            creation_token=plan.creation_token,
            encrypted=True,
            throughput_mode="elastic",
            tags=plan.identity.tags(name),
            opts=pulumi.ResourceOptions(parent=self, protect=plan.keep),
        )
        targets = [
            aws.efs.MountTarget(
                # The training zone's has the store's own name, whichever zone that is.
                f"{name}-{zone[-1]}" if number else name,
                file_system_id=file_system.id,
                subnet_id=subnet_in[zone],
                security_groups=[group.id],
                # Until the last volume is gone clients must reach it, or their unmount hangs.
                opts=pulumi.ResourceOptions(parent=self, depends_on=[nfs]),
            )
            for number, zone in enumerate(plan.zones)
        ]

        # The file system's id, taken from all mount targets: its DNS name resolves only in a zone
        # with a mount target (EFS user guide, mounting-fs-mount-cmd-dns-name), so a volume waits
        # for every one of them, and they outlive it.
        ids = pulumi.Output.all(*(target.file_system_id for target in targets))
        self.volume = Volume(kind="efs", handle=ids.apply(lambda same: same[0]))
        self.register_outputs({"file_system_id": file_system.id})
