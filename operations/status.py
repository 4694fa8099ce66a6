"""`python -m operations.status [MINUTES]`: nodes, jobs, what stands in their way, and which are
silent for MINUTES.

At the end what would stand in the way of a newer Trainer, while nothing is wrong with that yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta

import command_line
from catalog.job_kinds import JOB_KINDS
from operations import pools, upgrade
from operations.diagnosis import SILENCE, diagnose
from operations.snapshot import Object, Snapshot, take

ROLE = "training.kubeflow.org/replica-type"
"""Label of the training-operator's pods: master or worker."""


def main(arguments: list[str]) -> int:
    """Print it; 0 when every job is Complete or on its way, 1 when something stands in the way."""
    parser = command_line.parser(
        "operations.status",
        "Print the nodes and jobs of the current cluster, and what keeps jobs from running.",
    )
    parser.add_argument(
        "minutes",
        type=float,
        nargs="?",
        metavar="MINUTES",
        default=SILENCE / timedelta(minutes=1),
        help="name running jobs that have logged nothing for so long (%(default)g by default)",
    )
    silence = timedelta(minutes=parser.parse_args(arguments).minutes)
    try:
        snapshot = take()
    except RuntimeError as error:
        print(f"the cluster does not answer: {error}")
        return 1
    print(
        "\n".join(
            [*_table(_nodes(snapshot)), "", *_table(_jobs(snapshot)), "", *_table(_pods(snapshot))]
        )
    )
    findings = diagnose(snapshot, silence)
    for finding in findings:
        print(f"\n! {finding}")
    for finding in upgrade.unreadable(snapshot) if not upgrade.stuck(snapshot) else ():
        print(f"\nNothing is wrong yet: {finding}")
    for finding in pools.unready(snapshot, wanted=False):
        print(f"\nNo job waits for it: {finding}")
    return 1 if findings else 0


def _nodes(snapshot: Snapshot) -> Iterator[tuple[str, ...]]:
    yield "NODE", "INSTANCE", "ZONE", "GPU", "EFA", "READY"
    for node in snapshot.of("nodes"):
        labels, has = node["metadata"]["labels"], node["status"].get("allocatable", {})
        yield (
            node["metadata"]["name"],
            labels.get("node.kubernetes.io/instance-type", ""),
            labels.get("topology.kubernetes.io/zone", ""),
            has.get("nvidia.com/gpu", "0"),
            has.get("vpc.amazonaws.com/efa", "0"),
            _condition(node, "Ready"),
        )


def _jobs(snapshot: Snapshot) -> Iterator[tuple[str, ...]]:
    yield "JOB", "KIND", "RUNTIME", "NODES", "STATE", "RESTARTS"
    for job in snapshot.jobs():
        yield (
            f"{job.namespace}/{job.name}",
            job.kind,
            job.runtime,
            str(job.nodes),
            job.state,
            str(job.restarts),
        )


def _pods(snapshot: Snapshot) -> Iterator[tuple[str, ...]]:
    yield "POD", "RANK", "PHASE", "NODE"
    for pod in (pod for job in snapshot.jobs() for pod in job.pods):
        yield (
            pod["metadata"]["name"],
            _rank(pod),
            pod["status"].get("phase", ""),
            pod["spec"].get("nodeName", "-"),
        )


def _rank(pod: Object) -> str:
    """Number of its node; of a PyTorchJob's pod in its role."""
    labels = pod["metadata"]["labels"]
    numbers = [labels[kind.rank] for kind in JOB_KINDS.values() if kind.rank in labels]
    return " ".join(filter(None, [labels.get(ROLE), *(numbers or "-")]))


def _condition(obj: Object, kind: str) -> str:
    return next(
        (c["status"] for c in obj["status"].get("conditions", []) if c["type"] == kind), "Unknown"
    )


def _table(rows: Iterable[tuple[str, ...]]) -> list[str]:
    lines = list(rows)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]


if __name__ == "__main__":
    command_line.run(main)
