"""Pulumi's provider protocol over gRPC: a Plugin is served, its errors become answers, and it leaves
with the engine.

To serve another method of the protocol, add it to Servicer.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager
from typing import Any, NoReturn

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, plugin_pb2, status_pb2
from pulumi.runtime.proto import provider_pb2 as pb
from pulumi.runtime.proto import provider_pb2_grpc as rpc

from rehearsal.providers.call import Call
from rehearsal.providers.plugin import Diff, Plugin
from rehearsal.providers.problems import Invalid, NotReady, Refused
from rehearsal.providers.wire import Properties, plain, struct, top

ENGINE = os.getppid()
"""The process that started us, asked for early: once it is dead we get another parent."""
MESSAGE_LIMIT = 400 << 20
"""The engine's own limit: bytes of one message."""
WORKERS = 256
"""A create that waits holds a thread, and Cancel must always find a free one."""


class Servicer(rpc.ResourceProviderServicer):
    """The protocol's side of a plugin."""

    def __init__(
        self, plugin: Plugin, report: Callable[[str, str], None] = lambda urn, text: None
    ) -> None:
        self.plugin = plugin
        self.report = report
        self.cancelled = threading.Event()

    def Handshake(self, request, context):
        return pb.ProviderHandshakeResponse()

    def GetPluginInfo(self, request, context):
        return plugin_pb2.PluginInfo(version=self.plugin.version)

    def GetSchema(self, request, context):
        return pb.GetSchemaResponse(
            schema=json.dumps({"name": self.plugin.name, "version": self.plugin.version})
        )

    def Attach(self, request, context):
        return empty_pb2.Empty()

    def Cancel(self, request, context):
        self.cancelled.set()
        return empty_pb2.Empty()

    def CheckConfig(self, request, context):
        with self._answering(context):
            return self._checked(lambda: self.plugin.check_config(plain(request.news)))

    def DiffConfig(self, request, context):
        with self._answering(context):
            return _diff(self.plugin.diff_config(plain(request.old_inputs), plain(request.news)))

    def Configure(self, request, context):
        with self._answering(context):
            self.plugin.configure(plain(request.args))
            return pb.ConfigureResponse(supportsPreview=True)

    def Check(self, request, context):
        with self._answering(context):
            call = self._call(request, seed=request.randomSeed)
            return self._checked(
                lambda: self.plugin.check(call, plain(request.olds), plain(request.news))
            )

    def Diff(self, request, context):
        with self._answering(context):
            call = self._call(request, id=request.id, ignored=tuple(request.ignoreChanges))
            properties = plain(request.old_inputs), plain(request.news), plain(request.olds)
            return _diff(self.plugin.diff(call, *properties))

    def Create(self, request, context):
        with self._answering(context):
            call = self._call(request, preview=request.preview, timeout=request.timeout)
            id_, state = self.plugin.create(call, plain(request.properties))
            return pb.CreateResponse(id=id_, properties=struct(state))

    def Read(self, request, context):
        with self._answering(context):
            call = self._call(request, id=request.id)
            found = self.plugin.read(call, plain(request.inputs), plain(request.properties))
            if not found:
                return pb.ReadResponse()
            id_ = found.id or request.id
            return pb.ReadResponse(
                id=id_, inputs=struct(found.inputs), properties=struct(found.state)
            )

    def Update(self, request, context):
        with self._answering(context):
            ignored = tuple(request.ignoreChanges)
            call = self._call(
                request,
                id=request.id,
                preview=request.preview,
                timeout=request.timeout,
                ignored=ignored,
            )
            properties = plain(request.old_inputs), plain(request.news), plain(request.olds)
            return pb.UpdateResponse(properties=struct(self.plugin.update(call, *properties)))

    def Delete(self, request, context):
        with self._answering(context):
            call = self._call(request, id=request.id, timeout=request.timeout)
            self.plugin.delete(call, plain(request.properties))
            return empty_pb2.Empty()

    def Invoke(self, request, context):
        with self._answering(context):
            result: Any = {"return": struct(self.plugin.invoke(request.tok, plain(request.args)))}
            return pb.InvokeResponse(**result)

    def _call(self, request: Any, **details: Any) -> Call:
        urn = request.urn
        return Call(
            urn=urn, cancelled=self.cancelled, report=lambda text: self.report(urn, text), **details
        )

    def _checked(self, check: Callable[[], Properties]) -> pb.CheckResponse:
        try:
            return pb.CheckResponse(inputs=struct(check()))
        except Invalid as fault:
            return pb.CheckResponse(
                failures=[pb.CheckFailure(property=fault.property, reason=fault.reason)]
            )

    @contextmanager
    def _answering(self, context: grpc.ServicerContext) -> Iterator[None]:
        """Every error becomes an answer the engine understands; a fault of the plugin shows where
        it happened."""
        try:
            yield
        except NotReady as fault:
            _abort_not_ready(context, fault)
        except Refused as fault:
            context.abort(grpc.StatusCode.UNKNOWN, str(fault))
        except Exception as fault:
            context.abort(grpc.StatusCode.UNKNOWN, f"{fault}\n{traceback.format_exc()}")


def _abort_not_ready(context: grpc.ServicerContext, fault: NotReady) -> NoReturn:
    status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=str(fault))
    state, inputs = struct(fault.state), struct(fault.inputs)
    detail = pb.ErrorResourceInitFailed(
        id=fault.id, properties=state, inputs=inputs, reasons=fault.reasons
    )
    status.details.add().Pack(detail)
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(grpc.StatusCode.UNKNOWN, str(fault))


def _diff(diff: Diff) -> pb.DiffResponse:
    kinds = {
        path: kind + "_replace" if path in diff.replaces else kind
        for path, kind in diff.changes.items()
    }
    return pb.DiffResponse(
        changes=pb.DiffResponse.DIFF_SOME if kinds else pb.DiffResponse.DIFF_NONE,
        diffs=sorted(set(map(top, kinds))),
        replaces=sorted(diff.replaces),
        deleteBeforeReplace=bool(diff.delete_before_replace and diff.replaces),
        hasDetailedDiff=True,
        detailedDiff={
            p: pb.PropertyDiff(kind=pb.PropertyDiff.Kind.Value(k.upper())) for p, k in kinds.items()
        },
    )


def engine_log(address: str) -> Callable[[str, str], None]:
    """A function that shows a line of progress at a resource, through the engine at this
    address."""
    engine = engine_pb2_grpc.EngineStub(grpc.insecure_channel(address))

    def log(urn: str, text: str) -> None:
        engine.Log(
            engine_pb2.LogRequest(severity=engine_pb2.INFO, message=text, urn=urn, ephemeral=True)
        )

    return log


def serve(plugin: Plugin) -> None:
    """Serve the plugin on a free port of the loopback, print the port, and leave when told or when
    the engine dies."""
    options = [
        ("grpc.max_receive_message_length", MESSAGE_LIMIT),
        ("grpc.max_send_message_length", MESSAGE_LIMIT),
    ]
    server = grpc.server(futures.ThreadPoolExecutor(WORKERS), options=options)
    report = engine_log(sys.argv[1]) if len(sys.argv) > 1 else lambda urn, text: None
    rpc.add_ResourceProviderServicer_to_server(Servicer(plugin, report), server)
    announce(server)
    stay()


def announce(server: grpc.Server) -> None:
    """Start listening and print the port, as the engine expects of every plugin."""
    leave_when_told()
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)


def leave_when_told() -> None:
    """Without a word: SIGINT is how the engine closes its plugins."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os._exit(0))


def stay() -> NoReturn:
    """Wait for the end: a killed engine closes nothing, and its plugins must not outlive it."""
    while os.getppid() == ENGINE:
        time.sleep(0.5)
    os._exit(0)
