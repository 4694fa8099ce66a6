"""The range of memory holds what was measured on a GPU, and its parts are those of the papers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trainyard.derive.model_memory.memory import Memory, Training, least, likely
from trainyard.derive.model_memory.models import MODELS, Shape


def rows(name: str) -> list[dict[str, Any]]:
    """Runs on one GPU; the first line says which."""
    return [json.loads(line) for line in Path(__file__).with_name(name).read_text().splitlines()]


HEAD, *MEASURED = rows("measured.jsonl")
UNSEEN_HEAD, *UNSEEN = rows("unseen.jsonl")
"""Models from which no rule was made, on a smaller GPU."""
SMALL_MIXTURE = Shape(
    layers=8,
    hidden=1024,
    query=1024,
    keys=256,
    inner=512,
    vocabulary=151_936,
    heads=16,
    experts=32,
    active=4,
)
SHAPES = {
    "llama1b": MODELS["Llama-3.2-1B"].shape,
    "llama3b": MODELS["Llama-3.2-3B"].shape,
    "qwen05b": MODELS["Qwen2.5-0.5B"].shape,
    "qwen15b": MODELS["Qwen2.5-1.5B"].shape,
    "gpt2medium": MODELS["gpt2-medium"].shape,
    "gpt2large": MODELS["gpt2-large"].shape,
    "t5large": MODELS["t5-large"].shape,
    "qwen3moe": SMALL_MIXTURE,
}
UNSEEN_SHAPES = {
    "mistral7b": MODELS["Mistral-7B"].shape,
    "llama8b": MODELS["Llama-3.1-8B"].shape,
    "phi3mini": MODELS["Phi-3-mini"].shape,
    "gemma2b": MODELS["gemma-2-2b"].shape,
    "qwen06b": MODELS["Qwen3-0.6B"].shape,
    "qwen17b": MODELS["Qwen3-1.7B"].shape,
    "qwen4b": MODELS["Qwen3-4B"].shape,
    "qwen3b": MODELS["Qwen2.5-3B"].shape,
    "gpt2xl": MODELS["gpt2-xl"].shape,
}
PRECISIONS = {"fp32": "fp32", "bf16": "bf16", "amp": "mixed", "trainer": "mixed", "fsdp": "mixed"}
OPTIMIZERS = {
    "adamw_fused": "adamw",
    "adamw_foreach": "adamw",
    "sgd": "sgd",
    "sgd_momentum": "sgd",
    "adafactor": "adafactor",
}


def training(run: dict[str, Any]) -> Training:
    """A measured run in the words of the arithmetic. One process of DDP has the buckets of two."""
    return Training(
        parameters=run["parameters"],
        trainable=run["trainable"],
        shape=(SHAPES | UNSEEN_SHAPES)[run["model"]],
        precision=PRECISIONS[run["mode"]],  # pyright: ignore[reportArgumentType]
        optimizer=OPTIMIZERS[run["optimizer"]],  # pyright: ignore[reportArgumentType]
        sharding="full_shard" if run["wrap"] == "fsdp" else "none",
        gpus=2 if run["wrap"].startswith("ddp") else 1,
        gpus_per_node=1,
        checkpointing="full" if run["checkpointing"] else "none",
        eager=run["attention"] == "eager",
        sequence=run["sequence"],
        batch=run["batch"],
    )


def assert_held(run: dict[str, Any], gpu: int) -> None:
    """The range holds the peak of a run, and says of one that was out of memory that it may not fit."""
    low, high = least(training(run)).total, likely(training(run)).total
    if run["result"] == "out of memory":
        assert high > gpu
        return
    assert low <= run["max_memory_allocated"]
    assert run["driver_used"] <= high


@pytest.mark.parametrize("run", MEASURED, ids=lambda run: run["name"])
def test_the_range_holds_the_peak_that_was_measured(run: dict[str, Any]) -> None:
    assert_held(run, HEAD["gpu_total_bytes"])


@pytest.mark.parametrize("run", UNSEEN, ids=lambda run: run["name"])
def test_the_range_holds_the_peak_of_a_model_from_which_no_rule_was_made(
    run: dict[str, Any],
) -> None:
    assert_held(run, UNSEEN_HEAD["gpu_total_bytes"])


def test_the_measurements_are_many_and_of_every_kind() -> None:
    assert len(MEASURED) == 50 and "H200" in HEAD["source"]
    assert {run["model"] for run in MEASURED} == SHAPES.keys()
    assert len(UNSEEN) == 21 and "H100" in UNSEEN_HEAD["source"]
    assert {run["model"] for run in UNSEEN} == UNSEEN_SHAPES.keys()
    assert {run["mode"] for run in MEASURED} == PRECISIONS.keys()
    assert {run["optimizer"] for run in MEASURED} == OPTIMIZERS.keys()


def of(billions: float, sharding: str, gpus: int = 64, **more: Any) -> Memory:
    """States of a model in mixed precision with AdamW."""
    made = Training(
        parameters=billions * 1e9,
        trainable=billions * 1e9,
        shape=None,
        precision="mixed",
        optimizer="adamw",
        sharding=sharding,  # pyright: ignore[reportArgumentType]
        gpus=gpus,
        gpus_per_node=8,
    )
    return least(replace(made, **more))


@pytest.mark.parametrize(
    ("sharding", "gigabytes"), [("none", 120), ("zero1", 31.4), ("zero2", 16.6), ("zero3", 1.88)]
)
def test_states_are_those_of_figure_1_of_the_paper_of_zero(sharding: str, gigabytes: float) -> None:
    assert of(7.5, sharding).states / 1e9 == pytest.approx(gigabytes, rel=0.01)


def test_a_strategy_of_fsdp_shards_what_its_name_says() -> None:
    full, hybrid = of(7.5, "full_shard"), of(7.5, "hybrid_shard")
    assert full.states == pytest.approx(of(7.5, "zero3").states)
    assert hybrid.states == pytest.approx(8 * full.states)
    # The weights in 16 bits stay whole until the backward pass ends.
    assert of(7.5, "shard_grad_op").total == pytest.approx(15e9 + 7.5e9 * (4 + 8) / 64)


def test_offload_takes_states_from_the_gpu() -> None:
    assert of(7.5, "zero2", offload="optimizer").states == 15e9
    assert of(7.5, "zero3", offload="all").states == 0


def test_only_what_is_trained_has_gradients_and_states() -> None:
    lora = of(7.5, "none", trainable=0.1e9, precision="bf16")
    assert lora.gradients == 0.2e9 and lora.optimizer == 0.4e9
    assert lora.weights == 0.2e9 + 7.4e9 / 2


@pytest.mark.parametrize(
    ("optimizer", "bytes_each"),
    [("adamw", 8), ("lion", 4), ("sgd", 0), ("adamw_8bit", 2), ("adafactor", 0)],
)
def test_an_optimizer_keeps_its_tensors(optimizer: str, bytes_each: int) -> None:
    assert of(1, "none", optimizer=optimizer).optimizer == bytes_each * 1e9
    assert of(1, "zero1", gpus=1, optimizer=optimizer).optimizer == (bytes_each + 4) * 1e9


@pytest.mark.parametrize("precision", ["fp32", "mixed", "bf16"])
@pytest.mark.parametrize("checkpointing", ["none", "selective", "full"])
@pytest.mark.parametrize("sharding", ["none", "zero1", "zero2", "zero3", "full_shard"])
def test_the_least_is_never_more_than_the_likely(
    precision: Any, checkpointing: Any, sharding: Any
) -> None:
    for model in MODELS.values():
        made = Training(
            parameters=model.parameters,
            trainable=model.parameters,
            shape=model.shape,
            precision=precision,
            optimizer="adamw",
            sharding=sharding,
            gpus=16,
            gpus_per_node=8,
            checkpointing=checkpointing,
            sequence=2048,
            batch=2,
        )
        low, high = least(made), likely(made)
        assert low.total < high.total
        assert (low.activations is None) == (high.activations is None) == (model.shape is None)
        assert low.activations is None or low.activations < (high.activations or 0)
