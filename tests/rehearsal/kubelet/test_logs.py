"""The kubelet's port, which pods and other users reach, too."""

from __future__ import annotations

import http.client
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rehearsal import paths
from rehearsal.control_plane import pki
from rehearsal.kubelet import logs
from tests.support.patience import PATIENCE

WALLS: dict[int, str] = {}
"""Port of a kubelet → what keeps the API server from it."""


@pytest.fixture
def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(paths, "PLANE", tmp_path / "plane")
    monkeypatch.setattr(logs, "PORT", 0)
    pki.write(paths.PLANE, "https://127.0.0.1:6443", "172.20.0.0/16")
    server = logs.server("127.0.0.1", lambda _: None, lambda _: WALLS.get(server.server_port, ""))
    monkeypatch.setattr(server, "handle_error", lambda *_: None)  # it prints a failed handshake
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def _ask(port: int, certificate: str | None) -> str:
    context = ssl.create_default_context(cafile=paths.PLANE / "ca.crt")
    if certificate:
        context.load_cert_chain(
            paths.PLANE / f"{certificate}.crt", paths.PLANE / f"{certificate}.key"
        )
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=PATIENCE)
    connection.request("GET", "/containerLogs/n/p/c")
    return connection.getresponse().read().decode()


def test_only_the_api_server_is_answered(port: int, tmp_path: Path) -> None:
    assert _ask(port, "kubelet-client") == 'container "c" is not on this node'
    with pytest.raises((ssl.SSLError, OSError)):
        _ask(port, None)


def test_the_api_server_gets_no_logs_where_a_security_group_keeps_it_out(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(WALLS, port, "no rule of sg-1 lets TCP 10250 in from sg-2")
    assert _ask(port, "kubelet-client").endswith(
        "i/o timeout: no rule of sg-1 lets TCP 10250 in from sg-2"
    )


def test_a_certificate_of_another_authority_opens_nothing(
    port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    pki.write(other, "https://127.0.0.1:6443", "172.20.0.0/16")
    for file in ("kubelet-client.crt", "kubelet-client.key"):
        (paths.PLANE / file).write_bytes((other / file).read_bytes())
    with pytest.raises((ssl.SSLError, OSError)):
        _ask(port, "kubelet-client")
