"""The real engine with the plugins of AWS and EKS against the embedded account, without a world: no
namespaces, no API server, no nodes. Kubernetes only pretends (pretended_cluster.py)."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from development import engine, steps
from development.engine import Stack
from development.progress import Display, Stages
from rehearsal import environment, paths
from rehearsal.providers import install
from tests.rehearsal.aws_world import Account, served
from tests.worlds.harness import copied_checkout

SPEED = 300
"""A cluster takes two seconds, and nodes have four to join."""
GONE = ("deleted", "terminated")
LEFT = 99
"""Exit status of a `down` that succeeded, and left something in the account."""
PRETENDED = "tests.support.pretended_cluster"
NO_OBJECTS = """#!/bin/sh
case "$*" in *--raw=/version*) exit 0;; esac
echo "not found" >&2
exit 1
"""
SILENT = "#!/bin/sh\necho 'Unable to connect to the server: no such host' >&2\nexit 1\n"
"""kubectl and helm of a cluster that answers and has no objects, and of one that is gone."""


@dataclass(frozen=True, kw_only=True)
class Alone:
    """One stack and the account that it is in."""

    account: Account
    stack: Stack
    checkout: Path
    log: Path
    programs: Path
    """Folder whose programs come first."""

    def do(self, word: str) -> int:
        """`up` or `down`, as the rehearsal does it; the exit status."""
        display = Display()
        engine.prepare(self.stack, display.reporter("engine"))
        assert steps.repair(self.stack, display) == 0, (paths.LOGS / "repair.log").read_text()
        way = ("up",) if word == "up" else ("destroy", "--exclude-protected")
        status = steps.update(self.stack, Stages(display), *way)
        return LEFT if word == "down" and status == 0 and self.left() else status

    def pulumi(self, *words: str, **variables: str) -> str:
        """Output of the engine about the stack file as it is now, whether it succeeds or fails."""
        engine.refresh_copy(self.stack)
        done = subprocess.run(
            [paths.BIN / "pulumi", *words, "--non-interactive", "--stack", self.stack.name],
            cwd=self.checkout,
            env=engine.complete(self.stack) | variables,
            capture_output=True,
            text=True,
        )
        return done.stdout + done.stderr

    def answers(self, text: str) -> None:
        """Choose how kubectl and helm behave: NO_OBJECTS or SILENT."""
        for name in ("kubectl", "helm"):
            file = self.programs / name
            file.write_text(text)
            file.chmod(0o755)

    def state(self) -> list[dict[str, Any]]:
        """Resources that the engine believes to exist."""
        return engine.resources(self.stack)

    def inventory(self) -> list[dict[str, Any]]:
        return self.account.world("GET", "inventory")[1]

    def left(self) -> list[dict[str, Any]]:
        """Objects of the account that cost money or are in somebody's way."""
        return [thing for thing in self.inventory() if thing["state"] not in GONE]


@contextmanager
def alone(name: str, files: Mapping[str, str] | None = None) -> Iterator[Alone]:
    """A copy of the checkout with these files in it, and an account of its own."""
    folder = Path(tempfile.mkdtemp(prefix="alone-", dir="/tmp"))
    checkout = copied_checkout(folder / "c")
    ours = {PRETENDED: f"{PRETENDED.replace('.', '/')}.py"}
    for file in ours.values():
        (checkout / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(paths.HOME / file, checkout / file)
    for file, text in (files or {}).items():
        (checkout / file).parent.mkdir(parents=True, exist_ok=True)
        (checkout / file).write_text(text)
    state, programs = folder / "s", folder / "bin"
    state.mkdir()
    programs.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRAINYARD_REHEARSAL", str(state))
        for constant, place in {
            "BACKEND": "backend",
            "PULUMI_HOME": "pulumi-home",
            "NODES": "nodes",
        }.items():
            patch.setattr(paths, constant, state / place)
        with served(state, patch) as account:
            patch.setattr(engine, "CHECKOUT", checkout)
            for constant, place in {
                "CONFIG": "config",
                "PROFILES": "config/aws",
                "KUBECONFIG": "kubeconfig",
            }.items():
                patch.setattr(environment, constant, state / place)
            kubernetes = ("resource", "kubernetes")
            plugins = install.PLUGINS | {kubernetes: (install.PLUGINS[kubernetes][0], PRETENDED)}
            patch.setattr(install, "PLUGINS", plugins)
            patch.setattr(install.genuine, "provider", lambda name, version: None)
            path = f"{programs}:{environment.search_path()}"
            patch.setattr(environment, "search_path", lambda: path)
            port = int(account.url.rpartition(":")[2])
            paths.remember(replace(paths.world(), account_port=port))
            account.speed(SPEED)
            stop = threading.Event()
            stack = engine.find(name)
            region = stack.settings["aws:region"]
            keeper = threading.Thread(target=_keep, args=(account, region, stop), daemon=True)
            keeper.start()
            try:
                place = Alone(
                    account=account,
                    stack=stack,
                    checkout=checkout,
                    log=paths.LOGS / f"pulumi-{name}.log",
                    programs=programs,
                )
                place.answers(NO_OBJECTS)
                yield place
            finally:
                stop.set()
                keeper.join()
                shutil.rmtree(folder)


def _keep(account: Account, region: str, stop: threading.Event) -> None:
    """EKS's part inside the cluster, and every instance a Ready node at once."""
    ec2 = account.client("ec2", region=region)
    while not stop.wait(0.2):
        reservations = ec2.describe_instances()["Reservations"]
        account.kubernetes.nodes.clear()
        account.kubernetes.join(
            *(one["InstanceId"] for part in reservations for one in part["Instances"])
        )
        account.keep()
