"""Facts about public models agree with each other, and names are found where people write them."""

from __future__ import annotations

import pytest

from tests.support.recording import CHECKOUT
from trainyard.derive.model_memory.models import MODELS, Model, public_model


@pytest.mark.parametrize("model", MODELS.values(), ids=lambda model: model.name)
def test_the_parameters_of_a_model_follow_from_its_shape(model: Model) -> None:
    if model.shape:
        assert model.shape.parameters == pytest.approx(model.parameters, rel=0.005)


def test_there_are_30_models_and_only_one_without_a_shape() -> None:
    assert len(MODELS) >= 30
    assert [model.name for model in MODELS.values() if model.shape is None] == ["DeepSeek-V3"]


def test_the_documents_name_every_model() -> None:
    listed = (CHECKOUT / "docs/jobs.md").read_text().split("Public names,")[1].split("## ")[0]
    words = listed.replace("\n", " ").removesuffix(". ").strip(" .")
    assert words.partition(": ")[2].split(", ") == [*MODELS]


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("Qwen/Qwen3-30B-A3B-Thinking-2507-FP8", "Qwen3-30B-A3B"),
        ("meta-llama/Meta-Llama-3.1-8B-Instruct", "Llama-3.1-8B"),
        ("/models/Llama-2-7b-hf/", "Llama-2-7b"),
        ("gpt2", "gpt2"),
        ("openai-community/gpt2-medium", "gpt2-medium"),
        ("google/flan-t5-large", "flan-t5-large"),
        ("t5-large", "t5-large"),
        ("llama", None),
        ("gpt2x", None),
        ("Qwen/Qwen3-8B2", None),
        ("/models/Qwen3-8B/mine", None),
        ("TinyLlama-2-7b.5", None),
    ],
)
def test_a_name_means_a_model_or_none(written: str, name: str | None) -> None:
    found = public_model(written)
    assert (found.name if found else None) == name
