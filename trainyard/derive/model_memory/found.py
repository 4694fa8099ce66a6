"""Facts about the model that a job trains, from its script and its DeepSpeed file.

Options are those of transformers' TrainingArguments (huggingface.co/docs/transformers/main_classes/trainer)
and of scripts that follow them; a DeepSpeed file is read as deepspeed.ai/docs/config-json has it. What
they do not say stays unknown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from trainyard.derive.model_memory.memory import BUCKET, Checkpointing, Offload, Optimizer, Sharding
from trainyard.derive.model_memory.models import Model, public_model

_NAMES = "model_name_or_path|model_name|model_id|model_path|pretrained_model_name_or_path|base_model|model"
_OPTION = re.compile(r"--([A-Za-z][\w-]*)(?:[= ]+(\"[^\"]*\"|'[^']*'|[^\s-][^\s\\]*))?")
_OTHER_WAYS = re.compile(
    r"(?i)lora|peft|adapter|freeze|quant|in_[48]bit|gptq|awq|galore|tensor[-_]model[-_]parallel"
    r"|pipeline[-_]model[-_]parallel|tensor_parallel|badam"
)
"""Words of ways to train that this program does not count: adapters, quantized weights, Megatron."""
OPTIMIZERS: dict[str, Optimizer] = {
    "adam": "adamw",
    "adamw": "adamw",
    "adamw_torch": "adamw",
    "adamw_torch_fused": "adamw",
    "adamw_hf": "adamw",
    "fusedadam": "adamw",
    "adamw_apex_fused": "adamw",
    "adamw_bnb_8bit": "adamw_8bit",
    "adamw_8bit": "adamw_8bit",
    "adafactor": "adafactor",
    "lion_32bit": "lion",
    "lion": "lion",
    "sgd": "sgd",
}
"""Name of an optimizer in small letters, in --optim or in a DeepSpeed file → what it keeps."""
STAGES: dict[int, Sharding] = {0: "none", 1: "zero1", 2: "zero2", 3: "zero3"}
KINDS = ("bf16", "fp16")
"""Sections of a DeepSpeed file, and options of a script, that say 16 bits."""
STRATEGIES: dict[str, Sharding] = {
    "full_shard": "full_shard",
    "shard_grad_op": "shard_grad_op",
    "hybrid_shard": "hybrid_shard",
    "no_shard": "none",
    "1": "full_shard",
    "2": "shard_grad_op",
    "3": "none",
    "4": "hybrid_shard",
}
"""Strategy of FSDP, by its name or by its number in `accelerate launch` → the sharding."""
ZERO_STAGE = "--zero_stage"
"""Option of `accelerate launch` in the place of a DeepSpeed file."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """Facts of a script; None where it does not say."""

    model: Model
    named: str
    """The model as the script names it."""
    sharding: Sharding
    by: str
    """Place of the sharding: the name of a DeepSpeed file, or an option."""
    mixed: bool | None
    """Weights have a copy in fp32; None where PyTorch may keep them in either way."""
    optimizer: Optimizer | None
    offload: Offload
    checkpointing: Checkpointing | None
    sequence: int | None
    """At most: a script pads to the longest sequence of a batch, or packs."""
    batch: int | None
    bucket: float


def found_in(script: str, file: Callable[[str], str | None]) -> Found | None:
    """Facts of a script that names a public model and how it is sharded; None for any other. `file`: the
    text of a file that the job brings, by its name."""
    text = re.sub(r"(?m)^[ \t]*#.*", "", script.replace("\\\n", " "))
    if _OTHER_WAYS.search(text):
        return None
    said = {name.replace("-", "_"): value.strip("\"'") for name, value in _OPTION.findall(text)}
    named = next((said[name] for name in _NAMES.split("|") if said.get(name)), "")
    model = public_model(named) if named else None
    if model is None:
        return None
    path = said.get("deepspeed") or said.get("deepspeed_config") or ""
    if not path and "zero_stage" in said:
        return _by_deepspeed(model, named, said, ZERO_STAGE, _of_accelerate(said))
    if not path:
        return _by_fsdp(model, named, said)
    name = path.rpartition("/")[2]
    return _by_deepspeed(
        model, named, said, name, _json(_written(script, name) or file(name) or "")
    )


def _of_accelerate(said: Mapping[str, str]) -> dict[str, Any]:
    """The DeepSpeed file that options of `accelerate launch` stand for."""
    zero: dict[str, Any] = {"stage": _number(said, ("zero_stage",))}
    for name in ("param", "optimizer"):
        zero[f"offload_{name}"] = {"device": said.get(f"offload_{name}_device", "none")}
    enabled: Any = said["mixed_precision"] in KINDS if "mixed_precision" in said else "auto"
    return {"zero_optimization": zero, "bf16": {"enabled": enabled}}


def _written(script: str, name: str) -> str | None:
    """Text that a script itself writes to a file: cat > name <<EOF."""
    pattern = (
        rf"(?ms)^[ \t]*cat\s*>\s*\S*{re.escape(name)}\s*<<-?\s*['\"]?(\w+)['\"]?\n(.*?)^\s*\1\b"
    )
    found = re.search(pattern, script)
    return found[2] if found else None


def _by_deepspeed(
    model: Model, named: str, said: Mapping[str, str], name: str, config: Mapping[str, Any]
) -> Found | None:
    """Facts of a script with a DeepSpeed file. `config`: what the file says; empty where it is not known."""
    zero = _section(config, "zero_optimization")
    stage = zero.get("stage", 0)
    sharding = STAGES.get(stage) if type(stage) is int else None
    if not config or sharding is None:
        return None
    batch = config.get("train_micro_batch_size_per_gpu")
    bucket = zero.get("reduce_bucket_size")
    kind = str(_section(config, "optimizer").get("type", "")).lower()
    return Found(
        model=model,
        named=named,
        sharding=sharding,
        by=name,
        mixed=_mixed(config, said),
        optimizer=OPTIMIZERS.get(kind) if kind else _optimizer(said),
        offload=_offload(zero),
        checkpointing=_checkpointing(said),
        sequence=_sequence(said),
        batch=batch if type(batch) is int and batch > 0 else _batch(said),
        bucket=float(bucket) if isinstance(bucket, int | float) else BUCKET,
    )


def _mixed(config: Mapping[str, Any], said: Mapping[str, str]) -> bool | None:
    """True where DeepSpeed trains in 16 bits with a copy in fp32, False where in fp32."""
    if any(_section(config, name).get(f"{name}_master_weights_and_grads") for name in KINDS):
        return None
    enabled = [_section(config, name).get("enabled") for name in (*KINDS, "bfloat16")]
    if "auto" in enabled:
        flags = [said.get(name, "false") for name in KINDS]
        return True if any(flag.lower() in ("true", "") for flag in flags) else None
    return any(each is True for each in enabled)


def _offload(zero: Mapping[str, Any]) -> Offload:
    """States that DeepSpeed keeps outside the GPU."""
    away = {
        name
        for name in ("param", "optimizer")
        if _section(zero, f"offload_{name}").get("device", "none") != "none"
    }
    if zero.get("cpu_offload") is True:
        away.add("optimizer")
    return "all" if "param" in away else "optimizer" if away else "none"


def _by_fsdp(model: Model, named: str, said: Mapping[str, str]) -> Found | None:
    """Facts of a script with the options of FSDP."""
    option = next((name for name in ("fsdp", "fsdp_sharding_strategy") if said.get(name)), "")
    words = said.get(option, "").lower().split()
    found: list[Sharding] = [STRATEGIES[word] for word in words if word in STRATEGIES]
    if not found:
        return None
    return Found(
        model=model,
        named=named,
        sharding=found[0],
        by=f"--{option}",
        mixed=None,
        optimizer=_optimizer(said),
        offload="all" if "offload" in words else "none",
        checkpointing=_checkpointing(said),
        sequence=_sequence(said),
        batch=_batch(said),
        bucket=BUCKET,
    )


def _optimizer(said: Mapping[str, str]) -> Optimizer | None:
    """Optimizer of --optim. Without it transformers' Trainer, which per_device_train_batch_size shows, has
    AdamW."""
    if "optim" in said:
        return OPTIMIZERS.get(said["optim"].lower())
    return "adamw" if "per_device_train_batch_size" in said else None


def _checkpointing(said: Mapping[str, str]) -> Checkpointing | None:
    value = said.get("gradient_checkpointing")
    return None if value is None else "none" if value.lower() == "false" else "full"


def _sequence(said: Mapping[str, str]) -> int | None:
    names = ("max_seq_length", "max_seq_len", "max_length", "model_max_length", "block_size")
    return _number(said, (*names, "cutoff_len"))


def _batch(said: Mapping[str, str]) -> int | None:
    return _number(said, ("per_device_train_batch_size", "micro_batch_size"))


def _number(said: Mapping[str, str], names: tuple[str, ...]) -> int | None:
    found = [said[name] for name in names if said.get(name, "").isdecimal()]
    return int(found[0]) if found else None


def _json(text: str) -> dict[str, Any]:
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


def _section(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = config.get(name)
    return value if isinstance(value, dict) else {}
