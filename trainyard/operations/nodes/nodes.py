"""`trainyard nodes STACK [--json]`: print every node of a cluster with its pool, type, architecture, system, GPUs,
EFA devices, zone and price, the jobs that hold it, and of an empty one when Karpenter ends it.

Nothing on the cluster is changed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from trainyard import command_line
from trainyard.catalog.aws.node_price import TYPE, ZONE, node_price
from trainyard.catalog.aws.own_prices import LIST, OwnPrices
from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.catalog.limits import EMPTY_NODE_MINUTES
from trainyard.catalog.logs.waiting import goes_on
from trainyard.objects.jobs.pod_template import EFA, GPU
from trainyard.operations.reach.pods import is_of_daemon_set
from trainyard.operations.reach.proxy import asking
from trainyard.operations.reach.snapshot import Object, Snapshot, snapshot_of
from trainyard.operations.reach.stack import own_prices
from trainyard.operations.reach.target import answer_of, kubeconfig
from trainyard.operations.runs.node_time import duration
from trainyard.operations.runs.view import LAUNCHING, allocatable, coming, node_state, pool_of
from trainyard.reports.plan import as_json

HEAD = (
    "NODE",
    "POOL",
    "INSTANCE",
    "ARCH",
    "OS",
    "GPUS",
    "EFA",
    "ZONE",
    "USD/H",
    "STATE",
    "HELD BY",
)
SYSTEM, EMPTY = "system", "empty"
ARCH, NODE_POOL = "kubernetes.io/arch", "karpenter.sh/nodepool"
UNSEEN = "a team cannot read nodes: ask whoever runs the environment, or `trainyard watch {stack}` for your runs"


@dataclass(frozen=True, kw_only=True)
class Node:
    """One node, as a row shows it."""

    name: str
    pool: str
    """SYSTEM for a node of no pool."""
    instance_type: str
    architecture: str
    system: str
    gpus: int
    efa: int
    zone: str
    usd_per_hour: Decimal | None
    """None where its price is not known."""
    state: str
    held_by: tuple[str, ...]
    """Jobs whose pods are on it, and pods of no job, each with its namespace; of no DaemonSet."""
    ends_in_seconds: int | None
    """Until Karpenter ends it, because it is empty; None where it holds a pod, or where nothing ends it."""


def main(options: argparse.Namespace) -> int:
    """Return 0, or 1 where the cluster does not answer, another one could be meant or nodes cannot be read."""
    stack = options.stack
    found = answer_of(lambda: _snapshot(stack))
    if found is None:
        return 1
    if "nodes" in found.unseen:
        print(UNSEEN.format(stack=stack), file=sys.stderr)
        return 1
    nodes = [*nodes_of(found, own_prices(stack))]
    print(as_json({"nodes": nodes}) if options.json else "\n".join(text(nodes)))
    return 0


def _snapshot(stack: str) -> Snapshot:
    with asking(kubeconfig(stack)) as kubectl:
        return snapshot_of(stack, kubectl)


def nodes_of(snapshot: Snapshot, prices: OwnPrices = LIST) -> Iterator[Node]:
    """The nodes of a snapshot by pool, those of the system first, and those that are launched and not there yet."""
    held, there = _held(snapshot), {node["metadata"]["name"] for node in snapshot.of("nodes")}
    claims = {claim.get("status", {}).get("nodeName"): claim for claim in snapshot.of("nodeclaims")}
    fixed = {
        pool["metadata"]["name"] for pool in snapshot.of("nodepools") if "replicas" in pool["spec"]
    }
    for each in sorted([*snapshot.of("nodes"), *coming(snapshot, there)], key=_order):
        labels, name = each["metadata"].get("labels", {}), each["metadata"]["name"]
        pool, price = pool_of(each) or SYSTEM, node_price(labels, prices)
        stays = name in held or pool == SYSTEM or labels.get(NODE_POOL) in fixed
        yield Node(
            name=name,
            pool=pool,
            instance_type=labels.get(TYPE, "-"),
            architecture=labels.get(ARCH, "-"),
            system=each.get("status", {}).get("nodeInfo", {}).get("osImage", "-"),
            gpus=allocatable(each, GPU),
            efa=allocatable(each, EFA),
            zone=labels.get(ZONE, "-"),
            usd_per_hour=price.usd if price else None,
            state=node_state(each, snapshot) if name in there else LAUNCHING,
            held_by=tuple(sorted({*map(_holder, held.get(name, []))})),
            ends_in_seconds=None if stays else _ends_in(claims.get(name, {}), snapshot),
        )


def _order(node: Object) -> tuple[str, str]:
    return pool_of(node) or "", node["metadata"]["name"]


def _held(snapshot: Snapshot) -> Mapping[str, list[Object]]:
    """Node → its pods that keep it: those that have not ended and are of no DaemonSet."""
    held: dict[str, list[Object]] = {}
    for pod in snapshot.of("pods"):
        if (name := pod["spec"].get("nodeName")) and goes_on(pod) and not is_of_daemon_set(pod):
            held.setdefault(name, []).append(pod)
    return held


def _holder(pod: Object) -> str:
    """The job of a pod, or the pod itself, with the namespace."""
    about = pod["metadata"]
    names = (about.get("labels", {}).get(kind.pod_label) for kind in JOB_KINDS.values())
    return f"{about.get('namespace')}/{next(filter(None, names), about['name'])}"


def _ends_in(claim: Mapping[str, Any], snapshot: Snapshot) -> int | None:
    """Seconds until Karpenter ends an empty node: it counts from the last event of a pod there."""
    last = claim.get("status", {}).get("lastPodEventTime")
    if not last:
        return None
    ends = datetime.fromisoformat(last) + timedelta(minutes=EMPTY_NODE_MINUTES)
    return max(0, int((ends - snapshot.taken_at).total_seconds()))


def text(nodes: list[Node]) -> list[str]:
    """A table of nodes and what all of them cost, for a person."""
    if not nodes:
        return ["the cluster has no nodes"]
    pools = [node for node in nodes if node.pool != SYSTEM and node.state != LAUNCHING]
    empty = [node for node in pools if not node.held_by]
    unpriced = sum(node.usd_per_hour is None for node in nodes)
    least = "at least " if unpriced else ""
    said = f"{len(nodes)} node{'s' * (len(nodes) != 1)}, {least}{_usd(nodes)} an hour without tax"
    return [
        *command_line.table([HEAD, *map(_row, nodes)], indent=0),
        "",
        said + (f"; {len(empty)} of them empty, {_usd(empty)} an hour" if empty else ""),
    ]


def _usd(nodes: Iterable[Node]) -> str:
    return f"{sum((node.usd_per_hour or Decimal() for node in nodes), Decimal()):,.2f} USD"


def _row(node: Node) -> tuple[str, ...]:
    nobody = "-" if node.state == LAUNCHING else EMPTY
    held = "-" if node.pool == SYSTEM else ", ".join(node.held_by) or nobody
    if node.ends_in_seconds is not None:
        held = f"{EMPTY}, ends in {duration(node.ends_in_seconds)}"
    usd = "no price" if node.usd_per_hour is None else f"{node.usd_per_hour:,.2f}"
    return (
        *(node.name, node.pool, node.instance_type, node.architecture, node.system),
        *(str(node.gpus or "-"), str(node.efa or "-"), node.zone, usd, node.state, held),
    )
