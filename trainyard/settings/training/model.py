"""Settings of a model that a job trains: their types and units. The memory that follows from them is
trainyard/derive/model_memory/."""

from dataclasses import dataclass
from typing import Annotated, Literal

import pydantic

Count = Annotated[int, pydantic.Field(ge=1, strict=True)]


@dataclass(frozen=True, kw_only=True)
class TrainedModelConfig:
    """The model of a job, and the way it is trained. `trainyard check` then says whether it fits the
    GPUs, and `trainyard plan` prints its memory. What is not set is not known: the memory is then a
    lower bound."""

    name: str | None = None
    """Name of a public model, such as Qwen/Qwen3-8B: see docs/jobs.md. Other models have
    `parameters_billion` of the job, `layers`, `hidden` and `vocabulary`."""
    layers: Count | None = None
    """Number of layers."""
    hidden: Count | None = None
    """Width of a layer (hidden_size)."""
    vocabulary: Count | None = None
    """Number of tokens that the model knows (vocab_size)."""
    trainable_billion: Annotated[float, pydantic.Field(gt=0, le=10_000)] | None = None
    """Parameters that are trained, in billions: those of the adapters with LoRA. By default all."""
    precision: Literal["fp32", "mixed", "bf16"] | None = None
    """`mixed`: 16 bits with a copy in fp32, as with autocast, FSDP's MixedPrecision, and bf16 or fp16
    of DeepSpeed. `bf16`: weights, gradients and optimizer in bf16."""
    optimizer: Literal["adamw", "adamw_8bit", "adafactor", "lion", "sgd"] | None = None
    """Optimizer."""
    sharding: (
        Literal["none", "zero1", "zero2", "zero3", "full_shard", "shard_grad_op", "hybrid_shard"]
        | None
    ) = None
    """Sharding over the GPUs of the job: stage 1 to 3 of DeepSpeed's ZeRO, or a strategy of FSDP.
    `none`: each GPU holds everything (DDP)."""
    offload: Literal["none", "optimizer", "all"] = "none"
    """`optimizer`: its states are in the memory of the node. `all`: the weights, too."""
    checkpointing: Literal["none", "selective", "full"] | None = None
    """Activation checkpointing: `full` keeps the input of each layer only."""
    sequence: Count | None = None
    """Tokens of a sequence, with padding."""
    batch_per_gpu: Count | None = None
    """Sequences of a GPU in one forward pass; gradient accumulation does not count."""
