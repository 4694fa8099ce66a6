"""The tunnel to a private endpoint: who may open one, and where it leads."""

from __future__ import annotations

import http.server
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rehearsal import paths, relay, tunnel
from rehearsal.control_plane import pki
from rehearsal.providers.kubernetes.kubeconfig import access
from rehearsal.providers.problems import Refused
from tests.rehearsal.aws_world import Account, Network, profile, refused, served
from tests.support.patience import PATIENCE, until
from tests.support.ports import free_port

AGENT = "AmazonSSMManagedInstanceCore"
HOST = "endpoint.example.com"
ASKED = {
    "DocumentName": "AWS-StartPortForwardingSessionToRemoteHost",
    "Parameters": {"host": [HOST], "portNumber": ["443"], "localPortNumber": ["8443"]},
}


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    with served(tmp_path, monkeypatch) as account:
        yield account


def _instance(account: Account, *policies: str) -> str:
    """A running instance whose role has these policies."""
    profile(account, "nodes", *policies)
    network = Network(account)
    parameter = "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/recommended"
    image = account.client("ssm").get_parameter(Name=f"{parameter}/image_id")
    [made] = network.ec2.run_instances(
        MinCount=1,
        MaxCount=1,
        ImageId=image["Parameter"]["Value"],
        InstanceType="m7i.xlarge",
        SubnetId=network.subnets[0],
        IamInstanceProfile={"Name": "nodes"},
    )["Instances"]
    assert until(lambda: _state(network, made["InstanceId"]) == "running")
    return made["InstanceId"]


def _state(network: Network, instance: str) -> str:
    [found] = network.ec2.describe_instances(InstanceIds=[instance])["Reservations"]
    return found["Instances"][0]["State"]["Name"]


def test_a_node_without_the_agents_policy_carries_no_tunnel(account: Account) -> None:
    node = _instance(account)
    with refused("TargetNotConnected"):
        account.client("ssm").start_session(Target=node, **ASKED)


def test_a_node_with_the_agents_policy_carries_one(account: Account) -> None:
    answer = account.client("ssm").start_session(Target=_instance(account, AGENT), **ASKED)
    assert answer["SessionId"] and answer["TokenValue"]


def test_the_plugin_of_the_aws_cli_opens_the_port_that_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "STATE", tmp_path)
    inside = socket.create_server(("127.0.0.1", 0))
    far, near = inside.getsockname()[1], free_port()
    paths.remember(paths.World(api_port=1, account_port=2, speed=1, tunnel_port=far))
    asked = json.dumps({"Parameters": {"localPortNumber": [str(near)]}})
    arguments = ["{}", "us-east-1", "StartSession", "", asked, "http://ssm"]
    threading.Thread(target=tunnel.main, args=(arguments,), daemon=True).start()
    inside.settimeout(PATIENCE)

    def connected() -> bool:
        try:
            socket.create_connection(("127.0.0.1", near)).close()
        except ConnectionRefusedError:
            return False
        return True

    assert until(connected)
    inside.accept()[0].close()


class _Version(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"major": "1"}')

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


def _server(folder: Path) -> int:
    """Port of a server with the certificate of an API server."""
    pki.write(folder, "https://127.0.0.1", "172.20.0.0/16")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "apiserver.crt", folder / "apiserver.key")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Version)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def _config(cluster: dict[str, Any]) -> dict[str, Any]:
    return {
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": cluster}],
        "users": [{"name": "it", "user": {"token": "t"}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    }


def _cluster(folder: Path, port: int, **more: str) -> dict[str, Any]:
    authority = str(folder / "ca.crt")
    return {"server": f"https://127.0.0.1:{port}", "certificate-authority": authority, **more}


def test_behind_a_tunnel_the_certificate_must_be_that_of_the_endpoint(tmp_path: Path) -> None:
    port = _server(tmp_path)
    named = _cluster(tmp_path, port, **{"tls-server-name": "kubernetes.default.svc"})
    assert access(_config(named)).api.request("GET", "/version") == {"major": "1"}
    other = _cluster(tmp_path, port, **{"tls-server-name": HOST})
    with pytest.raises(Refused, match=HOST):
        access(_config(other)).api.request("GET", "/version")


def test_the_plugin_asks_the_proxy_of_the_kubeconfig_to_connect(tmp_path: Path) -> None:
    asked, port = [], _server(tmp_path)
    proxy = socket.create_server(("127.0.0.1", 0))

    def connect_once() -> None:
        near, _ = proxy.accept()
        asked.append(near.recv(65536).splitlines()[0])
        near.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        relay._carry(near, port)

    threading.Thread(target=connect_once, daemon=True).start()
    cluster = _cluster(
        tmp_path, port, **{"proxy-url": f"http://127.0.0.1:{proxy.getsockname()[1]}"}
    )
    assert access(_config(cluster)).api.request("GET", "/version") == {"major": "1"}
    assert asked[0].startswith(f"CONNECT 127.0.0.1:{port} HTTP/1.".encode())
