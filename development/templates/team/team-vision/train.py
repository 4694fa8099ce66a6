"""The smallest distributed training: a few layers learn a curve, a copy in every process (DDP).

    torchrun --nproc_per_node=2 train.py --steps 300

With GPUs a process takes one each (nccl), without it computes on the CPU (gloo). What a step learns
from depends on step and rank only, so that a resumed run ends where an undisturbed one ends.
"""

import argparse
import os

import torch
import torch.distributed as dist
from checkpoints import Checkpoints
from torch import nn


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--steps-per-checkpoint", type=int, default=50)
    return parser.parse_args()


def batch(size: int, seed: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Points of the curve."""
    points = torch.rand(size, 1, generator=torch.Generator().manual_seed(seed)) * 6 - 3
    return points.to(device), torch.sin(points).to(device)


def main() -> None:
    options, cuda = parse(), torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if cuda else "gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Linear(1, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1)
    ).to(device)
    checkpoints, first = Checkpoints(options.steps_per_checkpoint), 0
    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3)
    if saved := checkpoints.load():
        network.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        first = saved["step"] + 1
    model = nn.parallel.DistributedDataParallel(network)
    for step in range(first, options.steps):
        points, values = batch(options.batch, 1 + step * ranks + rank, device)
        loss = nn.functional.mse_loss(model(points), values)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 10 == 0:
            print(f"step {step} loss {loss.item():.6f} ranks {ranks}", flush=True)
        checkpoints.step_done(
            step,
            options.steps,
            lambda: {"model": network.state_dict(), "optimizer": optimizer.state_dict()},
        )
    with torch.no_grad():
        points, values = batch(1024, 0, device)
        print(
            f"rank {rank} of {ranks}: final loss"
            f" {nn.functional.mse_loss(model(points), values):.8f}",
            flush=True,
        )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
