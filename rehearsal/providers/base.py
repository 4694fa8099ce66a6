"""What every resource plugin of the rehearsal shares: Pulumi's provider protocol over gRPC, errors,
waiting, leaving.

A plugin subclasses Plugin (plain Python in and out, see wire.py) and calls serve(). To serve
another method of the protocol, add it to Servicer.
"""

from __future__ import annotations

import hashlib
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
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, NoReturn

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, plugin_pb2, status_pb2
from pulumi.runtime.proto import provider_pb2 as pb
from pulumi.runtime.proto import provider_pb2_grpc as rpc

from rehearsal.providers.wire import Changes, Properties, changes, plain, struct, top

ENGINE = os.getppid()
"""The process that started us, asked for early: once it is dead we get another parent."""
MESSAGE_LIMIT = 400 << 20
"""The engine's own limit: bytes of one message."""
WORKERS = 256
"""A create that waits holds a thread, and Cancel must always find a free one."""


class Refused(Exception):
    """The operation cannot be done; the message is all the user sees."""


class Cancelled(Refused):
    """The user interrupted the engine while the plugin was waiting."""


class Invalid(Refused):
    """Check found an input that cannot be right."""

    def __init__(self, property_: str, reason: str) -> None:
        super().__init__(f"{property_}: {reason}")
        self.property, self.reason = property_, reason


class NotReady(Refused):
    """The object exists but did not become ready: the engine keeps it in its state, with the
    reasons."""

    def __init__(self, id_: str, state: Properties, inputs: Properties, *reasons: str) -> None:
        super().__init__("; ".join(reasons))
        self.id, self.state, self.inputs, self.reasons = id_, state, inputs, reasons


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request of the engine about one resource."""

    urn: str
    id: str = ""
    preview: bool = False
    timeout: float = 0
    """Seconds of the resource's customTimeouts; 0 where the program gives none."""
    seed: bytes = b""
    """The engine's random seed for names, the same in preview and update."""
    ignored: tuple[str, ...] = ()
    """Property paths of ignoreChanges; the engine has put their old values into the new inputs
    already."""
    cancelled: threading.Event = field(default_factory=threading.Event)
    report: Callable[[str], None] = lambda text: None
    """Show what is being waited for, in the resource's line of the display."""

    @property
    def type(self) -> str:
        return self.urn.split("::")[2].split("$")[-1]

    @property
    def name(self) -> str:
        return self.urn.split("::", 3)[3]

    def suffix(self, length: int = 7) -> str:
        """Random letters for a name, the same for the same seed."""
        return hashlib.sha256(self.seed or self.urn.encode()).hexdigest()[:length]

    def pause(self, seconds: float, why: str = "") -> None:
        """Sleep, but not through the user's interrupt."""
        if self.cancelled.wait(seconds):
            raise Cancelled(f"interrupted while waiting: {why}".removesuffix(": "))

    def until(
        self, done: Callable[[], Any], *, default: float, what: str, every: float = 0.25
    ) -> Any:
        """The first true answer of `done`, asked again and again; Refused after the timeout (or
        `default`) seconds."""
        seconds = self.timeout or default
        end = time.monotonic() + seconds
        while not (answer := done()):
            if time.monotonic() > end:
                raise Refused(f"timeout while waiting for {what} ({seconds:.0f} s)")
            self.pause(every, what)
        return answer


@dataclass(frozen=True, kw_only=True)
class Diff:
    """What an update would change."""

    changes: Changes = field(default_factory=dict)
    replaces: frozenset[str] = frozenset()
    """The paths among them that need a new object."""
    delete_before_replace: bool = False


class Found(NamedTuple):
    """A live object: the inputs a program would give to have it, and its whole state."""

    inputs: Properties
    state: Properties
    id: str = ""
    """The object's id where it is another one than it was asked for by, as on import of some."""


class Plugin:
    """One package of resources. Inputs and state are plain dictionaries in Pulumi's (camelCase)
    names."""

    name: ClassVar[str]
    version: ClassVar[str]

    def check_config(self, inputs: Properties) -> Properties:
        return inputs

    def diff_config(self, old: Properties, new: Properties) -> Diff:
        return Diff(changes=changes(old, new))

    def configure(self, config: Properties) -> None: ...

    def check(self, call: Call, old: Properties, new: Properties) -> Properties:
        """The inputs completed (names) and approved; raises Invalid."""
        return new

    def diff(self, call: Call, old: Properties, new: Properties, state: Properties) -> Diff:
        """Old inputs against new ones."""
        return Diff(changes=changes(old, new))

    def create(self, call: Call, inputs: Properties) -> tuple[str, Properties]:
        """Id and state; with call.preview only what is known beforehand, and "" as id. May raise
        NotReady."""
        raise Refused(f"this {self.name} plugin does not create {call.type}")

    def read(self, call: Call, inputs: Properties, state: Properties) -> Found | None:
        """The live object by call.id; inputs and state are empty on import. None if it is gone."""
        raise Refused(f"this {self.name} plugin does not read {call.type}")

    def update(self, call: Call, old: Properties, new: Properties, state: Properties) -> Properties:
        """The new state; with call.preview what is known beforehand. May raise NotReady."""
        raise Refused(f"this {self.name} plugin does not update {call.type}")

    def delete(self, call: Call, state: Properties) -> None:
        raise Refused(f"this {self.name} plugin does not delete {call.type}")

    def invoke(self, token: str, arguments: Properties) -> Properties:
        raise Refused(f"this {self.name} plugin does not implement {token}")


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
