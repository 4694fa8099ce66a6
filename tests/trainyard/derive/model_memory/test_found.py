"""A script and its DeepSpeed file say the model and the way it is trained, or nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.recording import CHECKOUT
from trainyard.derive.model_memory.found import found_in
from trainyard.manifests.document import read_manifest

WORKLOADS = CHECKOUT / "tests/workloads"
QWEN = "--model_name Qwen/Qwen3-8B --deepspeed /code/ds.json"
ZERO_2 = {"bf16": {"enabled": True}, "zero_optimization": {"stage": 2}}


def found(script: str, config: Any = ZERO_2, name: str = "ds.json") -> Any:
    text = config if isinstance(config, str) else json.dumps(config)
    return found_in(script, {name: text}.get)


def test_the_30b_job_says_all_that_its_memory_follows_from() -> None:
    [job], _ = read_manifest(
        (WORKLOADS / "e-qwen3-30b-fullft.flawed.pytorchjob.yaml").read_text(), "e.yaml"
    )
    script = job.containers[1].script  # the first one is one comment
    assert found_in(job.containers[0].script, lambda _: "{}") is None
    made = found_in(script, {"ds_full.json": (WORKLOADS / "e-ds_full.json").read_text()}.get)
    assert made and made.model.name == "Qwen3-30B-A3B" and made.model.billions == 30.532
    assert (made.sharding, made.mixed, made.optimizer) == ("zero2", True, "adamw")
    assert (made.batch, made.sequence, made.offload) == (1, 4096, "none")
    assert made.checkpointing is None and made.by == "ds_full.json"


@pytest.mark.parametrize(
    "script",
    [
        "torchrun train.py",
        "torchrun train.py --model_name Qwen/Qwen3-8B",
        f"# torchrun train.py {QWEN}",
        f"torchrun train.py {QWEN} --use_peft --lora_rank 16",
        f"torchrun train.py {QWEN} --load_in_4bit",
        "torchrun train.py --model_name mine --deepspeed ds.json",
        "torchrun train.py --model_name Qwen/Qwen3-8B --deepspeed other.json",
        'torchrun train.py --model_name Qwen/Qwen3-8B --fsdp "auto_wrap"',
    ],
)
def test_nothing_is_said_of_a_script_that_does_not_say_it(script: str) -> None:
    assert found(script) is None


@pytest.mark.parametrize(
    "config", ["", "{", "[]", "[" * 100_000, {"zero_optimization": {"stage": "auto"}}]
)
def test_nothing_is_said_of_a_deepspeed_file_that_cannot_be_read(config: Any) -> None:
    assert found(f"torchrun train.py {QWEN}", config) is None


@pytest.mark.parametrize(
    ("config", "flags", "mixed"),
    [
        ({"bf16": {"enabled": True}}, "", True),
        ({"fp16": {"enabled": True}}, "", True),
        ({"bf16": {"enabled": True, "bf16_master_weights_and_grads": True}}, "", None),
        ({"bf16": {"enabled": "auto"}}, "--bf16 True", True),
        ({"bf16": {"enabled": "auto"}}, "--bf16", True),
        ({"bf16": {"enabled": "auto"}}, "", None),
        ({"fp16": {"enabled": False}, "steps_per_print": 1}, "", False),
    ],
)
def test_precision_is_that_of_the_file_or_of_the_flag_it_refers_to(
    config: dict[str, Any], flags: str, mixed: bool | None
) -> None:
    made = found(f"deepspeed train.py {QWEN} {flags}", config)
    assert made.mixed is mixed and made.sharding == "none"


@pytest.mark.parametrize(
    ("config", "flags", "optimizer"),
    [
        ({"optimizer": {"type": "Lion"}}, "--optim adafactor", "lion"),
        ({}, "--optim adamw_bnb_8bit", "adamw_8bit"),
        ({}, "--optim paged_lion", None),
        ({}, "--per_device_train_batch_size 4", "adamw"),
        ({}, "", None),
    ],
)
def test_the_optimizer_is_that_of_the_file_or_else_of_the_script(
    config: dict[str, Any], flags: str, optimizer: str | None
) -> None:
    assert found(f"torchrun t.py {QWEN} {flags}", ZERO_2 | config).optimizer == optimizer


@pytest.mark.parametrize(
    ("zero", "offload"),
    [
        ({"offload_optimizer": {"device": "cpu"}}, "optimizer"),
        ({"offload_optimizer": {"device": "none"}}, "none"),
        ({"offload_param": {"device": "nvme"}}, "all"),
        ({"cpu_offload": True}, "optimizer"),
    ],
)
def test_offload_is_that_of_the_file(zero: dict[str, Any], offload: str) -> None:
    config = ZERO_2 | {"zero_optimization": {"stage": 3, "reduce_bucket_size": 2e8, **zero}}
    made = found(f"torchrun t.py {QWEN}", config)
    assert made.offload == offload and made.sharding == "zero3" and made.bucket == 2e8


def test_a_script_may_write_its_deepspeed_file_itself() -> None:
    script = f"cat > /code/ds.json <<'EOF'\n{json.dumps(ZERO_2)}\nEOF\ntorchrun t.py {QWEN}"
    made = found_in(script, lambda _: None)
    assert made and made.sharding == "zero2" and made.named == "Qwen/Qwen3-8B"


@pytest.mark.parametrize(
    ("flags", "sharding", "offload"),
    [
        ('--fsdp "full_shard auto_wrap"', "full_shard", "none"),
        ("--fsdp 'shard_grad_op offload'", "shard_grad_op", "all"),
        ("--fsdp_sharding_strategy HYBRID_SHARD", "hybrid_shard", "none"),
        ("--fsdp no_shard", "none", "none"),
        ("--fsdp_sharding_strategy 2", "shard_grad_op", "none"),
    ],
)
def test_options_of_fsdp_say_the_sharding(flags: str, sharding: str, offload: str) -> None:
    script = f"torchrun t.py --model_name_or_path=Qwen/Qwen3-8B {flags} --block-size 2048"
    made = found(f"{script} --gradient_checkpointing False --micro_batch_size 3 --bf16 True")
    assert (made.sharding, made.offload, made.mixed) == (sharding, offload, None)
    assert (made.checkpointing, made.sequence, made.batch) == ("none", 2048, 3)


def test_options_of_accelerate_stand_for_a_deepspeed_file() -> None:
    launch = "accelerate launch --use_deepspeed --zero_stage {} t.py --model_name Qwen/Qwen3-8B"
    made = found(launch.format("2 --mixed_precision bf16 --offload_optimizer_device cpu"))
    assert (made.sharding, made.mixed, made.offload) == ("zero2", True, "optimizer")
    assert made.by == "--zero_stage"
    plain = found(launch.format(3))
    assert (plain.sharding, plain.mixed, plain.offload) == ("zero3", None, "none")
    assert found(launch.format("3 --mixed_precision no")).mixed is False
    assert found(launch.format("auto")) is None
