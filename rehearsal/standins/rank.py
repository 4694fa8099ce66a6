"""One rank of the stand-in torchrun: steps that all ranks take together, and a checkpoint that survives the pod.

TRAINYARD_STEPS and TRAINYARD_STEP_SECONDS set the length; CHECKPOINT_DIR, if set, must be mounted storage.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from pathlib import Path

import hub

STEPS = int(os.environ.get("TRAINYARD_STEPS", "20"))
STEP_SECONDS = float(os.environ.get("TRAINYARD_STEP_SECONDS", "0.25"))
STEPS_PER_CHECKPOINT = 4
MARKER = "stand-in-checkpoint.json"


def checkpoint_folder() -> Path | None:
    """Where checkpoints go: on a volume, since the container's own root ends with the pod. Only the folder is made."""
    if not (name := os.environ.get("CHECKPOINT_DIR")):
        return None
    folder = Path(name)
    place = folder if folder.is_dir() else folder.parent
    if place.stat().st_dev == Path("/").stat().st_dev:
        raise RuntimeError(f"CHECKPOINT_DIR {name} is on the container's own root: no volume is mounted there")
    folder.mkdir(exist_ok=True)
    return folder


def resume(folder: Path | None) -> int:
    """The first step to take."""
    if folder is None or not (folder / MARKER).exists():
        return 0
    return json.loads((folder / MARKER).read_text())["step"] + 1


def save(folder: Path, step: int) -> None:
    """Atomically, so that a kill in the middle leaves the checkpoint before."""
    fresh = folder / f".{MARKER}.new"
    fresh.write_text(json.dumps({"step": step}))
    fresh.replace(folder / MARKER)


def train(rank: int, member: hub.Member, number: int, folder: Path | None) -> None:
    """Take every step together with all other ranks."""
    first = resume(folder)
    if rank == 0 and first:
        print(f"resumed from step {first - 1}")
    for step in range(first, STEPS):
        time.sleep(STEP_SECONDS)
        member.meet(number, rank, step)
        if rank == 0:
            print(f"step {step + 1}/{STEPS}: all ranks met")
        if rank == 0 and folder and (step + 1) % STEPS_PER_CHECKPOINT == 0:
            save(folder, step)
    member.meet(number, rank, hub.END)


def main() -> int:
    """1 where a peer is lost, as a collective that fails."""
    env = os.environ
    rank, size, local = int(env["RANK"]), int(env["WORLD_SIZE"]), int(env["LOCAL_RANK"])
    device = f"gpu {local}" if os.path.exists("/dev/nvidiactl") else "cpu"
    print(f"[rank {rank}/{size}] node {socket.gethostname()} {device}")
    try:
        folder = checkpoint_folder()
        member = hub.connect((env["MASTER_ADDR"], int(env["MASTER_PORT"])), hub.FIRST_STEP_SECONDS)
        train(rank, member, int(env["TORCHELASTIC_RESTART_COUNT"]), folder)
    except (hub.Lost, OSError, RuntimeError) as error:
        print(f"[rank {rank}/{size}] {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
