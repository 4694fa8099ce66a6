"""Home directories, code and data sets: one EFS file system, mounted in the training zone.

Its data's fate: `storage.<name>.data` in the stack file.
"""

from __future__ import annotations

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
        subnet_id: pulumi.Input[str],
        clients: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("trainyard:storage:Efs", name, None, opts)
        group = security_group(self, name, plan.identity, vpc_id, "NFS servers")
        nfs = allow(self, f"{name}-nfs", plan.identity, group.id, source=clients, ports=NFS)
        file_system = aws.efs.FileSystem(
            name,
            creation_token=plan.identity.name(name),
            encrypted=True,
            throughput_mode="elastic",
            tags=plan.identity.tags(name),
            opts=pulumi.ResourceOptions(parent=self, protect=plan.keep),
        )
        target = aws.efs.MountTarget(
            name,
            file_system_id=file_system.id,
            subnet_id=subnet_id,
            security_groups=[group.id],
            # Until the last volume is gone clients must reach it, or their unmount hangs.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[nfs]),
        )

        # The id of the mount target's file system: a pod that mounts before the target exists waits
        # two minutes.
        self.volume = Volume(kind="efs", handle=target.file_system_id)
        self.register_outputs({"file_system_id": file_system.id})
