"""Checkpoints that a kill at any moment leaves usable, and a SIGTERM that saves before it ends.

A checkpoint is written beside its place, flushed to the disk and renamed: under its name it is
complete or absent. Then `latest` moves. Rank 0 writes; every rank calls the methods, at the same
points. CHECKPOINT_DIR says where, CHECKPOINT_KEEP how many stay.
"""

import os
import pickle
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import torch
import torch.distributed as dist

State = dict[str, Any]
KEPT = int(os.environ.get("CHECKPOINT_KEEP", "2"))
"""The newest, and the one before in case the newest cannot be read."""
STOPPED = 128 + signal.SIGTERM
"""Exit code of a run that was asked to stop: Kubernetes must not take it for one that is done."""


class Checkpoints:
    """The checkpoints of one run, one every `every` steps."""

    def __init__(self, every: int, folder: str | None = os.environ.get("CHECKPOINT_DIR")) -> None:
        self._every, self._folder = every, Path(folder) if folder else None
        self._asked = False
        signal.signal(signal.SIGTERM, self._ask)
        if self._folder and dist.get_rank() == 0:
            self._folder.mkdir(exist_ok=True)  # its parent is a mounted volume, or this is an error

    def load(self) -> State | None:
        """The newest complete one, the same for all ranks."""
        chosen: list[Any] = [self._newest() if dist.get_rank() == 0 else None]
        dist.broadcast_object_list(chosen)
        if not chosen[0]:
            return None
        if dist.get_rank() == 0:
            print(f"resumed from {chosen[0].name}", flush=True)
        return read(chosen[0])

    def step_done(self, step: int, steps: int, state: Callable[[], State]) -> None:
        """Call it after every step: saves when it is time, at the end, and when any rank was asked
        to stop."""
        asked = torch.tensor(
            int(self._asked), device="cuda" if torch.cuda.is_available() else "cpu"
        )
        dist.all_reduce(asked, dist.ReduceOp.MAX)
        if asked or step + 1 == steps or (step + 1) % self._every == 0:
            self._save(step, state())
        if asked:
            print(f"rank {dist.get_rank()}: asked to stop, after step {step}", flush=True)
            sys.exit(STOPPED)

    def _ask(self, *_: object) -> None:
        self._asked = True

    def _save(self, step: int, state: State) -> None:
        if self._folder and dist.get_rank() == 0:
            file = self._folder / f"step-{step:08}.pt"
            write(file, lambda out: torch.save({"step": step} | state, out))
            write(self._folder / "latest", lambda out: out.write(file.name.encode()))
            print(f"saved {file.name}", flush=True)
            for old in [*self._complete()[KEPT:], *self._folder.glob("step-*.new")]:
                old.unlink()
        dist.barrier()

    def _newest(self) -> Path | None:
        """What `latest` names, or else the newest that can be read."""
        if not self._folder:
            return None
        pointer = self._folder / "latest"
        named = [self._folder / pointer.read_text()] if pointer.exists() else []
        return next((file for file in [*named, *self._complete()] if readable(file)), None)

    def _complete(self) -> list[Path]:
        assert self._folder
        return sorted(self._folder.glob("step-*.pt"), reverse=True)


def write(file: Path, content: Callable[[BinaryIO], object]) -> None:
    """Replace a file at once, and for good: on the disk before it has its name, its name on the
    disk afterwards."""
    fresh = file.with_name(file.name + ".new")
    with fresh.open("wb") as out:
        content(out)
        out.flush()
        os.fsync(out.fileno())
    fresh.replace(file)
    folder = os.open(file.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def read(file: Path) -> State:
    """A checkpoint, in main memory."""
    return torch.load(file, map_location="cpu", weights_only=True)


def readable(file: Path) -> bool:
    """Whether a checkpoint can be read; storage that loses what it promised is told here."""
    try:
        return bool(read(file))
    except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
        print(f"{file.name} cannot be used: {error}", file=sys.stderr, flush=True)
        return False
