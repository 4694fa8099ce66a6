"""A world for the tests of nodes: a real control plane and the fleet, against an account of a few
canned answers.

As a program it is that world, in namespaces of its own: it reads an order in JSON a line, and
answers with one.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlparse

from rehearsal import paths
from rehearsal.control_plane import ControlPlane, admin
from rehearsal.toolchain.programs import DEFAULT_KUBERNETES
from tests.support.patience import PATIENCE

NAMESPACE = ("unshare", "-U", "-r", "-m", "-n")
ZONE, CLUSTER, TYPE = "ap-northeast-2a", "rehearsed", "g6e.48xlarge"
TYPES = {
    TYPE: {
        "instanceType": TYPE,
        "vCpuInfo": {"defaultVCpus": "192"},
        "memoryInfo": {"sizeInMiB": "1572864"},
        "gpuInfo": {"gpus": [{"count": "8"}]},
        "networkInfo": {"maximumNetworkInterfaces": "4", "ipv4AddressesPerInterface": "30"},
    }
}
USER_DATA = """MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="//"

--//
Content-Type: application/node.eks.aws

apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster: {{name: {cluster}, apiServerEndpoint: "{endpoint}", certificateAuthority: {authority}}}
  kubelet:
    config:
      maxPods: 110
      registerWithTaints: [{{key: karpenter.sh/unregistered, effect: NoExecute}}]
    flags: ["--node-labels=\\"pool=gpu,karpenter.sh/nodepool=gpu\\""]
--//--
"""


class Cloud:
    """What the fake account knows. Every instance's role may join but that of `stranger`."""

    def __init__(self, world: paths.World) -> None:
        self.world = world
        self.instances: dict[str, dict[str, Any]] = {}
        self.lustre: dict[str, dict[str, Any]] = {}
        self.identities: dict[str, dict[str, str]] = {}
        self.dead: list[str] = []
        """Instances whose machines have died, as the fleet tells it."""

    def launch(self, name: str, efa: int = 0) -> None:
        """An instance that runs at once."""
        number = len(self.instances) + 10
        cards = [{"interfaceType": "efa"}] * efa + [{"interfaceType": "interface"}]
        self.instances[name] = {
            "instanceId": name,
            "instanceType": TYPE,
            "instanceState": {"name": "running"},
            "architecture": "x86_64",
            "privateDnsName": f"ip-10-0-0-{number}.ap-northeast-2.compute.internal",
            "networkInterfaceSet": cards,
            "launchTime": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "placement": {"availabilityZone": ZONE, "availabilityZoneId": "apne2-az1"},
        }

    def state(self, name: str, state: str) -> None:
        """Another state of an instance."""
        self.instances[name]["instanceState"] = {"name": state}

    def node_of(self, token: str) -> str | None:
        """The user a token stands for."""
        raw = token.removeprefix("k8s-aws-v1.")
        url = base64.urlsafe_b64decode(raw + "=" * (-len(raw) % 4)).decode()
        key = dict(parse_qsl(urlparse(url).query))["X-Amz-Credential"].partition("/")[0]
        return None if key == "stranger" else f"system:node:{self.instances[key]['privateDnsName']}"

    def user_data(self) -> str:
        """Of every instance."""
        authority = base64.b64encode((paths.PLANE / "ca.crt").read_bytes()).decode()
        text = USER_DATA.format(cluster=CLUSTER, endpoint=self.world.api_url, authority=authority)
        return base64.b64encode(text.encode()).decode()

    def ec2(self, action: str, query: dict[str, str]) -> dict[str, Any]:
        """A describe call's answer."""
        wanted = query.get("InstanceId.1")
        found = [i for i in self.instances.values() if wanted in (None, i["instanceId"])]
        return {
            "DescribeInstances": {"reservationSet": [{"instancesSet": [i]} for i in found]},
            "DescribeInstanceTypes": {
                "instanceTypeSet": [TYPES[query.get("InstanceType.1", TYPE)]]
            },
            "DescribeVolumes": {"volumeSet": [{"size": "100"}]},
            "DescribeInstanceAttribute": {"userData": {"value": self.user_data()}},
            "AssignPrivateIpAddresses": {},
        }[action]


def xml(value: Any) -> str:
    """EC2's way of writing data."""
    if isinstance(value, dict):
        return "".join(f"<{k}>{xml(v)}</{k}>" for k, v in value.items())
    return (
        "".join(f"<item>{xml(v)}</item>" for v in value) if isinstance(value, list) else str(value)
    )


class Handler(BaseHTTPRequestHandler):
    """The account's front."""

    protocol_version = "HTTP/1.1"
    cloud: Cloud

    def do_GET(self) -> None:
        """The account's own endpoints."""
        url, found = urlparse(self.path), None
        words = url.path.split("/")[2:] or [""]
        if words[0] == "instances" and words[1] in self.cloud.instances:
            key = "stranger" if "stranger" in words[1] else words[1]
            found = {"AccessKeyId": key, "SecretAccessKey": "s", "SessionToken": "t"}
        if words[-1] == "reach":
            found = {"blocked": ""}
        if words[0] == "inventory":
            found = [
                {
                    "type": "eks-cluster",
                    "id": f"arn:aws:eks:ap-northeast-2:123456789012:cluster/{CLUSTER}",
                }
            ]
        if "list-type=2" in url.query:
            return self._send(200, "<ListBucketResult/>")
        if words[0] == "pod-identity":
            found = self.cloud.identities.get(dict(parse_qsl(url.query))["service_account"])
        self._send(404 if found is None else 200, json.dumps(found))

    def do_POST(self) -> None:
        """Token reviews and AWS."""
        body = self.rfile.read(int(self.headers["Content-Length"] or 0)).decode()
        if self.path.startswith("/_world/token-review"):
            review = json.loads(body)
            user = self.cloud.node_of(review["spec"]["token"])
            review["status"] = {
                "authenticated": bool(user),
                "user": {
                    "username": user or "",
                    "groups": ["system:bootstrappers", "system:nodes"],
                },
            }
            return self._send(200, json.dumps(review))
        if self.path.endswith("/dead"):
            self.cloud.dead.append(self.path.split("/")[-2])
            return self._send(200, "null")
        if "ContainerRegistry" in self.headers.get("X-Amz-Target", ""):
            return self._send(400, '{"__type": "RepositoryNotFoundException"}')
        if "X-Amz-Target" in self.headers:
            name = json.loads(body)["FileSystemIds"][0]
            known = name in self.cloud.lustre
            answer = (
                {"FileSystems": [self.cloud.lustre[name]]}
                if known
                else {"message": f"{name} does not exist"}
            )
            return self._send(200 if known else 400, json.dumps(answer))
        query = dict(parse_qsl(body))
        self._send(200, f"<Response>{xml(self.cloud.ec2(query['Action'], query))}</Response>")

    def _send(self, code: int, text: str) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


def kubeconfig() -> str:
    """Of the administrator."""
    return str(paths.PLANE / "admin.kubeconfig")


def kubectl(*words: str, stdin: str = "") -> dict[str, Any]:
    """Run kubectl inside."""
    done = subprocess.run(
        [paths.BIN / "kubectl", "--kubeconfig", kubeconfig(), *words],
        input=stdin,
        text=True,
        capture_output=True,
    )
    return {"rc": done.returncode, "out": done.stdout, "err": done.stderr}


def shell(command: str) -> dict[str, Any]:
    """Run anything inside."""
    done = subprocess.run(command, shell=True, text=True, capture_output=True)
    return {"rc": done.returncode, "out": done.stdout, "err": done.stderr}


def main() -> None:
    """Until standard input ends."""
    for command in (
        "ip link set lo up",
        "ip link add br0 type bridge",
        "ip addr add 10.244.0.1/16 dev br0",
        "ip link set br0 up",
    ):
        subprocess.run(command.split(), check=True)
    world = paths.remember(paths.World(api_port=16643, account_port=16644, speed=60))
    cloud = Cloud(world)
    server = ThreadingHTTPServer(
        ("0.0.0.0", world.account_port), type("H", (Handler,), {"cloud": cloud})
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    plane = ControlPlane(world)
    plane.start(DEFAULT_KUBERNETES, "10.100.0.0/16")
    while not plane.ready():
        time.sleep(0.1)
    fleet = subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", sys.executable, "-m", "rehearsal.kubelet.fleet"],
        stdin=subprocess.DEVNULL,
    )
    orders: dict[str, Callable[..., Any]] = {
        "kubectl": kubectl,
        "shell": shell,
        "launch": cloud.launch,
        "state": cloud.state,
        "vanish": cloud.instances.pop,
        "dead": lambda: cloud.dead,
        "lustre": cloud.lustre.update,
        "identities": cloud.identities.update,
        "apply": lambda text: kubectl("apply", "-f", "-", stdin=text),
        "get": lambda path: admin(world).request("GET", path),
    }
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        order, *words = json.loads(line)
        try:
            print(json.dumps(orders[order](*words)), flush=True)
        except Exception as error:
            print(json.dumps({"failed": repr(error)}), flush=True)
    fleet.kill()
    plane.stop()


class Client:
    """The world from outside: one order at a time."""

    def __init__(self, state: Path) -> None:
        env = {**os.environ, "TRAINYARD_REHEARSAL": str(state), "PYTHONPATH": str(paths.HOME)}
        told = {"clones": str(paths.HOME / "workloads")}
        (state / "images.json").write_text(json.dumps(told))
        self._process = subprocess.Popen(
            [*NAMESPACE, sys.executable, __file__],
            env=env,
            text=True,
            cwd=paths.HOME,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.state = state
        self._answer()

    def ask(self, *order: Any) -> Any:
        """An order's answer."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        """The world ends."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(PATIENCE)


if __name__ == "__main__":
    main()
