"""Meaning of a container image in the rehearsal. A new controller is one line in PROGRAMS.

There is no container runtime: an image is a program of the toolchain, the host's own programs
(training), or simulated.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from rehearsal import paths
from rehearsal.kube import Object
from rehearsal.kubelet.environment import NotReady
from trainyard.catalog.versions import KUEUE, NEWEST_KARPENTER, NEWEST_KUEUE

STAND_INS = Path(__file__).resolve().parent.parent / "standins"
STAND_INS_AT, TOOLS_AT = "/opt/stand-ins/lib", "/opt/stand-ins/bin"
TOOLS = {
    "deepspeed": "deepspeed.py",
    "git": "git.py",
    "mpirun": "mpirun.py",
    "nslookup": "nslookup.py",
    "pip": "pip.py",
    "pip3": "pip.py",
    "sshd": "sshd.py",
    "torchrun": "torchrun.py",
}
ELSEWHERE = {"/usr/sbin/sshd": f"{TOOLS_AT}/sshd"}
"""Stand-ins that runtimes call by a path below the host's own folders."""


@dataclass(frozen=True, kw_only=True)
class Program:
    """A controller built from its Go module, put where its image has it."""

    binary: str
    entrypoint: str

    @property
    def built(self) -> Path:
        path = (paths.BIN / self.binary).resolve()
        if not path.exists():
            raise NotReady(f"the toolchain has not built {self.binary}")
        return path


PROGRAMS = {
    f"karpenter/controller:{NEWEST_KARPENTER}": Program(
        binary="karpenter-1.15", entrypoint="/ko-app/controller"
    ),
    "karpenter/controller": Program(binary="karpenter", entrypoint="/ko-app/controller"),
    "trainer/trainer-controller-manager:v2.1.0": Program(binary="trainer", entrypoint="/manager"),
    "trainer/trainer-controller-manager:v2.3.0": Program(
        binary="trainer-2.3", entrypoint="/manager"
    ),
    "jobset/jobset:v0.10.1": Program(binary="jobset", entrypoint="/manager"),
    "jobset/jobset:v0.12.0": Program(binary="jobset-0.12", entrypoint="/manager"),
    f"kueue/kueue:v{KUEUE}": Program(binary="kueue", entrypoint="/manager"),
    f"kueue/kueue:v{NEWEST_KUEUE}": Program(binary="kueue-0.19", entrypoint="/manager"),
    "prometheus/alertmanager": Program(binary="alertmanager", entrypoint="/bin/alertmanager"),
    "prometheus/prometheus": Program(binary="prometheus", entrypoint="/bin/prometheus"),
    "prometheus/pushgateway": Program(binary="pushgateway", entrypoint="/bin/pushgateway"),
    "kubeflow/training-operator:v1-04f9f13": Program(
        binary="training-operator", entrypoint="/manager"
    ),
}
"""By the end of the image's name, so that a mirror's prefix does not matter; with its tag where
there are several."""

ENTRYPOINTS = {
    "grafana/grafana": f"{STAND_INS_AT}/grafana.py",
    "k8s/dcgm-exporter": f"{STAND_INS_AT}/exporter.py",
    "prometheus/node-exporter": f"{STAND_INS_AT}/exporter.py",
}
"""Images whose own program has a stand-in, by the end of their name."""

INTERPRETERS = ("/docker/library/python",)
"""Images that are a language and nothing else."""

NETWORK = "amazon-k8s-cni"
SERVICES = "kube-proxy"
POD_IDENTITY_AGENT = "eks-pod-identity-agent"
NVIDIA_PLUGIN = "k8s-device-plugin"
EFA_PLUGIN = "aws-efa-k8s-device-plugin"
"""Images whose pod changes what a node can do, by the last word of the repository."""


def repository(image: str) -> str:
    """The image's name without tag and digest."""
    head, _, last = image.partition("@")[0].rpartition("/")
    return f"{head}/{last.partition(':')[0]}".lstrip("/")


def program(image: str) -> Program | None:
    """The controller an image contains, if the rehearsal has it."""
    names = f"/{repository(image)}", f"/{image.partition('@')[0]}"
    return next(
        (p for end, p in PROGRAMS.items() if any(name.endswith(f"/{end}") for name in names)), None
    )


def entrypoint(image: str) -> list[str]:
    """The command that an image runs by itself: a controller, or what stands for its program. Nothing
    of any other image is known."""
    if found := program(image):
        return [found.entrypoint]
    ends = (end for end in ENTRYPOINTS if f"/{repository(image)}".endswith(f"/{end}"))
    return [ENTRYPOINTS[end] for end in ends]


def interprets(image: str) -> bool:
    """True where the image is an interpreter that the host has too: its command runs as it is."""
    return f"/{repository(image)}".endswith(INTERPRETERS)


def webhook_ports(pod: Object) -> list[int]:
    """Ports at which a pod's programs answer calls of the API server, by the name that charts give
    them."""
    ports = [port for one in pod["containers"] for port in one.get("ports", ())]
    return [port["containerPort"] for port in ports if "webhook" in port.get("name", "")]


def belongs_to(pod: Object, kind: str) -> bool:
    """True where an object of this kind owns the pod. Pods of a Job run their own commands; only
    those of a DaemonSet change their node, since a CSI driver's controller has the same image as
    its node part."""
    return any(owner["kind"] == kind for owner in pod["metadata"].get("ownerReferences", []))


def interpreter_folders() -> list[str]:
    """Where this interpreter and its packages live, as far as that is not under /usr anyway."""
    return [
        p
        for p in dict.fromkeys((sys.base_prefix, sys.prefix))
        if not p.startswith("/usr/") and p != "/usr"
    ]


def training_path() -> str:
    """PATH of a training container."""
    return os.pathsep.join(
        (TOOLS_AT, str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin")
    )


def at_hand(command: list[str]) -> list[str]:
    """The command, its program by the link to the stand-in where one stands for it."""
    return [ELSEWHERE.get(word, word) for word in command[:1]] + command[1:]


def training_tools(image: str) -> dict[str, str]:
    """Links to the stand-ins; where torch is, torchrun is not among them."""
    return {
        f"{TOOLS_AT}/{tool}": f"{STAND_INS_AT}/{file}"
        for tool, file in TOOLS.items()
        if not (tool == "torchrun" and has_torch(image))
    }


def has_torch(image: str) -> bool:
    """True where an image gets the real torch: one that images.json lists, where torch is beside
    this interpreter. What others contain nobody knows here, and mostly it is for GPUs."""
    return _listed(image) is not None and importlib.util.find_spec("torch") is not None


def files(image: str) -> dict[str, str]:
    """Path in the container → file of the machine, of an image that images.json lists."""
    return _listed(image) or {}


def _listed(image: str) -> dict[str, str] | None:
    """Entry of an image in images.json: files, or none where it is a Python with torch alone."""
    found = _told().get("images", {})
    name = f"/{repository(image)}"
    return next((found[end] for end in found if name.endswith(f"/{end}")), None)


def clones() -> str | None:
    """The folder with what a container can clone with git."""
    return _told().get("clones")


def _told() -> Object:
    """STATE/images.json, which somebody who builds images writes before pods run: `images`, by the end
    of an image's name the files in it; `clones`, a folder of repositories."""
    file = paths.STATE / "images.json"
    return json.loads(file.read_text()) if file.exists() else {}
