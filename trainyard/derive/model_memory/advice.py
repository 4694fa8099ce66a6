"""Changes that make a model fit its GPUs, computed by the same arithmetic as the verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate, combinations, pairwise
from typing import Literal

from trainyard.derive.model_memory.memory import ZERO, Memory, Training, least, likely

Change = Literal["sharding", "checkpointing", "batch", "optimizer", "offload", "nodes"]
MOST_NODES = 64
"""Nodes up to which a larger number is proposed."""
WITH_DEEPSPEED: dict[Change, str] = {
    "sharding": '"stage": 3 in {file}',
    "checkpointing": "--gradient_checkpointing True",
    "batch": "a batch of 1 a GPU",
    "optimizer": "8-bit AdamW",
    "offload": '"offload_optimizer": {{"device": "cpu"}} in {file}',
    "nodes": "{nodes} nodes",
}
WITH_ACCELERATE: dict[Change, str] = {
    **WITH_DEEPSPEED,
    "sharding": "--zero_stage 3",
    "offload": "--offload_optimizer_device cpu",
}
WITH_FSDP: dict[Change, str] = {
    **WITH_DEEPSPEED,
    "sharding": '--fsdp "full_shard auto_wrap"',
    "offload": '--fsdp "full_shard offload auto_wrap"',
}
IN_SETTINGS: dict[Change, str] = {
    "sharding": "sharding: {sharding}",
    "checkpointing": "checkpointing: full",
    "batch": "batch_per_gpu: 1",
    "optimizer": "optimizer: adamw_8bit",
    "offload": "offload: {offload}",
    "nodes": "nodes: {nodes}",
}
"""Change → how it is written, in a script or in the settings of a job."""


@dataclass(frozen=True, kw_only=True)
class Way:
    """Changes that together make a model fit."""

    changes: tuple[Change, ...]
    training: Training
    likely: Memory


def ways(training: Training, room: float) -> tuple[Way, ...]:
    """The fewest changes that make the training fit `room` bytes on its own GPUs, and on more nodes: each
    of the two where there is one."""
    own = next((way for way in _combined(training) if way.likely.total <= room), None)
    more = next((way for way in _on_more_nodes(training) if way.likely.total <= room), None)
    return tuple(way for way in (own, more) if way)


def nodes_at_least(training: Training, room: float) -> int | None:
    """Nodes on which even the least fits `room` bytes; None where none of MOST_NODES does."""
    each = training.gpus_per_node
    numbers = range(-(-training.gpus // each), MOST_NODES + 1)
    fitting = (n for n in numbers if least(replace(training, gpus=n * each)).total <= room)
    return next(fitting, None)


def _way(changes: tuple[Change, ...], training: Training) -> Way:
    return Way(changes=changes, training=training, likely=likely(training))


def _combined(training: Training) -> Iterator[Way]:
    """Every combination of changes on the same GPUs, the smaller first."""
    for count in range(1, len(CHANGES) + 1):
        for chosen in combinations(CHANGES, count):
            changes = [CHANGES[name] for name in chosen]
            steps = [*accumulate(changes, lambda made, change: change(made), initial=training)]
            if all(before != after for before, after in pairwise(steps)):
                yield _way(chosen, steps[-1])


def _on_more_nodes(training: Training) -> Iterator[Way]:
    """More nodes, with states that are sharded over all of them."""
    sharded = _sharded(training)
    first: tuple[Change, ...] = ("sharding",) if sharded != training else ()
    nodes = -(-training.gpus // training.gpus_per_node)
    for more in range(nodes + 1, MOST_NODES + 1):
        yield _way((*first, "nodes"), replace(sharded, gpus=more * training.gpus_per_node))


def _sharded(training: Training) -> Training:
    """Everything sharded, by the engine that the training has."""
    if training.gpus == 1:
        return training
    return replace(training, sharding="zero3" if training.sharding in ZERO else "full_shard")


def _offloaded(training: Training) -> Training:
    """States of the optimizer in the memory of the node; with FSDP the weights, too."""
    if training.sharding == "none":
        return training
    return replace(training, offload="optimizer" if training.sharding in ZERO else "all")


def _small_batch(training: Training) -> Training:
    return replace(training, batch=1) if training.activations_known else training


def _checkpointed(training: Training) -> Training:
    return replace(training, checkpointing="full") if training.activations_known else training


def _with_small_states(training: Training) -> Training:
    return replace(training, optimizer="adamw_8bit") if training.optimizer == "adamw" else training


CHANGES: dict[Change, Callable[[Training], Training]] = {
    "sharding": _sharded,
    "checkpointing": _checkpointed,
    "batch": _small_batch,
    "optimizer": _with_small_states,
    "offload": _offloaded,
}
"""Change → the training with it, or as it is where the change does not apply. What costs the least time
comes first."""


def in_words(way: Way, words: dict[Change, str], file: str) -> str:
    """A way as somebody writes it. `file`: the DeepSpeed file."""
    training = way.training
    written = [
        words[change].format(
            file=file,
            sharding=training.sharding,
            offload=training.offload,
            nodes=-(-training.gpus // training.gpus_per_node),
        )
        for change in way.changes
    ]
    return " and ".join(written)
