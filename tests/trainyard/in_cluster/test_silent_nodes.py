"""trainyard/in_cluster/repair and nodes whose kubelets renew no lease: who is waited for, and who is dead."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from tests.support.programs import program_fixture
from tests.support.repair_server import TRAINS, UNREACHABLE, Server, leaving, now, repair
from trainyard.objects.programs.repair import NOTE, TAINT

program = program_fixture("repair")
LOOK = 3


@pytest.fixture
def clock(program: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(program.time, "monotonic", lambda: now[0])
    return now


class World:
    """Six nodes, a gang's pod on each, and the program. The node controller taints who is silent."""

    def __init__(self, program: ModuleType, clock: list[float]) -> None:
        self.server = Server(program, nodes=6)
        for name in self.server.nodes:
            self.server.run(f"p{name[1:]}", name, **TRAINS)
        self.program, self.clock, self.repair = program, clock, repair(self.server)
        self.silent_for = dict.fromkeys(self.server.nodes, 0)
        self.dead: set[str] = set()

    def word(self, node: str, *, works: bool, words: str) -> None:
        said = sys.modules[self.program.Silence.__module__].Word(works=works, words=words)
        self.server.ec2[f"i-{node[1:]}"] = said

    def works(self, *nodes: str) -> None:
        for node in nodes:
            self.word(node, works=True, words="EC2 says that its instance runs")

    def go_on(self, seconds: int, *silent: str) -> None:
        """The program looks for so long, while those nodes and the dead ones say nothing."""
        quiet = {*silent, *self.dead}
        for _ in range(seconds // LOOK):
            self.clock[0] += LOOK
            self.server.beat(*quiet)
            for name in self.server.nodes:
                self.silent_for[name] = self.silent_for[name] + LOOK if name in quiet else 0
                if self.silent_for[name] > 50:
                    self.server.taint(name)
            self.repair.step()

    @property
    def noted(self) -> dict[str, str]:
        nodes = self.server.nodes.items()
        notes = {name: node["metadata"]["annotations"].get(NOTE) for name, node in nodes}
        return {name: note for name, note in notes.items() if note}

    @property
    def evicts(self) -> list[str]:
        """Nodes whose pods the node controller would end."""
        return [
            name
            for name, node in self.server.nodes.items()
            if {"key": UNREACHABLE, "effect": "NoExecute"} in node["spec"]["taints"]
        ]


@pytest.fixture
def world(program: ModuleType, clock: list[float]) -> World:
    return World(program, clock)


HALF = ("n0", "n1", "n2")


@pytest.mark.parametrize("ec2", ["says that all run", "says nothing"])
@pytest.mark.parametrize("seconds", [45, 240])
def test_half_of_the_kubelets_that_lose_one_api_server_lose_no_gang(
    world: World, seconds: int, ec2: str
) -> None:
    """A kubelet needs 45 s to notice that its connection is dead, and 10 s to the next renewal."""
    if ec2 == "says that all run":
        world.works(*world.server.nodes)
    world.go_on(9)
    world.go_on(seconds + 12, *HALF)
    assert (leaving(world.server), world.server.graces) == ([], {})
    assert world.evicts == []
    world.go_on(30)
    assert (leaving(world.server), world.server.graces) == ([], {})
    assert world.noted == {} and not world.server.history


def test_a_dead_node_beside_them_goes_as_soon_as_ec2_says_so(world: World) -> None:
    world.works(*world.server.nodes)
    world.dead.add("n5")
    world.go_on(150, *HALF)
    assert leaving(world.server) == []
    world.word("n5", works=False, words="EC2 says that its instance status is impaired")
    world.go_on(LOOK, *HALF)
    assert leaving(world.server) == ["c5"] and world.server.graces == {"p5": 0}
    assert world.noted["n5"] == (
        "KubeletSilent: its kubelet says nothing, and EC2 says that its instance status is impaired;"
        " replaced"
    )
    made = [what for _, what in world.server.writes]
    assert TAINT in [taint["key"] for taint in world.server.nodes["n5"]["spec"]["taints"]]
    assert made.index("nodes/n5") < made.index("namespaces/t/pods/p5")
    world.go_on(90)
    assert leaving(world.server) == ["c5"] and world.noted.keys() == {"n5"}


def test_a_dead_node_beside_them_goes_in_the_end_where_ec2_says_nothing(world: World) -> None:
    world.dead.add("n5")
    world.go_on(240, *HALF)
    assert leaving(world.server) == []
    world.go_on(72)
    assert leaving(world.server) == ["c5"] and world.server.graces == {"p5": 0}


def test_who_fell_silent_with_others_is_waited_for_though_the_others_speak_again(
    world: World,
) -> None:
    world.go_on(48, *HALF)
    world.go_on(60, "n0")
    assert leaving(world.server) == []


@pytest.mark.parametrize("state", ["stopped", "terminated"])
def test_a_node_whose_instance_ec2_has_ended_goes_after_half_a_minute(
    world: World, state: str
) -> None:
    world.dead.add("n0")
    world.word("n0", works=False, words=f"EC2 says that its instance is {state}")
    world.go_on(30)
    assert leaving(world.server) == []
    world.go_on(2 * LOOK)
    assert leaving(world.server) == ["c0"] and world.server.graces == {"p0": 0}


def test_a_bad_word_of_ec2_ends_no_node_whose_kubelet_speaks(world: World) -> None:
    world.word("n0", works=False, words="EC2 says that its instance status is impaired")
    world.go_on(120)
    assert world.server.writes == []


def test_one_silent_node_goes_after_a_minute_where_ec2_says_nothing(world: World) -> None:
    world.dead.add("n0")
    world.go_on(60)
    assert leaving(world.server) == [] and world.server.asked_ec2
    world.go_on(2 * LOOK)
    assert leaving(world.server) == ["c0"] and world.server.graces == {"p0": 0}


def test_one_silent_node_whose_instance_runs_is_waited_for_and_said(world: World) -> None:
    world.works("n0")
    world.dead.add("n0")
    world.go_on(294)
    assert leaving(world.server) == [] and world.server.graces == {} and world.evicts == []
    [said] = world.server.events
    assert (
        said
        == world.noted["n0"]
        == (
            "KubeletSilent: its kubelet has said nothing for 60 seconds; waited for until 300 seconds have"
            " passed, because EC2 says that its instance runs"
        )
    )
    assert 'sick_node="n0",sick_pool="h100",reason="KubeletSilent",state="waiting"' in (
        world.repair.metrics()
    )
    world.go_on(12)
    assert leaving(world.server) == ["c0"] and world.server.graces == {"p0": 0}


def test_an_idle_node_that_karpenter_ends_is_not_called_sick(world: World) -> None:
    """Karpenter keeps the node until EC2 says that its instance is terminated, which takes a p5 15 minutes."""
    del world.server.pods["p0"]
    for name in ("0", "1"):
        world.server.claims[f"c{name}"]["metadata"]["deletionTimestamp"] = now()
        world.word(f"n{name}", works=False, words="EC2 says that its instance is shutting-down")
    world.go_on(600, "n0", "n1")
    assert "n0" not in world.noted and "n0" not in world.repair.metrics()
    assert not any("n0" in what for _, what in world.server.writes)
    assert world.server.graces == {"p1": 0}, "a pod of a run that is still there is ended by force"


def test_several_are_told_that_they_may_have_one_cause(world: World) -> None:
    world.go_on(75, *HALF)
    assert {note.partition("because ")[2] for note in world.noted.values()} == {
        "other nodes fell silent at the same time"
    }


def test_what_broke_before_a_node_fell_silent_counts(world: World) -> None:
    world.works("n0")
    world.server.sicken("n0", "NvidiaXID79Error")
    world.go_on(LOOK, "n0")
    assert world.server.graces == {"p0": 5}
    del world.server.claims["c0"]["metadata"]["deletionTimestamp"]
    world.server.history = None
    world.go_on(63, "n0")
    assert world.server.graces == {"p0": 0}, "nobody is there to end its pods"


def test_pods_of_a_held_node_stay(world: World) -> None:
    world.dead |= {"n0"}
    world.go_on(90)
    world.dead |= {"n1", "n2"}
    world.go_on(330)
    assert leaving(world.server) == ["c0", "c1"], "a fifth of 6 nodes is 2"
    assert "not replaced" in world.noted["n2"] and "n2" not in world.evicts
    world.dead -= {"n2"}
    world.go_on(LOOK)
    assert "n2" not in world.noted


def test_a_program_that_was_blind_asks_and_waits_from_then_on(
    world: World, clock: list[float]
) -> None:
    world.works("n0")
    world.go_on(60, "n0")
    clock[0] += 200
    world.go_on(290, "n0")
    assert leaving(world.server) == []


def test_nothing_is_asked_of_ec2_while_all_speak(world: World) -> None:
    world.go_on(120)
    assert world.server.asked_ec2 == []
