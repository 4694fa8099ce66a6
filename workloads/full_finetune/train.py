"""Full fine-tuning of a language model: a data set of tokens, epochs, gradient accumulation, bf16.

torchrun --nproc_per_node=8 train.py --dataset_dir /data --output_dir /checkpoints/tiny --bf16 True

The flags are those of transformers' Trainer. `--dataset_dir` holds *.pt files of token ids;
`--model_name` is `tiny`, for a trial without a download, or whatever transformers can load, if it
is installed. Every process has a copy of the model (DDP): what DeepSpeed's file says about ZeRO is
not used here, and what it says about batches must agree.
"""

import argparse
import contextlib
import json
import os
from pathlib import Path

import torch
import torch.distributed as dist
from checkpoints import Checkpoints, write
from torch import nn


class Tiny(nn.Module):
    """A decoder of two layers over bytes."""

    def __init__(self, length: int, width: int = 64) -> None:
        super().__init__()
        self.embed, self.place = nn.Embedding(256, width), nn.Embedding(length, width)
        layer = nn.TransformerEncoderLayer(
            width, 4, 4 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, 256)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1], device=tokens.device)
        return self.head(
            self.body(
                self.embed(tokens) + self.place.weight[: tokens.shape[1]], mask, is_causal=True
            )
        )


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model_name", default="tiny")
    parser.add_argument("--dataset_dir", type=Path, required=True)
    parser.add_argument("--output_dir", type=Path, required=True)
    parser.add_argument("--per_device_train_batch_size", type=int, default=1)
    parser.add_argument("--gradient_accumulation_steps", type=int, default=4)
    parser.add_argument("--learning_rate", type=float, default=5e-5)
    parser.add_argument("--num_train_epochs", type=int, default=1)
    parser.add_argument("--max_seq_length", type=int, default=64)
    parser.add_argument("--bf16", type=lambda word: word.lower() == "true", default=False)
    parser.add_argument("--deepspeed", type=Path)
    parser.add_argument("--logging_steps", type=int, default=10)
    parser.add_argument("--save_steps", type=int, default=500)
    options = parser.parse_args()
    said = json.loads(options.deepspeed.read_text()) if options.deepspeed else {}
    for key, flag in {
        "train_micro_batch_size_per_gpu": options.per_device_train_batch_size,
        "gradient_accumulation_steps": options.gradient_accumulation_steps,
    }.items():
        if said.get(key, "auto") not in ("auto", flag):
            parser.error(f"{options.deepspeed} says {key} {said[key]}, the flag says {flag}")
    return options


def load_model(name: str, length: int) -> nn.Module:
    if name == "tiny":
        return Tiny(length)
    from transformers import AutoModelForCausalLM  # only who fine-tunes such a model needs it

    return AutoModelForCausalLM.from_pretrained(name)


def load_pieces(folder: Path, length: int) -> torch.Tensor:
    """All tokens, cut into pieces of `length` and the one to predict after the last."""
    tokens = torch.cat(
        [torch.load(file, weights_only=True) for file in sorted(folder.glob("*.pt"))]
    ).long()
    return tokens.unfold(0, length + 1, length)


def order(pieces: int, epochs: int, each: int) -> torch.Tensor:
    """Which pieces a step takes, all ranks together: shuffled anew in every epoch, and the same in
    every run."""
    shuffled = [
        torch.randperm(pieces, generator=torch.Generator().manual_seed(e)) for e in range(epochs)
    ]
    return torch.cat([one[: pieces // each * each] for one in shuffled]).view(-1, each)


def loss_of(model: nn.Module, pieces: torch.Tensor, bf16: bool) -> torch.Tensor:
    with torch.autocast(pieces.device.type, torch.bfloat16, enabled=bf16):
        logits = model(pieces[:, :-1])
    logits = getattr(logits, "logits", logits).float()
    return nn.functional.cross_entropy(logits.flatten(0, 1), pieces[:, 1:].flatten())


def main() -> None:
    options, cuda = parse(), torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if cuda else "gloo")
    rank, ranks, parts = dist.get_rank(), dist.get_world_size(), options.gradient_accumulation_steps
    pieces = load_pieces(options.dataset_dir, options.max_seq_length).to(device)
    plan = order(
        len(pieces), options.num_train_epochs, options.per_device_train_batch_size * parts * ranks
    )
    torch.manual_seed(0)
    network, first = load_model(options.model_name, options.max_seq_length).to(device), 0
    optimizer = torch.optim.AdamW(network.parameters(), lr=options.learning_rate)
    checkpoints = Checkpoints(
        options.save_steps, os.environ.get("CHECKPOINT_DIR", str(options.output_dir))
    )
    if saved := checkpoints.load():
        network.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        first = saved["step"] + 1
    model = nn.parallel.DistributedDataParallel(network)
    for step in range(first, len(plan)):
        mine = plan[step].view(ranks, parts, -1)[rank]
        optimizer.zero_grad()
        for part in range(parts):
            with contextlib.nullcontext() if part + 1 == parts else model.no_sync():
                loss = loss_of(model, pieces[mine[part]], options.bf16)
                (loss / parts).backward()
        optimizer.step()
        if rank == 0 and step % options.logging_steps == 0:
            print(f"step {step} loss {loss.item():.6f} ranks {ranks}", flush=True)
        checkpoints.step_done(
            step,
            len(plan),
            lambda: {"model": network.state_dict(), "optimizer": optimizer.state_dict()},
        )
    with torch.no_grad():
        print(
            f"rank {rank} of {ranks}: final loss {loss_of(model, pieces[:64], options.bf16):.8f}",
            flush=True,
        )
    if rank == 0:
        options.output_dir.mkdir(exist_ok=True)
        write(options.output_dir / "model.pt", lambda out: torch.save(network.state_dict(), out))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
