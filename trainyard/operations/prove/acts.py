"""Actions of the steps of `trainyard prove`: the words of this tool, the engine, and a look at the cluster."""

from __future__ import annotations

import argparse
import io
import json
import time
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout, suppress
from typing import Any

import yaml

from trainyard.catalog.job_kinds import ENDED
from trainyard.catalog.scalars import as_file
from trainyard.operations.prove import left as leftovers
from trainyard.operations.prove.hour import Failed, Hour, NothingMade, Output
from trainyard.operations.prove.record import PlannedStage, Seen, iso
from trainyard.operations.prove.seen import (
    Object,
    added,
    after_first_node,
    boots,
    node_of,
    operations,
    pulls,
    refusals,
)
from trainyard.operations.prove.steps import CPU, GPU, JOB, environment_of, settings_of
from trainyard.operations.reach.chosen import Chosen, NoSuchJob, choose
from trainyard.operations.reach.kubectl import Kubectl, kubectl_with
from trainyard.operations.reach.place import reached
from trainyard.operations.reach.pulumi import PulumiError, deployment, pulumi
from trainyard.operations.reach.snapshot import last_condition
from trainyard.plan import EnvironmentPlan
from trainyard.reports import check
from trainyard.reports.minutes.draws import logs
from trainyard.reports.minutes.timeline import drawn, schedule
from trainyard.reports.stack_file import planned_file

MARK = "prove: "
"""Begins each line of PROBE, among whatever else is printed."""
PROBE = "; ".join(
    (
        f'echo "{MARK}kernel $(uname -r)"',
        f'echo "{MARK}Lustre client $(cat /sys/fs/lustre/version 2>/dev/null || echo none)"',
        f'grep -E " (lustre|nfs4) " /proc/mounts | cut -d" " -f1-3 | sed "s/^/{MARK}mount /"',
        f'ls /sys/class/infiniband 2>/dev/null | sed "s/^/{MARK}device of EFA /"',
        "nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null"
        f' | sed "s/^/{MARK}GPU and driver /"',
        "true",
    )
)
"""Command in a pod: kernel, Lustre client, over which network a store is mounted, EFA, GPU."""
PROBE_MINUTES = "20"
POLL_SECONDS = 5
LOG_LINES = 20
"""Lines of the end of each log, which tell why there are no results."""
KEPT_OF_A_VERDICT = ("line", "of", "value", "unit", "bound", "at_most", "verdict", "why")
"""Fields of a line of `trainyard accept`; its node is a name."""


def questions(hour: Hour, resumed: bool) -> None:
    """Ask the account what `trainyard check --live` asks."""
    key, config = environment_of(hour.file)
    _write(hour, settings_of(hour.step, config, key))
    said = io.StringIO()
    with redirect_stdout(said):
        code = check.main(argparse.Namespace(stack=hour.stack, deadline=None, asks=True))
    print(said.getvalue(), end="", flush=True)
    hour.proof.answers = said.getvalue().splitlines()
    if code:
        errors = [line.strip() for line in hour.proof.answers if line.lstrip().startswith("error")]
        raise Failed("\n".join(errors) or hour.proof.answers[-1])


def small(hour: Hour, resumed: bool) -> None:
    """The first `up`, and a pod on a node without a GPU."""
    _build(hour, resumed)
    _probe(hour, CPU)


def gpu(hour: Hour, resumed: bool) -> None:
    """Lustre and a GPU pool, and a pod on one node."""
    _build(hour, resumed)
    _probe(hour, GPU)


def run(hour: Hour, resumed: bool) -> None:
    """The acceptance job, to its end. Results that are missing are kept as a refusal. Failed where a line
    fails, and on an account where there are no results; in a rehearsal the image may have no torch."""
    key, config = environment_of(hour.file)
    _write(hour, settings_of(hour.step, config, key))
    if JOB not in (config[key].get("jobs") or {}):
        words = ("--pool", GPU, "--nodes", "2", "--image", hour.image, "--yes")
        _good(hour.tool("accept", *words))
    _build(hour, resumed)
    log = _await_job(hour)
    judged = hour.tool("accept", "--pool", GPU, "--json")
    if found := _json(judged.out):
        hour.proof.verdicts = [
            {name: each.get(name) for name in KEPT_OF_A_VERDICT} for each in found["verdicts"]
        ]
    else:
        hour.done.refusals += [judged.why, *filter(None, (log,))]
    hour.proof.status = hour.tool("status").out.splitlines()
    _look(hour)
    lines = found["verdicts"] if found else []
    if failed := dict.fromkeys(each["line"] for each in lines if each["verdict"] == "fail"):
        raise Failed(f"the nodes are not accepted: {', '.join(failed)}")
    if not found and hour.live:
        raise Failed(judged.why)


def destroy(hour: Hour, resumed: bool) -> None:
    """Delete everything: jobs first, and what a killed update left is mended before."""
    try:
        state = _state(hour)
    except PulumiError as error:
        raise Failed(str(error)) from None
    leftovers.keep(state)
    if _is_empty(state):
        print("destroy: the stack has no resources", flush=True)
        return
    hour.tool("drain", "--yes")
    _mend(hour)
    ended = hour.engine("destroy")
    if ended.code:
        _mend(hour)
        ended = hour.engine("destroy")
    _collect(hour, [])
    _good(ended)


def left(hour: Hour, resumed: bool) -> None:
    """Look once more after some minutes: AWS lists what it deletes for a while."""
    state = leftovers.kept()
    if _is_empty(state):
        hour.proof.left = []
        return
    until = time.monotonic() + hour.wait_minutes * 60
    print(f"left: looks in {hour.wait_minutes:g} minutes", flush=True)
    while (rest := until - time.monotonic()) > 0:
        time.sleep(min(rest, POLL_SECONDS))
    hour.proof.left = leftovers.left(state, hour.proof.region)


ACTS: Mapping[str, Callable[[Hour, bool], None]] = {
    "questions": questions,
    "small": small,
    "gpu": gpu,
    "run": run,
    "destroy": destroy,
    "left": left,
}
"""Name of a step → what is done in it. The second argument: an earlier call was killed in it."""


def _good(ended: Output) -> None:
    if ended.code:
        raise Failed(ended.why)


def _json(text: str) -> dict[str, Any] | None:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _write(hour: Hour, config: Mapping[str, Any]) -> None:
    """Write `config` of the stack file; what the engine keeps beside it stays."""
    text = yaml.safe_load(hour.file.read_text())
    if text["config"] != config:
        hour.file.write_text(as_file({**text, "config": dict(config)}, width=100))


def _build(hour: Hour, resumed: bool) -> None:
    """Write the stack file of the step, and make what it says. NothingMade where that fails before the first
    resource."""
    try:
        _prepare(hour, resumed)
        _update(hour, resumed)
    except (Failed, PulumiError) as error:
        if _has_nothing(hour):
            raise NothingMade(str(error)) from None
        raise


def _prepare(hour: Hour, resumed: bool) -> None:
    """Write the stack file of the step and its plan, and have a stack."""
    key, config = environment_of(hour.file)
    _write(hour, settings_of(hour.step, config, key))
    _plan(hour)
    try:
        deployment(hour.stack)
    except PulumiError:
        pulumi(hour.stack, "stack", "init", "--no-select")
    if resumed:
        _mend(hour)


def _update(hour: Hour, resumed: bool) -> None:
    """One `up`, and how long it took."""
    began = time.time()
    try:
        ended = hour.engine("up")
    finally:
        _look(hour)
    _good(ended)
    if not resumed:
        total = Seen(
            row=_total(hour),
            step=hour.step.name,
            start=iso(began),
            seconds=round(time.time() - began, 1),
        )
        hour.proof.seen = added(hour.proof.seen, [total])
    hour.save()


def _state(hour: Hour) -> Object:
    """State of the stack; an empty one where there is no answer and no update has begun. PulumiError."""
    try:
        return deployment(hour.stack)
    except PulumiError:
        if hour.updated:
            raise
        return {"deployment": {}}


def _is_empty(state: Object) -> bool:
    """True where a stack has no resource, and no killed update may have made one."""
    return not any(state["deployment"].get(key) for key in ("resources", "pending_operations"))


def _has_nothing(hour: Hour) -> bool:
    try:
        return _is_empty(_state(hour))
    except PulumiError:
        return False


def _total(hour: Hour) -> str:
    """Name of the sum of the stages of a step."""
    return f"all of {hour.step.name}"


def _plan(hour: Hour) -> None:
    """Write the planned stages of the step beside those before it."""
    found = planned_file(hour.stack)
    plan = found[1].plan if found else None
    if not isinstance(plan, EnvironmentPlan):
        raise Failed(f"{hour.file} has errors: trainyard check {hour.stack}")
    timeline = schedule(plan)
    stages = [
        PlannedStage(
            stage=stage.name,
            row=stage.row,
            typical=stage.seconds,
            slow=stage.slow_seconds,
            logs=logs(stage),
        )
        for stage in timeline.stages
        if stage.row
    ]
    if timeline.job is None and not hour.proof.plan:  # a first `up`, with nothing there before
        spread = drawn(timeline)
        stages.append(
            PlannedStage(
                stage=_total(hour),
                row="",
                typical=spread.typical_seconds,
                slow=spread.one_in_ten_seconds,
                logs=0,
            )
        )
    there = {stage.stage for stage in hour.proof.plan}
    hour.proof.plan += [stage for stage in stages if stage.stage not in there]
    hour.proof.versions |= {
        "Kubernetes": plan.cluster.version,
        "Karpenter": plan.karpenter.version,
        "Trainer": plan.trainer.version,
        "pulumi": hour.pulumi_version(),
    }


def _mend(hour: Hour) -> None:
    """Take the lock of a killed engine away, and import what it made and did not write down."""
    with suppress(PulumiError):  # no engine has locked the stack
        pulumi(hour.stack, "cancel", "--yes")
    hour.tool("repair", "--yes")


def _probe(hour: Hour, pool: str) -> None:
    """A pod on a new node of the pool, and what it says."""
    words = ("--pool", pool, "--image", hour.image, "--minutes", PROBE_MINUTES, "--run", PROBE)
    try:
        ended = hour.tool("shell", *words, "--yes")
    finally:
        _look(hour)
    hour.proof.probes[pool] = [
        line.removeprefix(MARK) for line in ended.out.splitlines() if line.startswith(MARK)
    ]
    _good(ended)


def _look(hour: Hour) -> None:
    """Write what the engine's events and the cluster say of this step."""
    nodes: list[Object] = []
    try:
        with reached(hour.stack, to=io.StringIO()) as cluster:
            kubectl = kubectl_with(cluster.login, "--request-timeout=60s")
            nodes = _items(kubectl, "nodes")
            claims = _items(kubectl, "nodeclaims.karpenter.sh")
            events = _items(kubectl, "events", "--all-namespaces")
            name, seen = hour.step.name, hour.proof.seen
            seen = added(seen, [*boots(claims, name), *pulls(events, hour.image, name)])
            hour.proof.seen = seen
    except RuntimeError as error:
        print(f"{hour.step.name}: the cluster says nothing: {error}", flush=True)
    known = {node.created for node in hour.proof.nodes}
    found = [node_of(each) for each in nodes]
    hour.proof.nodes += [node for node in found if node.created not in known]
    _collect(hour, nodes)


def _items(kubectl: Kubectl, *what: str) -> list[Object]:
    return json.loads(kubectl("get", *what, "--output=json"))["items"]


def _collect(hour: Hour, nodes: list[Object]) -> None:
    """Write the durations and the errors of the engine in this step."""
    events = hour.events()
    durations = after_first_node(operations(events, hour.step.name), nodes)
    hour.proof.seen = added(hour.proof.seen, durations)
    said = hour.done.refusals
    said += [each for each in refusals(events) if each not in said]
    hour.save()


def _await_job(hour: Hour) -> str:
    """Wait until the acceptance job has ended; the last lines of its log that were there, because a runtime
    may delete the pods of a job that fails."""
    with reached(hour.stack, to=io.StringIO()) as cluster:
        kubectl = kubectl_with(cluster.login, "--request-timeout=60s")
        said = log = ""
        while True:
            try:
                job = choose(kubectl, cluster.place, cluster.entries, JOB)
            except NoSuchJob as error:
                raise Failed(str(error)) from None
            log = _last_lines(kubectl, job) or log
            state = last_condition(job.body)["type"]
            if state != said:
                said = state
                print(f"run: {JOB} is {said}", flush=True)
            if said in ENDED:
                return log
            hour.check_limit()
            time.sleep(POLL_SECONDS)


def _last_lines(kubectl: Kubectl, job: Chosen) -> str:
    """The end of the log of each pod of a job; empty while there is none."""
    where = (f"--namespace={job.namespace}", f"--selector={job.selector}", "--all-containers")
    try:
        return kubectl("logs", *where, f"--tail={LOG_LINES}", "--ignore-errors").strip()
    except RuntimeError:
        return ""
