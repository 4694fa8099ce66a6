"""Models that do not fit the GPUs of their job, however they are sharded."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from trainyard.derive.model_memory.fit import Fit, model_of
from trainyard.derive.model_memory.models import Model, is_fp8, public_model
from trainyard.derive.pools import job_type
from trainyard.problems import At, InputError, InputWarning
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.job import JobConfig
from trainyard.settings.training.model import TrainedModelConfig

BYTES_BESIDE_CHECKPOINT = 4
"""Bytes of a parameter in mixed precision that no checkpoint holds: its weight and its gradient in bf16,
two bytes each (Rajbhandari et al., ZeRO, arXiv:1910.02054, section 3.1)."""


def model_memory_warnings(
    path: str, job: JobConfig, environment: EnvironmentConfig
) -> Iterator[InputWarning]:
    """A model whose states alone are larger than all GPUs of the job. Less sharding than ZeRO-3 or
    full FSDP, and activations, take more."""
    kind = job_type(job, environment)
    if kind is None or not kind.gpus or job.parameters_billion is None or job.model:
        return
    gpus = job.nodes * (job.gpus_per_node or kind.gpus)
    room_gb = gpus * kind.gpu_memory_mib * 2**20 / 1e9
    bytes_each = job.bytes_per_parameter + BYTES_BESIDE_CHECKPOINT
    needed_gb = job.parameters_billion * bytes_each
    if needed_gb > room_gb:
        yield At(f"{path}.parameters_billion").warning(
            f"{job.parameters_billion:g} billion parameters of {bytes_each:g} bytes"
            f" ({job.bytes_per_parameter:g} that a checkpoint holds, and weight and gradient in bf16)"
            f" need {needed_gb:,.0f} GB, and the {gpus} GPUs of the job have {room_gb:,.0f} GB:"
            " they do not fit, even sharded over all of them (ZeRO-3, FSDP), and activations come on top;"
            f" take {ceil(needed_gb / room_gb * job.nodes)} nodes or more, or offload or freeze a part"
        )


def fp8_warning(path: str, name: str) -> InputWarning:
    """A training that loads weights in FP8 (transformers 4.56 to 5.9, trainer.py and quantizer_finegrained_fp8.py:
    is_trainable is False; transformers#37927; with LoRA too, #46736)."""
    return At(path).warning(
        f"{name} has weights in FP8, which are for inference: transformers' Trainer ends with `that"
        " quantization method do not support training`, with adapters too, once its GPUs are paid for. Name"
        " the repository in bf16, often the same name without -FP8, or load it with"
        " FineGrainedFP8Config(dequantize=True), which makes bf16 of it"
    )


NEARLY = 0.05
"""Difference of two numbers of parameters that is one of rounding."""


def model_errors(path: str, job: JobConfig) -> Iterator[InputError]:
    """A model whose settings contradict each other, or say no size."""
    wanted, billions = job.model, job.parameters_billion
    if wanted is None:
        return
    known = public_model(wanted.name) if wanted.name else None
    if model_of(wanted, billions) is None:
        yield At(f"{path}.model").must(
            "have a size: a name that docs/jobs.md lists, or parameters_billion of the job",
            got=wanted.name or "neither",
            fix="add parameters_billion to the job, the size of the model in billions",
        )
    if known and billions and abs(known.billions / billions - 1) > NEARLY:
        yield At(f"{path}.parameters_billion").must(
            f"be {known.billions:g}, the size of {wanted.name} in model.name",
            got=f"{billions:g}",
            fix=f"write {known.billions:g}, or correct model.name",
            write=known.billions,
        )
    total = billions or (known.billions if known else None)
    if total and (wanted.trainable_billion or 0) > total:
        yield At(f"{path}.model.trainable_billion").must(
            f"be at most the {total:g} billion parameters of the model",
            got=wanted.trainable_billion,
            fix="delete it where all of them are trained",
        )
    yield from _contradictions(f"{path}.model", wanted, known)


def _contradictions(
    path: str, wanted: TrainedModelConfig, known: Model | None
) -> Iterator[InputError]:
    """Settings of a model that exclude each other."""
    lacking = _lacking(wanted)
    if len(lacking) < len(SIZES) and (known or lacking):
        yield At(path).must(
            "have a public name, or all of layers, hidden and vocabulary, and not both",
            got=f"{wanted.name} and sizes" if known else _sizes(wanted),
            fix="delete all of layers, hidden, vocabulary; or delete the name"
            if known
            else f"add {' and '.join(lacking)}",
        )
    if wanted.offload != "none" and wanted.sharding == "none":
        yield At(f"{path}.offload").must(
            "not be set with sharding: none: DDP keeps everything on the GPU",
            got=wanted.offload,
            fix="delete it, or name in sharding what the script does: zero1, zero2, zero3, full_shard,"
            " shard_grad_op or hybrid_shard",
        )


SIZES = ("layers", "hidden", "vocabulary")


def _sizes(wanted: TrainedModelConfig) -> str:
    """The sizes of a model that are set, and those that are not."""
    lacking = _lacking(wanted)
    given = [name for name in SIZES if name not in lacking]
    return f"{' and '.join(given)} without {' and '.join(lacking)}"


def _lacking(wanted: TrainedModelConfig) -> list[str]:
    return [name for name in SIZES if not getattr(wanted, name)]


def fit_problems(path: str, fit: Fit) -> Iterator[InputError | InputWarning]:
    """A model that does not fit the GPUs of its job, or may not. It is an error only where the settings say
    the training and even its lower bound is too large: a script may do what nobody sees in it."""
    if is_fp8(name := fit.what.partition(" ")[0]):
        yield fp8_warning(path, name)
    room, low = f"{fit.room / 1e9:.1f} GB", fit.least
    parts = f"weights {low.weights / 1e9:.1f}, gradients {low.gradients / 1e9:.1f},"
    parts += f" optimizer {low.optimizer / 1e9:.1f}" if low.optimizer else " no optimizer named"
    need = f"at least {low.total / 1e9:.1f} GB of each GPU ({parts}) before activations"
    if low.activations:
        need = f"at least {low.total / 1e9:.1f} GB of each GPU ({parts}, activations"
        need += f" {low.activations / 1e9:.1f})"
    if fit.verdict == "does not fit" and fit.stated:
        yield At(f"{path}.model").must(
            f"fit the {room} of a GPU", got=f"{fit.what}: {need}", fix=fit.advice
        )
    elif fit.verdict == "does not fit":
        yield At(path).warning(
            f"{fit.what}, needs {need}, and a GPU has {room}: it does not fit. To make it fit,"
            f" {fit.advice}"
        )
    elif fit.verdict == "may not fit" and fit.likely:
        yield At(f"{path}.model" if fit.stated else path).warning(
            f"{fit.what}, needs {need}, and likely up to {fit.likely.total / 1e9:.1f} GB; a GPU has"
            f" {room}: it may not fit. To be safe, {fit.advice}"
        )
