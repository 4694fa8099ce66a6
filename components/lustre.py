"""Shared scratch: one FSx for Lustre file system, in the zone where the GPUs are.

Size and speed: `storage.<name>.lustre` in the stack file. Who may mount it: the clients' security group.
"""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from components.plans import LustrePlan
from components.security_group import allow, security_group, talk_to_itself
from components.workspace import Volume

LUSTRE_PORTS = ((988, 988), (1018, 1023))
"""TCP ports between Lustre clients and servers (FSx for Lustre user guide, limit-access-security-groups)."""


class Lustre(pulumi.ComponentResource):
    """A Lustre file system that every training pod may mount."""

    volume: Volume

    def __init__(self, name: str, plan: LustrePlan, *, vpc_id: pulumi.Input[str], subnet_id: pulumi.Input[str],
                 clients: pulumi.Input[str], opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("trainyard:storage:Lustre", name, None, opts)
        group = security_group(self, name, plan.identity, vpc_id, "Lustre servers and clients")
        rules = talk_to_itself(self, name, plan.identity, group.id)
        rules += [allow(self, f"{name}-{first}", plan.identity, group.id, source=clients, ports=(first, last))
                  for first, last in LUSTRE_PORTS]
        file_system = aws.fsx.LustreFileSystem(
            name, subnet_ids=subnet_id, security_group_ids=[group.id], storage_capacity=plan.capacity_gib,
            deployment_type=plan.deployment, per_unit_storage_throughput=plan.throughput_mbps_per_tib,
            automatic_backup_retention_days=plan.backup_days or None,
            file_system_type_version=plan.version, data_compression_type="LZ4", tags=plan.identity.tags(name),
            # FSx refuses to create a file system whose group does not let port 988 through yet; at destroy clients
            # must still reach it until their volumes are gone, or their unmount hangs.
            opts=pulumi.ResourceOptions(parent=self, protect=plan.keep, depends_on=rules))

        self.volume = Volume(driver="fsx.csi.aws.com", handle=file_system.id, attributes={
            "dnsname": file_system.dns_name, "mountname": file_system.mount_name}, options=("flock",))
        self.register_outputs({"file_system_id": file_system.id})
