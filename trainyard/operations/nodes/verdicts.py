"""Results that the script of workloads/accept/ printed, compared with the promises of the plan.
Pure.

The script measures and judges nothing, so a better floor judges an old log as well.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import median_high
from typing import Any, Literal

from trainyard.catalog import acceptance
from trainyard.catalog.aws.latencies import LATENCIES
from trainyard.derive.acceptance import Promise

RESULT, BEFORE, END = "ACCEPT ", "ACCEPT-BEFORE ", "ACCEPT-END "
"""Beginnings of lines of the script: workloads/accept/measure.py."""
START, OVER_EFA, SENT = "pod start", "ranks over EFA", "sent over EFA"
LUSTRE = "Lustre over EFA"
Word = Literal["pass", "warn", "fail", "measured"]


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One result."""

    line: str
    of: str
    """Bytes of an all-reduce, or the name of a store; empty where there is one of the line."""
    node: str
    """Host name of the pod; empty for what all nodes do together."""
    value: float
    unit: str


@dataclass(frozen=True, kw_only=True)
class Results:
    """Everything that a run printed."""

    now: tuple[Measure, ...]
    before: tuple[Measure, ...]
    """Measures of the last earlier run that has kept its results beside these."""
    nodes: int
    ranks: int
    gpus: bool
    """The ranks had GPUs; else they computed on CPUs, and met by gloo."""


@dataclass(frozen=True, kw_only=True)
class Bound:
    """Bound that a value is compared with."""

    fail: float | None = None
    warn: float | None = None
    at_most: bool = False
    """The bounds are upper ones."""
    why: str

    def word(self, value: float) -> Word:
        if self._passed_by(value, self.fail):
            return "fail"
        if self._passed_by(value, self.warn):
            return "warn"
        return "measured" if self.nearest is None else "pass"

    def _passed_by(self, value: float, bound: float | None) -> bool:
        return bound is not None and (value > bound if self.at_most else value < bound)

    @property
    def nearest(self) -> float | None:
        """The one that is reached first."""
        return self.fail if self.warn is None else self.warn


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One line, judged."""

    line: str
    of: str
    node: str
    value: float | None
    """None where the line is missing."""
    unit: str
    bound: float | None
    at_most: bool
    verdict: Word
    why: str
    """Words about the bound, or why there is none."""
    before: float | None
    """The worst value of the line in the last run."""


Judge = Callable[[Measure, Results, Promise], Bound]


def parsed(log: str) -> Results | None:
    """The results in the log of all ranks; None where the script has not come to its end."""
    found: dict[str, list[Any]] = {RESULT: [], BEFORE: [], END: []}
    for text in log.splitlines():
        for mark, lines in found.items():
            if text.startswith(mark):
                lines.append(json.loads(text.removeprefix(mark)))
    if not found[END]:
        return None
    end = found[END][-1]
    return Results(
        now=tuple(Measure(**line) for line in found[RESULT]),
        before=tuple(Measure(**line) for line in found[BEFORE]),
        nodes=end["nodes"],
        ranks=end["ranks"],
        gpus=end["on"] == "cuda",
    )


def judged(results: Results, promise: Promise) -> list[Verdict]:
    """Every result in the order of the script, and what is missing."""
    found = [
        _verdict(measure, JUDGES.get(measure.line, _only_measured), results, promise)
        for measure in results.now
        if measure.value or measure.line not in DEVICES or DEVICES[measure.line](promise)
    ]
    return [*found, *_missing(results, promise)]


def _verdict(measure: Measure, judge: Judge, results: Results, promise: Promise) -> Verdict:
    bound = judge(measure, results, promise)
    before = [m.value for m in results.before if (m.line, m.of) == (measure.line, measure.of)]
    upper = bound.at_most or measure.unit == "s"
    return Verdict(
        line=measure.line,
        of=measure.of,
        node=measure.node,
        value=measure.value,
        unit=measure.unit,
        bound=bound.nearest,
        at_most=bound.at_most,
        verdict=bound.word(measure.value),
        why=bound.why,
        before=(max if upper else min)(before, default=None),
    )


def _missing(results: Results, promise: Promise) -> Iterable[Verdict]:
    """Lines without which nobody knows whether the nodes do what was promised, and another number of
    nodes than the entry asks for."""
    if results.nodes != promise.nodes:
        found = _unjudged("nodes", "", "fail", "the entry's number of nodes")
        more = results.nodes > promise.nodes
        yield replace(found, value=results.nodes, bound=promise.nodes, at_most=more)
    wanted: dict[str, Word] = dict.fromkeys(ERRORS, "warn") if results.gpus else {}
    if promise.efa and results.nodes > 1:
        # Nobody misses SENT: Linux has counters only on a device of the node's own network
        # (is_full_dev in drivers/infiniband/core/sysfs.c), so a pod may see none.
        wanted |= {OVER_EFA: "warn"}
    if promise.lustre_over_efa:
        wanted |= {LUSTRE: "warn"}
    if promise.gpus and not results.gpus:
        wanted |= {"matrix product on GPUs": "fail"}
    for line in sorted(wanted):
        for node in _nodes_without(line, results):
            yield _unjudged(line, node, wanted[line], "could not be measured")


def _nodes_without(line: str, results: Results) -> list[str]:
    """Nodes that have no measure of the line; one empty name where none has."""
    having = {measure.node for measure in results.now if measure.line == line}
    every = {measure.node for measure in results.now if measure.line != START}
    return sorted(every - having - {""}) if having else [""]


def _unjudged(line: str, node: str, verdict: Word, why: str) -> Verdict:
    return Verdict(
        line=line,
        of="",
        node=node,
        value=None,
        unit="",
        bound=None,
        at_most=False,
        verdict=verdict,
        why=why,
        before=None,
    )


def _only_measured(measure: Measure, results: Results, promise: Promise) -> Bound:
    return Bound(why="nothing is promised")


def _devices(measure: Measure, results: Results, promise: Promise) -> Bound:
    return Bound(fail=DEVICES[measure.line](promise), why="the plan's number")


def _errors(measure: Measure, results: Results, promise: Promise) -> Bound:
    return Bound(fail=0, at_most=True, why="sound memory has none")


def _product(measure: Measure, results: Results, promise: Promise) -> Bound:
    middle = _median(measure.line, results)
    if not results.gpus:
        return _of_cpus(middle)
    return Bound(
        fail=acceptance.PRODUCT_FAILS * middle,
        warn=acceptance.PRODUCT_WARNS * middle,
        why=f"{acceptance.PRODUCT_WARNS:.0%} of the gang's median; below"
        f" {acceptance.PRODUCT_FAILS:.0%} it fails",
    )


def _pair(measure: Measure, results: Results, promise: Promise) -> Bound:
    if results.nodes < 3:
        return Bound(why="two nodes are one pair")
    middle = _median(measure.line, results)
    if not results.gpus:
        return _of_cpus(middle)
    return Bound(
        fail=acceptance.PAIR_SHARE * middle,
        why=f"{acceptance.PAIR_SHARE:.0%} of the gang's median",
    )


def _of_cpus(middle: float) -> Bound:
    share = acceptance.CPU_SHARE
    return Bound(fail=share * middle, why=f"no GPUs: {share:.0%} of the gang's own median")


def _clock(measure: Measure, results: Results, promise: Promise) -> Bound:
    fastest = max(m.value for m in results.now if m.line == measure.line)
    share = acceptance.CLOCK_SHARE
    return Bound(warn=share * fastest, why=f"{share:.0%} of the fastest of the gang")


def _all_reduce(measure: Measure, results: Results, promise: Promise) -> Bound:
    if not results.gpus:
        return Bound(why="no GPUs: nothing is published")
    floor = acceptance.all_reduce_floor(promise.instance_type, results.nodes, int(measure.of))
    if floor is None:
        return Bound(why=f"nothing is published for {promise.instance_type} and this size")
    return Bound(
        fail=floor, why=f"{acceptance.PUBLISHED_SHARE:.0%} of the published, for the nodes"
    )


def _over_efa(measure: Measure, results: Results, promise: Promise) -> Bound:
    if not promise.efa:
        return Bound(why="the pods have no EFA devices")
    return Bound(fail=promise.gpus, why="NCCL takes another network: is aws-ofi-nccl in the image?")


def _sent(measure: Measure, results: Results, promise: Promise) -> Bound:
    if not promise.efa:
        return Bound(why="the pods have no EFA devices")
    return Bound(fail=acceptance.EFA_SHARE, why="the rest went over TCP")


def _lustre(measure: Measure, results: Results, promise: Promise) -> Bound:
    if not promise.lustre_over_efa:
        return Bound(why="no store of the job is mounted over EFA")
    return Bound(
        fail=1, why="Lustre is mounted over TCP; the node's console says why (docs/heal.md)"
    )


def _store(measure: Measure, results: Results, promise: Promise) -> Bound:
    speed = promise.stores.get(measure.of)
    if speed is None:
        return Bound(why="the plan knows no speed of the store")
    planned = (speed.write if measure.line == "write" else speed.read) / 1e9
    if not results.gpus:
        return Bound(why=f"no GPUs: the plan's {planned:.3g} GB/s bind nodes with GPUs")
    share = acceptance.STORE_SHARE
    return Bound(fail=share * planned, why=f"{share:.0%} of the plan's {planned:.3g} GB/s")


def _resumed(measure: Measure, results: Results, promise: Promise) -> Bound:
    return Bound(fail=results.ranks, why="each rank reads what it saved")


def _start(measure: Measure, results: Results, promise: Promise) -> Bound:
    usual, times = LATENCIES["job.image-pull"].typical, acceptance.START_SHARE
    return Bound(warn=times * usual, at_most=True, why=f"{times:g} × the usual pull of an image")


def _median(line: str, results: Results) -> float:
    """Median of a line's measures; of two nodes the better figure, which the other is compared
    with."""
    return median_high(m.value for m in results.now if m.line == line)


DEVICES: Mapping[str, Callable[[Promise], int]] = {
    "GPUs": lambda promise: promise.gpus,
    "EFA devices": lambda promise: promise.efa,
}
ERRORS = (
    "uncorrected ECC errors",
    "rows waiting for remapping",
    "rows that cannot be remapped",
)
JUDGES: Mapping[str, Judge] = {
    START: _start,
    **dict.fromkeys(DEVICES, _devices),
    **dict.fromkeys(ERRORS, _errors),
    "matrix product": _product,
    "SM clock": _clock,
    "all-reduce": _all_reduce,
    OVER_EFA: _over_efa,
    SENT: _sent,
    LUSTRE: _lustre,
    "pair of nodes": _pair,
    "write": _store,
    "read": _store,
    "resumed ranks": _resumed,
}
"""Line of the script → its bound. Others are measured only."""
