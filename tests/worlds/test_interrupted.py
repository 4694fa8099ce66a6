"""An upgrade of the control plane, its add-ons and its nodes is stopped at each of its changes in AWS, by ctrl-C
and by kill -9; then `repair` and `up` go on. The engine and the plugins of AWS are the rehearsal's, the cluster
only pretends, so charts are not in it.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
import yaml

from rehearsal import paths
from tests.support.alone import Alone, alone
from tests.worlds.crawl import crawling, names
from tests.worlds.harness import with_l4
from trainyard.catalog import versions

pytestmark = pytest.mark.soak

NAME, REGION = "upgraded", "us-east-2"
BEFORE, AFTER = "1.34", "1.35"
SPEED = 60
"""An add-on takes a second to change, the control plane seven."""
CLAIM = "the last update succeeded"


def _file(version: str) -> str:
    stack = with_l4()
    stack["trainyard:environment"]["cluster"]["version"] = version
    return yaml.safe_dump({"config": stack})


@pytest.fixture
def place() -> Iterator[Alone]:
    """A stack of the older version, whose file asks for the newer one."""
    file = f"Pulumi.{NAME}.yaml"
    with alone(NAME, {file: _file(BEFORE)}) as made:
        assert made.do("up") == 0, made.log.read_text()
        (made.checkout / file).write_text(_file(AFTER))
        made.account.speed(SPEED)
        yield made


class Parts:
    """The parts of the cluster that EKS changes in an upgrade, by the state's names."""

    def __init__(self, place: Alone) -> None:
        self.eks = place.account.client("eks", region=REGION)
        every = place.state()
        [group] = [it["outputs"] for it in every if it["type"] == "aws:eks/nodeGroup:NodeGroup"]
        self.cluster, self.group = group["clusterName"], group["nodeGroupName"]
        add_ons = [it["outputs"] for it in every if it["type"] == "aws:eks/addon:Addon"]
        self.add_ons = [each["addonName"] for each in add_ons]

    def now(self) -> dict[str, Any]:
        """Each part as EKS describes it."""
        of = {"clusterName": self.cluster}
        group = self.eks.describe_nodegroup(**of, nodegroupName=self.group)
        return {
            "control plane": self.eks.describe_cluster(name=self.cluster)["cluster"],
            "node group": group["nodegroup"],
            **{
                name: self.eks.describe_addon(**of, addonName=name)["addon"]
                for name in self.add_ons
            },
        }


class Interrupter:
    """Presses ctrl-C as soon as EKS changes a part at which it has not done so."""

    def __init__(self, place: Alone) -> None:
        self.parts = Parts(place)
        self.stopped: list[str] = []
        self.failed: list[Exception] = []

    @contextmanager
    def watching(self) -> Iterator[None]:
        over = threading.Event()

        def watch() -> None:
            while not over.wait(0.05):
                try:
                    now = self.parts.now()
                except Exception as error:
                    self.failed.append(error)
                    return
                changing = [name for name, it in now.items() if it["status"] == "UPDATING"]
                if new := [name for name in changing if name not in self.stopped]:
                    self.stopped += new
                    os.kill(os.getpid(), signal.SIGINT)
                    return

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def _repair_said() -> str:
    return (paths.LOGS / "repair.log").read_text()


def _is_upgraded(place: Alone) -> None:
    """The account has what the file asks for, and nothing is left to change."""
    now = Parts(place).now()
    assert now["control plane"]["version"] == now["node group"]["version"] == AFTER
    for name in ("vpc-cni", "kube-proxy", "eks-pod-identity-agent", "coredns"):
        assert now[name]["addonVersion"] == versions.KUBERNETES[AFTER].add_ons[name]
    shown = place.pulumi("preview", "--expect-no-changes")
    assert "no changes are expected" not in shown and "error" not in shown, shown


def test_ctrl_c_at_each_change_of_an_upgrade_is_gone_on_from(place: Alone) -> None:
    interrupter, status = Interrupter(place), None
    for turn in range(12):
        stopped = len(interrupter.stopped)
        with suppress(KeyboardInterrupt), interrupter.watching():
            status = place.do("up")
        if turn:
            assert CLAIM not in _repair_said()
        if len(interrupter.stopped) == stopped:
            break
    assert status == 0, place.log.read_text()
    assert interrupter.failed == []
    assert interrupter.stopped[0] == "control plane" and len(interrupter.stopped) >= 3
    _is_upgraded(place)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_at_each_change_of_an_upgrade_is_gone_on_from(
    when: str, place: Alone, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PYTHONPATH", "TRAINYARD_CRAWL"):  # no later test is to be killed
        monkeypatch.setenv(name, "")
    with crawling() as crawl:
        crawl.aim(when, 0, 1)
        hit, status = list[str](), None
        for turn in range(20):
            status, killed = place.do("up"), crawl.hits()
            if turn:
                assert CLAIM not in _repair_said(), names(hit)
            hit += killed
            if not killed:
                break
        crawl.rest()
    assert status == 0, place.log.read_text()
    assert any("aws:eks/cluster:Cluster" in point for point in hit), names(hit)
    assert len(hit) >= 3, names(hit)  # what is under way beside a hit is killed with it
    _is_upgraded(place)
