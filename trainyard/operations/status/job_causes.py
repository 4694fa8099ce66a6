"""Causes in a job itself that keep it from its end: torchrun commands that cannot work, pods
without a node, pods that do not start, ranks that cannot connect, pods that outlive their job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal

from trainyard.catalog.aws.node_price import node_price
from trainyard.catalog.logs.events import about, owner_of
from trainyard.catalog.logs.first_end import first_to_fail
from trainyard.catalog.logs.noted import noted_at
from trainyard.catalog.logs.symptom import read
from trainyard.catalog.logs.symptoms import GRACE_SECONDS, PENDING, RENDEZVOUS
from trainyard.catalog.logs.waiting import (
    message_about_placement,
    running_init_containers,
    waits_on_its_node,
    why_it_does_not_start,
    without_node,
)
from trainyard.manifests.context import live_view
from trainyard.objects.jobs.pod_template import GPU
from trainyard.operations.reach.pods import full_name
from trainyard.operations.reach.snapshot import Job, Object, Snapshot
from trainyard.operations.status.finding import Finding, said
from trainyard.operations.status.last_words import cause_of_job, why_it_ended
from trainyard.operations.status.pools import silent_reservation
from trainyard.problems import InputError, InputWarning
from trainyard.rules.jobs import WHY_RANKS_DO_NOT_MEET

MANY_RESTARTS = 3
"""Fewer restarts may come from lost nodes."""
JUST = timedelta(minutes=10)
"""Time for which the end of a try is news."""
NO_PODS = ("TrainJobResourcesCreationFailed", "FailedCreate", "FailedCreatePod")
"""Reasons of events about pods that cannot be created: of the Trainer, of a Job, of the
training-operator v1.8.1 (its pod_control.go)."""


def torchrun_mismatch(snapshot: Snapshot) -> Iterator[Finding]:
    """Commands whose ranks wait at different endpoints, for the wrong number of nodes, or for
    nobody: the rules of trainyard/rules/jobs.py, for jobs that run."""
    for job in _not_complete(snapshot):
        view = live_view(job.body, snapshot.runtimes())
        for container in view.containers:
            for rule in WHY_RANKS_DO_NOT_MEET:
                yield from (_as_finding(job, problem) for problem in rule(view, container))


def _as_finding(job: Job, problem: InputError | InputWarning) -> Finding:
    if isinstance(problem, InputError):
        what, why, do = f"must {problem.must}", f"it has {problem.got}", problem.fix
    else:
        what, why, do = problem.text, "no launcher starts its ranks", "start it with torchrun"
    return Finding(what=f"{job}: {problem.where} {what}", why=why, do=do)


def again_command(snapshot: Snapshot, job: Job) -> str:
    """The command that runs a job again; of one that no output of the stack names, in the words of its owner."""
    if job.entry and snapshot.stack:
        return f"trainyard again {job.entry} --stack {snapshot.stack}"
    return f"trainyard again {job.entry or job.name}, with --stack and the stack that has it"


def stop_command(snapshot: Snapshot, job: Job) -> str:
    """The command that ends a job: by its namespace where it is no entry of the stack, because a name is an entry."""
    if not snapshot.stack:
        return f"trainyard stop {job.name}"
    return f"trainyard stop {job.entry or f'{job.namespace}/{job.name}'} --stack {snapshot.stack}"


def failed_jobs(snapshot: Snapshot) -> Iterator[Finding]:
    """Jobs that have failed, that keep crashing, or whose pods cannot be created."""
    for job in _not_complete(snapshot):
        if job.state == "Failed":
            again = f"to start the same run again: {again_command(snapshot, job)}"
            why, do = why_it_ended(
                snapshot, job, "correct its entry, and the next update starts it"
            )
            yield Finding(what=f"{job} failed: {job.message}", why=why, do=f"{do}; {again}")
        elif job.restarts >= MANY_RESTARTS or _has_just_failed(snapshot, job):
            logs = f"kubectl -n {job.namespace} logs -l {job.selector} --prefix --tail=40"
            why, do = why_it_ended(snapshot, job, f"{logs}; with --previous for the run before")
            often = "keeps crashing" if job.restarts >= MANY_RESTARTS else "has begun again"
            what = f"{job} {often}: {job.restarts} restart{'s' * (job.restarts != 1)}"
            yield Finding(what=what, why=why, do=do)
    yield from _jobs_without_pods(snapshot)


def _has_just_failed(snapshot: Snapshot, job: Job) -> bool:
    """True where the update that waits for the job has noted a moment ago why a try of it failed."""
    at = noted_at(job.body)
    return bool(job.restarts) and at is not None and snapshot.taken_at - at < JUST


def _jobs_without_pods(snapshot: Snapshot) -> Iterator[Finding]:
    messages = {
        (job.namespace, about(event)): event["message"]
        for event in snapshot.of("events")
        if event.get("reason") in NO_PODS
        and (job := owner_of(event, snapshot.jobs()))
        and not (job.complete or job.pods or job.suspended)
    }
    for (_, name), message in messages.items():
        yield Finding(
            what=f"the pods of {name} cannot be created",
            why=message,
            do=(
                "compare the pods with their runtime, the quota and the pod-security label:"
                " kubectl get namespaces --show-labels"
            ),
        )


def rendezvous_failures(snapshot: Snapshot) -> Iterator[Finding]:
    """Jobs whose ranks log that they cannot connect to each other: the first such pod of a job. Where a rank has not
    begun, or ended with another error before, the others only miss it."""
    for job in _not_complete(snapshot):
        missed = any(map(_has_not_begun, job.pods)) or _ended_by_itself(snapshot, job)
        for pod in () if missed else job.pods:
            log = snapshot.logs.get(full_name(pod), "")
            why, do = read(RENDEZVOUS, log, "", namespace=job.namespace, job=job.selector)
            if do:
                yield Finding(
                    what=f"{job}: its ranks cannot connect, as pod {pod['metadata']['name']} logs",
                    why=why,
                    do=do,
                )
                break


def _has_not_begun(pod: Object) -> bool:
    return bool(without_node([pod])) or waits_on_its_node(pod)


def _ended_by_itself(snapshot: Snapshot, job: Job) -> bool:
    """True where the rank that failed first logged an error that is not about a connection."""
    if first_to_fail(job.pods) is None:
        return False
    shown = "\n".join(cause_of_job(snapshot, job).shown)
    return bool(shown) and not read(RENDEZVOUS, shown, "", namespace=job.namespace, job=job.name)[1]


def pending_gangs(snapshot: Snapshot) -> Iterator[Finding]:
    """Jobs with pods that have no node: since when, and what the nodes of the other pods cost."""
    for job in _running(snapshot):
        pods = [pod for pod in job.pods if pod["status"].get("phase") != "Failed"]
        waiting = without_node(job.pods)
        placed = [pod for pod in pods if pod not in waiting]
        age = max(map(snapshot.age, waiting), default=0)
        if age < GRACE_SECONDS:
            continue
        message = message_about_placement(waiting, snapshot.of("events"))
        names = {"namespace": job.namespace, "of_stack": snapshot.of_environment}
        why, do = silent_reservation(snapshot, waiting) or read(
            PENDING, message, "kubectl describe nodepools", **names
        )
        since = said(snapshot.taken_at - timedelta(seconds=age), snapshot.taken_at)
        idle = f"; it has {len(placed)} idle, {_cost(snapshot, placed)}" if placed else ""
        yield Finding(
            what=(
                f"{job} has waited for {len(waiting)} of {len(pods)} nodes since {since}"
                f" ({age} s){idle}"
            ),
            why=why,
            do=f"{do}; to give up: kubectl -n {job.namespace} delete {job.kind.lower()} {job.name}",
        )


def stuck_containers(snapshot: Snapshot) -> Iterator[Finding]:
    """Pods that have a node and do not start."""
    for job in _running(snapshot):
        for pod in sorted(job.pods, key=running_init_containers):
            if not waits_on_its_node(pod) or snapshot.age(pod) < GRACE_SECONDS:
                continue
            name = pod["metadata"]["name"]
            why, do = why_it_does_not_start(
                pod,
                snapshot.of("events"),
                f"kubectl -n {job.namespace} describe pod {name}",
                namespace=job.namespace,
                job=job.selector,
            )
            what = f"pod {name} has been Pending for {snapshot.age(pod)} s"
            yield Finding(what=what, why=why, do=do)


def hung_jobs(snapshot: Snapshot, silence: timedelta) -> Iterator[Finding]:
    """Jobs all of whose ranks run, and none has written a log line for `silence`, or of whose logs some cannot
    be read. A rank without a line is silent since its container started."""
    for job in _running(snapshot):
        if unread := [pod for pod in job.pods if full_name(pod) in snapshot.unread]:
            yield _unread(snapshot, job, unread)
            continue
        times = sorted(
            (since, full_name(pod))
            for pod in job.pods
            if (since := snapshot.last_lines_at.get(full_name(pod)) or _started(pod))
        )
        if times and len(times) == len(job.pods) and snapshot.taken_at - times[-1][0] >= silence:
            yield _hung(snapshot, job, times)


def _unread(snapshot: Snapshot, job: Job, pods: list[Object]) -> Finding:
    """A job with ranks on nodes whose kubelets do not answer. `pods`: of these ranks."""
    nodes = sorted({pod["spec"]["nodeName"] for pod in pods})
    return Finding(
        what=(
            f"the logs of {job} cannot be read: the kubelet of {', '.join(nodes)} does not answer;"
            f" {_cost(snapshot, list(job.pods))}"
        ),
        why="the node is lost, or nothing leads to it: whether the job runs is not known, and its other ranks wait",
        do=(
            f"kubectl describe node {nodes[0]}; Kubernetes calls it NotReady within a minute, and with `repair`"
            " it is then replaced (docs/heal.md)"
        ),
    )


def _started(pod: Object) -> datetime | None:
    """Time at which the last of its containers started; None unless all run."""
    statuses = pod["status"].get("containerStatuses", [])
    states = [status["state"].get("running") for status in statuses]
    if not states or not all(states):
        return None
    return max(datetime.fromisoformat(state["startedAt"]) for state in states)


def _hung(snapshot: Snapshot, job: Job, times: Sequence[tuple[datetime, str]]) -> Finding:
    """A running job whose ranks have stopped logging. `times`: time of each rank's last log line, with
    the name of its pod, the oldest first."""
    (oldest, name), (newest, _) = times[0], times[-1]
    first = next(each for each in job.pods if full_name(each) == name)
    pod = first["metadata"]["name"]
    wrote = any(full_name(each) in snapshot.last_lines_at for each in job.pods)
    seconds = int((snapshot.taken_at - newest).total_seconds())
    kubectl = f"kubectl -n {job.namespace}"
    load = "nvidia-smi" if GPU in str(job.pods) else "uptime"
    return Finding(
        what=(
            f"{job} seems to hang: its ranks run, and none has written a log line since"
            f"{'' if wrote else ' they started at'} {said(newest, snapshot.taken_at)} ({seconds} s);"
            f" {_cost(snapshot, list(job.pods))}"
        ),
        why=(
            f"pod {pod} stopped first, at {said(oldest, snapshot.taken_at)}, on node {first['spec']['nodeName']}: look"
            " there first, unless only one rank writes logs"
            if wrote
            else "no rank has written anything: the program waits before its first line, or keeps its"
            ' output in a buffer (PYTHONUNBUFFERED: "1" under env shows it)'
        ),
        do=(
            f"{kubectl} logs {pod} --tail=20; {kubectl} exec {pod} -- {load} (busy: the rank waits"
            f" for another rank; idle: it waits for data); {kubectl} delete pod {pod} restarts all"
            " ranks"
        ),
    )


def leaked_pods(snapshot: Snapshot) -> Iterator[Finding]:
    """Pods that have not ended although their job has: their GPUs are paid for, and other jobs wait
    for them.

    A worker that has not started looks up its master for NODES_SECONDS (trainyard/catalog/limits.py), and
    where nothing sets PET_RDZV_CONF a worker that has started waits as long as torch does.
    """
    for job in snapshot.jobs():
        if not job.ended or job.since is None:
            continue
        seconds = (snapshot.taken_at - job.since).total_seconds()
        pods = [pod for pod in job.pods if pod["status"].get("phase") in ("Pending", "Running")]
        if pods and seconds >= GRACE_SECONDS:
            names = ", ".join(pod["metadata"]["name"] for pod in pods)
            yield Finding(
                what=(
                    f"{job} ended {seconds:.0f} s ago, and its pods have not: {names};"
                    f" {_cost(snapshot, pods)}"
                ),
                why="its cleanPodPolicy keeps pods, or one of the pods does not end",
                do=(
                    f"kubectl -n {job.namespace} delete {job.kind.lower()} {job.name}, or delete"
                    f" pods -l {job.selector}; next time set pytorch_job.clean_pods: running"
                ),
            )


def _not_complete(snapshot: Snapshot) -> list[Job]:
    """Jobs that have not succeeded; also those that have failed."""
    return [job for job in snapshot.jobs() if not job.complete]


def _running(snapshot: Snapshot) -> list[Job]:
    """Jobs that have neither succeeded nor failed."""
    return [job for job in snapshot.jobs() if not job.ended]


def _cost(snapshot: Snapshot, pods: list[Object]) -> str:
    """The price of the nodes of these pods, as `nodes` and `watch` count."""
    names = {pod["spec"].get("nodeName") for pod in pods}
    prices = [
        node_price(node["metadata"]["labels"], snapshot.prices)
        for node in snapshot.of("nodes")
        if node["metadata"]["name"] in names
    ]
    usd = sum((row.usd for row in prices if row), Decimal())
    return f"{usd:.2f} USD an hour" if prices and all(prices) else "their price is not known"
