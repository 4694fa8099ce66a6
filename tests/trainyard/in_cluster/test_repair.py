"""trainyard/in_cluster/repair against an API server that is a dictionary: what it does to nodes, pods, claims."""

from __future__ import annotations

import copy
import threading
import time
from types import ModuleType
from typing import Any

import pytest

from tests.support.metrics import RECORDED
from tests.support.patience import PATIENCE, until
from tests.support.programs import program_fixture
from tests.support.repair_server import TRAINS, Object, Server, leaving, now, repair
from trainyard.objects.programs.repair import NOTE, TAINT
from trainyard.plans.jobs import SHELL

program = program_fixture("repair")


@pytest.fixture
def server(program: ModuleType) -> Server:
    return Server(program)


@pytest.fixture
def clock(program: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(program.time, "monotonic", lambda: now[0])
    return now


def test_healthy_nodes_are_left_alone(server: Server) -> None:
    server.run("p", "n0", **{"jobset.sigs.k8s.io/jobset-name": "j"})
    repair(server).step()
    assert server.writes == []


def test_a_node_whose_gpu_is_lost_is_tainted_its_gang_ended_and_its_claim_deleted(
    server: Server,
) -> None:
    server.run("p0", "n0", **{"jobset.sigs.k8s.io/jobset-name": "j"})
    server.run("p1", "n1", **{"jobset.sigs.k8s.io/jobset-name": "j"})
    server.run("daemon", "n0")
    server.sicken("n0", "NvidiaXID79Error")
    repair(server).step()
    assert leaving(server) == ["c0"]
    assert (
        "karpenter.sh/nodeclaim-termination-timestamp"
        in server.claims["c0"]["metadata"]["annotations"]
    )
    assert [t["key"] for t in server.nodes["n0"]["spec"]["taints"]] == ["nvidia.com/gpu", TAINT]
    assert server.graces == {"p0": 5}, "JobSet ends the rest of the gang, and DaemonSets stay"
    assert [what for _, what in server.writes].index("nodes/n0") < [
        what for _, what in server.writes
    ].index("namespaces/t/pods/p0"), "otherwise the gang could start anew on the same node"


IO_ERROR = "BlockDeviceIOError: I/O error detected on block device nvme1n1 at sector 2048"


def test_a_node_whose_disk_cannot_be_read_is_replaced_though_the_agent_says_it_in_an_event(
    server: Server,
) -> None:
    server.warn("n0", IO_ERROR, "2026-11-23T09:00:00Z")
    repair(server).step()
    assert leaving(server) == ["c0"]
    assert "BlockDeviceIOError: I/O error" in server.nodes["n0"]["metadata"]["annotations"][NOTE]


def test_events_that_ask_for_nothing_or_are_older_than_the_node_replace_none(
    server: Server,
) -> None:
    server.warn("n0", IO_ERROR, "2026-11-23T07:59:59Z")
    server.warn(
        "n1", "EFAErrorMetric: retrans_pkts increased from 0 to 9000", "2026-11-23T09:00:00Z"
    )
    server.warn("n2", "NvidiaXID94Warning: it broke", "2026-11-23T09:00:00Z")
    repair(server).step()
    assert leaving(server) == []


def test_all_pods_of_a_pytorch_job_end_because_its_operator_restarts_one_alone(
    server: Server,
) -> None:
    for rank in range(3):
        server.run(f"p{rank}", f"n{rank}", **{"training.kubeflow.org/job-name": "j"})
    server.run("other", "n3", **{"training.kubeflow.org/job-name": "other"})
    server.sicken("n1", "NvidiaXID48Error")
    repair(server).step()
    assert server.graces == {"p0": 5, "p1": 5, "p2": 5}


def workers(server: Server, nodes: str, *command: str) -> None:
    """A PyTorchJob of four Workers with an elasticPolicy, as the training-operator v1.8.1 makes its pods."""
    where = {"PET_RDZV_ENDPOINT": "j-worker-0:23456", "PET_NNODES": nodes}
    env = [{"name": name, "value": value} for name, value in where.items()]
    for rank in range(4):
        pod = f"j-worker-{rank}"
        server.run(pod, f"n{rank}", **{"training.kubeflow.org/job-name": "j"})
        server.pods[pod]["spec"]["containers"] = [{"command": [*command], "env": env}]


@pytest.mark.parametrize(
    ("nodes", "sick", "ended"),
    [("2:4", "n1", 1), ("2:4", "n0", 4), ("4:4", "n1", 4), ("4", "n1", 4)],
    ids=["elastic", "the node where its ranks meet", "of one size", "not elastic"],
)
def test_of_an_elastic_job_only_the_pod_of_the_sick_node_ends(
    nodes: str, sick: str, ended: int, server: Server
) -> None:
    workers(server, nodes)
    server.sicken(sick, "NvidiaXID48Error")
    repair(server).step()
    assert len(server.graces) == ended and f"j-worker-{sick[1]}" in server.graces


def test_an_elastic_job_that_meets_at_a_server_loses_one_pod_with_any_node(server: Server) -> None:
    workers(server, "2:4", "torchrun", "--rdzv_backend=etcd-v2", "--rdzv_endpoint=etcd:2379")
    server.warn("n0", "Spot interruption warning was triggered", now(), "SpotInterrupted")
    server.claims["c0"]["metadata"]["deletionTimestamp"] = now()
    repair(server).step()
    assert server.graces == {"j-worker-0": 30}


def test_a_spot_notice_ends_gangs_with_their_own_grace_once_karpenter_deletes_the_node(
    server: Server,
) -> None:
    for rank in range(2):
        server.run(f"p{rank}", f"n{rank}", **{"training.kubeflow.org/job-name": "j"})
    server.warn("n1", "Spot interruption warning was triggered", now(), "SpotInterrupted")
    program = repair(server)
    program.step()
    assert (server.graces, leaving(server)) == ({}, [])
    server.claims["c1"]["metadata"]["deletionTimestamp"] = now()
    program.step()
    assert server.graces == {"p0": 30, "p1": 30}
    assert not server.history and "annotations" not in server.claims["c1"]["metadata"]
    assert "SpotInterrupted" in server.nodes["n1"]["metadata"]["annotations"][NOTE]


def test_after_a_spot_notice_pods_that_the_operator_creates_again_are_left_alone(
    server: Server,
) -> None:
    for rank in range(2):
        server.run(f"p{rank}", f"n{rank}", **{"training.kubeflow.org/job-name": "j"})
    server.warn("n1", "Spot interruption warning was triggered", now(), "SpotInterrupted")
    server.claims["c1"]["metadata"]["deletionTimestamp"] = now()
    program = repair(server)
    program.step()
    server.run("p0", "n0", **{"training.kubeflow.org/job-name": "j"})
    server.graces.clear()
    program.step()
    assert server.graces == {}


def test_its_metrics_are_those_that_alerts_ask_for(server: Server) -> None:
    server.sicken("n0", "NvidiaXID79Error")
    program = repair(server)
    program.step()
    recorded = (RECORDED / "trainyard-repair.prom").read_text().splitlines()[1:]
    assert program.metrics().splitlines() == recorded


def test_a_rank_of_a_pytorch_job_that_failed_at_once_ends_the_others_once(server: Server) -> None:
    for rank in range(2):
        server.run(f"p{rank}", f"n{rank}", **{"training.kubeflow.org/job-name": "j"})
    server.pods["p1"]["status"]["phase"] = "Failed"
    server.sicken("n1", "NvidiaXID79Error")
    program = repair(server)
    program.step()
    assert server.graces == {"p0": 5}
    server.run("p0", "n0", **{"training.kubeflow.org/job-name": "j"})
    program.step()
    assert "deletionTimestamp" not in server.pods["p0"]["metadata"], "it is the new one"


def test_a_second_look_repeats_nothing(server: Server) -> None:
    server.run("p0", "n0", **{"jobset.sigs.k8s.io/jobset-name": "j"})
    server.sicken("n0", "NvidiaXID79Error")
    program = repair(server)
    program.step()
    before = list(server.writes)
    program.step()
    assert server.writes == before
    assert len(server.events) == 1


def test_more_broken_nodes_than_the_limit_are_left_and_said(server: Server) -> None:
    for node in ("n0", "n1"):
        server.sicken(node, "FabricManagerNotRunning")
    program = repair(server)
    program.step()
    assert leaving(server) == ["c0"], "a fifth of 4 nodes is 1"
    assert "not replaced" in server.nodes["n1"]["metadata"]["annotations"][NOTE]
    assert 'sick_node="n1",sick_pool="h100",reason="FabricManagerNotRunning",state="held"' in (
        program.metrics()
    )


def test_no_more_nodes_than_a_large_limit_are_replaced_in_an_hour(program: ModuleType) -> None:
    """Its history keeps 50 entries, and those of the last hour however many they are."""
    server = Server(program, nodes=70)
    for node in server.nodes:
        server.sicken(node, "NvidiaXID79Error")
    repair(server, nodes_an_hour=60).step()
    assert len(leaving(server)) == 60


def test_a_program_that_starts_anew_remembers_what_it_has_replaced(server: Server) -> None:
    server.sicken("n0", "NvidiaXID79Error")
    repair(server).step()
    server.sicken("n1", "NvidiaXID79Error")
    repair(server).step()
    assert leaving(server) == ["c0"]


def test_after_an_hour_the_next_node_is_replaced(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.sicken("n0", "NvidiaXID79Error")
    program = repair(server)
    program.step()
    real = time.time
    monkeypatch.setattr(server.program.time, "time", lambda: real() + 3601)
    server.sicken("n1", "NvidiaXID79Error")
    program.step()
    assert leaving(server) == ["c0", "c1"]


def test_a_node_that_cannot_be_written_does_not_hold_up_the_next_one(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for node in ("n0", "n1"):
        server.sicken(node, "NvidiaXID79Error")
    ask = server.ask

    def conflict(method: str, path: str, body: Any = None, kind: str = "json") -> Object:
        if path == "/api/v1/nodes/n0":
            raise server.program.ApiError(409, "changed since")
        return ask(method, path, body, kind)

    monkeypatch.setattr(server, "ask", conflict)
    repair(server, nodes_an_hour=2).step()
    assert leaving(server) == ["c1"]


def test_the_setting_allows_more(server: Server) -> None:
    for node in server.nodes:
        server.sicken(node, "NvidiaXID79Error")
    repair(server, nodes_an_hour=3).step()
    assert leaving(server) == ["c0", "c1", "c2"]


def test_a_node_that_works_on_is_replaced_when_its_run_has_ended(server: Server) -> None:
    server.run("p0", "n0", **{"jobset.sigs.k8s.io/jobset-name": "j"})
    server.sicken("n0", "NvidiaXID63Error")
    program = repair(server)
    program.step()
    assert leaving(server) == [] and server.graces == {}
    assert TAINT in [t["key"] for t in server.nodes["n0"]["spec"]["taints"]]
    server.pods["p0"]["status"]["phase"] = "Succeeded"
    program.step()
    assert leaving(server) == ["c0"]


def test_a_pod_that_ends_for_ever_is_removed_by_force(server: Server, clock: list[float]) -> None:
    """The node controller deletes pods of a lost node, and nobody is there to say that they ended."""
    server.run("p0", "n0", **TRAINS)
    server.pods["p0"]["metadata"]["deletionTimestamp"] = now()
    program = repair(server)
    for _ in range(22):
        server.beat("n0")
        program.step()
        clock[0] += 3
    assert server.graces == {"p0": 0}


def test_an_api_server_that_was_away_makes_no_node_dead(server: Server, clock: list[float]) -> None:
    program = repair(server)
    program.step()
    server.away = True
    with pytest.raises(server.program.ApiError):
        program.step()
    clock[0] += 120
    server.away = False
    for _ in range(9):
        program.step()
        clock[0] += 3
    assert server.writes == [], "no lease was renewed while nobody could"


def test_a_node_without_a_claim_is_not_touched(server: Server) -> None:
    server.sicken("n0", "NvidiaXID79Error")
    server.claims.clear()
    repair(server).step()
    assert server.writes == []


def test_conditions_of_others_are_not_its_business(server: Server) -> None:
    server.sicken("n0", "KubeletHasDiskPressure", kind="DiskPressure")
    repair(server).step()
    assert server.writes == []


@pytest.fixture
def gang(server: Server) -> Server:
    """Two runs of two ranks, one of each kind, whose containers started 11 minutes ago."""
    for rank in range(2):
        server.run(f"j{rank}", f"n{rank}", **{"jobset.sigs.k8s.io/jobset-name": "j"})
        server.run(f"k{rank}", f"n{rank}", **{"training.kubeflow.org/job-name": "k"})
    server.run("daemon", "n0")
    server.started(11 * 60)
    return server


def test_a_run_that_logs_nothing_for_long_starts_anew_and_no_other(gang: Server) -> None:
    gang.logs["k1"] = "step 7"
    repair(gang, hung_minutes=10).start_anew()
    assert gang.graces == {"j0": 5, "j1": 5}
    [said] = gang.events
    assert said == (
        "j stands still: its pods run, and none has logged a line for 10 minutes; the gang starts anew"
        " (j0 on n0, j1 on n1)"
    )
    assert any("container=node&sinceSeconds=600&tailLines=1" in path for path in gang.asked)


def test_a_run_on_nodes_of_others_is_left(gang: Server) -> None:
    """In an existing cluster its owner may have jobs that are silent for longer."""
    for name in ("k0", "k1"):
        gang.pods[name]["spec"]["nodeName"] = "theirs"
    repair(gang, hung_minutes=10).start_anew()
    assert gang.graces == {"j0": 5, "j1": 5} and len(gang.events) == 1


def test_by_default_a_run_that_stands_still_is_left_and_nobody_s_log_is_read(gang: Server) -> None:
    repair(gang).start_anew()
    assert gang.writes == [] and gang.asked == []


@pytest.mark.parametrize("young", [(9 * 60, True), (11 * 60, False)])
def test_a_run_that_has_just_started_or_waits_is_left(
    gang: Server, young: tuple[float, bool]
) -> None:
    ago, runs = young
    others = copy.deepcopy(gang.pods)
    gang.started(ago, runs=runs)
    for name in ("j0", "k0"):  # one rank is young, and the other is not
        gang.pods[name] = others[name]
    repair(gang, hung_minutes=10).start_anew()
    assert gang.graces == {}


BAR = "\r 40%|████      | 40/100 [03:20<05:00,  5.01s/it]" * 300
"""A part of a bar of progress, as containerd cuts it off: it has no end of the line."""


@pytest.mark.parametrize(
    ("minutes", "lines", "stands_still"),
    [
        (90, [(40, BAR), (14, BAR)], False),
        (90, [(80, BAR), (54, BAR)], True),
        (51, [(25, BAR)], False),
        (79, [(53, BAR)], True),
        (60, [(40, "loads\n"), (14, BAR)], False),
        (60, [(40, "loads\n"), (14, f"{BAR}\n")], True),
        (60, [(40, "loads\n"), (14, "step 7\n")], True),
    ],
)
def test_a_run_that_draws_a_bar_has_twice_the_time_of_its_last_line(
    gang: Server, minutes: float, lines: list[tuple[float, str]], stands_still: bool
) -> None:
    """A bar is no line before it has drawn 16 KiB: at 5 s a step that takes 26 minutes."""
    gang.started(minutes * 60)
    gang.lines["j0"] = [(ago * 60, line) for ago, line in lines]
    repair(gang, hung_minutes=10).start_anew()
    assert ("j0" in gang.graces) == stands_still and "k0" in gang.graces


def test_a_run_that_draws_a_bar_is_asked_again_when_that_time_is_over(
    gang: Server, clock: list[float]
) -> None:
    gang.started(90 * 60)
    gang.logs["k0"] = "step 7"
    gang.lines["j1"] = [(40 * 60, BAR), (14 * 60, BAR)]
    program = repair(gang, hung_minutes=10)
    program.start_anew()
    gang.asked.clear()
    clock[0] += 37 * 60
    program.start_anew()
    assert [path.split("/")[-2] for path in gang.asked] == ["k0"]
    clock[0] += 2 * 60
    program.start_anew()
    assert any("/j1/" in path for path in gang.asked)


def test_a_terminal_of_make_shell_may_be_silent(gang: Server) -> None:
    for name in ("k0", "k1"):
        gang.pods[name]["metadata"]["labels"][SHELL] = "true"
    repair(gang, hung_minutes=10).start_anew()
    assert gang.graces == {"j0": 5, "j1": 5}


def test_a_run_whose_logs_cannot_be_read_is_left(gang: Server) -> None:
    gang.deaf = True
    repair(gang, hung_minutes=10).start_anew()
    assert gang.graces == {} and gang.asked


def test_a_run_whose_pods_end_already_is_not_told_again(gang: Server) -> None:
    program = repair(gang, hung_minutes=10)
    program.start_anew()
    gang.events.clear()
    program._hangs._looked = -1000.0
    program.start_anew()
    assert gang.events == []


def test_a_run_that_logs_is_asked_again_after_half_of_the_minutes(
    gang: Server, clock: list[float]
) -> None:
    gang.logs = {"j1": "step 7", "k0": "step 7"}
    program = repair(gang, hung_minutes=10)
    for _ in range(99):
        program.start_anew()
        clock[0] += 3
    assert [path.split("/")[-2] for path in gang.asked] == ["j0", "j1", "k0"]
    gang.asked.clear()
    clock[0] += 6
    program.start_anew()
    assert [path.split("/")[-2] for path in gang.asked] == ["j1", "k0"], "who spoke is asked first"
    assert gang.graces == {}


def test_a_run_with_a_line_in_the_older_half_of_the_minutes_is_asked_at_each_look(
    gang: Server, clock: list[float]
) -> None:
    gang.logs = dict.fromkeys(gang.pods, "step 7")
    gang.ages = dict.fromkeys(gang.pods, 400.0)
    program = repair(gang, hung_minutes=10)
    for _ in range(2):
        program.start_anew()
        clock[0] += 15
    assert gang.graces == {}
    gang.ages = dict.fromkeys(gang.pods, 601.0)
    program.start_anew()
    assert {*gang.graces} == {"j0", "j1", "k0", "k1"}


def test_a_node_that_does_not_answer_says_nothing_about_the_next_look(
    gang: Server, clock: list[float]
) -> None:
    program = repair(gang, hung_minutes=10)
    gang.deaf = True
    program.start_anew()
    gang.deaf = False
    clock[0] += 15
    program.start_anew()
    assert {*gang.graces} == {"j0", "j1", "k0", "k1"}


def test_a_node_that_is_gone_is_asked_for_one_log_in_a_look(
    gang: Server, clock: list[float]
) -> None:
    """Its API server dials the kubelet for ten seconds, and it may have a run on each GPU."""
    gang.slow = {"n0": lambda: clock.__setitem__(0, clock[0] + 10)}
    program = repair(gang, hung_minutes=10)
    program.start_anew()
    assert len(gang.asked) == 1 and gang.graces == {}
    gang.slow.clear()
    clock[0] += 15
    program.start_anew()
    assert {*gang.graces} == {"j0", "j1", "k0", "k1"}, "the next look asks it again"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_leases_are_looked_at_while_a_log_does_not_come(
    gang: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Ended(Exception):
        pass

    asked, come, answered, looks = threading.Event(), threading.Event(), list[str](), list[int]()

    def text(path: str, otherwise: str) -> str:
        asked.set()
        come.wait(PATIENCE)
        answered.append(path)
        raise Ended

    def step() -> None:
        looks.append(1)
        if len(looks) == 3:
            asked.wait(PATIENCE)
            raise Ended

    program, sleep = repair(gang, hung_minutes=10), time.sleep
    monkeypatch.setattr(gang, "text", text)
    monkeypatch.setattr(program, "step", step)
    monkeypatch.setattr(gang.program.time, "sleep", lambda _: sleep(0.01))
    with pytest.raises(Ended):
        program.run()
    assert answered == [] and program.goes_on()
    come.set()
    assert until(lambda: not program.goes_on()), "kubelet begins a program anew that reads no logs"


def test_logs_are_looked_at_four_times_a_minute(gang: Server, clock: list[float]) -> None:
    gang.ages = dict.fromkeys(gang.pods, 400.0)
    gang.logs = dict.fromkeys(gang.pods, "step 7")
    program = repair(gang, hung_minutes=10)
    for _ in range(20):
        program.start_anew()
        clock[0] += 3
    of_one_look = 2 * (2 + 1)
    assert len(gang.asked) == 4 * of_one_look, "the first pod that has logged ends the question"
