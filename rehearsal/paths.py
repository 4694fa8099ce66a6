"""Folders of the rehearsal: one ignored folder for state, one cache for what was built.

Change the state folder with TRAINYARD_REHEARSAL, the cache with XDG_CACHE_HOME.
"""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import asdict, dataclass, field
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent
"""The folder that has this package."""
STATE = Path(os.environ.get("TRAINYARD_REHEARSAL") or HOME / ".rehearsal")
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trainyard"

BIN = CACHE / "bin"
"""Links to the built programs: pulumi, etcd, kube-apiserver, kubectl, helm, karpenter, trainer,
jobset…"""
CHARTS = CACHE / "charts"
"""Mirror of the charts the graph installs: one unpacked folder a name."""

LOGS = STATE / "logs"
PLANE = STATE / "plane"
"""Certificates, kubeconfigs of the control plane's own parts, etcd data."""
NODES = STATE / "nodes"
"""One folder an instance: its kubelet's log, pods, volumes."""
DAMAGE = "damage"
"""Name of a file in a machine's folder: what breaks on it, by command."""
FILE_SYSTEMS = STATE / "file-systems"
"""One folder a file system id: what EFS and Lustre hold."""
BACKEND = STATE / "backend"
PULUMI_HOME = STATE / "pulumi-home"

BRIDGE = "10.244.0.1"
"""Address of the world inside its network namespace; pods live in 10.244.0.0/16."""


def _secret() -> str:
    return secrets.token_hex(20)


@dataclass(frozen=True, kw_only=True)
class World:
    """The addresses and keys one world was started with; they stay the same until `down`."""

    api_port: int
    """TCP port of the Kubernetes API server, on 127.0.0.1 outside and on every address inside."""
    account_port: int
    """TCP port of the embedded AWS account, likewise."""
    speed: float
    """AWS's typical durations are divided by this."""
    tunnel_port: int = 0
    """TCP port on 127.0.0.1 outside that leads to the API server even while its endpoint is
    private: for tunnels, and for the rehearsal itself."""
    developer_secret: str = field(default_factory=_secret)
    """Secret access key of the user that people and the program are."""
    world_secret: str = field(default_factory=_secret)
    """Secret access key of the rehearsal's own parts, and the bearer token of /_world/."""

    @property
    def api_url(self) -> str:
        return f"https://127.0.0.1:{self.api_port}"

    @property
    def account_url(self) -> str:
        return f"http://127.0.0.1:{self.account_port}"

    @property
    def account_url_for_pods(self) -> str:
        return f"http://{BRIDGE}:{self.account_port}"


def private_endpoint() -> Path:
    """A file that exists while the cluster's endpoint is private: then the API server's port of
    this machine hangs up on everybody, as the machine is outside the VPC."""
    return STATE / "private-endpoint"


def world() -> World:
    """The running world's addresses; FileNotFoundError where none was started."""
    return World(**json.loads((STATE / "world.json").read_text()))


def remember(new: World) -> World:
    """Write the addresses and keys down for every other program of the rehearsal."""
    make_state()
    file = STATE / "world.json"
    file.touch(mode=0o600)
    file.chmod(0o600)
    file.write_text(json.dumps(asdict(new)))
    return new


def make_state() -> None:
    """Create STATE, which only its owner enters: it holds keys, pods' Secrets and stores."""
    STATE.mkdir(parents=True, exist_ok=True)
    STATE.chmod(0o700)
