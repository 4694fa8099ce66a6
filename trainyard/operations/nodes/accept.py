"""`trainyard accept STACK [--pool POOL]`: judge what the acceptance job of a pool has measured on its nodes,
line by line; where the stack file has no such job, say what it costs, ask, and write it.

The job is an entry of the stack file: planned, priced, checked and queued like any other
(trainyard/derive/acceptance.py). So it runs with the next update, not by this command.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path

from trainyard import command_line
from trainyard.catalog.job_kinds import ENDED
from trainyard.catalog.logs.first_end import container_statuses
from trainyard.catalog.logs.xids import REPLACE
from trainyard.derive.acceptance import promise
from trainyard.operations.nodes.acceptance_entry import Entry, EntryError, acceptance_job, new_entry
from trainyard.operations.nodes.verdicts import START, Measure, Results, Verdict, judged, parsed
from trainyard.operations.reach.chosen import Chosen, NoSuchJob, choose
from trainyard.operations.reach.consent import ask
from trainyard.operations.reach.kubectl import Kubectl, Object, kubectl_with
from trainyard.operations.reach.place import reached
from trainyard.operations.reach.snapshot import condition_of, last_condition
from trainyard.operations.reach.stack import Stack, read_stack
from trainyard.operations.reach.target import update_command
from trainyard.problems import Refused
from trainyard.reports.plan import as_json

NOTHING = "Nothing was changed."
HEAD = ("LINE", "NODE", "VALUE", "BOUND", "LAST RUN", "VERDICT", "")
UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


class NoResults(RuntimeError):
    """There is nothing to judge; the message says what to do."""


def main(options: argparse.Namespace) -> int:
    """Return 0 where no line fails or the entry was written; 1 where one fails, there are no results
    yet, or the cluster does not answer; 2 where there is no terminal to ask."""
    try:
        stack = read_stack(options.stack)
        name = acceptance_job(stack, options.pool)
        if name is None:
            entry = new_entry(stack, options.pool, options.nodes, options.image)
            return _proposed(entry, yes=options.yes, live=options.live)
        if options.nodes or options.image:
            raise EntryError(
                f"--nodes and --image are for a new entry, and jobs.{name} exists. Fix: change"
                f" {stack.file}"
            )
        return _judged(stack, name, live=options.live, for_programs=options.json)
    except (EntryError, FileNotFoundError, Refused, RuntimeError) as error:
        print(error, file=sys.stderr)
        return 1


def _proposed(entry: Entry, *, yes: bool, live: bool) -> int:
    """Print an entry and its price, ask, and write it."""
    print(f"{entry.price}\n\n{entry.text}")
    if code := ask(f"Write this into {entry.file}?", yes=yes, otherwise=NOTHING):
        return code
    Path(entry.file).write_text(entry.changed)
    print(
        f"next: {update_command(entry.stack, live)}, then {_again(entry.stack, entry.pool, live)}"
    )
    return 0


def _judged(stack: Stack, name: str, *, live: bool, for_programs: bool) -> int:
    """Print the verdict of each line."""
    job = stack.jobs[name]
    update = update_command(stack.name, live)
    with reached(stack.name, to=sys.stderr) as cluster:
        kubectl = kubectl_with(cluster.login, "--request-timeout=60s")
        try:
            chosen = choose(kubectl, cluster.place, cluster.entries, name)
        except NoSuchJob:
            raise NoResults(f"jobs.{name} has not run. Fix: {update}") from None
        pods = _pods(kubectl, chosen)
        results = _results(kubectl, chosen, pods, f"{name} --stack {stack.name}")
        nodes = _nodes(kubectl, pods)
    verdicts = [
        dataclasses.replace(verdict, node=nodes.get(verdict.node, verdict.node))
        for verdict in judged(results, promise(job, stack.environment, stack.region))
    ]
    failed = [verdict for verdict in verdicts if verdict.verdict == "fail"]
    if for_programs:
        print(as_json({"job": name, "nodes": results.nodes, "verdicts": verdicts}))
        return 1 if failed else 0
    print(f"jobs.{name}: {results.nodes} nodes of pool {job.pool}, {results.ranks} ranks\n")
    print("\n".join(command_line.table([HEAD, *map(_row, _shown(verdicts))], indent=0)))
    print("\n".join(["", *_ending(failed, name, stack.name, update, live)]))
    return 1 if failed else 0


def _pods(kubectl: Kubectl, job: Chosen) -> list[Object]:
    where = (f"--namespace={job.namespace}", f"--selector={job.selector}")
    return json.loads(kubectl("get", "pods", *where, "--output=json"))["items"]


def _results(kubectl: Kubectl, job: Chosen, pods: list[Object], words: str) -> Results:
    """Output of the job, and the starts of its pods; NoResults where it has not come to its end."""
    state = last_condition(job.body)["type"]
    where = (f"--namespace={job.namespace}", f"--selector={job.selector}")
    log = (
        kubectl("logs", *where, "--all-containers", "--tail=-1", "--ignore-errors") if pods else ""
    )
    results = parsed(log)
    if results is None and state in ENDED:
        raise NoResults(
            f"{job} has ended ({state}) without all of its results. It needs an image with torch, and"
            f" pods whose logs are still there. Fix: trainyard logs {words} shows what it printed"
        )
    if results is None:
        raise NoResults(f"{job} has not ended ({state}). Fix: trainyard logs {words} --follow")
    return dataclasses.replace(results, now=(*_starts(pods), *results.now))


def _starts(pods: Iterable[Object]) -> Iterable[Measure]:
    """Seconds from a pod's node to the start of its container: images and mounts."""
    for pod in pods:
        states = [state for one in container_statuses(pod) for state in one["state"].values()]
        scheduled = condition_of(pod, "PodScheduled").get("lastTransitionTime")
        started = [state["startedAt"] for state in states if state.get("startedAt")]
        if scheduled and started:
            took = datetime.fromisoformat(min(started)) - datetime.fromisoformat(scheduled)
            seconds = took.total_seconds()
            yield Measure(line=START, of="", node=_host(pod), value=seconds, unit="s")


def _host(pod: Object) -> str:
    """The name that a pod's programs see."""
    return pod["spec"].get("hostname") or pod["metadata"]["name"]


def _nodes(kubectl: Kubectl, pods: Iterable[Object]) -> Mapping[str, str]:
    """Host name of a pod → its node and the node's instance. A team sees nodes by name only."""
    names = {_host(pod): pod["spec"].get("nodeName", "") for pod in pods}
    try:
        found = json.loads(kubectl("get", "nodes", "--output=json"))["items"]
    except RuntimeError:
        found = []
    ids = {
        node["metadata"]["name"]: node["spec"].get("providerID", "").rpartition("/")[2]
        for node in found
    }
    return {
        host: f"{name} ({ids[name]})" if ids.get(name) else name
        for host, name in names.items()
        if name
    }


def _shown(verdicts: list[Verdict]) -> Iterable[Verdict]:
    """One row for each line that all nodes pass, with the worst of them; else the nodes that do not
    pass."""
    lines = dict.fromkeys((verdict.line, verdict.of) for verdict in verdicts)
    for line in lines:
        every = [verdict for verdict in verdicts if (verdict.line, verdict.of) == line]
        bad = [verdict for verdict in every if verdict.verdict in ("fail", "warn")]
        if bad or len(every) == 1:
            yield from bad or every
            continue
        pick = max if every[0].at_most or every[0].unit == "s" else min
        worst = pick(every, key=lambda verdict: verdict.value or 0)
        yield dataclasses.replace(worst, node=f"worst of {len(every)}")


def _row(verdict: Verdict) -> tuple[str, ...]:
    bound = (
        "-" if verdict.bound is None else f"{'≤' if verdict.at_most else '≥'} {verdict.bound:.4g}"
    )
    return (
        f"{verdict.line} {_size(verdict.of)}".rstrip(),
        verdict.node or "all",
        "-" if verdict.value is None else f"{verdict.value:.4g} {verdict.unit}".rstrip(),
        bound,
        _last(verdict),
        verdict.verdict,
        verdict.why,
    )


def _last(verdict: Verdict) -> str:
    """The last run's worst value, and how far this one is from it."""
    if verdict.before is None or verdict.value is None:
        return "-"
    if not verdict.before:
        return f"{verdict.before:.4g}"
    return f"{verdict.before:.4g} ({verdict.value / verdict.before - 1:+.0%})"


def _size(of: str) -> str:
    """Bytes as people say them; a store's name as it is."""
    if not of.isdigit():
        return of
    return next((f"{int(of) // unit} {name}" for unit, name in UNITS if int(of) >= unit), of)


def _ending(failed: list[Verdict], name: str, stack: str, update: str, live: bool) -> list[str]:
    """The verdict in a sentence, and the next command."""
    again = f"trainyard again {name} --stack {stack}{' --live' * live}, then {update}"
    if not failed:
        return ["accepted", f"to measure again: {again}"]
    nodes = sorted({verdict.node for verdict in failed if verdict.node})
    return [
        f"not accepted: {', '.join(dict.fromkeys(f'{v.line} {_size(v.of)}'.rstrip() for v in failed))}",
        *(f"node {node}: {REPLACE}" for node in nodes),
        f"next: trainyard status {stack}{' --live' * live}; to measure again: {again}",
    ]


def _again(stack: str, pool: str, live: bool) -> str:
    return f"trainyard accept {stack} --pool {pool}{' --live' * live}"
