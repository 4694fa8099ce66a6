"""Shared scratch: one FSx for Lustre file system, in the zone where the GPUs are.

Size, speed and S3 repositories: `storage.<name>.lustre` in the stack file. Who may mount it: the
clients' security group.
"""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from components.base.security_group import allow, let_out, security_group, talk_to, talk_to_itself
from components.jobs.namespace import Volume
from components.network.network import StorePlace
from components.stores.lustre_directory import directory_of
from components.stores.store import Roots
from trainyard.catalog.limits import GROW_MINUTES, LINK_MINUTES
from trainyard.existing.store_faults import LUSTRE_PORTS
from trainyard.plans.directories import DirectoryPlan
from trainyard.plans.repository import Repository
from trainyard.plans.stores import KEPT, LustrePlan

LINKED = pulumi.CustomTimeouts(
    create=f"{LINK_MINUTES}m", update=f"{LINK_MINUTES}m", delete=f"{LINK_MINUTES}m"
)


class Lustre(pulumi.ComponentResource):
    """A Lustre file system that every training pod may mount."""

    volume: Volume

    def __init__(
        self,
        name: str,
        plan: LustrePlan,
        *,
        place: StorePlace,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("trainyard:storage:Lustre", name, None, opts)
        group = security_group(
            self, name, plan.identity, place.vpc_id, "Lustre servers and clients"
        )
        self._name, self._plan, self._group_id = name, plan, group.id
        self._open_to_makers: list[pulumi.Resource] = []
        rules = talk_to_itself(self, name, plan.identity, group.id)
        rules += self._clients_call_servers(name, plan, group.id, place.clients)
        # EFA lets everything through in both directions, TCP with it.
        both_ways = self._efa if plan.efa else self._servers_call_clients
        rules += both_ways(name, plan, group.id, place.clients)
        file_system = aws.fsx.LustreFileSystem(
            name,
            subnet_ids=place.training_subnet_id,
            security_group_ids=[group.id],
            storage_capacity=plan.capacity_gib,
            kms_key_id=plan.identity.kms_key_arn,
            deployment_type=plan.deployment,
            per_unit_storage_throughput=plan.throughput_mbps_per_tib,
            backup_id=plan.restore_from,
            automatic_backup_retention_days=plan.backup_days,
            weekly_maintenance_start_time=plan.maintenance,
            efa_enabled=plan.efa or None,
            metadata_configuration={"mode": plan.metadata} if plan.metadata else None,
            file_system_type_version=plan.version,
            data_compression_type=plan.compression,
            tags=plan.identity.tags(name),
            # FSx refuses to create a file system whose group does not let port 988 through yet; at
            # destroy clients must still reach it until their volumes are gone, or their unmount
            # hangs.
            opts=pulumi.ResourceOptions(
                parent=self,
                protect=plan.keep,
                depends_on=rules,
                custom_timeouts=pulumi.CustomTimeouts(update=f"{GROW_MINUTES}m"),
                # FSx changes the speed of none that was made with EFA.
                replace_on_changes=["perUnitStorageThroughput"] if plan.efa else None,
            ),
        )
        links = self._repositories(plan, file_system.id)

        self.volume = Volume(
            handle=file_system.id,
            needs=links,
            attributes={"dnsname": file_system.dns_name, "mountname": file_system.mount_name},
        )
        self.register_outputs({"file_system_id": file_system.id, KEPT: plan.keep})

    def directory(self, plan: DirectoryPlan, roots: Roots, opts: pulumi.ResourceOptions) -> Volume:
        needs = self._open_to_makers or self._opened_to(roots.group_id)
        return directory_of(self.volume, plan, roots, needs, opts)

    def _opened_to(self, makers: pulumi.Input[str]) -> list[pulumi.Resource]:
        """Let the nodes in, once, on which directories are made. They are no clients for training."""
        name, plan, group = f"{self._name}-system", self._plan, self._group_id
        self._open_to_makers = [
            *self._clients_call_servers(name, plan, group, makers),
            *self._servers_call_clients(name, plan, group, makers),
        ]
        return self._open_to_makers

    def _clients_call_servers(
        self, name: str, plan: LustrePlan, servers: pulumi.Input[str], clients: pulumi.Input[str]
    ) -> list[pulumi.Resource]:
        return [
            allow(
                self,
                f"{name}-{first}",
                plan.identity,
                servers,
                source=clients,
                ports=(first, last),
            )
            for first, last in LUSTRE_PORTS
        ]

    def _servers_call_clients(
        self, name: str, plan: LustrePlan, servers: pulumi.Input[str], clients: pulumi.Input[str]
    ) -> list[pulumi.Resource]:
        """The ports that a server needs to open a connection to a client, from both sides.

        A client opens the first connection, and both directions use it. When it is lost, the server
        opens one of its own, for lock callbacks; without these rules that connection times out, and
        the server evicts the client: ranks get EIO (user guide, limit-access-security-groups,
        "Lustre client VPC security group rules").
        Clients need no egress rule: the GPU nodes' own group lets them reach every address
        (components/network/node_security_group.py, nodes-out), and so does EKS's group of the cluster.
        """
        return [
            rule
            for first, last in LUSTRE_PORTS
            for rule in (
                let_out(
                    self,
                    f"{name}-clients-{first}-out",
                    plan.identity,
                    servers,
                    target=clients,
                    ports=(first, last),
                ),
                allow(
                    self,
                    f"{name}-servers-{first}-in",
                    plan.identity,
                    clients,
                    source=servers,
                    ports=(first, last),
                ),
            )
        ]

    def _efa(
        self, name: str, plan: LustrePlan, servers: pulumi.Input[str], clients: pulumi.Input[str]
    ) -> list[pulumi.Resource]:
        """Everything between servers and clients, from both sides (user guide,
        limit-access-security-groups)."""
        said = (f"{name} from clients, EFA", f"{name} to clients, EFA")
        heard = (f"clients from {name}, EFA", f"clients to {name}, EFA")
        return [
            *talk_to(self, f"{name}-clients", plan.identity, servers, clients, said),
            *talk_to(self, f"{name}-servers", plan.identity, clients, servers, heard),
        ]

    def _repositories(
        self, plan: LustrePlan, file_system_id: pulumi.Input[str]
    ) -> tuple[pulumi.Resource, ...]:
        made: list[pulumi.Resource] = []
        for name, each in plan.repositories.items():
            made.append(
                aws.fsx.DataRepositoryAssociation(
                    name,
                    file_system_id=file_system_id,
                    file_system_path=each.path,
                    data_repository_path=each.s3,
                    s3=_policies(each),
                    batch_import_meta_data_on_create=each.import_at_creation,
                    delete_data_in_filesystem=each.delete_data_in_filesystem,
                    tags=plan.identity.tags(name),
                    opts=pulumi.ResourceOptions(
                        parent=self,
                        protect=plan.keep and each.delete_data_in_filesystem,
                        custom_timeouts=LINKED,
                        # FSx makes one at a time, and two at once failed on the bucket's
                        # permissions (terraform-provider-aws#24678).
                        depends_on=made[-1:],
                        # No second link of a directory or a prefix may stand beside the first.
                        delete_before_replace=True,
                        # A policy that is taken out of the inputs stays as it is: to the provider
                        # it is then AWS's choice.
                        replacement_trigger=[bool(each.auto_import), bool(each.auto_export)],
                        ignore_changes=["batchImportMetaDataOnCreate"],
                    ),
                )
            )
        return tuple(made)


def _policies(repository: Repository) -> aws.fsx.DataRepositoryAssociationS3Args:
    """Policies by which FSx carries over files by itself; a policy without events is none."""
    imports, exports = list(repository.auto_import), list(repository.auto_export)
    return aws.fsx.DataRepositoryAssociationS3Args(
        auto_import_policy=(
            aws.fsx.DataRepositoryAssociationS3AutoImportPolicyArgs(events=imports)
            if imports
            else None
        ),
        auto_export_policy=(
            aws.fsx.DataRepositoryAssociationS3AutoExportPolicyArgs(events=exports)
            if exports
            else None
        ),
    )
