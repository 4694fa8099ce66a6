"""One request through the account: log → who and whether → faults → checks → answer (ours or
moto's) → log.

Served on TCP, for pods and the world, and on a Unix socket, for the relay that stands outside the
world's namespace.
"""

from __future__ import annotations

import io
import json
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from moto.core.exceptions import ServiceException
from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import BaseWSGIServer, make_server

from rehearsal import paths
from rehearsal.aws import (
    backends,
    control_api,
    eks,
    instances,
    keeper,
    keys,
    permissions,
    principals,
    reach,
    registry,
    shapes,
    wire,
)
from rehearsal.aws.clock import CLOCK
from rehearsal.aws.faults import FAULTS
from rehearsal.aws.installed import SERVICES
from rehearsal.aws.operations import ANSWERS, CHECKS, FOLLOWS, LOCK, Call, NotBuilt, Refused
from rehearsal.aws.wire import Environ, Reply

_OURS = frozenset(
    {"arc-zonal-shift", "cloudwatch", "eks", "fsx", "pricing", "service-quotas", "ssm"}
)
"""Services of which moto is not asked, besides those whose row says so."""
POLL_SECONDS = 0.05
"""Seconds between a server's looks whether it is to stop."""


class Application:
    """The account as a WSGI application."""

    def __init__(self) -> None:
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._answered: dict[str, Reply] = {}
        self._log_lock = threading.Lock()
        instances.DESCRIBE_CACHE.clear()

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> list[bytes]:
        if environ["PATH_INFO"].startswith(registry.PREFIX):
            reply = registry.respond(environ)
        else:
            body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            of_the_world = environ["PATH_INFO"].startswith(control_api.PREFIX)
            reply = (control_api.respond if of_the_world else self._logged)(environ, body)
        headers = {
            name.lower(): value for name, value in reply.headers.items() if name.lower() != "status"
        }
        headers["content-length"] = str(len(reply.body))
        start_response(f"{reply.status} {HTTPStatus(reply.status).phrase}", list(headers.items()))
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [reply.body]

    def _logged(self, environ: Environ, body: bytes) -> Reply:
        started, call = time.time(), None
        try:
            call = wire.read(environ, body)
            reply = self._permitted(call, environ, body)
        except Exception as error:
            reply = _refusal(call, error, environ, body)
        line = {
            "time": round(started, 3),
            "ms": round(1000 * (time.time() - started), 1),
            "status": reply.status,
        }
        if call:
            line |= {"call": call.name, "key": call.key, "region": call.region}
        if not reply.ok:
            line |= {"answer": reply.body[:600].decode(errors="replace")}
        with self._log_lock, (paths.LOGS / "account.jsonl").open("a") as log:
            log.write(json.dumps(line) + "\n")
        return reply

    def _permitted(self, call: Call, environ: Environ, body: bytes) -> Reply:
        call.principal = principals.authenticate(call, environ, body)
        self._arrives(call)
        FAULTS.before(call)
        if call.name == "sqs:ReceiveMessage":  # a long poll, which must not hold the lock
            principals.authorize(call, permissions.of(call))
            keys.authorize(call)
            return self._ask_moto(call, environ, body)
        with LOCK:
            CLOCK.settle()
            principals.authorize(call, permissions.of(call))
            keys.authorize(call)
            reply = self._once(call, environ, body)
        if FAULTS.loses_answer(call):
            raise Refused("InternalFailure", "the answer was lost", status=500)
        return reply

    def _arrives(self, call: Call) -> None:
        """Refused where the caller is a pod whose network does not lead here: its SDK waits and tries
        again, as after a timeout."""
        with LOCK:
            wall = reach.from_pod(call.principal.session or "", call.prefix)
        if wall:
            raise Refused("RequestTimeout", f"dial {call.prefix}: i/o timeout: {wall}", status=504)

    def _once(self, call: Call, environ: Environ, body: bytes) -> Reply:
        """Reply to a call. A request with the same token gets the same one, and so does a poll of
        instances while none has changed."""
        token = wire.idempotency_token(call)
        if not token and call.name != "ec2:DescribeInstances":
            return self._carried_out(call, environ, body)
        answers = self._answered if token else instances.DESCRIBE_CACHE
        known = json.dumps([call.name, call.region, call.params], default=str, sort_keys=True)
        reply = answers.get(known) or self._carried_out(call, environ, body)
        if reply.ok:
            answers[known] = reply
        return reply

    def _carried_out(self, call: Call, environ: Environ, body: bytes) -> Reply:
        operation = (call.service, call.action)
        shapes.check(call)
        for check in CHECKS.get(operation, ()):
            check(call)
        if call.service == "ec2" and call["DryRun"]:
            raise Refused(
                "DryRunOperation",
                "Request would have succeeded, but DryRun flag is set.",
                status=412,
            )
        if call.service == "ec2" and not call.action.startswith("Describe"):
            instances.DESCRIBE_CACHE.clear()
        if operation in ANSWERS:
            fields = ANSWERS[operation](call)
        elif _is_ours(call.service):
            raise NotBuilt(call.name)
        else:
            reply = self._ask_moto(call, environ, body)
            if not reply.ok or operation not in FOLLOWS:
                return reply
            fields = wire.fields(call, reply)
        if operation in FOLLOWS:
            FOLLOWS[operation](call, fields)
        return wire.answer(call, fields)

    def _ask_moto(self, call: Call, environ: Environ, body: bytes) -> Reply:
        started: dict[str, Any] = {}

        def start_response(status: str, headers: list[tuple[str, str]], _: Any = None) -> None:
            started.update(status=int(status.split()[0]), headers=dict(headers))

        answer = b"".join(self._moto(environ | {"wsgi.input": io.BytesIO(body)}, start_response))
        if started["status"] == 404 and b"<title>404 Not Found</title>" in answer:
            raise NotBuilt(call.name)
        return Reply(**started, body=answer)


def _is_ours(name: str) -> bool:
    return name in _OURS or name in SERVICES and SERVICES[name].ours


def _refusal(call: Call | None, error: Exception, environ: Environ, body: bytes) -> Reply:
    """Every failure as AWS would say it, ours and moto's."""
    if isinstance(error, NotImplementedError) and call:
        error = NotBuilt(call.name)
    elif not isinstance(error, ServiceException):
        traceback.print_exception(error)
        error = Refused("InternalFailure", f"the account failed: {error!r}", status=500)
    return wire.answer(call, error) if call else wire.unread(environ, body, error)


class _Handler(MotoRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, type: str, message: str, *args: Any) -> None:
        """Nothing: the application has a log of its own."""


def serve(application: Application, host: str, port: int = 0) -> BaseWSGIServer:
    """A listening server, in a thread of its own. A host of unix://PATH is a Unix socket."""
    server = make_server(host, port, application, threaded=True, request_handler=_Handler)
    threading.Thread(
        target=server.serve_forever, args=(POLL_SECONDS,), name=f"serve {host}", daemon=True
    ).start()
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
    servers = [
        serve(application, "0.0.0.0", paths.world().account_port),
        serve(application, f"unix://{address}"),
    ]
    threading.Thread(target=keeper.run, args=(stop,), name="keeper", daemon=True).start()
    stop.wait()
    for server in servers:
        server.shutdown()
    for cluster in eks.CLUSTERS.values():
        cluster.plane.stop(wipe=False)
    sys.exit(0)
