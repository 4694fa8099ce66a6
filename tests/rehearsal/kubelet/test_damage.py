"""What breaks on a machine, and what the stand-in of the node monitoring agent says of it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rehearsal import paths
from rehearsal.commands.faults import BREAKS
from rehearsal.kubelet import broken_stores, damage, ranks
from rehearsal.kubelet.damage import Damage
from rehearsal.kubelet.node import GPU
from tests.support.patience import until
from trainyard.catalog.repair import CONDITIONS, EVENTS, FATAL_XIDS


class Kubelet:
    """A node with GPUs, and pods of the agent and of its server of DCGM."""

    def __init__(self, folder: Path, *daemons: str) -> None:
        self.folder, self.name, self.unhealthy_gpus = folder, "n0", 0
        self.devices = {GPU: 8}
        self.pods: dict[str, Any] = {f"uid-{name}": _daemon(name) for name in daemons}
        self.events: list[str] = []
        self.dead = False
        self.api = SimpleNamespace(request=self._request)

    def die(self) -> None:
        self.dead = True

    def log(self, line: str) -> None: ...

    def _request(self, method: str, path: str, body: Any) -> None:
        self.events.append(body["message"])


def _daemon(name: str) -> Any:
    return SimpleNamespace(
        meta={"labels": {"k8s-app": name}},
        obj={"metadata": {}},
        containers=[SimpleNamespace(process=object())],
    )


def machine(tmp_path: Path, *daemons: str) -> tuple[Kubelet, Any]:
    kubelet = Kubelet(tmp_path, *daemons)
    return kubelet, Damage(kubelet)  # type: ignore[arg-type]


def broken(conditions: list[dict[str, Any]]) -> list[str]:
    return [each["reason"] for each in conditions if each["status"] == "False"]


def test_the_agent_says_that_all_is_well(tmp_path: Path) -> None:
    _, made = machine(tmp_path, damage.AGENT, damage.DCGM)
    conditions = made.conditions()
    assert [each["type"] for each in conditions] == list(CONDITIONS)
    assert broken(conditions) == []


@pytest.mark.parametrize("number", FATAL_XIDS)
def test_a_fatal_xid_makes_a_condition_false_until_the_agent_starts_anew(
    tmp_path: Path, number: int
) -> None:
    kubelet, made = machine(tmp_path, damage.AGENT, damage.DCGM)
    made.conditions()
    made._xid(number)
    assert broken(made.conditions()) == [f"NvidiaXID{number}Error"] == broken(made.conditions())
    kubelet.pods["uid-other"] = kubelet.pods.pop(f"uid-{damage.AGENT}")
    assert broken(made.conditions()) == []


def test_without_the_agent_nobody_says_anything(tmp_path: Path) -> None:
    _, made = machine(tmp_path)
    made._xid(79)
    assert made.conditions() == []


def test_another_xid_is_an_event_and_its_gpu_stays(tmp_path: Path) -> None:
    kubelet, made = machine(tmp_path, damage.AGENT, damage.DCGM)
    made.conditions()
    made._xid(31)
    assert broken(made.conditions()) == []
    assert kubelet.events == ["NvidiaXID31Warning: a GPU reported Xid 31"]
    assert kubelet.unhealthy_gpus == 0


def test_a_broken_efa_device_is_an_event_after_the_agent_s_next_look_at_its_counters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubelet, made = machine(tmp_path, damage.AGENT, damage.DCGM)
    monkeypatch.setattr(damage, "EFA_SECONDS", 0.05)
    made.conditions()
    made._efa_down()
    assert kubelet.events == [], "the agent has not looked"
    until(lambda: kubelet.events)
    assert kubelet.events == [damage.EFA_EVENT] and broken(made.conditions()) == []


def test_a_broken_disk_is_an_event_and_no_condition(tmp_path: Path) -> None:
    kubelet, made = machine(tmp_path, damage.AGENT, damage.DCGM)
    made.conditions()
    made._nvme_gone()
    assert [text.partition(":")[0] for text in kubelet.events] == [*EVENTS]
    assert broken(made.conditions()) == []


def test_every_fault_that_the_command_knows_happens_and_no_other(tmp_path: Path) -> None:
    _, made = machine(tmp_path)
    assert {*made._acts} == {*BREAKS}


def test_the_device_plugin_gives_the_gpu_of_a_fatal_xid_to_nobody(tmp_path: Path) -> None:
    kubelet, made = machine(tmp_path, damage.AGENT, damage.DCGM)
    made._xid(79)
    assert kubelet.unhealthy_gpus == 1


def test_where_the_server_of_dcgm_tolerates_no_taint_a_healthy_node_is_called_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, made = machine(tmp_path, damage.AGENT)
    assert broken(made.conditions()) == []
    now = time.monotonic()
    monkeypatch.setattr(damage.time, "monotonic", lambda: now + 21)
    assert broken(made.conditions()) == ["DCGMError"]


def test_a_slow_node_computes_in_one_look_of_five_until_it_is_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, made = machine(tmp_path)
    done: list[str] = []
    monkeypatch.setattr(ranks, "stop", lambda _: done.append("stops"))
    monkeypatch.setattr(ranks, "go_on", lambda _: done.append("goes on"))
    monkeypatch.setattr(ranks, "training", lambda _: [(None, None, None)])
    made._acts["node-slow"]({})
    for made._looks in range(10):
        for act in made._lasting.values():
            made._each(act)
    assert done == ["goes on", *["stops"] * 4] * 2
    done.clear()
    made._acts["mended"]({})
    assert done == ["goes on"] and not made._lasting


def test_whoever_uses_a_file_system_that_is_away_stands_still_until_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, made = machine(tmp_path)
    done: list[str] = []
    monkeypatch.setattr(ranks, "go_on", lambda _: done.append("goes on"))
    monkeypatch.setattr(ranks, "training", lambda _: [(None, None, None)])
    made._acts["store-away"]({})
    assert [*made._lasting] == ["away"] and broken_stores.state(tmp_path) == "away"
    made._acts["mended"]({})
    assert done == ["goes on"] and not made._lasting and not broken_stores.state(tmp_path)


def test_a_machine_does_what_its_file_says_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubelet, made = machine(tmp_path, damage.AGENT, damage.DCGM)
    (tmp_path / paths.DAMAGE).write_text(json.dumps({"kind": "kubelet-dead"}) + "\n")
    looks = iter([None, None])

    def sleep(_: float) -> None:
        if next(looks, StopIteration) is StopIteration:
            raise InterruptedError

    monkeypatch.setattr(damage.time, "sleep", sleep)
    deaths: list[None] = []
    kubelet.die = lambda: deaths.append(None)  # type: ignore[method-assign]
    with pytest.raises(InterruptedError):
        made.follow()
    assert len(deaths) == 1
