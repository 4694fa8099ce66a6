"""Verdict about a job: whether the model that it trains fits the memory of its GPUs.

The settings of the job say the model, or its script with a public name and a DeepSpeed file or options of
FSDP. What they do not say is unknown: the least of all possibilities counts then, and nothing is said of
the most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from trainyard.derive.model_memory import advice
from trainyard.derive.model_memory.found import ZERO_STAGE, Found, found_in
from trainyard.derive.model_memory.memory import Memory, Training, least, likely
from trainyard.derive.model_memory.models import Shape, public_model
from trainyard.derive.pools import job_type
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.job import JobConfig
from trainyard.settings.training.model import TrainedModelConfig

NAME_IT = "name the optimizer, whose states the check counts then"
LESS = "freeze a part of it (LoRA), or take GPUs with more memory"
"""Advice where no change that this program counts makes it fit."""
Verdict = Literal["does not fit", "may not fit", "fits", "not known"]


@dataclass(frozen=True, kw_only=True)
class Fit:
    """Memory that a job takes of each GPU, and what makes it fit."""

    what: str
    """The training in words: model, precision, optimizer, sharding and GPUs."""
    stated: bool
    """The settings of the job say it; otherwise its script."""
    room: float
    """Bytes of one GPU."""
    least: Memory
    likely: Memory | None
    """None where precision, optimizer or sharding are not known."""
    advice: str
    """Changes that make it fit; empty where it does."""

    @property
    def verdict(self) -> Verdict:
        """Certain only where even the least does not fit."""
        if self.least.total > self.room:
            return "does not fit"
        if self.likely is None:
            return "not known"
        if self.likely.total > self.room:
            return "may not fit"
        return "not known" if self.likely.activations is None else "fits"

    @property
    def in_words(self) -> str:
        """Memory for a line of the plan."""
        shown = self.likely or self.least
        parts = {
            "weights": shown.weights,
            "gradients": shown.gradients,
            "optimizer": shown.optimizer,
            "activations": shown.activations or 0,
            "buffers": shown.buffers,
        }
        parts["CUDA and fragments"] = max(0, shown.total - sum(parts.values()))
        listed = ", ".join(f"{name} {size / 1e9:.1f}" for name, size in parts.items() if size)
        up_to = f", likely up to {shown.total / 1e9:.1f}" if self.likely else ""
        before = "" if self.likely and shown.activations is not None else " before activations"
        return (
            f"{self.verdict}: at least {self.least.total / 1e9:.1f}{up_to} of the"
            f" {self.room / 1e9:.1f} GB of a GPU{before} ({listed}); {self.what}"
        )


@dataclass(frozen=True, kw_only=True)
class _Ways:
    """The cheapest and the usual way in which a job can train what it says."""

    cheapest: Training
    usual: Training | None
    what: str
    stated: bool
    file: str
    """Name of the DeepSpeed file, or the option that says the sharding; empty for settings."""


def fit_of(
    job: JobConfig,
    environment: EnvironmentConfig,
    scripts: Iterable[str],
    file: Callable[[str], str | None],
) -> Fit | None:
    """The verdict; None where neither settings nor scripts say the model, or the pool has no GPUs.
    `file`: the text of a file that the job brings, by its name."""
    kind = job_type(job, environment)
    if kind is None or not kind.gpus:
        return None
    per_node = job.gpus_per_node or kind.gpus
    gpus = job.nodes * per_node
    found = None if job.model else next(filter(None, (found_in(s, file) for s in scripts)), None)
    if job.model:
        known = _stated(job.model, job.parameters_billion, gpus, per_node)
    else:
        known = _found(found, gpus, per_node) if found else None
    return _fit(known, kind.gpu_memory_mib * 2**20) if known else None


def _fit(known: _Ways, room: float) -> Fit:
    low = least(known.cheapest)
    high = likely(known.usual) if known.usual else None
    fits = low.total <= room and (high is None or high.total <= room)
    return Fit(
        what=known.what,
        stated=known.stated,
        room=room,
        least=low,
        likely=high,
        advice="" if fits else _advice(known, room),
    )


def _advice(known: _Ways, room: float) -> str:
    training = known.usual
    if training is None:
        nodes = advice.nodes_at_least(known.cheapest, room)
        return f"{NAME_IT}: weights and gradients alone take {nodes} nodes" if nodes else LESS
    found = [
        f"{advice.in_words(way, _words(known), known.file)}, likely {way.likely.total / 1e9:.1f} GB"
        for way in advice.ways(training, room)
    ]
    if not found:
        return LESS
    before = "" if training.activations_known else ", before activations"
    return f"{'write' if known.stated else 'take'} {'; or '.join(found)}{before}"


def _words(known: _Ways) -> dict[advice.Change, str]:
    """The way in which changes are written where the training is."""
    if known.stated:
        return advice.IN_SETTINGS
    if known.file == ZERO_STAGE:
        return advice.WITH_ACCELERATE
    return advice.WITH_FSDP if known.file.startswith("--fsdp") else advice.WITH_DEEPSPEED


def model_of(
    wanted: TrainedModelConfig, billions: float | None
) -> tuple[float, Shape | None] | None:
    """Parameters and shape of a model in settings; None where no size is known."""
    known = public_model(wanted.name) if wanted.name else None
    if billions is None and known is None:
        return None
    parameters = billions * 1e9 if billions else known.parameters if known else 0
    return parameters, known.shape if known else _shape(wanted, parameters)


def _shape(wanted: TrainedModelConfig, parameters: float) -> Shape | None:
    """Shape of a transformer of this size: the MLP has what attention and embeddings leave."""
    layers, hidden, vocabulary = wanted.layers, wanted.hidden, wanted.vocabulary
    if not layers or not hidden or not vocabulary:
        return None
    left = (parameters - 2 * vocabulary * hidden) / layers - 4 * hidden * hidden
    return Shape(
        layers=layers,
        hidden=hidden,
        query=hidden,
        keys=hidden,
        inner=max(hidden, round(left / 3 / hidden)),
        vocabulary=vocabulary,
        heads=max(1, hidden // 128),
    )


def _stated(
    wanted: TrainedModelConfig, billions: float | None, gpus: int, per_node: int
) -> _Ways | None:
    """The ways of a job whose settings say the model."""
    sized = model_of(wanted, billions)
    if sized is None:
        return None
    parameters, shape = sized
    trainable = (wanted.trainable_billion or parameters / 1e9) * 1e9

    def training(usual: bool) -> Training:
        return Training(
            parameters=parameters,
            trainable=trainable,
            shape=shape,
            precision=wanted.precision or "bf16",
            optimizer=wanted.optimizer or "sgd",
            sharding=wanted.sharding or "full_shard",
            gpus=gpus,
            gpus_per_node=per_node,
            offload=wanted.offload,
            checkpointing=wanted.checkpointing or ("none" if usual else "full"),
            sequence=wanted.sequence,
            batch=wanted.batch_per_gpu,
        )

    complete = wanted.precision and wanted.optimizer and wanted.sharding
    size = f"{parameters / 1e9:,.3g} billion parameters"
    return _Ways(
        cheapest=training(usual=False),
        usual=training(usual=True) if complete else None,
        what=_what(size, wanted.precision, wanted.optimizer, wanted.sharding, gpus),
        stated=True,
        file="",
    )


def _found(found: Found, gpus: int, per_node: int) -> _Ways:
    """The ways of a job whose script says the model."""

    def training(usual: bool) -> Training:
        unknown = "mixed" if usual else "bf16"
        known = "mixed" if found.mixed else "fp32"
        return Training(
            parameters=found.model.parameters,
            trainable=found.model.parameters,
            shape=found.model.shape,
            precision=unknown if found.mixed is None else known,
            optimizer=found.optimizer or "sgd",
            sharding=found.sharding,
            gpus=gpus,
            gpus_per_node=per_node,
            offload=found.offload,
            checkpointing=found.checkpointing or ("none" if usual else "full"),
            sequence=found.sequence if usual else None,
            batch=found.batch,
            bucket=found.bucket,
        )

    precision = None if found.mixed is None else "mixed" if found.mixed else "fp32"
    name = f"{found.named} with {found.model.billions:.3g} billion parameters"
    return _Ways(
        cheapest=training(usual=False),
        usual=training(usual=True) if found.optimizer else None,
        what=f"{_what(name, precision, found.optimizer, found.sharding, gpus)} ({found.by})",
        stated=False,
        file=found.by,
    )


def _what(
    model: str, precision: str | None, optimizer: str | None, sharding: str | None, gpus: int
) -> str:
    names = {
        "mixed": "mixed precision",
        "none": "whole on each GPU",
        "zero1": "ZeRO-1",
        "zero2": "ZeRO-2",
        "zero3": "ZeRO-3",
    }
    said = [names.get(each, each) for each in (precision, optimizer, sharding) if each]
    return f"{', '.join([model, *said])}, {gpus} GPU{'s' * (gpus > 1)}"
