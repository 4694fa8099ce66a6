"""A PriorityClass: whose pods go first when capacity is short.

Which there are: `priorities` in the stack file.
"""

from __future__ import annotations

import pulumi
import pulumi_kubernetes as k8s


class Priority(pulumi.ComponentResource):
    """Pending pods of a higher value evict pods of lower ones."""

    ready: pulumi.Resource

    def __init__(
        self, name: str, value: int, *, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("trainyard:jobs:Priority", name, None, opts)
        self.ready = k8s.scheduling.v1.PriorityClass(
            name,
            metadata={"name": name},
            value=value,
            description="Of trainyard's stack file: priorities",
            # The name is what jobs refer to. The API server refuses another value in place, and the
            # provider does not know that (forceNew in its diff.go).
            opts=pulumi.ResourceOptions(
                parent=self, replace_on_changes=["value"], delete_before_replace=True
            ),
        )
        self.register_outputs({})
