"""A training whose number of nodes changes while it runs: sharded weights (FSDP), sharded checkpoints.

    torchrun --nnodes=2:4 --nproc_per_node=1 train.py --steps 300

The samples of a step follow from its number only, and the ranks divide them. So a step learns the same
on two ranks as on four, and a run whose nodes leave and come back ends where an undisturbed one ends.
torch.distributed.checkpoint writes a shard a rank, and reads them on any number of ranks. CHECKPOINT_DIR
says where, CHECKPOINT_KEEP how many stay.
"""

import argparse
import os
import shutil
import signal
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard

FEATURES, SAMPLES = 32, 4096
STOPPED = 128 + signal.SIGTERM
"""Exit code of a run that was asked to stop: a worker that ends with 0 would end an elastic job."""
FOLDER = Path(os.environ["CHECKPOINT_DIR"])
KEPT = int(os.environ.get("CHECKPOINT_KEEP", "2"))
COMPLETE = ".metadata"
"""torch writes this file last."""


class Asked:
    """Whether any rank got SIGTERM, as it does when its node is about to leave."""

    def __init__(self) -> None:
        self._here = False
        signal.signal(signal.SIGTERM, self._ask)

    def _ask(self, *_: object) -> None:
        self._here = True

    def anywhere(self, device: torch.device) -> bool:
        """The same answer for all ranks, after the same step."""
        asked = torch.tensor(int(self._here), device=device)
        dist.all_reduce(asked, dist.ReduceOp.MAX)
        return bool(asked)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--global-batch", type=int, default=48)
    parser.add_argument("--steps-per-checkpoint", type=int, default=20)
    return parser.parse_args()


def share(size: int, step: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """This rank's part of the samples of a step. Each epoch has an order of its own."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    if size % ranks:
        sys.exit(f"--global-batch {size} must be a multiple of the {ranks} ranks")
    epoch, place = divmod(step, SAMPLES // size)
    order = torch.randperm(SAMPLES, generator=torch.Generator().manual_seed(1 + epoch))
    mine = order[place * size : (place + 1) * size][rank::ranks]
    points = torch.stack(
        [torch.randn(FEATURES, generator=torch.Generator().manual_seed(int(i))) for i in mine]
    )
    return points.to(device), torch.tanh(points.sum(1, keepdim=True) / 4).to(device)


def complete() -> list[Path]:
    """Checkpoints whose save has ended, the newest first."""
    found = FOLDER.glob("step-*")
    return sorted((each for each in found if (each / COMPLETE).exists()), reverse=True)


def save(step: int, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Every rank writes its shard; rank 0 then deletes checkpoints that are too many."""
    place = FOLDER / f"step-{step:08}"
    weights, moments = get_state_dict(model, optimizer)
    dcp.save({"model": weights, "optimizer": moments}, checkpoint_id=place)
    if dist.get_rank() == 0:
        print(f"saved {place.name}", flush=True)
        for old in complete()[KEPT:]:
            shutil.rmtree(old)


def load(model: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """The step to begin with. Each rank reads what its shards need, whoever wrote it."""
    names = [complete()[0].name if dist.get_rank() == 0 and complete() else None]
    dist.broadcast_object_list(names)
    if names[0] is None:
        return 0
    weights, moments = get_state_dict(model, optimizer)
    dcp.load({"model": weights, "optimizer": moments}, checkpoint_id=FOLDER / names[0])
    set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=moments)
    if dist.get_rank() == 0:
        print(f"resumed from {names[0]}", flush=True)
    return int(names[0].removeprefix("step-")) + 1


def main() -> None:
    options, cuda = parse(), torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if cuda else "gloo")
    asked, ranks = Asked(), dist.get_world_size()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(FEATURES, 128), nn.Tanh(), nn.Linear(128, 1)).to(device)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(load(model, optimizer), options.steps):
        points, values = share(options.global_batch, step, device)
        loss = nn.functional.mse_loss(model(points), values)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = loss.detach() / ranks
        dist.all_reduce(mean)
        if dist.get_rank() == 0:
            print(f"step {step} loss {mean.item():.8f} ranks {ranks}", flush=True)
        leaves = asked.anywhere(device)
        if leaves or step + 1 == options.steps or (step + 1) % options.steps_per_checkpoint == 0:
            save(step, model, optimizer)
        if leaves:
            print(f"rank {dist.get_rank()}: asked to stop, after step {step}", flush=True)
            sys.exit(STOPPED)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
