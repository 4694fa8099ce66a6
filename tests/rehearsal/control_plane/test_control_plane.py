"""The control plane in a network namespace of its own, seen through kubectl by people, nodes and
strangers.

Run as a program this file is what stands in for the account: it owns the ControlPlane, reviews
tokens and obeys lines on its standard input.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from rehearsal import kube, paths
from rehearsal.control_plane import ControlPlane, admin
from rehearsal.toolchain.programs import BY_NAME, DEFAULT_KUBERNETES
from tests.support.patience import until

WORLD = paths.World(api_port=16443, account_port=16444, speed=60)
PARTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
PROGRAMS = ("etcd", "kubectl", *(f"{part}-{DEFAULT_KUBERNETES}" for part in PARTS))
NAMESPACE = ("unshare", "-U", "-r", "-m", "-n")
TOKENS = {
    "alice": ("arn:aws:sts::123456789012:assumed-role/admin/alice", ["system:masters"]),
    "node-a": ("system:node:node-a", ["system:bootstrappers", "system:nodes"]),
    "node-b": ("system:node:node-b", ["system:bootstrappers", "system:nodes"]),
}


class Account(BaseHTTPRequestHandler):
    """Answers POST /_world/token-review as the account does."""

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        user, groups = TOKENS.get(review["spec"]["token"], ("", []))
        review["status"] = {
            "authenticated": bool(user),
            "user": {"username": user, "groups": groups},
        }
        answer = json.dumps(review).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        pass


def obey() -> None:
    """One line in, one line of JSON out."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    account = ThreadingHTTPServer(("127.0.0.1", WORLD.account_port), Account)
    threading.Thread(target=account.serve_forever, daemon=True).start()
    planes = [ControlPlane(WORLD)]

    def start(version: str = DEFAULT_KUBERNETES) -> None:
        planes.append(ControlPlane(WORLD))
        planes[-1].start(version, "10.100.0.0/16")

    orders: dict[str, Callable[..., Any]] = {
        "start": start,
        "stop": lambda: planes[-1].stop(),
        "pause": lambda: planes[-1].stop(wipe=False),
        "away": lambda seconds: planes[-1].go_away(float(seconds)),
        "upgrade": lambda version: planes[-1].upgrade(version),
        "pids": lambda: {part.name: part.process.pid for part in planes[-1].parts if part.process},
        "ready": lambda: planes[-1].ready(),
        "version": lambda: admin(WORLD).request("GET", "/version")["gitVersion"],
        "stranger": stranger,
    }
    for line in sys.stdin:
        order, *arguments = line.split()
        print(json.dumps(orders[order](*arguments)), flush=True)


def stranger(path: str) -> str:
    """What somebody without credentials is answered."""
    try:
        return kube.Api(WORLD.api_url, ca_file=str(paths.PLANE / "ca.crt")).text(path)
    except kube.ApiError as error:
        return f"{error.code} {error}"


class Inside:
    """The program above, in its namespaces."""

    def __init__(self, state: Path) -> None:
        self.state = state
        imports = os.pathsep.join([str(paths.HOME), *sys.path])
        environment = os.environ | {"TRAINYARD_REHEARSAL": str(state), "PYTHONPATH": imports}
        self.process = subprocess.Popen(
            [*NAMESPACE, sys.executable, __file__],
            text=True,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def order(self, line: str) -> Any:
        assert self.process.stdin and self.process.stdout
        print(line, file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def until_ready(self) -> None:
        until(lambda: self.order("ready"))

    def kubectl(
        self, *arguments: str, token: str | None = None, given: Any = None
    ) -> subprocess.CompletedProcess[str]:
        """As system:masters, or as whoever the token says."""
        plane = self.state / "plane"
        who = (
            [f"--kubeconfig={plane / 'admin.kubeconfig'}"]
            if token is None
            else [
                "--kubeconfig=/dev/null",
                f"--server={WORLD.api_url}",
                f"--certificate-authority={plane / 'ca.crt'}",
                f"--token={token}",
            ]
        )
        enter = [
            "nsenter",
            f"--target={self.process.pid}",
            "--user",
            "--net",
            "--preserve-credentials",
        ]
        return subprocess.run(
            [
                *enter,
                str(paths.BIN / "kubectl"),
                *who,
                f"--cache-dir={self.state / 'kubectl'}",
                *arguments,
            ],
            capture_output=True,
            text=True,
            input=given and json.dumps(given),
        )

    def get(self, *arguments: str) -> Any:
        done = self.kubectl("get", "--output=json", *arguments)
        return json.loads(done.stdout) if done.returncode == 0 else {}

    def uid(self) -> str:
        """UID of kube-system, a namespace that the API server makes a moment after it is ready."""
        return until(lambda: self.get("namespace", "kube-system"))["metadata"]["uid"]

    def create(self, obj: dict[str, Any], *arguments: str, token: str | None = None) -> str:
        """What kubectl printed: the object, or why there is none."""
        done = self.kubectl("create", "--filename=-", *arguments, token=token, given=obj)
        return done.stdout or done.stderr

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def possible() -> bool:
    built = all(BY_NAME[name].built.exists() for name in PROGRAMS)
    return built and subprocess.run([*NAMESPACE, "true"], check=False).returncode == 0


world = pytest.mark.world


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inside]:
    if not possible():
        pytest.skip("needs the rehearsal's toolchain and user namespaces")
    inside = Inside(tmp_path_factory.mktemp("state"))
    yield inside
    inside.kill()


@pytest.fixture
def plane(inside: Inside) -> Inside:
    """A control plane that works, whatever the test before did to it."""
    if not inside.order("pids"):
        inside.order("start")
    inside.until_ready()
    until(lambda: inside.get("serviceaccount", "default"))
    return inside


def pod(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "busybox"}]} | spec,
    }


def node(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}


def test_another_kubernetes_version_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"1\.36, not 1\.33"):
        ControlPlane(WORLD).start("1.33", "10.100.0.0/16")


def test_a_plane_that_was_never_started_is_not_ready_and_stops_quietly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "PLANE", tmp_path / "plane")
    plane = ControlPlane(WORLD)
    assert not plane.ready()
    plane.stop()


@world
def test_the_server_reports_the_version_it_was_built_from(plane: Inside) -> None:
    assert plane.order("version") == "v1.35.8"


@world
def test_the_service_kubernetes_has_the_first_address_of_the_clusters_range(plane: Inside) -> None:
    assert plane.get("service", "kubernetes")["spec"]["clusterIP"] == "10.100.0.1"


@world
def test_the_servers_certificate_names_every_address_it_is_called_by(plane: Inside) -> None:
    shown = subprocess.run(
        [
            "openssl",
            "x509",
            "-in",
            str(plane.state / "plane/apiserver.crt"),
            "-noout",
            "-ext",
            "subjectAltName",
        ],
        capture_output=True,
        text=True,
    ).stdout
    for name in (
        "IP Address:127.0.0.1",
        "IP Address:10.244.0.1",
        "IP Address:10.100.0.1",
        "DNS:localhost",
        "DNS:kubernetes.default.svc",
    ):
        assert name in shown


@world
@pytest.mark.parametrize("path", ["/readyz", "/livez", "/healthz"])
def test_strangers_may_ask_for_health(plane: Inside, path: str) -> None:
    assert plane.order(f"stranger {path}") == "ok"


@world
@pytest.mark.parametrize("path", ["/version", "/api", "/metrics"])
def test_strangers_may_ask_for_nothing_else(plane: Inside, path: str) -> None:
    assert plane.order(f"stranger {path}") == "401 Unauthorized"


@world
def test_a_token_is_who_the_account_says(plane: Inside) -> None:
    who = plane.kubectl("auth", "whoami", "--output=json", token="alice")
    assert json.loads(who.stdout)["status"]["userInfo"]["username"] == TOKENS["alice"][0]


@world
def test_a_token_the_account_does_not_know_is_refused(plane: Inside) -> None:
    assert "Unauthorized" in plane.kubectl("get", "namespaces", token="mallory").stderr


@world
def test_a_node_registers_itself_but_no_other(plane: Inside) -> None:
    assert "node/node-a created" in plane.create(node("node-a"), token="node-a")
    assert "is not allowed to modify node" in plane.create(node("node-c"), token="node-a")


@world
def test_a_node_reads_a_secret_only_while_a_pod_of_its_own_uses_it(plane: Inside) -> None:
    plane.create(node("node-b"), token="node-b")
    plane.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}})
    volumes = [{"name": "key", "secret": {"secretName": "key"}}]
    plane.create(pod("uses-key", nodeName="node-b", volumes=volumes))
    until(lambda: plane.kubectl("get", "secret", "key", token="node-b").returncode == 0)
    assert "no relationship found" in plane.kubectl("get", "secret", "key", token="node-a").stderr


@world
def test_a_pod_that_asks_for_gpus_tolerates_their_taint(plane: Inside) -> None:
    gpu = [{"name": "main", "image": "busybox", "resources": {"limits": {"nvidia.com/gpu": "8"}}}]
    made = plane.create(pod("gpu", containers=gpu), "--dry-run=server", "--output=json")
    tolerated = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    assert tolerated in json.loads(made)["spec"]["tolerations"]


@world
@pytest.mark.parametrize(
    ("kind", "version"),
    [
        ("Deployment", "apps/v1"),
        ("StatefulSet", "apps/v1"),
        ("ReplicaSet", "apps/v1"),
        ("Job", "batch/v1"),
    ],
)
def test_controllers_make_the_pods_of_a_workload(plane: Inside, kind: str, version: str) -> None:
    name = kind.lower()
    selector = {} if kind == "Job" else {"selector": {"matchLabels": {"app": name}}}
    spec = pod(name, restartPolicy="Never" if kind == "Job" else "Always")["spec"]
    made = plane.create(
        {
            "apiVersion": version,
            "kind": kind,
            "metadata": {"name": name},
            "spec": {"template": {"metadata": {"labels": {"app": name}}, "spec": spec}, **selector},
        }
    )
    assert "created" in made
    until(lambda: plane.get("pods", f"--selector=app={name}").get("items"))


@world
def test_an_api_server_that_is_away_for_a_while_comes_back_with_all_that_was_there(
    plane: Inside,
) -> None:
    plane.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "stays"}})
    plane.order("away 3")
    began = time.monotonic()
    until(lambda: not plane.order("ready"))
    plane.until_ready()
    assert time.monotonic() - began >= 3
    assert plane.get("configmap", "stays")


@world
def test_a_deleted_owner_takes_its_objects_along(plane: Inside) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner"}}
    plane.create(owner)
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "owner",
        "uid": plane.get("configmap", "owner")["metadata"]["uid"],
    }
    plane.create(owner | {"metadata": {"name": "owned", "ownerReferences": [reference]}})
    plane.kubectl("delete", "configmap", "owner")
    until(lambda: not plane.get("configmap", "owned"))


@world
def test_the_parts_have_no_more_rights_than_their_roles(plane: Inside) -> None:
    scheduler = plane.kubectl("auth", "can-i", "get", "secrets", "--as=system:kube-scheduler")
    assert scheduler.stdout.strip() == "no"
    assert until(lambda: plane.get("serviceaccount", "job-controller", "--namespace=kube-system"))


@world
@pytest.mark.parametrize("part", ["kube-controller-manager", "kube-apiserver", "etcd"])
def test_a_part_that_dies_comes_back(plane: Inside, part: str) -> None:
    before = plane.order("pids")[part]
    uid = plane.uid()
    os.kill(before, signal.SIGKILL)
    until(lambda: plane.order("pids").get(part, before) != before)
    plane.until_ready()
    assert plane.uid() == uid


@world
def test_a_plane_that_was_stopped_without_wiping_goes_on(plane: Inside) -> None:
    uid = plane.uid()
    plane.order("pause")
    assert plane.order("pids") == {}
    plane.order("start")
    plane.until_ready()
    assert plane.uid() == uid


@world
def test_a_plane_that_was_wiped_begins_anew(plane: Inside) -> None:
    before = (plane.state / "plane/ca.crt").read_bytes()
    uid = plane.uid()
    plane.order("stop")
    assert not (plane.state / "plane").exists()
    plane.order("start")
    plane.until_ready()
    assert plane.uid() != uid
    assert (plane.state / "plane/ca.crt").read_bytes() != before


@world
def test_keys_are_readable_by_their_owner_only(plane: Inside) -> None:
    keys = list((plane.state / "plane").glob("*.key"))
    assert keys and all(key.stat().st_mode & 0o077 == 0 for key in keys)


@world
def test_nothing_outlives_the_process_that_started_it(plane: Inside) -> None:
    pids = plane.order("pids")
    assert len(pids) == 4
    plane.kill()
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids.values()))


if __name__ == "__main__":
    obey()
