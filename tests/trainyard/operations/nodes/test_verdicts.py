"""Each line of the script meets what the plan promises; the cause of a bad run is the line that
fails."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.support.recording import CHECKOUT
from trainyard.catalog.aws.storage import Speed
from trainyard.derive.acceptance import SCRIPT, Promise
from trainyard.operations.nodes.verdicts import (
    BEFORE,
    END,
    JUDGES,
    RESULT,
    START,
    Verdict,
    judged,
    parsed,
)

Line = dict[str, Any]
PROMISE = Promise(
    instance_type="p5.48xlarge",
    nodes=3,
    gpus=8,
    efa=32,
    stores={"scratch": Speed(write=2.4e9, read=2.4e9)},
)
ON_CPUS = Promise(instance_type="m7i.4xlarge", nodes=3, gpus=0, efa=0, stores=PROMISE.stores)
NODES = ("node-0", "node-1", "node-2")
SCRIPT_TEXT = (CHECKOUT / SCRIPT).read_text()


def _line(line: str, value: float, unit: str = "", node: str = "", of: str = "") -> Line:
    return {"line": line, "of": of, "node": node, "value": value, "unit": unit}


def healthy() -> list[Line]:
    """Three p5 as they should be: the published curve, less a few percent."""
    of_nodes = [
        ("GPUs", 8, "GPUs"),
        ("EFA devices", 32, "devices"),
        ("uncorrected ECC errors", 0, ""),
        ("rows waiting for remapping", 0, ""),
        ("rows that cannot be remapped", 0, ""),
        ("matrix product", 700, "TFLOPS"),
        ("SM clock", 1980, "MHz"),
        ("ranks over EFA", 8, "ranks"),
        ("sent over EFA", 1.0, "of what it must send"),
        ("pair of nodes", 300, "GB/s"),
    ]
    return [
        *(_line(line, value, unit, node) for line, value, unit in of_nodes for node in NODES),
        _line("all-reduce", 12, "GB/s", of=str(2**20)),
        _line("all-reduce", 275, "GB/s", of=str(2**27)),
        _line("all-reduce", 430, "GB/s", of=str(2**31)),
        _line("write", 2.3, "GB/s", of="scratch"),
        _line("read", 2.4, "GB/s", of="scratch"),
        _line("write", 1.0, "GB/s", of="unknown"),
        _line("checkpoint", 2.1, "GB/s"),
        _line("resumed ranks", 24, "ranks"),
        _line("restart", 21.0, "s"),
    ]


def log_of(now: list[Line], before: list[Line] | None = None, on: str = "cuda") -> str:
    """What the ranks print, with the words of torchrun around it."""
    marked = [("ACCEPT ", line) for line in now] + [("ACCEPT-BEFORE ", b) for b in before or []]
    end = {"nodes": 3, "ranks": 24, "on": on}
    lines = [f"{mark}{json.dumps(line)}" for mark, line in marked]
    return "\n".join(["W1123 torch/distributed …", *lines, f"ACCEPT-END {json.dumps(end)}", ""])


def _judged(
    now: list[Line], promise: Promise = PROMISE, before: list[Line] | None = None, on: str = "cuda"
) -> list[Verdict]:
    results = parsed(log_of(now, before, on))
    assert results
    return judged(results, promise)


def _bad(found: list[Verdict]) -> set[tuple[str, str, str]]:
    return {(v.line, v.node, v.verdict) for v in found if v.verdict in ("fail", "warn")}


def changed(line: str, value: float, node: str | None = None, of: str = "") -> list[Line]:
    """The healthy run with another value of a line, on one node or on all."""
    return [
        each | {"value": value}
        if (each["line"], each["of"]) == (line, of) and node in (None, each["node"])
        else each
        for each in healthy()
    ]


def test_healthy_nodes_pass_and_what_nobody_promised_is_measured() -> None:
    found = _judged(healthy())
    assert _bad(found) == set()
    measured = {(v.line, v.of) for v in found if v.verdict == "measured"}
    assert measured == {
        ("all-reduce", str(2**20)),
        ("write", "unknown"),
        ("checkpoint", ""),
        ("restart", ""),
    }


def test_nodes_that_fell_back_to_tcp_fail_by_speed_by_nccls_log_and_by_counters() -> None:
    now = [
        each | {"value": 12.0 if each["line"] == "all-reduce" else 0.0}
        if each["line"] in ("all-reduce", "ranks over EFA", "sent over EFA")
        else each
        for each in healthy()
    ]
    assert _bad(_judged(now)) == {
        ("all-reduce", "", "fail"),
        *((line, n, "fail") for line in ("ranks over EFA", "sent over EFA") for n in NODES),
    }


@pytest.mark.parametrize(
    ("line", "value", "word"),
    [
        ("GPUs", 7, "fail"),
        ("EFA devices", 31, "fail"),
        ("uncorrected ECC errors", 1, "fail"),
        ("rows waiting for remapping", 1, "fail"),
        ("rows that cannot be remapped", 1, "fail"),
        ("matrix product", 660, "warn"),
        ("matrix product", 590, "fail"),
        ("SM clock", 1800, "warn"),
        ("pair of nodes", 200, "fail"),
        ("ranks over EFA", 7, "fail"),
        ("sent over EFA", 0.8, "fail"),
    ],
)
def test_a_bad_node_is_named_and_no_other(line: str, value: float, word: str) -> None:
    assert _bad(_judged(changed(line, value, "node-1"))) == {(line, "node-1", word)}


@pytest.mark.parametrize(
    ("line", "of", "value"),
    [
        ("all-reduce", str(2**27), 240),
        ("all-reduce", str(2**31), 370),
        ("write", "scratch", 1.8),
        ("read", "scratch", 1.8),
        ("resumed ranks", "", 23),
    ],
)
def test_what_all_nodes_do_together_fails_below_its_floor(line: str, of: str, value: float) -> None:
    assert _bad(_judged(changed(line, value, of=of))) == {(line, "", "fail")}


def _without(*lines: str) -> list[Line]:
    return [each for each in healthy() if each["line"] not in lines]


def test_what_could_not_be_measured_is_not_passed_over() -> None:
    found = _judged(_without("ranks over EFA", "uncorrected ECC errors"))
    assert _bad(found) == {("ranks over EFA", "", "warn"), ("uncorrected ECC errors", "", "warn")}


@pytest.mark.parametrize(
    "line",
    ["uncorrected ECC errors", "rows waiting for remapping", "ranks over EFA", "Lustre over EFA"],
)
def test_a_node_whose_line_could_not_be_measured_is_named(line: str) -> None:
    promised = replace(PROMISE, lustre_over_efa=True)
    lustre = [_line("Lustre over EFA", 1, "", node) for node in NODES]
    now = [e for e in [*healthy(), *lustre] if (e["line"], e["node"]) != (line, "node-1")]
    found = _judged(now, promised)
    assert _bad(found) == {(line, "node-1", "warn")}
    assert [v.why for v in found if v.value is None] == ["could not be measured"]


@pytest.mark.parametrize("nodes", [2, 4])
def test_results_of_another_number_of_nodes_fail(nodes: int) -> None:
    found = _judged(healthy(), replace(PROMISE, nodes=nodes))
    assert _bad(found) == {("nodes", "", "fail")}
    [said] = [v for v in found if v.line == "nodes"]
    assert (said.value, said.bound, said.at_most) == (3, nodes, nodes < 3)


def test_counters_of_efa_that_a_pod_cannot_see_are_not_missed() -> None:
    assert _bad(_judged(_without("sent over EFA"))) == set()


def test_a_node_that_mounts_lustre_over_tcp_against_the_plan_is_named() -> None:
    promised = replace(PROMISE, lustre_over_efa=True)
    lines = [_line("Lustre over EFA", node != "node-1", "", node) for node in NODES]
    assert _bad(_judged([*healthy(), *lines], promised)) == {("Lustre over EFA", "node-1", "fail")}
    assert _bad(_judged([*healthy(), *lines])) == set(), "the plan does not promise it"
    assert _bad(_judged(healthy(), promised)) == {("Lustre over EFA", "", "warn")}


def test_torch_that_sees_no_gpu_of_a_gpu_node_fails() -> None:
    found = _judged(_without("GPUs", "ranks over EFA", "sent over EFA"), on="cpu")
    assert ("matrix product on GPUs", "", "fail") in _bad(found)


def _on_cpus(*products: float) -> list[Line]:
    lines = [("GPUs", 0), ("EFA devices", 0)]
    return [
        *(_line(line, value, node=node) for line, value in lines for node in NODES),
        *(
            _line("matrix product", value, "TFLOPS", node)
            for value, node in zip(products, NODES, strict=False)
        ),
        _line("all-reduce", 0.5, "GB/s", of=str(2**20)),
        _line("write", 0.1, "GB/s", of="scratch"),
    ]


def test_nodes_without_gpus_are_compared_with_each_other_alone() -> None:
    found = _judged(_on_cpus(0.06, 0.05, 0.02), ON_CPUS, on="cpu")
    assert _bad(found) == {("matrix product", "node-2", "fail")}
    assert {v.line for v in found if v.verdict == "measured"} == {"all-reduce", "write"}
    assert {v.line for v in found} & {"GPUs", "EFA devices"} == set(), "none is promised"
    assert all("no GPUs" in v.why for v in found)


def test_of_two_nodes_the_slow_one_is_named() -> None:
    found = _judged(_on_cpus(0.06, 0.02), ON_CPUS, on="cpu")
    assert _bad(found) == {("matrix product", "node-1", "fail")}


@pytest.mark.parametrize(("start", "words"), [(50.0, set()), (90.0, {(START, "node-0", "warn")})])
def test_a_slow_start_is_a_warning(start: float, words: set[tuple[str, str, str]]) -> None:
    """75 s are one and a half times the pull of the catalogue."""
    assert _bad(_judged([*healthy(), _line(START, start, "s", "node-0")])) == words


def test_each_line_has_the_worst_value_of_the_run_before() -> None:
    worse = changed("matrix product", 650, "node-2")
    slower = [each | {"value": 30.0} if each["line"] == "restart" else each for each in worse]
    broken = [*slower, _line("uncorrected ECC errors", 3, node="node-9")]
    found = {(v.line, v.of): v.before for v in _judged(healthy(), before=broken)}
    assert found["uncorrected ECC errors", ""] == 3
    assert found["matrix product", ""] == 650 and found["restart", ""] == 30
    assert found["all-reduce", str(2**27)] == 275
    assert {v.before for v in _judged(healthy())} == {None}, "the first run"


def test_a_fast_node_makes_no_other_slow() -> None:
    assert _bad(_judged(changed("matrix product", 1000, "node-1"))) == set()


def test_a_log_without_its_end_has_no_results() -> None:
    whole = log_of(healthy())
    assert parsed(whole) and parsed(whole.partition("ACCEPT-END")[0]) is None


def test_script_and_reader_mark_lines_alike() -> None:
    """The script imports nothing of ours."""
    assert f"RESULT, BEFORE, END = {json.dumps([RESULT, BEFORE, END])[1:-1]}\n" in SCRIPT_TEXT


@pytest.mark.parametrize("line", sorted(JUDGES.keys() - {START}))
def test_each_line_that_is_judged_is_one_of_the_script(line: str) -> None:
    assert f'"{line}"' in SCRIPT_TEXT


def test_every_verdict_says_what_its_bound_is() -> None:
    assert [v for v in _judged(healthy()) if not v.why] == []
