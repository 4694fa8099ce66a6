"""The programs the rehearsal runs, each built from a pinned Go module.

A version changes in the go.mod of the program's folder (then `go mod tidy`, so that go.sum
follows); how a program is built changes in PROGRAMS.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from rehearsal import paths
from trainyard.catalog.versions import DEFAULT_KUBERNETES

FOLDER = Path(__file__).parent
"""Holds one folder with go.mod and go.sum a program: a shared one would mix the Kubernetes minors
they ask for."""
KUBERNETES_RELEASES = ("1.34", "1.35", "1.36")
"""Minor releases of Kubernetes whose control plane the rehearsal can run; each has a folder. That of
DEFAULT_KUBERNETES is built at first contact, another one where a world is to run it."""
_KUBERNETES = (
    "-s -w -X k8s.io/component-base/version.gitVersion={version} -X"
    " k8s.io/component-base/version.gitMajor={major} -X"
    " k8s.io/component-base/version.gitMinor={minor}"
)
_NO_CLOUDS = "remove_all_sd,enable_kubernetes_sd"
"""Half of Prometheus is ways to find targets in clouds."""


@dataclass(frozen=True, kw_only=True)
class Program:
    """One executable and how it is built."""

    name: str
    folder: str
    """Folder whose go.mod pins the program."""
    module: str
    command: str = ""
    """Folder of the main package within the module."""
    ldflags: str = "-s -w"
    tags: str = ""
    seconds: int
    """Seconds that a cold build took on two cores."""
    lazy: bool = False
    """Built only where a world is to run it (`--also <name>`)."""

    @property
    def package(self) -> str:
        return f"{self.module}/{self.command}".rstrip("/")

    @property
    def flags(self) -> list[str]:
        """Arguments of `go build` that decide what comes out."""
        version = pinned(self.folder, self.module)
        major, minor, _ = version[1:].split(".", 2)
        ldflags = self.ldflags.format(version=version, number=version[1:], major=major, minor=minor)
        return [
            "-trimpath",
            "-buildvcs=false",
            "-mod=readonly",
            f"-tags={self.tags}",
            f"-ldflags={ldflags}",
        ]

    @property
    def built(self) -> Path:
        """Path of this very program once it is built; another pin or flag is another folder."""
        parts = [(FOLDER / self.folder / name).read_bytes() for name in ("go.mod", "go.sum")]
        pins = b"\0".join([*parts, " ".join(self.flags).encode()])
        digest = hashlib.sha256(pins).hexdigest()[:16]
        return paths.CACHE / "programs" / f"{self.name}-{digest}" / self.name


PROGRAMS = (
    Program(name="etcd", folder="etcd", module="go.etcd.io/etcd/server/v3", seconds=41),
    Program(
        name="pulumi",
        folder="pulumi",
        module="github.com/pulumi/pulumi/pkg/v3",
        command="cmd/pulumi",
        tags="osusergo,grpcnotrace",
        seconds=187,
        ldflags="-s -w -X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version={version}",
    ),
    *(
        Program(
            name=f"{name}-{release}",
            folder=f"kubernetes-{release}",
            module="k8s.io/kubernetes",
            command=f"cmd/{name}",
            ldflags=_KUBERNETES,
            seconds=seconds,
            lazy=release != DEFAULT_KUBERNETES,
        )
        for release in KUBERNETES_RELEASES
        for name, seconds in {
            "kube-apiserver": 174,
            "kube-controller-manager": 65,
            "kube-scheduler": 10,
        }.items()
    ),
    Program(
        name="kubectl",
        folder=f"kubernetes-{DEFAULT_KUBERNETES}",
        module="k8s.io/kubernetes",
        command="cmd/kubectl",
        ldflags=_KUBERNETES,
        seconds=27,
    ),
    Program(name="helm", folder="helm", module="helm.sh/helm/v3", command="cmd/helm", seconds=70),
    # 1.15.0 is the newest 1.15 whose core can be had as a module, in place of the release that a stack
    # installs. A module that its tests alone call is replaced by the newest that can be had.
    *(
        Program(
            name=name,
            folder=name,
            module="github.com/aws/karpenter-provider-aws",
            command="cmd/controller",
            ldflags="-s -w -X sigs.k8s.io/karpenter/pkg/operator.Version={number}",
            seconds=seconds,
            lazy=name != "karpenter",
        )
        for name, seconds in {"karpenter": 157, "karpenter-1.15": 325}.items()
    ),
    *(
        Program(
            name=name,
            folder=name,
            module="github.com/kubeflow/trainer/v2",
            command="cmd/trainer-controller-manager",
            seconds=70,
        )
        for name in ("trainer", "trainer-2.3")
    ),
    *(
        Program(name=name, folder=name, module="sigs.k8s.io/jobset", seconds=49)
        for name in ("jobset", "jobset-0.12")
    ),
    Program(
        name="training-operator",
        folder="training-operator",
        module="github.com/kubeflow/training-operator",
        command="cmd/training-operator.v1",
        seconds=154,
    ),
    # 0.16.2 is the newest 0.16 that can be had as a module, in place of the release that a stack
    # installs. Of 0.19 upstream's own tag leaves out what simulates schedulers (an alpha): that
    # module has no checksum.
    *(
        Program(
            name=name,
            folder=name,
            module="sigs.k8s.io/kueue",
            command="cmd/kueue",
            tags=tags,
            ldflags="-s -w -X sigs.k8s.io/kueue/pkg/version.GitVersion={version}",
            seconds=seconds,
            lazy=True,
        )
        for name, tags, seconds in (
            ("kueue", "", 303),
            ("kueue-0.19", "exclude_scheduler_library", 380),
        )
    ),
    *(
        Program(
            name=name,
            folder=folder,
            module=f"github.com/prometheus/{folder}",
            command=f"cmd/{name}",
            tags=tags,
            ldflags="-s -w -X github.com/prometheus/common/version.Version={number}",
            seconds=seconds,
            lazy=True,
        )
        for folder, tags, programs in (
            ("prometheus", _NO_CLOUDS, {"prometheus": 1313, "promtool": 19}),
            ("alertmanager", "", {"alertmanager": 106, "amtool": 4}),
        )
        for name, seconds in programs.items()
    ),
    Program(
        name="pushgateway",
        folder="pushgateway",
        module="github.com/prometheus/pushgateway",
        seconds=45,
        lazy=True,
    ),
    Program(
        name="pulumi-language-yaml",
        folder="pulumi-yaml",
        module="github.com/pulumi/pulumi-yaml",
        command="cmd/pulumi-language-yaml",
        tags="osusergo,grpcnotrace",
        ldflags="-s -w -X github.com/pulumi/pulumi-yaml/pkg/version.Version={version}",
        seconds=240,
        lazy=True,
    ),
    Program(
        name="crane",
        folder="crane",
        module="github.com/google/go-containerregistry",
        command="cmd/crane",
        seconds=41,
        lazy=True,
    ),
)
BY_NAME = {program.name: program for program in PROGRAMS}
_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
NEEDED = (
    "etcd",
    "pulumi",
    *(f"{name}-{DEFAULT_KUBERNETES}" for name in _PLANE),
    "kubectl",
    "helm",
    "karpenter",
)
"""Names of the programs that every world runs."""


def pinned(folder: str, module: str) -> str:
    """The version of a module in a folder's go.mod, such as v1.34.2."""
    found = re.search(
        rf"^(?:require)?\s*{re.escape(module)} (v\S+)$", _go_mod(folder), re.MULTILINE
    )
    if not found:
        raise LookupError(f"{folder}/go.mod does not require {module}")
    return found[1]


def required_go() -> tuple[int, ...]:
    """The lowest Go version that builds every program whose go.mod names no Go of its own."""
    pins = [_go_mod(program.folder) for program in PROGRAMS if not own_go(program.folder)]
    lines = [re.search(r"^go (\S+)$", text, re.MULTILINE) for text in pins]
    return max(tuple(map(int, line[1].split("."))) for line in lines if line)


def own_go(folder: str) -> str:
    """The Go that a folder's go.mod names, such as go1.27.3, where that of the machine is too old for
    it; empty elsewhere, and for no folder."""
    found = folder and re.search(r"^toolchain (\S+)$", _go_mod(folder), re.MULTILINE)
    return found[1] if found else ""


def _go_mod(folder: str) -> str:
    return (FOLDER / folder / "go.mod").read_text()
