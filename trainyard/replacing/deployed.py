"""What a stack holds since its last update, as the engine knows it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

OF_A_STACK = "pulumi:pulumi:readStackResourceOutputs"
"""The engine's own look-up of a stack's resources (pulumi 3.259, pkg/resource/deploy/builtins.go)."""

Outputs = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Deployed:
    """Resources of a stack, as far as somebody asks for them."""

    resources: Mapping[tuple[str, str], Outputs] = field(default_factory=dict)
    """(type, logical name) → outputs, without the id."""

    def names(self, *types: str) -> set[str]:
        """Logical names of the resources of these types."""
        return {name for kind, name in self.resources if kind in types}

    def output(self, kind: str, name: str, path: str) -> Any:
        """One output, by its path such as vpcConfig.vpcId; None where there is none."""
        found: Any = self.resources.get((kind, name))
        for step in path.split("."):
            found = found.get(step) if isinstance(found, Mapping) else None
        return found


def read_deployed(types: Collection[str], stack: str | None = None) -> Deployed:
    """Ask the engine which resources of these types a stack of this project holds, by default the one
    that is updated. Nothing before the first `pulumi up`; raises where there is no other stack of this
    name. The answer has secrets in clear, so the other types are dropped here.

    The engine is asked without references to resources, which the SDK's own call demands. pulumi-eks has
    some among its outputs, and the SDK asks for each of them at once: in an update that has just begun
    the engine knows none of them.
    """
    import pulumi  # only here: `trainyard check` needs no SDK
    from google.protobuf import struct_pb2
    from pulumi.runtime import rpc, settings
    from pulumi.runtime.proto import resource_pb2

    asked = struct_pb2.Struct()
    place = f"{pulumi.get_organization()}/{pulumi.get_project()}"
    asked.update({"stackName": f"{place}/{stack or pulumi.get_stack()}"})
    monitor = settings.get_monitor()
    assert monitor
    answer = monitor.Invoke(
        resource_pb2.ResourceInvokeRequest(tok=OF_A_STACK, args=asked, acceptResources=False)
    )
    told, _ = rpc.deserialize_properties_unwrap_secrets(getattr(answer, "return"))
    return Deployed(
        resources={
            (found["type"], urn.split("::")[-1]): found.get("outputs") or {}
            for urn, found in told["outputs"].items()
            if found["type"] in types
        }
    )
