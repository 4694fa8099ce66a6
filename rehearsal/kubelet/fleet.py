"""All instances of the account as processes, and the cloud controller's job: `python -m
rehearsal.kubelet.fleet`.

An instance that runs has a machine process; one that ends loses it, with all its pods, at once. A
machine killed from outside is dead hardware: it is not started again until its instance is stopped
and started, or replaced. Nodes whose instance is gone are deleted.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace

from rehearsal import paths
from rehearsal.control_plane import admin
from rehearsal.kube import Api
from rehearsal.kubelet import names
from rehearsal.kubelet.aws import TROUBLE, Account
from rehearsal.kubelet.process import DIE_WITH_PARENT

POLL_SECONDS, CLOUD_CONTROLLER_SECONDS = 0.3, 1.0
GONE = ("terminated",)
"""States in which the cloud controller deletes the Node; a stopped instance keeps it."""


class Fleet:
    """The machines of the running instances."""

    def __init__(self, world: paths.World) -> None:
        self._world = world
        self._account = Account(url=world.account_url, secret=world.world_secret)
        self._machines: dict[str, subprocess.Popen[bytes]] = {}
        self._dead: set[str] = set()
        self._told: set[str] = set()
        """Dead ones of which the account knows."""
        self._looked = 0.0
        self._trouble = ""

    def run(self) -> None:
        """For ever; without the account nothing changes."""
        while True:
            try:
                self.step(self.states())
            except TROUBLE as error:
                self._log(str(error))
            time.sleep(POLL_SECONDS)

    def states(self) -> dict[str, str]:
        """Every instance in the region of the cluster, by id."""
        if not self._machines:
            clusters = [
                t["id"]
                for t in self._account.private("/inventory") or []
                if t["type"] == "eks-cluster"
            ]
            self._account = (
                replace(self._account, region=clusters[0].split(":")[3])
                if clusters
                else self._account
            )
        reservations = self._account.ec2("DescribeInstances").get("reservationSet") or []
        return {
            i["instanceId"]: i["instanceState"]["name"]
            for r in reservations
            for i in r["instancesSet"]
        }

    def step(self, states: dict[str, str]) -> None:
        """Make machines and nodes follow."""
        running = {name for name, state in states.items() if state == "running"}
        self._dead &= running
        self._told &= self._dead
        for name in [
            n
            for n, process in self._machines.items()
            if process.poll() is not None or n not in running
        ]:
            self._end(name, expected=name not in running)
        for name in sorted(running - set(self._machines) - self._dead):
            self._machines[name] = start(name, self._account.region)
        for name in sorted(self._dead - self._told):
            self._account.dead(name)
            self._told.add(name)
        if (
            time.monotonic() - self._looked > CLOUD_CONTROLLER_SECONDS
            and (paths.PLANE / "admin.crt").exists()
        ):
            self._looked = time.monotonic()
            delete_lost_nodes(
                admin(self._world), {name for name, state in states.items() if state not in GONE}
            )

    def _end(self, name: str, *, expected: bool) -> None:
        process = self._machines.pop(name)
        process.kill()
        process.wait()
        if not expected:
            self._dead.add(name)
            self._log(f"the machine of {name} died ({process.returncode}): its node is lost")
        clean_up(name)

    def _log(self, line: str) -> None:
        if line != self._trouble:
            self._trouble = line
            print(time.strftime("%H:%M:%S"), line, file=sys.stderr, flush=True)


def start(name: str, region: str) -> subprocess.Popen[bytes]:
    """A machine that cannot outlive the fleet."""
    folder = paths.NODES / name
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "kubelet.log").open("ab") as log:
        # One malloc arena: with one for each of its threads a machine weighs 10 MiB more.
        return subprocess.Popen(
            [*DIE_WITH_PARENT, sys.executable, "-m", "rehearsal.kubelet.machine", name, region],
            cwd=paths.HOME,
            env=os.environ | {"MALLOC_ARENA_MAX": "1"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )


def clean_up(name: str) -> None:
    """Remove what a machine leaves behind on host and bridge; its log stays."""
    folder = paths.NODES / name
    names.forget(f"{name} ")
    if (folder / "address").exists():
        address = (folder / "address").read_text()
        subprocess.run(["ip", "addr", "del", f"{address}/32", "dev", "br0"], capture_output=True)
        (folder / "address").unlink()
    shutil.rmtree(folder / "pods", ignore_errors=True)


def delete_lost_nodes(api: Api, alive: set[str]) -> None:
    """Delete every Node whose instance does not exist any more; Karpenter's finalizer may hold it a
    while."""
    for node in api.request("GET", "/api/v1/nodes")["items"]:
        place = node["spec"].get("providerID", "")
        lost = place.startswith("aws:///") and place.rpartition("/")[2] not in alive
        if lost and not node["metadata"].get("deletionTimestamp"):
            api.request("DELETE", f"/api/v1/nodes/{node['metadata']['name']}")


if __name__ == "__main__":
    Fleet(paths.world()).run()
