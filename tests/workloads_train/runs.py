"""The samples under torchrun, two nodes of two processes on this machine, and what their logs
say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from rehearsal import processes
from tests.support.ports import free_port
from tests.support.recording import CHECKOUT

WORKLOADS = CHECKOUT / "workloads"
FAULTS = Path(__file__).with_name("sitecustomize.py")
NODES, RANKS = 2, 4


ROUNDING = 1e-2
"""How much final losses of equal runs may differ, relatively. Ranks add in another order each time, and
each step makes the difference larger, most of all in bf16."""


def after_resuming(log: str) -> dict[int, float]:
    """Step → loss, of the last run in the log."""
    steps = re.findall(r"step (\d+) loss ([\d.]+)", log.rpartition("resumed from")[2])
    return {int(step): float(loss) for step, loss in steps}


def final(log: str) -> list[float]:
    """The loss at the end, as every rank found it for itself, from the same data."""
    return [float(x) for x in re.findall(rf"rank \d of {RANKS}: final loss ([\d.]+)", log)]


def resumed(log: str) -> list[int]:
    """Steps of the checkpoints that runs began with."""
    return [int(x) for x in re.findall(r"resumed from step-(\d+)", log)]


@dataclass(kw_only=True)
class Run:
    """One run of a sample, or several after one another in the same folder, which has checkpoints
    and log."""

    sample: str
    folder: Path
    flags: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    agents: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self) -> Run:
        self.folder.mkdir(exist_ok=True)
        env = (
            os.environ
            | {
                "PYTHONPATH": f"{WORKLOADS}:{FAULTS.parent}",
                "OMP_NUM_THREADS": "1",
                "CHECKPOINT_DIR": str(self.checkpoints),
            }
            | self.env
        )
        port = free_port()
        with (self.folder / "log").open("ab") as log:
            self.agents = [
                subprocess.Popen(
                    [
                        Path(sys.executable).with_name("torchrun"),
                        f"--nnodes={NODES}",
                        f"--node_rank={node}",
                        f"--nproc_per_node={RANKS // NODES}",
                        "--master_addr=127.0.0.1",
                        f"--master_port={port}",
                        WORKLOADS / self.sample / "train.py",
                        *self.flags,
                    ],
                    env=env,
                    stdout=log,
                    stderr=log,
                    cwd=self.folder,
                )
                for node in range(NODES)
            ]
        return self

    def wait(self) -> list[int]:
        """Exit codes of the nodes; what does not end in three minutes is killed."""
        try:
            return [agent.wait(180) for agent in self.agents]
        finally:
            self.kill()

    def kill(self) -> None:
        """SIGKILL to everything that runs still."""
        for agent in [a for a in self.agents if a.poll() is None]:
            processes.kill([*workers(agent), agent.pid])
            agent.wait()

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    @property
    def latest(self) -> int:
        """Step of the newest complete checkpoint; -1 where there is none."""
        pointer = self.checkpoints / "latest"
        return (
            int(pointer.read_text().removeprefix("step-").removesuffix(".pt"))
            if pointer.exists()
            else -1
        )

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()


def workers(agent: subprocess.Popen[bytes]) -> list[int]:
    """The processes that train under a torchrun."""
    return [
        int(pid) for pid in Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text().split()
    ]
