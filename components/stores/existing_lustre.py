"""An existing FSx for Lustre file system: looked up, judged, and left as it is.

Its id: `storage.<name>.lustre.file_system_id` in the stack file. What it must be:
trainyard/existing/store_faults.py.
"""

from __future__ import annotations

import pulumi
import pulumi_aws as aws
from pulumi.runtime.sync_await import _sync_await

from components.base.security_group import allow
from components.jobs.namespace import Volume
from components.network.file_servers import clients, refuse, servers
from components.network.network import StorePlace
from components.stores.lustre_directory import directory_of
from components.stores.store import Roots
from trainyard.existing.store_faults import LUSTRE_PORTS, StoreFound, lustre_faults
from trainyard.plans.directories import DirectoryPlan
from trainyard.plans.stores import ExistingLustrePlan


class ExistingLustre(pulumi.ComponentResource):
    """An existing FSx for Lustre file system. What is wrong with it ends the program in a preview."""

    volume: Volume

    def __init__(
        self,
        name: str,
        plan: ExistingLustrePlan,
        *,
        place: StorePlace,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        # The type token stays: deployed state names it.
        super().__init__("trainyard:storage:BroughtLustre", name, None, opts)
        self._name, self._plan, ask = name, plan, pulumi.InvokeOptions(parent=self)
        # The provider has no look-up of a Lustre file system, so it is read as a resource that is
        # not the stack's. No store's name has a dot: trainyard/replacing/replacing.py knows it by that.
        # The name stays: deployed state has it.
        read = aws.fsx.LustreFileSystem.get(
            f"{name}.brought", plan.file_system_id, opts=pulumi.ResourceOptions(parent=self)
        )
        self._judge(read, place, ask)
        subnet = aws.ec2.get_subnet_output(
            id=read.subnet_ids, opts=pulumi.InvokeOutputOptions(parent=self)
        )
        self._servers = subnet.cidr_block
        self._open_to_makers: list[pulumi.Resource] = []
        self.volume = Volume(
            handle=pulumi.Output.from_input(plan.file_system_id),
            needs=tuple(self._servers_call(name, place.clients)),
            attributes={"dnsname": read.dns_name, "mountname": read.mount_name},
        )
        self.register_outputs({"file_system_id": plan.file_system_id})

    def directory(self, plan: DirectoryPlan, roots: Roots, opts: pulumi.ResourceOptions) -> Volume:
        """As on a file system of the stack: components/stores/lustre.py."""
        needs = self._open_to_makers or self._servers_call(f"{self._name}-system", roots.group_id)
        self._open_to_makers = needs
        return directory_of(self.volume, plan, roots, needs, opts)

    def _judge(
        self, read: aws.fsx.LustreFileSystem, place: StorePlace, ask: pulumi.InvokeOptions
    ) -> None:
        """End the program where something is wrong: here, as an error of an output would reach people
        inside those of all that waits for it. Where there is no such file system the engine has
        ended the program already, in its own words."""
        plan = self._plan
        outputs = pulumi.Output.all(read.network_interface_ids, read.file_system_type_version)
        interfaces, version = _sync_await(outputs.future()) or ([], "")
        found = StoreFound(servers=servers(interfaces, ask), version=version)
        # A pod on a system node, in whichever zone, makes the directories of teams.
        zones = (*plan.zones, *(z for z in place.cidr_in if z not in plan.zones and plan.apart))
        nodes = clients(zones, place, ask)
        refuse(self._name, lustre_faults(plan, str(place.vpc_id), nodes, found))

    def _servers_call(self, name: str, clients: pulumi.Input[str]) -> list[pulumi.Resource]:
        """Let servers open connections to the nodes, on the nodes' own group: why, see
        components/stores/lustre.py. The groups of the servers are nobody's to change here."""
        return [
            allow(
                self,
                f"{name}-servers-{ports[0]}-in",
                self._plan.identity,
                clients,
                source_cidr=self._servers,
                ports=ports,
            )
            for ports in LUSTRE_PORTS
        ]
