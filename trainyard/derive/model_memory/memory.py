"""Memory of a GPU that trains a model: what it takes at least, and what it likely takes at most.

States, by Rajbhandari et al., ZeRO (arXiv:1910.02054, section 3.1 and figure 1); the same numbers for
FSDP by Zhao et al. (arXiv:2304.11277, section 3). Activations, by Korthikanti et al. (arXiv:2205.05198,
section 4), with the matrices of a gated MLP and grouped keys. Buffers: DeepSpeed's configuration
(deepspeed.ai/docs/config-json, reduce_bucket_size and others) and what the documents of transformers
say of overlap_comm. The factors of `likely` are fitted to runs on one NVIDIA H200
(torch 2.11, transformers 5.17, 2026-11-27): tests/trainyard/derive/model_memory/measured.jsonl.

`least` counts what no implementation of these methods can do without: with fused kernels, a loss that
never holds all logits, and gradients that are freed before the next forward pass. `likely` counts the
usual implementation, transformers on PyTorch, with its copies, the context of CUDA and fragments of the
allocator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trainyard.derive.model_memory.models import GATED, Shape

Precision = Literal["fp32", "mixed", "bf16"]
Optimizer = Literal["adamw", "adamw_8bit", "adafactor", "lion", "sgd"]
Sharding = Literal["none", "zero1", "zero2", "zero3", "full_shard", "shard_grad_op", "hybrid_shard"]
Offload = Literal["none", "optimizer", "all"]
Checkpointing = Literal["none", "selective", "full"]
ZERO = ("zero1", "zero2", "zero3")
GRADIENTS_SHARDED = ("zero2", "zero3", "full_shard", "shard_grad_op", "hybrid_shard")
WEIGHTS_SHARDED = ("zero3", "full_shard", "shard_grad_op", "hybrid_shard")
STATES: dict[str, tuple[float, float]] = {
    "adamw": (2, 2),
    "lion": (1, 1),
    "sgd": (0, 1),
    "adamw_8bit": (0.5, 0.55),
    "adafactor": (0, 0.05),
}
"""Optimizer → tensors of the size of the model in fp32 that it keeps, at least and likely. SGD has one with
momentum; the two of 8-bit Adam have a byte a parameter (Dettmers et al., arXiv:2110.02861); Adafactor
keeps sums of rows and columns (Shazeer and Stern, arXiv:1804.04235)."""
BUCKET = 5e8
"""Elements of DeepSpeed's reduce_bucket_size and allgather_bucket_size by default."""
OVERLAP = 4.5
"""Buckets that overlap_comm holds of each (huggingface.co/docs/transformers/deepspeed, ZeRO-2)."""
LIVE = 1e9
"""Parameters that ZeRO-3 gathers at most (stage3_max_live_parameters)."""
LOGIT_BYTES = 14
"""Bytes of a logit: in 16 bits, its copy in fp32, the logarithm of its probability, and their gradients,
of which not all are held at once (measured)."""
CONTEXT_GB = 2.5
"""Memory that CUDA, its libraries and NCCL take beside the allocator of PyTorch (measured)."""
QUANTIZED = 0.5
"""Bytes of a frozen parameter at least: adapters are trained on weights of 4 bits, too (QLoRA, arXiv:2305.14314)."""
FRAGMENTS = 1.08
"""Memory that the allocator reserves, by what it hands out."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """A model, and the way it is trained."""

    parameters: float
    trainable: float
    """Parameters that get gradients; the others are frozen."""
    shape: Shape | None
    precision: Precision
    """`mixed`: 16 bits with a copy in fp32. `bf16`: all in 16 bits."""
    optimizer: Optimizer
    sharding: Sharding
    gpus: int
    gpus_per_node: int
    offload: Offload = "none"
    checkpointing: Checkpointing = "none"
    eager: bool = False
    """Attention holds its scores."""
    sequence: int | None = None
    batch: int | None = None
    """Sequences of a GPU in one forward pass."""
    bucket: float = BUCKET

    @property
    def frozen(self) -> float:
        """Parameters that get no gradients."""
        return self.parameters - self.trainable

    @property
    def ranks(self) -> int:
        """GPUs over which states are sharded."""
        if self.sharding == "none":
            return 1
        return min(self.gpus, self.gpus_per_node) if self.sharding == "hybrid_shard" else self.gpus

    @property
    def tokens(self) -> int | None:
        """Tokens of a GPU in one forward pass; None where they are not known."""
        return self.sequence * self.batch if self.sequence and self.batch else None

    @property
    def activations_known(self) -> bool:
        """Sequence, batch and shape are known."""
        return self.tokens is not None and self.shape is not None

    @property
    def master(self) -> bool:
        """DeepSpeed holds weights in 16 bits, and a copy in fp32 as a state of the optimizer."""
        return self.precision == "mixed" and self.sharding in ZERO

    @property
    def weight_bytes(self) -> int:
        """Bytes of a parameter and of its gradient. PyTorch's mixed precision keeps both in fp32."""
        return 2 if self.precision == "bf16" or self.master else 4

    @property
    def compute_bytes(self) -> int:
        """Bytes of a number in an activation."""
        return 4 if self.precision == "fp32" else 2


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Bytes of one GPU."""

    weights: float
    gradients: float
    optimizer: float
    activations: float | None
    """None where sequence, batch or shape are not known: they come on top."""
    buffers: float
    total: float
    """Peak of them all, which is less than their sum where they are not held at once."""

    @property
    def states(self) -> float:
        """Weights, gradients and states of the optimizer."""
        return self.weights + self.gradients + self.optimizer


def least(training: Training) -> Memory:
    """Memory without which the training cannot run."""
    weights, gradients, optimizer = _states(training, STATES[training.optimizer][0], QUANTIZED)
    activations = _activations(training, most=False)
    held = weights + _gathered(training, QUANTIZED) + optimizer
    return Memory(
        weights=weights,
        gradients=gradients,
        optimizer=optimizer,
        activations=activations,
        buffers=0,
        total=max(weights + gradients + optimizer, held + (activations or 0)),
    )


def likely(training: Training) -> Memory:
    """Memory that the usual implementation reaches at most."""
    frozen = min(training.weight_bytes, training.compute_bytes)
    weights, gradients, optimizer = _states(training, STATES[training.optimizer][1], frozen)
    activations = _activations(training, most=True)
    buffers = _gathered(training, training.compute_bytes) + _buffers(training)
    held = (activations or 0) + buffers
    states = weights + gradients + optimizer
    return Memory(
        weights=weights,
        gradients=gradients,
        optimizer=optimizer,
        activations=activations,
        buffers=buffers,
        total=(states + max(held, _of_step(training))) * FRAGMENTS + CONTEXT_GB * 1e9,
    )


def _states(training: Training, tensors: float, frozen: float) -> tuple[float, float, float]:
    """Weights, gradients and optimizer of one GPU. `tensors`: that the optimizer keeps; `frozen`: bytes of a
    frozen parameter."""
    each, ranks = training.weight_bytes, training.ranks
    weights = training.trainable * each + training.frozen * frozen
    gradients = training.trainable * each
    optimizer = training.trainable * tensors * (4 if training.master else each)
    optimizer += training.trainable * 4 if training.master else 0
    if training.sharding in WEIGHTS_SHARDED:
        weights /= ranks
    if training.sharding in GRADIENTS_SHARDED:
        gradients /= ranks
    if training.offload != "none":
        gradients = optimizer = 0
    if training.offload == "all":
        weights = 0
    return weights, gradients, optimizer / ranks


def _gathered(training: Training, frozen: float) -> float:
    """Weights that are whole on each GPU while activations are held: with shard_grad_op all of them. `frozen`:
    bytes of a frozen parameter."""
    if training.sharding == "shard_grad_op" and training.ranks > 1:
        return training.trainable * training.compute_bytes + training.frozen * frozen
    return 0


def _of_step(training: Training) -> float:
    """Copies of the optimizer's step, when no activations are held: one of the size of the weights where it
    goes over lists of tensors (foreach)."""
    return 0 if training.offload != "none" else training.trainable * 4 / training.ranks


def _buffers(training: Training) -> float:
    """Copies and buffers of the usual implementation."""
    whole, sharding = training.parameters, training.sharding
    if sharding in ("zero1", "zero2"):
        return 2 * 2 * min(OVERLAP * training.bucket, whole)
    if sharding == "zero3":
        return 2 * min(LIVE, whole) + 2 * 2 * min(training.bucket, whole)
    if sharding == "none":
        copies = training.trainable * training.weight_bytes if training.gpus > 1 else 0
        return copies + (2 * whole if training.precision == "mixed" else 0)
    shape = training.shape
    unit = 2 * shape.layer + shape.embeddings if shape else whole / 10
    return unit * (training.compute_bytes + 4)


def _activations(training: Training, *, most: bool) -> float | None:
    """Activations of one GPU at the end of the forward pass, or None where they are not known. `most`: with
    the logits and the copies of the usual implementation."""
    shape, tokens = training.shape, training.tokens
    if shape is None or tokens is None:
        return None
    layer = tokens * (_most_of_layer if most else _least_of_layer)(training, shape)
    logits = tokens * shape.vocabulary * LOGIT_BYTES if most else 0
    whole = training.checkpointing == "none" or training.checkpointing == "selective" and most
    if whole:
        return shape.layers * layer + logits
    kept = 4 if training.precision == "fp32" or training.precision == "mixed" and most else 2
    return shape.layers * tokens * shape.hidden * kept + layer + logits


def _least_of_layer(training: Training, shape: Shape) -> float:
    """Bytes of a token in a layer that the backward pass cannot do without: inputs of matrices and of the
    attention."""
    inner = shape.inner * shape.active * (shape.matrices - 1)
    numbers = 2 * shape.hidden + 2 * shape.query + 2 * shape.keys + inner
    return training.compute_bytes * numbers


def _most_of_layer(training: Training, shape: Shape) -> float:
    """As _least_of_layer, with copies: norms in fp32, keys repeated for each head, both factors of a gate
    and their product, masks of dropout."""
    inner = shape.inner * shape.active * (4 if shape.matrices == GATED else 5)
    routed = 3 * shape.hidden * shape.active if shape.experts > 1 else 0
    numbers = 6 * shape.hidden + 8 * shape.query + inner + routed
    norms = shape.hidden * (16 if training.precision == "mixed" else 8)
    scores = 0
    if (training.eager or shape.cross) and training.sequence:
        scores = shape.heads * training.sequence * (2 * training.compute_bytes + 4)
    return training.compute_bytes * numbers + norms + scores
