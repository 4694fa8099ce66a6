"""Page at the end of `trainyard prove`: where the plan was right, where it erred, and which rows of the
catalogue this would change."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from statistics import median

from trainyard.catalog.aws.latencies import LATENCIES, proven_of, with_proven
from trainyard.command_line import table, wrapped
from trainyard.operations.prove.record import PlannedStage, Proof, Seen
from trainyard.operations.prove.steps import NAMES

FAST = 0.5
"""Part of the planned median below which the plan erred, too: somebody waits for what is there already."""
MOVES = 0.02
"""Part by which a figure of the catalogue must change to be named."""
CATALOGUE = "trainyard/catalog/aws/latencies.py"


def page(proof: Proof) -> str:
    """The page, from the file alone."""
    versions = ", ".join(f"{name} {version}" for name, version in proof.versions.items())
    where = "an AWS account" if proof.live else "no AWS account: its times say nothing of AWS"
    sections = (
        [f"proof of {proof.began[:10]}: {proof.region}, {proof.zone}, on {where}", f"  {versions}"],
        _steps(proof),
        _stages(proof),
        _named("where the plan erred", _errors(proof)),
        _named(f"rows of {CATALOGUE} that this would change", _rows(proof)),
        _nodes(proof),
        _named(
            "refused, word for word",
            [f"{s.name}: {each}" for s in proof.steps for each in s.refusals],
        ),
        _accepted(proof),
        _named("left", proof.left if proof.over else ["not looked for yet"]),
        [f"spent: {proof.usd} of at most {proof.limit_usd} USD", *wrapped(f"by {proof.priced}")],
    )
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _named(title: str, lines: Iterable[str]) -> list[str]:
    found = [part for line in lines for part in _indented(line)]
    return [title, *(found or ["  nothing"])]


def _indented(line: str) -> list[str]:
    return [part for each in line.splitlines() for part in wrapped(each)]


def _steps(proof: Proof) -> list[str]:
    rows = [("STEP", "STATE", "MINUTES", "USD", "AT MOST")]
    for name in NAMES:
        step = proof.step(name)
        if step is None:
            rows.append((name, "not tried", "-", "-", "-"))
        else:
            most = step.most_usd if float(step.most_usd) else "-"
            rows.append((name, step.state, f"{step.seconds / 60:.1f}", step.usd, most))
    return ["steps", *table(rows)]


def seconds_of(seen: Iterable[Seen], row: str) -> list[float]:
    """Durations of a row."""
    return [one.seconds for one in seen if one.row == row]


def verdict(stage: PlannedStage, seconds: float) -> str:
    """Words for a duration beside its plan; empty where the plan was right."""
    times = f"{seconds / stage.typical:.1f} times the planned {stage.typical:,.0f} s"
    if seconds > stage.slow:
        return f"{times}, and above one in ten, {stage.slow:,.0f} s"
    return f"only {times}" if seconds < FAST * stage.typical else ""


def _of_plan(proof: Proof) -> Iterator[tuple[PlannedStage, float, int]]:
    """Each planned stage that was seen, with the median and the number of its durations."""
    for stage in proof.plan:
        if found := seconds_of(proof.seen, stage.row or stage.stage):
            yield stage, median(found), len(found)


def _stages(proof: Proof) -> list[str]:
    rows = [("STAGE", "PLANNED", "ONE IN TEN", "LOGS", "SEEN", "TIMES", "PLAN")]
    for stage, seconds, times in _of_plan(proof):
        erred = "erred" if verdict(stage, seconds) else "right"
        planned = (f"{stage.typical:,.0f}", f"{stage.slow:,.0f}", str(stage.logs))
        rows.append((stage.stage, *planned, f"{seconds:,.0f}", str(times), erred))
    if len(rows) == 1:
        return ["stages: none was seen"]
    return ["stages, in seconds; several of a kind by their median", *table(rows)]


def _errors(proof: Proof) -> Iterator[str]:
    for stage, seconds, _ in _of_plan(proof):
        if why := verdict(stage, seconds):
            yield f"{stage.stage}: {seconds:,.0f} s, {why}"


def _rows(proof: Proof) -> Iterator[str]:
    """Rows whose median or 90th percentile moves, or that only people wrote of before."""
    proven = [*proven_of(dataclasses.asdict(proof))]
    for name in dict.fromkeys(one.row for one in proof.seen if one.row in LATENCIES):
        before = LATENCIES[name]
        after = with_proven(before, [one for one in proven if one.row == name])
        moved = any(
            abs(new / old - 1) > MOVES
            for new, old in ((after.typical, before.typical), (after.slow, before.slow))
        )
        if moved or not before.n:
            yield (
                f"{name}: typical {before.typical:g} → {after.typical:g}, slow {before.slow:g} →"
                f" {after.slow:g}, n {before.n} → {after.n}"
            )


def _nodes(proof: Proof) -> list[str]:
    kinds = dict.fromkeys(
        (n.instance_type, n.system, f"kernel {n.kernel}", n.kubelet, f"{n.gpus} GPUs, {n.efa} EFA")
        for n in proof.nodes
    )
    said = [f"{pool}: {line}" for pool, lines in proof.probes.items() for line in lines]
    return ["nodes", *table(kinds), *(f"  {line}" for line in said)] if kinds else []


def _accepted(proof: Proof) -> list[str]:
    lines = [
        (str(v.get("line")), _figure(v.get("value")), str(v.get("unit") or ""), str(v["verdict"]))
        for v in proof.verdicts
    ]
    return ["accept", *table(dict.fromkeys(lines))] if lines else []


def _figure(value: str | float | bool | None) -> str:
    return f"{value:.4g}" if isinstance(value, int | float) else "-"
