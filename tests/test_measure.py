"""workloads/accept/measure.py measures for real: three nodes of one process, gloo, on this machine."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.support.ports import free_port
from tests.workloads_train.runs import WORKLOADS
from trainyard.derive.acceptance import FRESH_STORE
from trainyard.operations.nodes.verdicts import parsed

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="real training needs torch: make train-real"
)

SCRIPT = WORKLOADS / "accept" / "measure.py"
NODES = 3


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("measure", SCRIPT)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _run(store: Path, run: int) -> str:
    """The logs of a run, of all nodes."""
    port = free_port()
    agents = [
        subprocess.Popen(
            [
                Path(sys.executable).with_name("torchrun"),
                *(f"--nnodes={NODES}", "--nproc_per_node=1", "--max_restarts=3"),
                *("--rdzv_backend=c10d", f"--rdzv_endpoint=127.0.0.1:{port}", "--rdzv_id=accept"),
                *(SCRIPT, f"--store=scratch={store}"),
            ],
            env=os.environ
            | FRESH_STORE
            | {
                "HOSTNAME": f"node-{node}",
                "OMP_NUM_THREADS": "1",
                "CHECKPOINT_DIR": str(store / "accept" / str(run)),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for node in range(NODES)
    ]
    return "".join(agent.communicate()[0] for agent in agents)


def test_a_killed_rank_resumes_and_the_results_are_kept_beside_those_of_the_last_run(
    tmp_path: Path,
) -> None:
    for run, seconds in ((1, 7.0), (2, 8.0)):
        last = {"line": "restart", "of": "", "node": "", "value": seconds, "unit": "s"}
        (kept := tmp_path / "accept" / str(run) / "results.json").parent.mkdir(parents=True)
        kept.write_text(json.dumps({"at": run, "results": [last]}))
    log = _run(tmp_path, 3)
    results = parsed(log)
    assert results, log
    values = {(one.line, one.of, one.node): one.value for one in results.now}
    assert values["resumed ranks", "", ""] == results.ranks == results.nodes == NODES
    assert [one.value for one in results.before] == [8.0], "of the newest run"
    alone = [values["matrix product", "", f"node-{node}"] for node in range(NODES)]
    together = [values[line, "scratch", ""] for line in ("write", "read")]
    sizes = [values["all-reduce", str(size), ""] for size in (2**16, 2**20, 2**23)]
    assert min(*alone, *together, *sizes, values["restart", "", ""]) > 0
    assert [file.name for file in (tmp_path / "accept" / "3").iterdir()] == ["results.json"]
    assert [file.name for file in tmp_path.iterdir()] == ["accept"], "what it wrote is deleted"


@pytest.mark.parametrize("nodes", range(2, 10))
def test_each_node_meets_both_neighbours_and_one_at_a_time(script: ModuleType, nodes: int) -> None:
    rounds = script.rounds(nodes)
    for together in rounds:
        busy = [node for pair in together for node in pair]
        assert len(busy) == len({*busy})
    met = sorted(tuple(sorted(pair)) for together in rounds for pair in together)
    ring = {tuple(sorted((n, (n + 1) % nodes))) for n in range(nodes)}
    assert met == sorted(ring) and len(rounds) <= 3


def _alone(**more: Any) -> SimpleNamespace:
    """A gang of one rank."""
    return SimpleNamespace(rank=0, gathered=lambda mine: [mine], **more)


def test_a_checkpoint_that_is_not_the_one_that_was_saved_does_not_count(
    script: ModuleType, tmp_path: Path
) -> None:
    torch = importlib.import_module("torch")
    torch.save(torch.ones(8), tmp_path / "rank-0.pt")
    for data, same in ((torch.ones(8), 1), (torch.zeros(8), 0)):
        state = {"results": [], "hashes": [script.digest(data)], "at": 0}
        [resumed, _] = script.resumed(_alone(), tmp_path, state)
        assert (resumed["line"], resumed["value"]) == ("resumed ranks", same)


def test_what_an_older_run_left_is_not_resumed(script: ModuleType, tmp_path: Path) -> None:
    assert script.began_with(tmp_path) is None
    for age, found in ((10, True), (2 * script.RESTART_SECONDS, False)):
        state = {"results": [], "hashes": [], "at": script.time.time() - age}
        (tmp_path / "progress.json").write_text(json.dumps(state))
        assert (script.began_with(tmp_path) is not None) == found


@pytest.mark.parametrize(
    ("said", "found"), [("No", 0.0), ("Yes", 1.0), ("3", 3.0), ("[N/A]", None), ("", None)]
)
def test_what_nvidia_smi_says_is_a_number_or_unknown(
    script: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    said: str,
    found: float | None,
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\necho '{said}'\n")
    program.chmod(0o755)
    gang = _alone(kind="cuda", device=SimpleNamespace(index=3))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert script.asked(gang, "gpu", "clocks.sm") == found
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert script.asked(gang, "gpu", "clocks.sm") is None


@pytest.mark.parametrize(
    ("sound", "ranks", "found"),
    [
        (0, [0.0, 0.0], 0.0),
        (0, [0.0, None], None),
        (0, [3.0, None], 3.0),
        (1, [1.0, 1.0], 2.0),
        (1, [1.0, None], None),
        (1, [0.0, None], 0.0),
        (1, [None, None], None),
        (None, [2.0, None], 2.0),
    ],
)
def test_a_node_of_which_a_rank_knows_nothing_is_measured_only_where_another_rank_fails(
    script: ModuleType, sound: float | None, ranks: list[float | None], found: float | None
) -> None:
    gang = SimpleNamespace(nodes=[[0, 1], [2, 3]], hosts=["a", "b"])
    gang.gathered = lambda mine: [*ranks, 0.0, 1.0]
    measures = script.Gang.by_node(gang, "", None, "", sum, sound=sound)
    values = {one["node"]: one["value"] for one in measures}
    assert values == {"b": 1.0} | ({} if found is None else {"a": found})


def test_bytes_are_those_of_all_efa_devices_and_unknown_without_one(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "OF_NODE", tmp_path)
    assert script.sent() is None
    for device, counters in {
        "rdmap0": {"tx_bytes": 5, "rdma_write_bytes": 70, "rx_bytes": 9000},
        "rdmap1": {"tx_bytes": 600},
    }.items():
        (folder := tmp_path / device / "ports" / "1" / "hw_counters").mkdir(parents=True)
        for name, count in counters.items():
            (folder / name).write_text(f"{count}\n")
    assert script.sent() == 675


@pytest.mark.parametrize(
    ("modules", "found"),
    [
        ({}, None),
        ({"lnet": "1"}, 0),
        ({"lnet": "1", "kefalnd": "0"}, 0),
        ({"lnet": "1", "kefalnd": "8"}, 1),
    ],
    ids=["no Lustre", "TCP", "EFA that was given up", "EFA"],
)
def test_the_kernel_says_whether_lustres_network_has_efa(
    script: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    modules: dict[str, str],
    found: float | None,
) -> None:
    monkeypatch.setattr(script, "MODULES", tmp_path)
    for name, users in modules.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "refcnt").write_text(f"{users}\n")
    assert script.lustre_over_efa() == found


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("p:1:9 [0] NCCL INFO NET/OFI Selected provider is efa, fabric is efa (found 32 nics)", 1),
        ("p:1:9 [0] NCCL INFO NET/OFI Selected Provider is efa-direct (found 16 nics)", 1),
        ("p:1:9 [0] NCCL INFO NET/OFI Selected Provider is tcp;ofi_rxm (found 1 nics)", 0),
        ("p:1:9 [0] NCCL INFO Using network Socket", 0),
        ("p:1:9 [0] NCCL INFO Using network IB", None),
        ("", None),
    ],
)
def test_the_log_of_nccl_says_whether_it_takes_efa(
    script: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    said: str,
    found: float | None,
) -> None:
    monkeypatch.setattr(script, "NCCL_SAYS", tmp_path / "nccl")
    assert script.takes_efa() is None
    (tmp_path / f"nccl.{os.getpid()}").write_text(f"NCCL version 2.27.7\n{said}\n")
    assert script.takes_efa() == found


@pytest.mark.parametrize(
    ("share", "nodes", "found"), [(1.0, 2, 1.0), (0.5, 2, 0.5), (1.0, 1, None)]
)
def test_what_went_over_efa_is_compared_with_the_data_that_each_node_sends(
    script: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    share: float,
    nodes: int,
    found: float | None,
) -> None:
    (folder := tmp_path / "rdmap0" / "ports" / "1" / "hw_counters").mkdir(parents=True)
    counter = folder / "tx_bytes"
    counter.write_text("1000")
    monkeypatch.setattr(script, "OF_NODE", tmp_path)

    def sends(gang: object, size: int, ranks: int) -> float:
        times = script.TURNS + script.WARM_UP
        counter.write_text(str(int(counter.read_text()) + int(share * size * times)))
        return 1.0

    monkeypatch.setattr(script, "bus_speed", sends)
    gang = SimpleNamespace(
        kind="cpu",
        memory=None,
        ranks=nodes,
        nodes=[[node] for node in range(nodes)],
        agreed=lambda mine: mine,
        by_node=lambda line, mine, unit, pick, sound=None: [(line, mine)],
    )
    assert [*script.all_reduces(gang)][-1] == ("sent over EFA", found)
