"""A small encoder-decoder as T5 is one, its weights shared out over all processes (FSDP); it learns
to copy.

    torchrun --nproc_per_node=2 train.py --width 128 --layers 2

With GPUs a process takes one each (nccl), without it computes on the CPU (gloo). A checkpoint is
the whole model, gathered by rank 0, so it may be resumed by another number of processes.
"""

import argparse
import os

import torch
import torch.distributed as dist
from checkpoints import Checkpoints, State
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard

VOCABULARY, LENGTH = 16, 12
WHOLE = StateDictOptions(full_state_dict=True, cpu_offload=True)


class Seq2Seq(nn.Module):
    """Embedding with positions, transformer, projection."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.embed, self.place = nn.Embedding(VOCABULARY, width), nn.Embedding(LENGTH, width)
        self.body = nn.Transformer(
            width, 4, layers, layers, 4 * width, dropout=0.0, batch_first=True
        )
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1], device=target.device)
        return self.head(self.body(self._embedded(source), self._embedded(target), tgt_mask=mask))

    def _embedded(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.embed(tokens) + self.place.weight[: tokens.shape[1]]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--steps-per-checkpoint", type=int, default=20)
    return parser.parse_args()


def loss_of(model: nn.Module, size: int, seed: int, device: torch.device) -> torch.Tensor:
    """How badly the model copies sentences that depend on the seed only."""
    tokens = torch.randint(
        VOCABULARY, (size, LENGTH), generator=torch.Generator().manual_seed(seed)
    ).to(device)
    return nn.functional.cross_entropy(
        model(tokens, tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()
    )


def sharded(options: argparse.Namespace, device: torch.device) -> nn.Module:
    """Each layer gathers its own weights, when it needs them."""
    model = Seq2Seq(options.width, options.layers).to(device)
    for layer in (*model.body.encoder.layers, *model.body.decoder.layers):
        fully_shard(layer)
    return fully_shard(model)


def main() -> None:
    options, cuda = parse(), torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if cuda else "gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = sharded(options, device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    checkpoints, first = Checkpoints(options.steps_per_checkpoint), 0
    if saved := checkpoints.load():
        set_state_dict(
            model,
            optimizer,
            model_state_dict=saved["model"],
            optim_state_dict=saved["optimizer"],
            options=WHOLE,
        )
        first = saved["step"] + 1

    def state() -> State:
        weights, moments = get_state_dict(model, optimizer, options=WHOLE)
        return {"model": weights, "optimizer": moments}

    for step in range(first, options.steps):
        loss = loss_of(model, options.batch, 1 + step * ranks + rank, device)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 10 == 0:
            print(f"step {step} loss {loss.item():.6f} ranks {ranks}", flush=True)
        checkpoints.step_done(step, options.steps, state)
    with torch.no_grad():
        print(f"rank {rank} of {ranks}: final loss {loss_of(model, 64, 0, device):.8f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
