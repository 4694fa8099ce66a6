"""Questions to the API server of an existing cluster, answered by a server with its certificate."""

from __future__ import annotations

import base64
import json
import ssl
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from rehearsal.control_plane import pki
from trainyard.catalog.chart_objects import ObjectName
from trainyard.live.questions import cluster_questions
from trainyard.live.questions.account import Account
from trainyard.live.questions.caller import NotAnswered
from trainyard.live.questions.cluster_questions import DnsPodFound, OwnerFound, PluginFound
from trainyard.plans.access import AccessPlan

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
HELM = {
    "meta.helm.sh/release-name": "jobset",
    "meta.helm.sh/release-namespace": "jobset-system",
}
JOBSETS, PLUGIN = (
    ObjectName("CustomResourceDefinition", "jobsets.jobset.x-k8s.io"),
    ObjectName("DaemonSet", "nvidia-device-plugin", "kube-system"),
)
OBJECTS: dict[str, list[dict[str, Any]]] = {
    CRDS: [
        {"name": "others.example.com"},
        {"name": JOBSETS.name, "annotations": HELM, "managedFields": [{"manager": "helm"}]},
    ],
    "/apis/apps/v1/namespaces/kube-system/daemonsets": [
        {"name": PLUGIN.name, "managedFields": [{"manager": "kubectl"}, {"manager": "kubectl"}]},
        {
            "metadata": {"name": "aws-node"},
            "spec": {
                "template": {
                    "spec": {
                        "containers": [
                            {"name": "aws-eks-nodeagent"},
                            {
                                "name": "aws-node",
                                "env": [
                                    {"name": "WARM_ENI_TARGET", "value": "1"},
                                    {"name": "MY_NODE_NAME", "valueFrom": {}},
                                ],
                            },
                        ]
                    }
                }
            },
        },
    ],
    "/apis/apps/v1/daemonsets": [
        {
            "metadata": {"name": name, "namespace": "platform", "annotations": HELM},
            "spec": {
                "template": {
                    "spec": {
                        "containers": [{"image": f"{name}:1"}],
                        "nodeSelector": {"gpu": "true"},
                        "tolerations": [{"key": "nvidia.com/gpu"}, {"operator": "Exists"}],
                        "volumes": [{"emptyDir": {}}, {"hostPath": {"path": folder}}],
                    }
                }
            },
        }
        for name, folder in (("nvdp", "/var/lib/kubelet/device-plugins/"), ("logs", "/var/log"))
    ],
}


OBJECTS["/apis/crd.k8s.amazonaws.com/v1alpha1/eniconfigs"] = [{"name": "us-east-2a"}]
OBJECTS["/api/v1/nodes"] = [{"name": "node-1"}, {"name": "node-2"}]
PODS = "/api/v1/namespaces/kube-system/pods"
OBJECTS[PODS] = [
    {
        "metadata": {"name": "coredns-1"},
        "spec": {},
        "status": {"podIP": "10.0.0.9", "hostIP": "10.0.0.4"},
    },
    {"metadata": {"name": "coredns-2"}, "spec": {}, "status": {"phase": "Pending"}},
]


class ApiServer(BaseHTTPRequestHandler):
    """Answers one object a page, and notes what it was asked with."""

    asked: list[tuple[str, str]] = []
    queries: list[dict[str, list[str]]] = []
    status = 200

    def do_CONNECT(self) -> None:
        type(self).asked.append((self.path, ""))
        self.send_error(502)

    def do_GET(self) -> None:
        url = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(url.query)
        type(self).queries.append(query)
        token = self.headers["Authorization"].removeprefix("Bearer k8s-aws-v1.")
        signed = base64.urlsafe_b64decode(token + "==").decode()
        type(self).asked.append((self.headers["Accept"], signed))
        page = int(query.get("continue", ["0"])[0])
        items = OBJECTS.get(url.path, [])
        _, _, one = query.get("fieldSelector", [""])[0].partition("metadata.name=")
        if one:
            items = [each for each in items if each.get("metadata", {}).get("name") == one]
        more = str(page + 1) if page + 1 < len(items) else ""
        # Go writes an empty list as null, as the world of an existing cluster has shown.
        shown = [one if "spec" in one else {"metadata": one} for one in items[page : page + 1]]
        body = {"items": shown or None}
        data = json.dumps(body | {"metadata": {"continue": more}}).encode()
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """The cluster, as EKS describes it."""
    monkeypatch.setattr(ApiServer, "asked", [])
    for name, value in {"ACCESS_KEY_ID": "AKIA", "SECRET_ACCESS_KEY": "x"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    pki.write(tmp_path, "https://127.0.0.1", "172.20.0.0/16")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "apiserver.crt", tmp_path / "apiserver.key")
    listening = ThreadingHTTPServer(("127.0.0.1", 0), ApiServer)
    listening.socket = context.wrap_socket(listening.socket, server_side=True)
    Thread(target=listening.serve_forever, daemon=True).start()
    yield {
        "endpoint": f"https://127.0.0.1:{listening.server_address[1]}",
        "certificateAuthority": {
            "data": base64.b64encode((tmp_path / "ca.crt").read_bytes()).decode()
        },
    }
    listening.shutdown()


def account(described: dict[str, Any], proxy: str | None = None) -> Account:
    """An account whose cluster is described so."""

    class There(Account):
        def _ask(self, action: str, **_: Any) -> dict[str, Any]:
            assert action == "eks:DescribeCluster"
            return {"cluster": described}

    return There(AccessPlan(region="ap-northeast-2", proxy_url=proxy))


def asked(described: dict[str, Any], *names: ObjectName, proxy: str | None = None) -> Any:
    """The answer to who owns these objects."""
    return account(described, proxy).cluster_objects("research", names)


def test_objects_that_are_there_say_who_made_them(server: dict[str, Any]) -> None:
    absent = ObjectName("Namespace", "training")
    assert asked(server, JOBSETS, PLUGIN, absent) == {
        JOBSETS: OwnerFound(release=("jobset", "jobset-system"), managers=("helm",)),
        PLUGIN: OwnerFound(release=None, managers=("kubectl",)),
    }
    accepted, signed = ApiServer.asked[0]
    assert "PartialObjectMetadataList" in accepted, "a list of whole CRDs has many MB"
    assert "Action=GetCallerIdentity" in signed and "x-k8s-aws-id" in signed


def test_a_device_plugin_is_told_by_the_folder_that_it_mounts(server: dict[str, Any]) -> None:
    [plugin] = account(server).device_plugins("research")
    assert plugin == PluginFound(
        name="nvdp",
        namespace="platform",
        images=("nvdp:1",),
        tolerated=("nvidia.com/gpu", ""),
        owner=OwnerFound(release=("jobset", "jobset-system"), managers=()),
        selected=("gpu",),
    )


def test_nodes_are_named_by_their_labels(server: dict[str, Any]) -> None:
    assert account(server).cluster_nodes("research", "a=b,c!=d") == ["node-1", "node-2"]
    assert ApiServer.queries[-1]["labelSelector"] == ["a=b,c!=d"]


def test_eni_configs_are_named(server: dict[str, Any]) -> None:
    assert account(server).eni_configs("research") == ["us-east-2a"]


def test_pods_of_dns_say_their_addresses_once_they_have_one(server: dict[str, Any]) -> None:
    assert account(server).dns_pods("research") == [
        DnsPodFound(address="10.0.0.9", node="10.0.0.4")
    ]
    assert ApiServer.queries[-1]["labelSelector"] == ["k8s-app=kube-dns"], "also on the second page"


def test_the_variables_of_the_vpc_cni_are_those_with_a_value(server: dict[str, Any]) -> None:
    assert account(server).cni_env("research") == {"WARM_ENI_TARGET": "1"}


def test_a_server_that_says_no_or_does_not_answer_is_no_crash(
    server: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ApiServer, "status", 403)
    with pytest.raises(NotAnswered, match="HTTP status 403"):
        asked(server, JOBSETS)
    with pytest.raises(NotAnswered, match="EndpointConnectionError|ConnectTimeout"):
        asked(server | {"endpoint": "https://127.0.0.1:1"}, JOBSETS)
    with pytest.raises(NotAnswered, match="SSLError"):
        other = base64.b64encode(b"no certificate").decode()
        asked(server | {"certificateAuthority": {"data": other}}, JOBSETS)


def test_the_proxy_of_the_stack_file_is_used(server: dict[str, Any]) -> None:
    proxy = ThreadingHTTPServer(("127.0.0.1", 0), ApiServer)
    Thread(target=proxy.serve_forever, daemon=True).start()
    with pytest.raises(NotAnswered, match="ProxyConnectionError"):
        asked(server, JOBSETS, proxy=f"http://127.0.0.1:{proxy.server_address[1]}")
    proxy.shutdown()
    assert ApiServer.asked == [(server["endpoint"].removeprefix("https://"), "")]
    with pytest.raises(NotAnswered, match="ProxyConnectionError"):
        asked(server, JOBSETS, proxy="socks5://127.0.0.1:1")


def test_a_slow_server_is_given_up_within_seconds() -> None:
    assert cluster_questions.TIMEOUTS["read_timeout"] <= 5
