"""An existing EFS file system: looked up, judged, and left as it is.

Its id: `storage.<name>.efs.file_system_id` in the stack file. What it must be: trainyard/existing/store_faults.py.
"""

from __future__ import annotations

import pulumi

from components.jobs.namespace import Volume
from components.network.file_servers import clients, interfaces_called, refuse, servers
from components.network.network import StorePlace
from components.stores.efs import access_point
from components.stores.store import Roots
from trainyard.existing.store_faults import StoreFound, efs_faults
from trainyard.plans.directories import DirectoryPlan
from trainyard.plans.stores import ExistingEfsPlan

TARGET = "EFS mount target for {} (*"
"""EFS's description of the interface of a mount target. No look-up of the provider lists the mount
targets of a file system (terraform-provider-aws#31995)."""


class ExistingEfs(pulumi.ComponentResource):
    """An existing EFS file system. What is wrong with it ends the program in a preview."""

    volume: Volume

    def __init__(
        self,
        name: str,
        plan: ExistingEfsPlan,
        *,
        place: StorePlace,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        # The type token stays: deployed state names it.
        super().__init__("trainyard:storage:BroughtEfs", name, None, opts)
        ask, id_ = pulumi.InvokeOptions(parent=self), plan.file_system_id
        targets = interfaces_called(TARGET.format(id_), ask)
        found = StoreFound(servers=servers(targets, ask)) if targets else None
        nodes = clients(plan.zones, place, ask)
        refuse(name, efs_faults(plan, str(place.vpc_id), nodes, found))
        self._plan = plan
        self.volume = Volume(handle=pulumi.Output.from_input(id_))
        self.register_outputs({"file_system_id": id_})

    def directory(self, plan: DirectoryPlan, roots: Roots, opts: pulumi.ResourceOptions) -> Volume:
        """An access point of the stack. It goes with the stack; the directory stays."""
        id_ = self._plan.file_system_id
        return Volume(handle=access_point(plan, id_, opts).id.apply(lambda at: f"{id_}::{at}"))
