"""Ends the engine and its plugins at the boundary of a resource operation. Python loads this file in
every program that has its folder in PYTHONPATH; it acts in plugins of the rehearsal only.

TRAINYARD_CRAWL is a folder that tests/worlds/crawl.py writes: `aim` says where to kill, `hit` has the
operations that were hit. The plugin adds to `done` what it has answered, to `held` what waits
at its boundary, and to `released` when that is over.
"""

import os
import sys

FOLDER = os.environ.get("TRAINYARD_CRAWL", "")
QUIET_SECONDS = 1.5
"""No operation has come to its boundary for so long: those that are there are hit together."""
DELIVERY_SECONDS = 0.1
"""Seconds that an answer takes to reach the engine."""
WRITES = ("/Create", "/Update", "/Delete")

if FOLDER and any("rehearsal.providers" in word for word in sys.orig_argv):
    import signal
    import threading
    import time
    from contextlib import suppress
    from pathlib import Path

    import grpc

    folder, lock = Path(FOLDER), threading.Lock()
    genuine = grpc.server

    def lines(name):
        file = folder / name
        return file.read_text().splitlines() if file.exists() else []

    def add(name, line):
        with (folder / name).open("a") as file:
            file.write(line + "\n")

    def kill():
        """The engine first, then what it started; this process is the last."""
        session, me = os.getsid(0), os.getpid()
        others = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        for pid in (session, *others):
            with suppress(OSError):
                if pid != me and os.getsid(pid) == session:
                    os.kill(pid, signal.SIGKILL)
        os.kill(me, signal.SIGKILL)

    def wanted(point):
        """Moment at which the operation is to be hit; empty where it is not."""
        aim = lines("aim")
        if not aim or lines("released"):
            return ""
        when, first, together = aim[0].split()
        with lock:
            if point in lines("hit") or len(lines("done")) + len(lines("hit")) < int(first):
                return ""
            if len(lines("held")) >= int(together):
                return ""
            add("held", point)
            return when

    def hold():
        """Wait at the boundary until nobody else comes."""
        seen, since = 0, time.monotonic()
        while not lines("released") and time.monotonic() - since < QUIET_SECONDS:
            if len(lines("held")) != seen:
                seen, since = len(lines("held")), time.monotonic()
            time.sleep(0.02)
        add("released", "all")

    def watched(behaviour, method):
        def call(request, context):
            point = f"{method} {request.urn}"
            answer = behaviour(request, context)
            if getattr(request, "preview", False):
                return answer
            when = wanted(point)
            if not when:
                add("done", point)
                return answer
            hold()
            if when == "before":
                kill()

            def later():
                time.sleep(DELIVERY_SECONDS)
                kill()

            context.add_callback(threading.Thread(target=later).start)
            return answer

        return call

    class Boundary(grpc.ServerInterceptor):
        def intercept_service(self, continuation, handler_call_details):
            handler = continuation(handler_call_details)
            method = handler_call_details.method
            if handler is None or not method.endswith(WRITES):
                return handler
            return grpc.unary_unary_rpc_method_handler(
                watched(handler.unary_unary, method.rpartition("/")[2]),
                handler.request_deserializer,
                handler.response_serializer,
            )

    def server(*arguments, **options):
        return genuine(*arguments, **options, interceptors=[Boundary()])

    grpc.server = server
