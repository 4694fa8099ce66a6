"""`trainyard runs STACK [--json | --html FILE]`: print every run that the cluster of a stack knows, and those of its
history: who, what, when, how long, on how many nodes, for how many dollars, and how it ended.

Who knows what: records.py; dollars: spent.py; what scripts say: rank_lines.py.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from trainyard import command_line
from trainyard.catalog.aws.own_prices import LIST, OwnPrices
from trainyard.catalog.logs.cause import Cause, most_told
from trainyard.catalog.logs.log_words import nothing_to_do
from trainyard.catalog.logs.noted import noted
from trainyard.catalog.logs.waiting import WAITING
from trainyard.catalog.versions import TRAINER_RELEASES
from trainyard.derive.jobs import PLACE
from trainyard.operations.reach.kubectl import Kubectl
from trainyard.operations.reach.proxy import asking
from trainyard.operations.reach.rank_logs import cause_on
from trainyard.operations.reach.snapshot import snapshot_of
from trainyard.operations.reach.stack import own_prices
from trainyard.operations.reach.target import answer_of, kubeconfig
from trainyard.operations.runs.beside_plan import beside_plan
from trainyard.operations.runs.described import command_of, image_of, number_of
from trainyard.operations.runs.facts import NOT_KNOWN, NOTHING, Told, share_said, time_said
from trainyard.operations.runs.gpu_use import LACKS, sms_at_work
from trainyard.operations.runs.node_time import AT_LEAST, Run, uid_of
from trainyard.operations.runs.rank_lines import Printed, printed, recorded, together
from trainyard.operations.runs.records import (
    KEPT,
    MISSING,
    UNREADABLE,
    Known,
    records,
    runs_of,
)
from trainyard.operations.runs.reported import HowFar, far_of
from trainyard.operations.runs.runs_page import runs_page
from trainyard.operations.runs.spent import exact_usd, prices_said, spent
from trainyard.operations.runs.sweeps import sweep_of, tables
from trainyard.operations.status.interruptions import Interruption
from trainyard.plans.jobs import GOODPUT
from trainyard.reports.plan import as_json

HEAD = ("RUN", "CREATED", "WAITED", "RAN", "NODES", "", "USD", "", "OUTCOME")
UNKNOWN = Cause("", "")
"""Cause of a run that has not failed, or of which nobody knows why."""
HISTORY = {
    KEPT: "Runs whose job is deleted are those of the history (environment.history).",
    MISSING: (
        "A run whose job is deleted, or replaced by another run, is not here. Fix: write history: {}"
        " under environment of the stack file, which records the runs from then on"
    ),
    UNREADABLE: (
        "Runs whose job is deleted are not here: you cannot read the history of the environment."
    ),
}
"""State of the history → what the list lacks."""
CHANGES = {release.pod_changes for release in TRAINER_RELEASES.values()}
"""Fields with what a TrainJob changes of the pods of its runtime, each of some releases of the Trainer."""
STORES = frozenset(("persistentVolumeClaim", "hostPath", "nfs", "csi"))
"""Kinds of volumes that outlive a pod."""
NOTES = (
    "WAITED: until the first pod had a node. RAN: from then to the end, or until now. Where the first"
    " pods are gone, as after a restart, WAITED is not known, and RAN counts the pods that are there.",
    "What a run resumed from, and its newest checkpoint, are what its rank 0 has printed. Stores are"
    " not read: Lustre and EFS can be reached from pods only.",
)


def main(options: argparse.Namespace) -> int:
    """Return 0, or 1 where the cluster does not answer or another one could be meant."""
    answer = answer_of(lambda: _read(options.stack))
    if answer is None:
        return 1
    known, said, causes, busy = answer
    prices = own_prices(options.stack)
    tell = partial(told, said=said, prices=prices, busy=busy, interrupted=known.interrupted)
    finished = [tell(run, causes=causes, going=False) for run in known.finished]
    runs = [*finished, *(tell(run, going=True) for run in known.going)]
    lacks = (LACKS,) if runs and not busy else ()
    notes = (HISTORY[known.history], *NOTES, *lacks, *prices_said(prices))
    ended = (
        (run, exact_usd(facts.usd, facts.usd_known))
        for run, facts in zip(known.finished, finished, strict=True)
        if not facts.nothing_to_do
    )
    beside = beside_plan(ended, prices)
    if options.html:
        page = runs_page(options.stack, runs, beside.said if beside else "", notes)
        Path(options.html).write_text(page)
        print(options.html)
    elif options.json:
        every = {"runs": runs, "beside_plan": beside, "history": known.history, "notes": notes}
        print(as_json(every))
    else:
        print("\n".join(text(runs, (*([beside.said] if beside else []), *notes))))
    return 0


def _read(
    stack: str,
) -> tuple[Known, Mapping[str, Printed], Mapping[str, Cause], Mapping[str, float]]:
    """Runs, and by uid of their jobs what they print, why they failed, and the use of their GPUs."""
    with asking(kubeconfig(stack)) as kubectl:
        snapshot = snapshot_of(stack, kubectl)
        kept, history = records(kubectl)
        said = together(printed(kubectl, snapshot), recorded(kept))
        known = runs_of(snapshot, kept, history)
        busy = sms_at_work(kubectl, (*known.finished, *known.going))
        causes = {**_causes(kubectl, known.finished), **_of_tries(known.going)}
        return known, said, causes, busy


def _causes(kubectl: Kubectl, finished: Iterable[Run]) -> Mapping[str, Cause]:
    """Reasons why runs failed, by uid of the job; one call for each whose pods are known."""
    failed = [run for run in finished if run.job.state == "Failed"]
    causes = {
        uid_of(run): most_told(
            cause_on(kubectl, run.job.namespace, run.job.pods), noted(run.job.body)
        )
        for run in failed
    }
    return {uid: cause for uid, cause in causes.items() if cause}


def _of_tries(going: Iterable[Run]) -> Mapping[str, Cause]:
    """Reasons why the last try of a run that goes on failed, where an update has noted it."""
    again = {uid_of(run): noted(run.job.body) for run in going if run.job.restarts}
    return {uid: cause for uid, cause in again.items() if cause}


def told(
    run: Run,
    said: Mapping[str, Printed],
    causes: Mapping[str, Cause] = MappingProxyType({}),
    *,
    going: bool,
    prices: OwnPrices = LIST,
    busy: Mapping[str, float] = MappingProxyType({}),
    interrupted: Mapping[str, tuple[Interruption, ...]] = MappingProxyType({}),
) -> Told:
    """Facts about a run. `said`, `causes`, `busy`, `interrupted`: by uid of the job. `prices`: of the stack."""
    cost = spent(run, prices)
    prints, cause = said.get(uid_of(run), Printed()), causes.get(uid_of(run), UNKNOWN)
    began, lost = run.began, interrupted.get(uid_of(run))
    return Told(
        namespace=run.job.namespace,
        job=run.job.name,
        kind=run.job.kind,
        by_stack=bool(run.identity),
        image=image_of(run),
        number=number_of(run),
        command=command_of(run),
        created=run.created,
        waited_seconds=_waited(run, going=going),
        ran_seconds=_seconds(run.ended - began) if began else None,
        ended=None if going else run.ended,
        nodes=run.job.nodes,
        instance_types=cost.instance_types,
        restarts=run.job.restarts,
        evictions=None if lost is None else sum(each.evictions for each in lost),
        interrupted=tuple(map(str, lost or ())),
        gpu_hours=cost.gpu_hours,
        usd=cost.usd,
        usd_known=cost.usd_known,
        usd_planned=cost.planned_usd,
        hours_expected=run.hours_expected,
        outcome=_outcome(run, prints, going=going),
        nothing_to_do=nothing_to_do(prints.nothing_done or "") if _idle(run, prints) else "",
        reason="" if run.job.complete or going else run.job.message,
        why=cause.sentence,
        fix=cause.do,
        resumed_from=prints.resumed_from,
        checkpoint=prints.saved,
        mounts_a_store=_mounts_a_store(run),
        checkpoint_age_seconds=(
            _seconds(run.ended - prints.saved_at) if going and prints.saved_at else None
        ),
        step=prints.step,
        step_seconds=prints.step_seconds,
        goodput_planned=_planned(run),
        goodput_measured=prints.goodput,
        how_far=_how_far(run, prices, prints, going=going),
        sms_at_work=busy.get(uid_of(run)),
        sweep=sweep_of(run.job.body),
        metric=prints.metric,
    )


def _waited(run: Run, *, going: bool) -> int | None:
    """Seconds from its creation to its first pod; None where a restart hides it, or it never had one."""
    if run.known == AT_LEAST or not (run.began or going):
        return None
    return _seconds((run.began or run.ended) - run.created)


def _outcome(run: Run, prints: Printed, *, going: bool) -> str:
    if _idle(run, prints):
        return NOTHING
    return run.job.state if not going or run.began else WAITING


def _idle(run: Run, prints: Printed) -> bool:
    """True for a run that was complete at once, because a run before it had finished."""
    return run.job.complete and prints.nothing_done is not None


def _planned(run: Run) -> float | None:
    said = run.job.body["metadata"].get("annotations", {}).get(GOODPUT)
    return float(said) if said else None


def _mounts_a_store(run: Run) -> bool:
    """False where no volume of the pods outlives them: not in a job's own words, and not by its runtime, which
    mounts one only for a recipe of torchtune, where the job has no command. A TrainJob from before another Trainer
    has lost the field with its volumes, and its pods have them (docs/upgrades.md)."""
    spec = run.job.body["spec"]
    if _keeps_checkpoints(spec) and not spec.keys() & CHANGES:
        return True
    by_runtime = "runtimeRef" in spec and "command" not in spec.get("trainer", {})
    return not run.identity or by_runtime or _has_a_store(spec)


def _keeps_checkpoints(spec: Mapping[str, Any]) -> bool:
    return any(each.get("name") == PLACE for each in spec.get("trainer", {}).get("env") or ())


def _has_a_store(spec: Any) -> bool:
    if isinstance(spec, Mapping):
        return bool(STORES & spec.keys()) or any(map(_has_a_store, spec.values()))
    return isinstance(spec, list) and any(map(_has_a_store, spec))


def text(runs: list[Told], notes: tuple[str, ...]) -> list[str]:
    """A line for each run, and below it what, how it ended, and where it began."""
    tail = [line for note in notes for line in command_line.wrapped(note)]
    if not runs:
        return ["no run is known", *tail]
    head, *rows = command_line.table([HEAD, *map(_row, runs)], indent=0)
    below = [line for row, run in zip(rows, runs, strict=True) for line in (row, *_below(run))]
    return [head, *below, *tables(runs), "", *tail]


def _row(run: Told) -> tuple[str, ...]:
    return (
        f"{run.namespace}/{run.job}",
        run.created.strftime("%Y-%m-%dT%H:%M:%SZ"),
        time_said(run.waited_seconds),
        time_said(run.ran_seconds),
        str(run.nodes),
        ", ".join(run.instance_types) or "-",
        "no price" if run.usd is None else f"{run.usd:,.2f}",
        "" if run.usd is None else run.usd_known,
        run.outcome,
    )


def _below(run: Told) -> list[str]:
    age = run.checkpoint_age_seconds
    old = f", {time_said(age)} ago" if age is not None else ""
    lines = [
        f"{_what(run)}{_again(run)}",
        *([f"starts: {run.command}"] if run.command else []),
        f"resumed from: {run.resumed_from or NOT_KNOWN}; newest checkpoint:"
        f" {run.checkpoint or NOT_KNOWN}{old}{_lost(run)}",
        *(f"interrupted: {sentence}" for sentence in run.interrupted),
        *_beside(run),
        *([f"its script says: {run.how_far}"] if run.how_far else []),
        *_measured(run),
        *([] if run.sms_at_work is None else [f"SMs at work: {share_said(run.sms_at_work)}"]),
        *_why(run),
    ]
    return [each for line in lines for each in command_line.wrapped(line)]


def _what(run: Told) -> str:
    """Number, kind, origin and image of a run."""
    origin = "of a stack file" if run.by_stack else "sent by hand"
    number = "" if run.number is None else f"run {run.number}, "
    return f"{number}{run.kind} {origin}, image {run.image or NOT_KNOWN}"


def _how_far(run: Run, prices: OwnPrices, prints: Printed, *, going: bool) -> HowFar | None:
    return far_of(run, prices, prints.reached) if going else None


def _lost(run: Told) -> str:
    lost = run.checkpoint and not run.mounts_a_store
    return ", which is on no store and ends with its pod" if lost else ""


def _again(run: Told) -> str:
    """Count of restarts of its gang, and of its evictions by Kueue."""
    counts = {"restart": run.restarts, "eviction": run.evictions or 0}
    return "".join(f", {n} {word}{'s' * (n != 1)}" for word, n in counts.items() if n)


def _why(run: Told) -> Iterator[str]:
    """Lines about a run that has failed, or had nothing to do."""
    if run.nothing_to_do:
        yield run.nothing_to_do
    if run.reason:
        yield f"{'its controller says' if run.why else 'why'}: {run.reason}"
    if run.why:
        yield f"{'why' if run.ended else 'why it began again'}: {run.why}"
    if run.fix:
        yield f"fix: {run.fix}"


def _beside(run: Told) -> list[str]:
    """A line about its plan, where its entry says how long it runs."""
    if run.hours_expected is None:
        return []
    usd = "" if run.usd_planned is None else f", {run.usd_planned:,.2f} USD"
    return [f"planned: {time_said(round(run.hours_expected * 3600))}{usd}"]


def _measured(run: Told) -> list[str]:
    """A line, where the history follows what runs print."""
    if run.step is None:
        return []
    each = "" if run.step_seconds is None else f", {run.step_seconds:.3g} s each"
    planned, measured = map(share_said, (run.goodput_planned, run.goodput_measured))
    return [f"step: {run.step}{each}; goodput: planned {planned}, measured {measured}"]


def _seconds(time: timedelta) -> int:
    return max(0, int(time.total_seconds()))
