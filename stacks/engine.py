"""The questions that the program asks the Pulumi engine that runs it: the configuration of the stack,
and the resources that a stack holds since its last update."""

from __future__ import annotations

from collections.abc import Collection

import grpc
import pulumi
from google.protobuf import struct_pb2
from pulumi.runtime import rpc, settings
from pulumi.runtime.proto import resource_pb2

from trainyard.replacing.deployed import Deployed, UnknownStackError
from trainyard.replacing.urn import name_of, types_of
from trainyard.settings.reading.reader import Reading, read_given

OF_A_STACK = "pulumi:pulumi:readStackResourceOutputs"
"""The engine's own look-up of a stack's resources (pulumi 3.259, pkg/resource/deploy/builtins.go)."""
_UNKNOWN = "unknown stack"
"""Message of the engine where its backend has no stack of the name (pulumi 3.259,
pkg/backend/backend.go, GetStackResourceOutputs)."""


def read_engine() -> Reading:
    """Read the configuration the engine hands to this program."""
    return read_given(configuration(), stack=pulumi.get_stack(), project=pulumi.get_project())


def configuration() -> dict[str, str]:
    """Configuration that the engine hands to this program, secrets in clear: key, as aws:region → text."""
    return dict(pulumi.runtime.config.CONFIG.get())


def read_deployed(
    types: Collection[str], stack: str | None = None, *, within: str = ""
) -> Deployed:
    """Ask the engine which resources of these types a stack of this project holds, by default the one
    that is updated. Nothing before the first `pulumi up`. `within`: the type of the component that they
    belong to or are, which can be below others; empty where the whole stack is ours. The answer has
    secrets in clear, so the other types are dropped here. Raises UnknownStackError where there is no other
    stack of this name, and grpc.RpcError where the engine cannot read its state.

    The engine is asked without references to resources, which the SDK's own call demands. pulumi-eks has
    some among its outputs, and the SDK asks for each of them at once: in an update that has just begun
    the engine knows none of them.
    """
    asked = struct_pb2.Struct()
    place = f"{pulumi.get_organization()}/{pulumi.get_project()}"
    asked.update({"stackName": f"{place}/{stack or pulumi.get_stack()}"})
    monitor = settings.get_monitor()
    assert monitor
    request = resource_pb2.ResourceInvokeRequest(tok=OF_A_STACK, args=asked, acceptResources=False)
    try:
        answer = monitor.Invoke(request)
    except grpc.RpcError as error:
        if _UNKNOWN in str(error):
            raise UnknownStackError(stack) from error
        raise
    told, _ = rpc.deserialize_properties_unwrap_secrets(getattr(answer, "return"))
    return Deployed(
        resources={
            (found["type"], name_of(urn)): found.get("outputs") or {}
            for urn, found in told["outputs"].items()
            if found["type"] in types and (not within or within in types_of(urn))
        }
    )
