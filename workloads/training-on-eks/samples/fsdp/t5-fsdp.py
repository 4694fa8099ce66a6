"""A small encoder-decoder trained with FSDP: the shape of t5-large, sized by flags, with synthetic
copy-task data.

torchrun starts one process a GPU (nccl) or, without GPUs, a few processes (gloo). With
CHECKPOINT_DIR set, rank 0 writes the model there and every rank resumes from it.
"""

import argparse
import contextlib
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict, set_state_dict
from torch.distributed.fsdp import FullyShardedDataParallel

VOCABULARY, LENGTH = 16, 16
WHOLE = StateDictOptions(full_state_dict=True, cpu_offload=True)


class Seq2Seq(nn.Module):
    """Embedding, transformer, projection."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width)
        self.body = nn.Transformer(
            width, 4, layers, layers, 4 * width, dropout=0.0, batch_first=True
        )
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1], device=target.device)
        return self.head(self.body(self.embed(source), self.embed(target), tgt_mask=mask))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--steps-per-checkpoint", type=int, default=10)
    return parser.parse_args()


def checkpoint_file() -> str | None:
    """Below a mounted volume: a missing parent is an error, not a folder that would end with the
    pod."""
    folder = os.environ.get("CHECKPOINT_DIR")
    if folder and not os.path.isdir(folder):
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder)
    return os.path.join(folder, "t5-fsdp.pt") if folder else None


def save(model: nn.Module, optimizer: torch.optim.Optimizer, step: int, path: str) -> None:
    """Gather the shards on rank 0 and replace the file at once: a kill leaves the checkpoint
    before."""
    weights, moments = get_state_dict(model, optimizer, options=WHOLE)
    if dist.get_rank() == 0:
        torch.save({"step": step, "model": weights, "optimizer": moments}, path + ".new")
        os.replace(path + ".new", path)


def resume(model: nn.Module, optimizer: torch.optim.Optimizer, path: str | None) -> int:
    """The first step to take; every rank reads the whole checkpoint and keeps its shard."""
    if not path or not os.path.exists(path):
        return 0
    saved = torch.load(path, map_location="cpu")
    set_state_dict(
        model,
        optimizer,
        options=WHOLE,
        model_state_dict=saved["model"],
        optim_state_dict=saved["optimizer"],
    )
    if dist.get_rank() == 0:
        print(f"resumed from step {saved['step']}", flush=True)
    return saved["step"] + 1


def main() -> None:
    options, path, cuda = parse(), checkpoint_file(), torch.cuda.is_available()
    dist.init_process_group("nccl" if cuda else "gloo")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    torch.manual_seed(0)
    model = FullyShardedDataParallel(
        Seq2Seq(options.width, options.layers).to(device), device_id=device
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    first = resume(model, optimizer, path)
    torch.manual_seed(1 + first + dist.get_rank())
    for step in range(first, options.steps):
        tokens = torch.randint(VOCABULARY, (options.batch, LENGTH), device=device)
        logits = model(tokens, tokens[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0:
            print(f"step {step} loss {loss.item():.4f} ranks {dist.get_world_size()}", flush=True)
        if path and (step + 1) % options.steps_per_checkpoint == 0:
            save(model, optimizer, step, path)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
