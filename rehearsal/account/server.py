"""One request through the account: log → who and whether → faults → checks → answer (ours or moto's) → log.

Served on TCP, for pods and the world, and on a Unix socket, for the relay that stands outside the world's namespace.
"""

from __future__ import annotations

import importlib
import io
import json
import re
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from moto.core.exceptions import ServiceException
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.exceptions import HTTPException
from werkzeug.serving import BaseWSGIServer, make_server

from rehearsal import paths
from rehearsal.account import backends, eks, instances, keeper, principals, wire, world
from rehearsal.account.clock import CLOCK
from rehearsal.account.faults import FAULTS
from rehearsal.account.operations import ANSWERS, CHECKS, FOLLOWS, LOCK, Call, NotBuilt, Refused
from rehearsal.account.wire import Environ, Exchange, Reply

_MODULES = ("network", "instances", "prices", "storage", "services", "eks", "access", "nodegroups", "addons")
"""The modules whose decorated functions are the account."""
_OURS = frozenset({"eks", "fsx", "ssm", "pricing", "arc-zonal-shift"})
"""Services of which moto is not asked."""
_LONG_POLLS = frozenset({("sqs", "ReceiveMessage")})
_CODE = re.compile(rb'(?:<Code>|"__type": *"|"code": *")([\w.#]+)')
_REPLACED = ("content-length", "status")
_NO_ROUTE = b"<title>404 Not Found</title>"

for _module in _MODULES:
    importlib.import_module(f"rehearsal.account.{_module}")


class Application:
    """The account as a WSGI application."""

    def __init__(self) -> None:
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._answered: dict[tuple[str, str, str], Reply] = {}
        self._log_lock = threading.Lock()

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> list[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        if environ["PATH_INFO"].startswith(world.PREFIX):
            reply = world.respond(environ["REQUEST_METHOD"], environ["PATH_INFO"], environ["QUERY_STRING"], body)
        else:
            reply = self._logged(environ, body)
        headers = [(name, value) for name, value in reply.headers.items() if name.lower() not in _REPLACED]
        start_response(f"{reply.status} {HTTPStatus(reply.status).phrase}",
                       [*headers, ("Content-Length", str(len(reply.body)))])
        return [reply.body]

    def _logged(self, environ: Environ, body: bytes) -> Reply:
        started = time.time()
        try:
            exchange = wire.read(environ, body)
        except Refused as error:
            reply, call = _unreadable(error), None
        else:
            reply, call = self._reply(exchange, environ, body), exchange.call
        self._log(started, call, reply)
        return reply

    def _reply(self, exchange: Exchange, environ: Environ, body: bytes) -> Reply:
        try:
            return self._permitted(exchange, environ, body)
        except ServiceException as error:
            return exchange.refusal(error)
        except HTTPException as error:
            code = getattr(error, "error_type", type(error).__name__)
            return exchange.refusal(Refused(code, getattr(error, "message", str(error)), status=error.code))
        except NotImplementedError:
            return exchange.refusal(NotBuilt(exchange.call.name))
        except Exception as error:
            traceback.print_exc()
            return exchange.refusal(Refused("InternalFailure", f"the account failed: {error!r}", status=500))

    def _permitted(self, exchange: Exchange, environ: Environ, body: bytes) -> Reply:
        call = principals.authenticate(exchange.call, exchange.protocol)
        exchange = Exchange(call=call, operation=exchange.operation, protocol=exchange.protocol)
        FAULTS.before(call)
        if (call.service, call.action) in _LONG_POLLS:
            principals.authorize(call, exchange.protocol)
            return self._ask_moto(exchange, environ, body)
        with LOCK:
            CLOCK.settle()
            principals.authorize(call, exchange.protocol, *instances.also_needed(call))
            reply = self._once(exchange, environ, body)
        if FAULTS.loses_answer(call):
            raise Refused("InternalFailure", "the answer was lost", status=500)
        return reply

    def _once(self, exchange: Exchange, environ: Environ, body: bytes) -> Reply:
        """The same answer again where the same request, by its token, has been carried out already."""
        if not exchange.token:
            return self._carried_out(exchange, environ, body)
        call = exchange.call
        known = (call.name, call.region, json.dumps(call.params, default=str, sort_keys=True))
        if known not in self._answered:
            reply = self._carried_out(exchange, environ, body)
            if not reply.ok:
                return reply
            self._answered[known] = reply
        return self._answered[known]

    def _carried_out(self, exchange: Exchange, environ: Environ, body: bytes) -> Reply:
        call = exchange.call
        operation = (call.service, call.action)
        for check in CHECKS.get(operation, ()):
            check(call)
        if call.service == "ec2" and call.params.get("DryRun"):
            raise Refused("DryRunOperation", "Request would have succeeded, but DryRun flag is set.", status=412)
        if call.service in _OURS and operation not in ANSWERS:
            raise NotBuilt(call.name)
        if operation in ANSWERS:
            fields = ANSWERS[operation](call)
        else:
            reply = self._ask_moto(exchange, environ, body)
            if not reply.ok or operation not in FOLLOWS:
                return reply
            fields = exchange.fields(reply)
        for follow in FOLLOWS.get(operation, ()):
            follow(call, fields)
        return exchange.answer(fields)

    def _ask_moto(self, exchange: Exchange, environ: Environ, body: bytes) -> Reply:
        started: dict[str, Any] = {}

        def start_response(status: str, headers: list[tuple[str, str]], _: Any = None) -> None:
            started.update(status=int(status.split()[0]), headers=dict(headers))

        answer = b"".join(self._moto(environ | {"wsgi.input": io.BytesIO(body)}, start_response))
        if started["status"] == 404 and _NO_ROUTE in answer:
            raise NotBuilt(exchange.call.name)
        code = _CODE.search(answer) if started["status"] >= 300 else None
        return Reply(status=started["status"], headers=started["headers"], body=answer,
                     error=code[1].decode() if code else "")

    def _log(self, started: float, call: Call | None, reply: Reply) -> None:
        line = {"time": round(started, 3), "ms": round(1000 * (time.time() - started), 1), "status": reply.status}
        if call:
            line |= {"call": call.name, "key": call.key, "region": call.region}
        if not reply.ok:
            line |= {"error": reply.error, "answer": reply.body[:600].decode(errors="replace")}
        with self._log_lock, (paths.LOGS / "account.jsonl").open("a") as log:
            log.write(json.dumps(line) + "\n")


def _unreadable(error: Refused) -> Reply:
    body = json.dumps({"__type": error.code, "message": error.message}).encode()
    return Reply(status=error.status or 400, headers={"Content-Type": "application/json"}, body=body, error=error.code)


class _Handler(MotoRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, type: str, message: str, *args: Any) -> None:
        """Nothing: the application has a log of its own."""


def serve(application: Application, host: str, port: int = 0) -> BaseWSGIServer:
    """A listening server, in a thread of its own. A host of unix://PATH is a Unix socket."""
    server = make_server(host, port, application, threaded=True, request_handler=_Handler)
    threading.Thread(target=server.serve_forever, name=f"serve {host}", daemon=True).start()
    return server


def main() -> None:
    """Serve the world's account until SIGTERM."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    paths.LOGS.mkdir(parents=True, exist_ok=True)
    backends.seed()
    application, address = Application(), paths.STATE / "account.sock"
    address.unlink(missing_ok=True)
    servers = [serve(application, "0.0.0.0", paths.world().account_port), serve(application, f"unix://{address}")]
    threading.Thread(target=keeper.run, args=(stop,), name="keeper", daemon=True).start()
    stop.wait()
    for server in servers:
        server.shutdown()
    for cluster in eks.CLUSTERS.values():
        cluster.plane.stop(wipe=False)
    sys.exit(0)
