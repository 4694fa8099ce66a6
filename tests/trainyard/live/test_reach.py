"""Whether this machine will reach the cluster, as far as `trainyard check --live` can know it."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from tests.support.stackfile import at, without
from tests.trainyard.live.test_preflight import errors
from trainyard.live.questions.account import Account
from trainyard.live.questions.caller import NotAnswered
from trainyard.plans.access import AccessPlan

PRIVATE = (
    at("cluster.endpoint", "private"),
    without("cluster.public_access_cidrs"),
    at("cluster.tunnel_port", 8443),
)


def test_a_machine_that_the_endpoint_would_not_answer_is_told_what_to_add() -> None:
    [said] = errors(own_address="81.2.69.142")
    assert said == (
        "environment.cluster.public_access_cidrs: must contain the public address of this machine, if"
        " `pulumi up` runs here; got 203.0.113.7/32; this machine has 81.2.69.142. Fix: add"
        " 81.2.69.142/32"
    )


@pytest.mark.parametrize(
    "edits",
    [
        [at("cluster.public_access_cidrs", ["203.0.113.7/32", "81.2.0.0/16"])],
        [at("cluster.public_access_cidrs", ["0.0.0.0/0"])],
        [at("cluster.proxy_url", "http://proxy:3128")],
    ],
    ids=["listed", "everybody", "proxy"],
)
def test_a_machine_that_gets_in_has_nothing_to_add(edits: list[Any]) -> None:
    assert errors(*edits, own_address="81.2.69.142") == []


@pytest.mark.parametrize(("exists", "count"), [(False, 1), (True, 0)])
def test_the_first_update_cannot_be_private(exists: bool, count: int) -> None:
    said = errors(*PRIVATE, has_cluster=exists)
    assert [one.startswith("environment.cluster.endpoint: must be public") for one in said] == (
        [True] * count
    )


@pytest.mark.parametrize(("body", "address"), [("81.2.69.142\n", "81.2.69.142"), ("<html>", None)])
def test_the_address_is_what_the_service_answers(
    body: str, address: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Service(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body.encode() if self.path == "/checkip" else b"")

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Service) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.delenv("AWS_PROFILE", raising=False)
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
        asked = Account(AccessPlan(region="us-east-1"))
        if address:
            assert asked.own_address() == address
        else:
            with pytest.raises(
                NotAnswered,
                match=r"/checkip has no IPv4 address for this machine \(HTTP status 200\), so",
            ):
                asked.own_address()
        server.shutdown()
