"""The alerts of an environment: what fires, what it says, and the way out.

Queries: queries.py. Those of exporters, controllers and samples: platform_alerts.py. Who is told:
alertmanager.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from trainyard.catalog.logs.xids import REPLACE, XID_CLASSES, XidClass
from trainyard.catalog.repair import LEFT_ALONE, PATIENCE_SECONDS
from trainyard.objects.metrics.alert import Alert
from trainyard.objects.metrics.metrics import MetricsPlan
from trainyard.objects.metrics.platform_alerts import exporters, platform
from trainyard.objects.metrics.queries import BUSY, query
from trainyard.objects.programs.history import APP as HISTORY
from trainyard.objects.programs.repair import APP as REPAIR
from trainyard.plans.budget import plain
from trainyard.plans.jobs import SHELL_WORDS

STILL, STILL_MINUTES = 0.005, 15
"""A run stands still where no GPU of it has computed more for so long. ByteRobust waits 10 minutes
(arXiv 2509.16293), as torch's watchdog does; a save of a large checkpoint must fit in."""
NO_SHELL = f'run!~"({"|".join(SHELL_WORDS)})-[0-9a-f]{{6}}"'
"""Runs but shells and notebooks, whose GPUs wait for somebody who types. Of the other alerts about runs, those of
ranks compare several, and a shell has one; that of checkpoints needs an interval, and a shell saves none."""
IDLE, WAITING = 0.01, 0.03
"""A rank is idle when its SM activity is below IDLE while another rank's is above WAITING. A rank that
waits in NCCL keeps its SMs busy, so it is not idle."""
IDLE_MINUTES = 4
"""A rank that hangs is named within 5 minutes, with a minute for two samples and their judgement."""
SLOW, SLOW_MINUTES = 0.9, 4
"""A rank is slow where its SMs' clock is below such a part of its gang's median, for so long. GPUs under
their power limit differ by less; one that is hot, or has lost power, by more."""
OLD = 2
"""A checkpoint is old after so many intervals: one save was missed, and not only late."""
UNANSWERED, UNANSWERED_MINUTES = 1, 5
"""Events a second of an EFA device, and for how many minutes. EKS's agent treats up to this many events a
second as normal (eks-node-monitoring-agent 1.7.0, monitors/networking/efa/efa.go:
rate.Every(time.Second)); AWS names no limit. The minutes are a choice: a gang whose node is gone has
restarted by then."""
ENDING_HOURS = 6
"""Before the end of a reservation: enough to save, and to find other nodes."""
BY_HAND = (
    "find the NodeClaim of {{ $labels.node }} with kubectl get nodeclaims, run kubectl cordon"
    " {{ $labels.node }} and kubectl delete nodeclaim <name> --wait=false, then delete the rank's pod:"
    " Karpenter waits for it, and without cordon the new pod can start on the same node. The gang restarts"
    " from its last checkpoint"
)
"""Advice: how to replace a node of a run."""
FULL = 0.9
"""Fill of Lustre: one full OST is an error of every file with a stripe on it, and OSTs fill
unevenly."""


def rules(plan: MetricsPlan) -> str:
    """The file of rules."""
    listed = [alert.rule() for alert in alerts(plan)]
    return json.dumps({"groups": [{"name": "trainyard", "rules": listed}]}, indent=1)


def alerts(plan: MetricsPlan) -> Iterator[Alert]:
    """Every alert of an environment."""
    yield Alert(
        name="Watchdog",
        severity="info",
        expression="vector(1)",
        minutes=0,
        says="Prometheus judges its rules",
        fix="nothing to do: this alert always fires. If it is missing, Prometheus or Alertmanager is down",
    )
    yield from _runs()
    if any(target.job == HISTORY for target in plan.controllers):
        yield _checkpoint()
    yield from map(_xid, XID_CLASSES)
    yield _gpus()
    yield exporters(plan)
    if plan.efa:
        yield _efa()
    if any(target.job == REPAIR for target in plan.controllers):
        yield from _nodes()
    yield from _pools()
    yield from _money(plan)
    yield from _stores()
    yield from platform(plan)


def _runs() -> Iterator[Alert]:
    yield Alert(
        name="RunStandsStill",
        severity="critical",
        expression=f"{query('run busiest', NO_SHELL)} < {STILL}",
        minutes=STILL_MINUTES,
        says=(
            "run {{ $labels.run }} in {{ $labels.namespace }} stands still: no GPU of its ranks has"
            f" computed for {STILL_MINUTES} minutes"
        ),
        fix=(
            "trainyard logs {{ $labels.run }} shows what the ranks wait for; trainyard stop"
            " {{ $labels.run }} ends the run, which resumes from its last checkpoint"
        ),
    )
    yield from _ranks()


def _ranks() -> Iterator[Alert]:
    """Alerts about one rank, beside the others of its run."""
    yield Alert(
        name="HalfGangIdle",
        severity="warning",
        expression=(
            f"{query('run sm')} < {IDLE} and on (namespace, run)"
            f" {query('run busiest rank')} > {WAITING}"
        ),
        minutes=IDLE_MINUTES,
        says=(
            "rank {{ $labels.rank }} of run {{ $labels.run }} in {{ $labels.namespace }}, on node"
            " {{ $labels.node }}, is idle while others compute or wait for it"
        ),
        fix=(
            "trainyard logs {{ $labels.run }} shows what the rank does; where it hangs, kubectl delete its"
            " pod starts the gang anew from its last checkpoint"
        ),
    )
    yield Alert(
        name="RankSlow",
        severity="warning",
        expression=(
            f"{query('run clock')} < on (namespace, run) group_left"
            f" {SLOW} * {query('run median clock')}"
            f" and on (namespace, run, rank, node) {query('run sm')} > {BUSY}"
        ),
        minutes=SLOW_MINUTES,
        says=(
            "rank {{ $labels.rank }} of run {{ $labels.run }} in {{ $labels.namespace }}, on node"
            " {{ $labels.node }}, has GPUs that clock lower than those of the others, and all wait for it"
        ),
        fix=f"trainyard accept on the pool judges its nodes; to replace this one: {BY_HAND}",
    )


def _checkpoint() -> Alert:
    """The alert about an old checkpoint. It needs the history, which follows what runs print."""
    return Alert(
        name="CheckpointOld",
        severity="warning",
        expression=f"{query('run unsaved')} > {OLD} * {query('run interval')}",
        minutes=1,
        says=(
            "run {{ $labels.run }} in {{ $labels.namespace }} has computed for"
            f" {{{{ $value | humanizeDuration }}}} since its newest checkpoint, over {OLD} times the"
            " interval of the plan: a restart loses that work"
        ),
        fix=(
            "trainyard logs {{ $labels.run }} shows whether the script saves; where it saves less often,"
            " write checkpoints.interval_minutes of the job as it is"
        ),
    )


def _xid(kind: XidClass) -> Alert:
    """The query has its own window of 5 minutes."""
    listed = "|".join(map(str, kind.xids))
    return Alert(
        name=f"GpuXid{kind.name}",
        severity=kind.severity,
        expression=query("xids", f'xid=~"{listed}"'),
        minutes=0,
        says=(
            "GPU {{ $labels.gpu }} of node {{ $labels.node }} reported Xid {{ $labels.xid }}: it"
            f" {kind.means}"
        ),
        fix=kind.do,
    )


def _gpus() -> Alert:
    return Alert(
        name="GpuMemoryBroken",
        severity="critical",
        expression=query("gpu memory errors"),
        minutes=0,
        says=(
            "GPU {{ $labels.gpu }} of node {{ $labels.node }} has memory that can be neither corrected"
            " nor replaced"
        ),
        fix=REPLACE,
    )


def _efa() -> Alert:
    """It names the link: the peers of a broken device count the same (docs/decisions/0018)."""
    return Alert(
        name="EfaRetransmits",
        severity="warning",
        expression=(
            f"{query('efa timeouts')} > {UNANSWERED} or {query('efa unresponsive')} > {UNANSWERED}"
        ),
        minutes=UNANSWERED_MINUTES,
        says=(
            "a link of EFA at node {{ $labels.node }} fails: {{ $value | humanize }} times a second its"
            " packets get no answer in time; the fault is at this end, at the other or between them"
        ),
        fix=f"{LEFT_ALONE}: {BY_HAND}",
    )


def _nodes() -> Iterator[Alert]:
    """Alerts about the program that replaces sick nodes."""
    sick = "node {{ $labels.sick_node }} of pool {{ $labels.sick_pool }} is sick"
    yield Alert(
        name="NodeReplaced",
        severity="warning",
        expression=query("sick nodes", 'state=~"replacing|draining"'),
        minutes=0,
        says=f"{sick} ({{{{ $labels.reason }}}}), and is replaced; its gangs start anew",
        fix="nothing: trainyard status shows the new node and the runs",
    )
    yield Alert(
        name="NodeNotReplaced",
        severity="critical",
        expression=query("sick nodes", 'state="held"'),
        minutes=0,
        says=(
            f"{sick} ({{{{ $labels.reason }}}}), and is not replaced: its pool has lost as many nodes"
            " within an hour as repair.nodes_an_hour allows, so they may have a common cause"
        ),
        fix=(
            "kubectl get events --namespace default shows what the nodes had; kubectl delete nodeclaim"
            " replaces one, and repair.nodes_an_hour allows more"
        ),
    )
    yield Alert(
        name="NodeSilent",
        severity="warning",
        expression=query("sick nodes", 'state="waiting"'),
        minutes=0,
        says=(
            "the kubelet of node {{ $labels.sick_node }} of pool {{ $labels.sick_pool }} says nothing, and"
            f" is waited for, {PATIENCE_SECONDS // 60} minutes at most: its instance runs, or other nodes"
            " fell silent with it"
        ),
        fix=(
            "nothing: its runs go on, and a node that EC2 calls dead is replaced at once; where many are"
            " silent, the AWS Health Dashboard may say why"
        ),
    )
    yield Alert(
        name="NodeNotGone",
        severity="warning",
        expression=query("sick nodes", 'state="replacing"'),
        minutes=30,
        says=f"{sick} ({{{{ $labels.reason }}}}), and has not gone away for 30 minutes",
        fix="kubectl describe nodeclaims says what Karpenter waits for",
    )


def _money(plan: MetricsPlan) -> Iterator[Alert]:
    """Alerts about nodes that end by the calendar, or cost more than they may."""
    if plan.ends:
        left = _by_pool({name: f"{end} - time()" for name, end in plan.ends})
        yield Alert(
            name="ReservationEnds",
            severity="warning",
            expression=(
                f"0 < min by (nodepool) ({left}) < {ENDING_HOURS * 3600}"
                f" and on (nodepool) {query('pool nodes')} > 0"
            ),
            minutes=0,
            says=(
                "the reservation of pool {{ $labels.nodepool }} ends in {{ $value | humanizeDuration }},"
                " and its nodes with it"
            ),
            fix=(
                "let runs save a checkpoint before, and extend the reservation, or name another pool in"
                " their jobs"
            ),
        )
    if plan.budget:
        prices, dollars = _by_pool(dict(plan.budget.prices)), plain(plan.budget.dollars)
        yield Alert(
            name="BudgetOfTheDay",
            severity="warning",
            expression=(f"sum({query('node hours')} * on (nodepool) ({prices})) > {dollars}"),
            minutes=0,
            says=(
                "nodes of pools have cost {{ $value | humanize }} USD within 24 hours, and"
                f" metrics.dollars_a_day is {dollars}"
            ),
            fix="trainyard spent lists what each run took, and trainyard stop ends one; or raise dollars_a_day",
        )


def _by_pool(values: Mapping[str, str]) -> str:
    """A number for each pool, as series with its name."""
    return " or ".join(
        f'label_replace(vector({value}), "nodepool", "{name}", "", "")'
        for name, value in values.items()
    )


def _pools() -> Iterator[Alert]:
    yield Alert(
        name="NodesTakenBack",
        severity="warning",
        expression=query("taken back"),
        minutes=0,
        says=(
            "AWS takes nodes of pool {{ $labels.nodepool }} back ({{ $labels.reason }}): gangs on them"
            " start anew from their last checkpoint"
        ),
        fix="nothing: Karpenter replaces the nodes; trainyard status shows the runs",
    )
    yield Alert(
        name="NodesCannotLaunch",
        severity="critical",
        expression=query("launch errors"),
        minutes=10,
        says="EC2 refuses the nodes that Karpenter asks for: {{ $labels.error }}",
        fix=(
            "trainyard status says what the pools wait for; without capacity in the zone, take a reservation"
            " or another instance type"
        ),
    )
    yield Alert(
        name="PoolFull",
        severity="info",
        expression=f"{query('pool nodes')} >= {query('pool limit')} > 0",
        minutes=30,
        says="pool {{ $labels.nodepool }} has all the nodes that its max_nodes allows",
        fix="raise max_nodes of the pool where jobs wait for it",
    )


def _stores() -> Iterator[Alert]:
    yield Alert(
        name="StoreFull",
        severity="critical",
        expression=f"{query('store fill')} > {FULL}",
        minutes=5,
        says=(
            "the Lustre file system {{ $labels.device }} is {{ $value | humanizePercentage }} full: the"
            " next checkpoint may not fit"
        ),
        fix="delete old checkpoints, or raise capacity_gib of the store",
    )
    yield Alert(
        name="StoreFills",
        severity="warning",
        expression=f"{query('store in 4 hours')} < 0",
        minutes=30,
        says="the Lustre file system {{ $labels.device }} is full in 4 hours, as it fills now",
        fix="delete old checkpoints, or raise capacity_gib of the store",
    )
