"""The peak memory of training steps on one GPU: `python -m benchmarks.on_a_gpu.memory FOLDER`.

It measures the rows of tests/trainyard/derive/model_memory/measured.jsonl again, each in a process of its own, and
writes them to FOLDER/memory.jsonl. It needs one GPU of 140 GiB, torch, transformers and accelerate; no network.
Their first measurement was by a longer form of this program, 50 rows in two minutes. `--rows` names another file:
unseen.jsonl beside it has models from which no rule was made, for a GPU of 80 GB.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROWS = Path(__file__).parents[2] / "tests/trainyard/derive/model_memory/measured.jsonl"
STEPS = 3
LIMIT_SECONDS = 60
GIVEN = (
    *("name", "model", "mode", "batch", "sequence", "optimizer", "checkpointing", "attention"),
    *("wrap", "accumulation", "lora"),
)
"""Keys of a row that say what is measured; the others are results."""


class Meter:
    """Peaks of PyTorch's allocator, in bytes, by phase of a step."""

    def __init__(self) -> None:
        self.peaks: dict[str, int] = {}

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        import torch

        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        try:
            yield
            torch.cuda.synchronize()
        finally:
            self.peaks[name] = max(self.peaks.get(name, 0), torch.cuda.max_memory_allocated())


def optimizer_of(kind: str, parameters: list[Any]) -> Any:
    import torch

    if kind == "adafactor":
        from transformers.optimization import Adafactor

        return Adafactor(parameters, lr=1e-5, scale_parameter=False, relative_step=False)
    if kind.startswith("sgd"):
        return torch.optim.SGD(parameters, lr=1e-5, momentum=0.9 if kind == "sgd_momentum" else 0)
    return torch.optim.AdamW(parameters, lr=1e-5, **{kind.removeprefix("adamw_"): True})


def measured(row: dict[str, Any]) -> dict[str, Any]:
    """Results of a row: three steps, and what they took."""
    import torch

    from benchmarks.on_a_gpu.models import model_of, wrapped

    model = model_of(row)
    parameters = [*model.parameters()]
    found: dict[str, Any] = {
        "parameters": sum(each.numel() for each in parameters),
        "trainable": sum(each.numel() for each in parameters if each.requires_grad),
    }
    vocabulary = model.config.vocab_size
    run = wrapped(model, row["wrap"])
    torch.cuda.empty_cache()
    found["weights_bytes"] = torch.cuda.memory_allocated()
    meter = Meter()
    optimizer = optimizer_of(row["optimizer"], [p for p in run.parameters() if p.requires_grad])
    tokens = torch.randint(0, vocabulary, (row["batch"], row["sequence"]), device="cuda")
    for _ in range(STEPS):
        _step(run, tokens, optimizer, row, meter)
    free, total = torch.cuda.mem_get_info()
    return found | {
        "result": "fits",
        "peaks": meter.peaks,
        "max_memory_allocated": max(meter.peaks.values()),
        "memory_reserved": torch.cuda.memory_reserved(),
        "driver_used": total - free,
    }


def _step(run: Any, tokens: Any, optimizer: Any, row: dict[str, Any], meter: Meter) -> None:
    import torch

    amp = torch.autocast("cuda", dtype=torch.bfloat16)
    for number in range(row["accumulation"]):
        phase = "_accumulating" if number else ""
        with (
            meter.phase(f"forward{phase}"),
            amp if row["mode"] == "amp" else contextlib.nullcontext(),
        ):
            loss = run(input_ids=tokens, labels=tokens.clone()).loss
        with meter.phase(f"backward{phase}"):
            (loss / row["accumulation"]).backward()
        del loss
    with meter.phase("step"):
        optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def _one(row: dict[str, Any]) -> None:
    """Measure a row in this process, and print it."""
    import torch
    import torch.distributed as dist

    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29510"}
    torch.cuda.set_device(0)
    dist.init_process_group("nccl", rank=0, world_size=1)
    dist.all_reduce(torch.ones(1024, device="cuda"))
    try:
        found = measured(row)
    except torch.OutOfMemoryError:
        found = {"result": "out of memory"}
    print(json.dumps(row | found), flush=True)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.on_a_gpu.memory")
    parser.add_argument("folder", type=Path, help="where memory.jsonl is written")
    parser.add_argument("--row", help="measure this row, as JSON, and print it")
    parser.add_argument("--rows", type=Path, default=ROWS, help="file of the rows to measure")
    options = parser.parse_args(words)
    if options.row:
        _one(json.loads(options.row))
        return 0
    rows = [json.loads(line) for line in options.rows.read_text().splitlines()[1:]]
    with (options.folder / "memory.jsonl").open("w") as out:
        for row in rows:
            given = json.dumps({key: row[key] for key in GIVEN})
            command = [sys.executable, "-m", "benchmarks.on_a_gpu.memory", ".", "--row", given]
            ended = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS)
            lines = [line for line in ended.stdout.splitlines() if line.startswith("{")]
            found = json.loads(lines[-1]) if lines else {"result": f"exit code {ended.returncode}"}
            out.write(json.dumps(found) + "\n")
            before, now = (each.get("max_memory_allocated", 0) / 1e9 for each in (row, found))
            print(
                f"{row['name']}: {found['result']}, {now:.2f} GB, before {before:.2f}", flush=True
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
