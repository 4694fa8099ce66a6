"""Measures what grows with a company: `trainyard status` and the programs in the cluster at 10, 100 and
1,000 nodes, on a real API server with as many objects as such a cluster has.

Of each program: requests to the API server a minute, largest memory, share of a CPU.
"""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rehearsal import paths
from tests.support.crowd import Crowd, crowd
from tests.support.programs import running
from tests.support.recording import Graph, deploy
from tests.support.stackfile import ENVIRONMENT
from trainyard import command_line
from trainyard.operations.reach.proxy import asking
from trainyard.operations.reach.snapshot import snapshot_of
from trainyard.operations.status.diagnosis import diagnose
from trainyard.operations.status.status import tables, together

NODES = (10, 100, 1000)
PROGRAMS = ("repair", "history", "gangs", "told")
SETTLE_SECONDS, SECONDS = 15, 60
"""Until a program has read what is there, and for how long it is looked at then. At first history and told
write a ConfigMap for each job, which takes longer the more jobs there are: NODES_A_SECOND."""
NODES_A_SECOND = 10
TICK = os.sysconf("SC_CLK_TCK")
SETTINGS: dict[str, Any] = {
    "repair": {"hung_minutes": 10},
    "history": {"progress": True},
    "queues": {},
    "teams": {
        "a": {
            "deployer": "arn:aws:iam::111122223333:role/x",
            "guaranteed_nodes": {"g6e": 1},
        }
    },
    "training_operator": {"version": "1.8.1"},
    "told": {"emails": ["gpu-oncall@example.com"]},
    "jobs": {},
}
"""Every program, with what makes it ask most."""


def main(arguments: list[str]) -> int:
    """Print the table; 0."""
    parser = command_line.parser(
        "benchmarks.crowd",
        "Measure status and the programs in the cluster as nodes grow in number.",
    )
    parser.add_argument(
        "nodes", nargs="*", type=int, default=[*NODES], metavar="NODES", help="so many GPU nodes"
    )
    options = parser.parse_args(arguments)
    os.environ["PATH"] = f"{paths.BIN}:{os.environ['PATH']}"
    with contextlib.redirect_stderr(io.StringIO()):
        graph = deploy("dev", lambda values: values[ENVIRONMENT].update(SETTINGS))
    for nodes in options.nodes:
        print(f"\n{nodes} GPU nodes")
        with tempfile.TemporaryDirectory() as folder, crowd(Path(folder), nodes) as there:
            for row in _rows(there, graph, Path(folder)):
                print("".join(f"{cell:<20}" for cell in row).rstrip(), flush=True)
    return 0


def _rows(there: Crowd, graph: Graph, folder: Path) -> Iterator[tuple[str, ...]]:
    before, began = there.requests(), time.monotonic()
    with asking(there.server.kubeconfig()) as kubectl:
        snapshot = snapshot_of("crowd", kubectl, logs=True)
    read = time.monotonic() - began
    found = "\n".join(map(str, together(diagnose(snapshot))))
    lines = f"{tables(snapshot)}\n{found}"
    all_of_it = time.monotonic() - began
    asked = there.requests() - before
    yield "", "SECONDS", "OF THEM READING", "REQUESTS", "LINES"
    yield "status", f"{all_of_it:.2f}", f"{read:.2f}", f"{asked:.0f}", f"{len(lines.splitlines())}"
    yield "", "REQUESTS A MINUTE", "MEMORY", "CPU"
    for name in PROGRAMS:
        with running(there.server, graph, name, folder / name) as process:
            time.sleep(SETTLE_SECONDS + there.nodes / NODES_A_SECOND)
            asked, used = there.requests(), _cpu_seconds(process)
            time.sleep(SECONDS)
            assert process.poll() is None, (folder / name / "log").read_text()
            yield (
                name,
                f"{(there.requests() - asked) * 60 / SECONDS:.0f}",
                f"{_peak_mib(process):.0f} MiB",
                f"{(_cpu_seconds(process) - used) / SECONDS:.1%}",
            )


def _cpu_seconds(process: subprocess.Popen[bytes]) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def _peak_mib(process: subprocess.Popen[bytes]) -> float:
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


if __name__ == "__main__":
    command_line.run(main)
