"""Programs that fail on a GPU as people's programs do: `torchrun failing.py <name>`."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

RANK, LOCAL = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
WIDE = 8192
"""Width of a model of 1 GiB."""


def meet(seconds: int = 600) -> None:
    """Meet the other ranks. `seconds`: how long a collective may take."""
    torch.cuda.set_device(LOCAL)
    dist.init_process_group("nccl", timeout=timedelta(seconds=seconds))
    ranks = torch.ones(1, device="cuda")
    dist.all_reduce(ranks)
    torch.cuda.synchronize()
    print(f"rank {RANK}: {ranks.item():g} ranks meet", flush=True)


def allow(part: float) -> None:
    """Limit this process to a part of the GPU's memory."""
    torch.cuda.set_per_process_memory_fraction(part)


def network(width: int) -> nn.Sequential:
    return nn.Sequential(*[nn.Linear(width, width) for _ in range(4)]).cuda()


def learn(model: nn.Module, batch: torch.Tensor) -> float:
    loss = model(batch).float().pow(2).mean()
    loss.backward()
    return loss.item()


def all_reduces(count: int) -> None:
    """Reduce once a second, as steps do."""
    data = torch.ones(1 << 20, device="cuda")
    for _ in range(count):
        dist.all_reduce(data)
        torch.cuda.synchronize()
        time.sleep(1)


def out_of_memory() -> None:
    meet()
    allow(0.05)
    model = network(WIDE)
    for step in range(100):
        print(
            f"step {step} loss {learn(model, torch.rand(4 * WIDE, WIDE, device='cuda'))}",
            flush=True,
        )


def optimizer_out_of_memory() -> None:
    meet()
    allow(0.03)
    model = network(WIDE)
    optimizer = torch.optim.AdamW(model.parameters())
    learn(model, torch.rand(8, WIDE, device="cuda"))
    optimizer.step()


def sharded_out_of_memory() -> None:
    from torch.distributed.fsdp import fully_shard

    meet()
    allow(0.04)
    model = network(WIDE)
    for layer in model:
        fully_shard(layer)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    for step in range(20):
        optimizer.zero_grad()
        learn(model, torch.rand(64 << step, WIDE, device="cuda"))
        optimizer.step()


def token_out_of_range() -> None:
    meet()
    table = nn.Embedding(100, 64).cuda()
    for token in (99, 100, 101):
        print(f"loss {table(torch.tensor([token], device='cuda')).sum().item()}", flush=True)


def label_out_of_range() -> None:
    meet()
    scores = torch.rand(4, 10, device="cuda", requires_grad=True)
    nn.functional.cross_entropy(scores, torch.tensor([1, 2, 10, 3], device="cuda")).backward()
    torch.cuda.synchronize()


def illegal_access() -> None:
    from stray import write_far

    meet()
    write_far(torch.rand(16, device="cuda"))
    torch.cuda.synchronize()


def more_ranks_than_gpus() -> None:
    meet()


def one_gpu_twice() -> None:
    torch.cuda.set_device(0)
    dist.init_process_group("nccl")
    dist.all_reduce(torch.ones(1, device="cuda"))
    torch.cuda.synchronize()


def two_types() -> None:
    meet()
    network(64).bfloat16()(torch.rand(4, 64, device="cuda"))


def batch_on_the_cpu() -> None:
    meet()
    network(64)(torch.rand(4, 64))


class _Half(nn.Module):
    """Only the first of two layers takes part in the loss."""

    def __init__(self) -> None:
        super().__init__()
        self.used, self.unused = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return self.used(batch)


def unused_parameter() -> None:
    meet()
    model = nn.parallel.DistributedDataParallel(_Half().cuda())
    for _ in range(3):
        learn(model, torch.rand(2, 4, device="cuda"))


def late_rank() -> None:
    """Of two nodes: rank 0 is late for a collective."""
    meet(12)
    if RANK == 0:
        time.sleep(60)
    all_reduces(1)


def killed_peer() -> None:
    """Of two nodes."""
    meet(40)
    if RANK == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    all_reduces(50)


def raising_peer() -> None:
    """Of two nodes."""
    meet(40)
    if RANK == 1:
        raise ValueError("sample 1041 of shard 7 has no label")
    all_reduces(50)


def two_sizes() -> None:
    """Of two nodes."""
    meet(15)
    mine = torch.ones(1000 + 24 * RANK, device="cuda")
    dist.all_gather([torch.empty_like(mine) for _ in range(2)], mine)
    torch.cuda.synchronize()


def crash() -> None:
    meet()
    ctypes.string_at(0)


def asked_to_stop() -> None:
    meet()
    os.kill(os.getppid(), signal.SIGTERM)
    time.sleep(30)


def host_out_of_memory() -> None:
    meet()
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    torch.zeros(1 << 34)


def shared_memory_full() -> None:
    """/dev/shm must have 8 MiB."""
    meet()
    data = TensorDataset(torch.rand(64, 3, 512, 512))
    for (batch,) in DataLoader(data, batch_size=16, num_workers=2):
        batch.cuda()


def disk_full() -> None:
    """/mnt must have 64 MiB."""
    meet()
    torch.save(torch.rand(64 << 20), "/mnt/checkpoint.pt")


class _Images(Dataset):
    def __len__(self) -> int:
        return 64

    def __getitem__(self, number: int) -> torch.Tensor:
        if number == 33:
            raise KeyError("image")
        return torch.rand(3)


def loader_raises() -> None:
    meet()
    for batch in DataLoader(_Images(), batch_size=8, num_workers=2):
        batch.cuda()


def no_room_for_a_product() -> None:
    meet()
    free, _ = torch.cuda.mem_get_info()
    kept = torch.empty(free - (90 << 20), dtype=torch.uint8, device="cuda")
    one = torch.rand(1024, 1024, device="cuda")
    torch.linalg.inv(one @ one)
    del kept


def another_checkpoint() -> None:
    meet()
    torch.save(network(64).state_dict(), "/tmp/state.pt")
    network(128).load_state_dict(torch.load("/tmp/state.pt"))


def no_number() -> None:
    meet()
    torch.autograd.set_detect_anomaly(True)
    zeros = torch.zeros(4, device="cuda", requires_grad=True)
    (torch.sqrt(zeros) * 0).sum().backward()


def cannot_compile() -> None:
    meet()

    @torch.compile(fullgraph=True)
    def compiled(data: torch.Tensor) -> torch.Tensor:
        print("inside")
        return data + 1 if data.sum() > 0 else data

    compiled(torch.rand(4, device="cuda"))


ONE_NODE: tuple[Callable[[], None], ...] = (
    *(out_of_memory, optimizer_out_of_memory, sharded_out_of_memory, token_out_of_range),
    *(label_out_of_range, illegal_access, two_types, batch_on_the_cpu, unused_parameter, crash),
    *(asked_to_stop, host_out_of_memory, loader_raises, another_checkpoint, no_number),
    cannot_compile,
)
TWO_NODES: tuple[Callable[[], None], ...] = (late_rank, killed_peer, raising_peer, two_sizes)
TWO_RANKS: tuple[Callable[[], None], ...] = (more_ranks_than_gpus, one_gpu_twice)
SMALL_FOLDERS = {shared_memory_full: ("/dev/shm", "8m"), disk_full: ("/mnt", "64m")}
"""Program → a folder that is a small file system for it."""
ALONE: tuple[Callable[[], None], ...] = (no_room_for_a_product,)
"""Programs that need the whole GPU."""
ALL = (*ONE_NODE, *TWO_NODES, *TWO_RANKS, *SMALL_FOLDERS, *ALONE)

if __name__ == "__main__":
    next(program for program in ALL if program.__name__ == sys.argv[1])()
