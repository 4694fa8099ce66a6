"""A model that no sharding makes fit is a warning with the arithmetic."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.support.cases.jobs import JOB
from tests.support.recording import CHECKOUT, WORKLOADS
from tests.support.stackfile import Edit, at, environment_plan, planned, team_plan
from trainyard.reports.plan import jobs


def said(billions: float, **settings: object) -> list[str]:
    """The warnings about the memory of a model, on two nodes with 8 GPUs of 48 GB."""
    edits = [at(f"{JOB}.{name}", value) for name, value in settings.items()]
    made = planned(at(f"{JOB}.parameters_billion", billions), *edits)
    return [str(each) for each in made.warnings if "ZeRO-3" in each.text]


def test_a_model_larger_than_all_gpus_is_said_with_the_sum() -> None:
    [warning] = said(70)
    assert warning.startswith("environment.jobs.t5-large.parameters_billion: 70 billion parameters")
    assert "of 16 bytes (12 that a checkpoint holds," in warning
    assert (
        "need 1,120 GB, and the 16 GPUs of the job have " in warning and "take 3 nodes" in warning
    )


def test_a_model_that_fits_sharded_is_not_called_too_large() -> None:
    assert said(30) == []


def test_fewer_gpus_and_smaller_optimizers_count() -> None:
    assert len(said(30, gpus_per_node=2)) == 1
    assert said(70, bytes_per_parameter=2) == []


P5 = at("pools.g6e.instance_types", ["p5.48xlarge"])
SCRIPT = (
    "torchrun train.py --model_name Qwen/Qwen3-30B-A3B-Thinking-2507-FP8 --bf16 True"
    " --per_device_train_batch_size 1 --max_seq_length 4096 --deepspeed /code/ds_full.json"
)
THEIRS = at(
    "jobs",
    {
        "theirs": {
            "manifest": "e.yaml",
            "pool": "g6e",
            "claims": {"llm-datasets-pvc": "scratch", "llm-checkpoints-pvc": "scratch"},
        }
    },
)


def fit_warnings(*edits: Edit, folder: Path = CHECKOUT) -> list[str]:
    return [str(each) for each in planned(*edits, folder=folder).warnings if " fit." in each.text]


def of_the_file(folder: Path, *beside: str) -> list[str]:
    """Warnings about the memory of the 30B job of the inputs as a file, on 16 GPUs of 80 GB. `beside`:
    documents before the job."""
    job = (WORKLOADS / "e-qwen3-30b-fullft.flawed.pytorchjob.yaml").read_text()
    (folder / "e.yaml").write_text("---\n".join([*beside, job]))
    return fit_warnings(P5, THEIRS, folder=folder)


@pytest.mark.parametrize("brought", ["beside the file", "in a ConfigMap"])
def test_the_30b_job_of_the_inputs_is_told_with_the_change_that_makes_it_fit(
    brought: str, tmp_path: Path
) -> None:
    config = (WORKLOADS / "e-ds_full.json").read_text()
    if brought == "beside the file":
        (tmp_path / "ds_full.json").write_text(config)
        [warning] = of_the_file(tmp_path)
    else:
        data = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "ds"}}
        [warning] = of_the_file(
            tmp_path, yaml.safe_dump({**data, "data": {"ds_full.json": config}})
        )
    assert warning.startswith("environment.jobs.theirs: Qwen/Qwen3-30B-A3B-Thinking-2507-FP8 with")
    for words in (
        "30.5 billion parameters, mixed precision, adamw, ZeRO-2, 16 GPUs (ds_full.json)",
        "needs at least 87.8 GB of each GPU (weights 61.1, gradients 3.8, optimizer 22.9)",
        "before activations, and a GPU has 85.9 GB: it does not fit. To make it fit, take",
        '"stage": 3 in ds_full.json and --gradient_checkpointing True, likely',
    ):
        assert words in warning


def test_the_30b_job_fits_once_its_file_says_what_is_advised(tmp_path: Path) -> None:
    config = json.loads((WORKLOADS / "e-ds_full.json").read_text())
    config["zero_optimization"]["stage"] = 3
    (tmp_path / "ds_full.json").write_text(json.dumps(config))
    [only] = of_the_file(tmp_path)
    assert "may not fit. To be safe, take --gradient_checkpointing True, likely" in only
    script = f"{SCRIPT} --gradient_checkpointing True"
    files = {"sources": ["ds_full.json"], "path": "/code"}
    edits = [P5, at(f"{JOB}.script", script), at(f"{JOB}.files", files)]
    assert fit_warnings(*edits, folder=tmp_path) == []


def test_nothing_is_said_where_the_deepspeed_file_is_not_known(tmp_path: Path) -> None:
    assert of_the_file(tmp_path) == []
    assert fit_warnings(P5, at(f"{JOB}.script", SCRIPT)) == []


def test_an_entry_brings_its_deepspeed_file(tmp_path: Path) -> None:
    (tmp_path / "ds_full.json").write_text((WORKLOADS / "e-ds_full.json").read_text())
    files = {"sources": ["ds_full.json"], "path": "/code"}
    [warning] = fit_warnings(
        P5, at(f"{JOB}.script", SCRIPT), at(f"{JOB}.files", files), folder=tmp_path
    )
    assert warning.startswith(f"environment.{JOB}: Qwen/Qwen3-30B") and "87.8 GB" in warning


@pytest.mark.parametrize(
    ("start", "advised"),
    [
        (
            "accelerate launch --zero_stage 2 --mixed_precision bf16 t.py",
            "(--zero_stage), needs at least 94.2 GB of each GPU (weights 65.5, gradients 4.1, optimizer"
            " 24.6) before activations, and a GPU has 85.9 GB: it does not fit. To make it fit, take"
            " --zero_stage 3",
        ),
        (
            "torchrun t.py --fsdp no_shard",
            "(--fsdp), needs at least 262.1 GB of each GPU (weights 65.5, gradients 65.5, optimizer"
            " 131.0) before activations, and a GPU has 85.9 GB: it does not fit. To make it fit, take"
            ' --fsdp "full_shard auto_wrap"',
        ),
    ],
)
def test_advice_is_in_the_words_of_the_launcher(start: str, advised: str) -> None:
    options = "--model_name Qwen/Qwen3-32B --per_device_train_batch_size 1 --max_seq_length 2048"
    [warning] = fit_warnings(P5, at(f"{JOB}.script", f"{start} {options}"))
    assert advised in warning


MODEL = {
    "name": "Qwen/Qwen3-8B",
    "precision": "mixed",
    "optimizer": "adamw",
    "sharding": "zero2",
    "sequence": 4096,
    "batch_per_gpu": 1,
}


def line(**settings: object) -> str:
    """The line of the plan about the model of the job, on 16 GPUs of 80 GB."""
    found = environment_plan(P5, at(f"{JOB}.model", MODEL | settings))
    lines = " ".join(" ".join(jobs(found)).split())
    return lines.partition("t5-large: ")[2]


def test_what_may_not_fit_is_a_warning_with_a_change_that_makes_it_fit() -> None:
    [warning] = fit_warnings(P5, at(f"{JOB}.model", MODEL))
    assert warning.startswith(f"environment.{JOB}.model: 8.19 billion parameters, mixed precision")
    assert "it may not fit. To be safe, write sharding: zero3, likely " in warning
    assert fit_warnings(P5, at(f"{JOB}.model", MODEL | {"sharding": "zero3"})) == []


def test_the_plan_has_a_line_with_the_parts_and_the_memory_of_a_gpu() -> None:
    assert line(checkpointing="full").startswith(
        "fits: at least 24.1, likely up to 50.9 of the 85.9 GB of a GPU (weights 16.4, gradients 1.0,"
        " optimizer 6.1, activations 12.3, buffers 9.0, CUDA and fragments 6.1); 8.19 billion parameters,"
        " mixed precision, adamw, ZeRO-2, 16 GPUs"
    )
    assert line().startswith("may not fit: at least 24.1, likely up to 91.4 of the 85.9 GB")


def test_what_is_not_set_is_not_known() -> None:
    known = "not known: at least 2.0 of the 85.9 GB of a GPU before activations (weights 1.0"
    model = {"name": "Qwen/Qwen3-8B", "checkpointing": "full"}
    found = environment_plan(P5, at(f"{JOB}.model", model))
    assert known in " ".join(" ".join(jobs(found)).split())


def test_a_model_of_its_own_has_a_size_and_a_shape() -> None:
    own = {key: value for key, value in MODEL.items() if key != "name"} | {"trainable_billion": 0.1}
    shape = {"layers": 36, "hidden": 4096, "vocabulary": 151_936}
    billions = at(f"{JOB}.parameters_billion", 8.191)
    without, whole = (
        environment_plan(P5, billions, at(f"{JOB}.model", own | more)).fits["t5-large"]
        for more in ({}, shape)
    )
    assert without.verdict == "not known" and whole.verdict == "fits"
    assert whole.least.gradients == 0.1e9 * 2 / 16 and whole.likely and whole.likely.activations


QLORA = {
    "name": "meta-llama/Llama-3.3-70B-Instruct",
    "trainable_billion": 0.2,
    "precision": "bf16",
    "sharding": "none",
}


def test_adapters_on_a_frozen_model_of_which_4_bits_fit_a_gpu_are_no_error() -> None:
    """QLoRA of a model of 70 billion parameters runs on a GPU of 48 GB (arXiv:2305.14314)."""
    assert fit_warnings(at(f"{JOB}.model", QLORA)) == []
    [warning] = fit_warnings(at(f"{JOB}.model", QLORA | {"optimizer": "adamw"}))
    assert "needs at least 36." in warning and "it may not fit" in warning
    [error] = planned(at(f"{JOB}.model", QLORA | {"trainable_billion": 7})).errors
    assert "must fit the" in str(error)


def test_a_stack_without_a_model_says_nothing_of_it() -> None:
    assert environment_plan().fits == {} and team_plan().fits == {}


def test_a_pool_without_gpus_has_no_verdict() -> None:
    cpu = at("pools.g6e.instance_types", ["m7i.48xlarge"])
    edits = [cpu, at(f"{JOB}.model", MODEL), at(f"{JOB}.processes_per_node", 1)]
    assert fit_warnings(*edits) == []


def test_the_example_of_the_documents_is_what_check_says() -> None:
    section = (CHECKOUT / "docs/jobs.md").read_text().split("## Does the model fit the GPUs")[1]
    _, text, _, message, *_ = section.split("```")
    model = yaml.safe_load(text.removeprefix("yaml"))["jobs"]["qwen"]["model"]
    assert planned(at(f"{JOB}.model", model)).errors == ()
    del model["checkpointing"]
    model |= {"name": "Qwen/Qwen3-30B-A3B", "sharding": "zero2"}
    [error] = planned(P5, at(f"{JOB}.model", model)).errors
    assert " ".join(message.split()) == str(error).replace("t5-large", "qwen")


def test_the_fp8_weights_of_the_30b_job_are_named_with_what_happens(tmp_path: Path) -> None:
    (tmp_path / "ds_full.json").write_text((WORKLOADS / "e-ds_full.json").read_text())
    job = (WORKLOADS / "e-qwen3-30b-fullft.flawed.pytorchjob.yaml").read_text()
    for name, text in {"e.yaml": job, "bf16.yaml": job.replace("-2507-FP8", "-2507")}.items():
        (tmp_path / name).write_text(text)
        found = planned(P5, THEIRS, at("jobs.theirs.manifest", name), folder=tmp_path).warnings
        said = [str(each) for each in found if "weights in FP8" in each.text]
        assert len(said) == (name == "e.yaml"), said
    assert "Trainer ends with" in str(
        [str(each) for each in planned(P5, THEIRS, folder=tmp_path).warnings if "FP8," in each.text]
    )
