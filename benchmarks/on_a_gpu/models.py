"""Models of measured.jsonl and unseen.jsonl with random weights, as transformers makes them: no network is needed."""

from __future__ import annotations

from typing import Any

import torch
import transformers as tr
from torch import nn


def _llama(hidden: int, layers: int, heads: int) -> tr.PretrainedConfig:
    return tr.LlamaConfig(
        vocab_size=128256,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=8,
        intermediate_size=8192,
        max_position_embeddings=16384,
        tie_word_embeddings=True,
        use_cache=False,
    )


def _qwen2(hidden: int, layers: int, heads: int, inner: int) -> tr.PretrainedConfig:
    return tr.Qwen2Config(
        vocab_size=151936,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=2,
        intermediate_size=inner,
        max_position_embeddings=32768,
        tie_word_embeddings=True,
        use_cache=False,
    )


def _gpt2(hidden: int, layers: int, heads: int) -> tr.PretrainedConfig:
    return tr.GPT2Config(
        vocab_size=50257,
        n_positions=1024,
        n_embd=hidden,
        n_layer=layers,
        n_head=heads,
        use_cache=False,
    )


def _t5() -> tr.PretrainedConfig:
    return tr.T5Config(
        vocab_size=32128,
        d_model=1024,
        d_kv=64,
        d_ff=4096,
        num_layers=24,
        num_heads=16,
        use_cache=False,
        decoder_start_token_id=0,
    )


def _mixture() -> tr.PretrainedConfig:
    return tr.Qwen3MoeConfig(
        vocab_size=151936,
        hidden_size=1024,
        num_hidden_layers=8,
        num_attention_heads=16,
        num_key_value_heads=4,
        head_dim=64,
        intermediate_size=4096,
        moe_intermediate_size=512,
        num_experts=32,
        num_experts_per_tok=4,
        max_position_embeddings=8192,
        tie_word_embeddings=False,
        use_cache=False,
    )


def _unseen(
    kind: str,
    hidden: int,
    layers: int,
    heads: tuple[int, int, int],
    inner: int,
    words: int,
    **more: Any,
) -> tr.PretrainedConfig:
    """A model from which no rule was made. `heads`: of queries, of keys, and the width of one."""
    queries, keys, width = heads
    return getattr(tr, f"{kind}Config")(
        vocab_size=words,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=queries,
        num_key_value_heads=keys,
        head_dim=width,
        intermediate_size=inner,
        max_position_embeddings=16384,
        use_cache=False,
        **{"pad_token_id": 0, "tie_word_embeddings": False} | more,
    )


TIED = {"tie_word_embeddings": True}
CONFIGS = {
    "llama1b": lambda: _llama(2048, 16, 32),
    "llama3b": lambda: _llama(3072, 28, 24),
    "qwen05b": lambda: _qwen2(896, 24, 14, 4864),
    "qwen15b": lambda: _qwen2(1536, 28, 12, 8960),
    "gpt2medium": lambda: _gpt2(1024, 24, 16),
    "gpt2large": lambda: _gpt2(1280, 36, 20),
    "t5large": _t5,
    "qwen3moe": _mixture,
    "mistral7b": lambda: _unseen("Mistral", 4096, 32, (32, 8, 128), 14336, 32000),
    "llama8b": lambda: _unseen("Llama", 4096, 32, (32, 8, 128), 14336, 128256),
    "phi3mini": lambda: _unseen("Phi3", 3072, 32, (32, 32, 96), 8192, 32064),
    "gemma2b": lambda: _unseen("Gemma2", 2304, 26, (8, 4, 256), 9216, 256000, **TIED),
    "qwen06b": lambda: _unseen("Qwen3", 1024, 28, (16, 8, 128), 3072, 151936, **TIED),
    "qwen17b": lambda: _unseen("Qwen3", 2048, 28, (16, 8, 128), 6144, 151936, **TIED),
    "qwen4b": lambda: _unseen("Qwen3", 2560, 36, (32, 8, 128), 9728, 151936, **TIED),
    "qwen3b": lambda: _qwen2(2048, 36, 16, 11008),
    "gpt2xl": lambda: _gpt2(1600, 48, 25),
}


class _Lora(nn.Module):
    """A linear layer with a low-rank adapter beside it."""

    def __init__(self, base: nn.Linear, rank: int) -> None:
        super().__init__()
        self.base = base
        kind = {"device": base.weight.device, "dtype": base.weight.dtype}
        self.down = nn.Linear(base.in_features, rank, bias=False, **kind)
        self.up = nn.Linear(rank, base.out_features, bias=False, **kind)

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        return self.base(data) + self.up(self.down(data))


def _with_lora(model: nn.Module, rank: int) -> None:
    """Freeze the model, and give each linear layer but the last an adapter."""
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    linear = [(n, m) for n, m in model.named_modules() if isinstance(m, nn.Linear)]
    for name, module in linear:
        if "lm_head" not in name:
            parent, _, last = name.rpartition(".")
            setattr(model.get_submodule(parent), last, _Lora(module, rank))


def model_of(row: dict[str, Any]) -> nn.Module:
    """The model of a row on the GPU, in its precision, with its adapters and checkpointing."""
    config = CONFIGS[row["model"]]()
    seq2seq = row["model"] == "t5large"
    factory = tr.AutoModelForSeq2SeqLM if seq2seq else tr.AutoModelForCausalLM
    attention = {"attn_implementation": row["attention"]} if row["attention"] else {}
    torch.manual_seed(0)
    with torch.device("cuda"):
        model = factory.from_config(config, **attention)
    if row["mode"] == "bf16":
        model.to(torch.bfloat16)
    model.train()
    if row["lora"]:
        _with_lora(model, row["lora"])
    if row["checkpointing"]:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if row["mode"] == "trainer":
        from accelerate.utils import convert_outputs_to_fp32

        cast = torch.autocast("cuda", dtype=torch.bfloat16)
        model.forward = convert_outputs_to_fp32(cast(model.forward))
    return model


def wrapped(model: nn.Module, wrap: str) -> nn.Module:
    """The model under DDP or FSDP, as `wrap` says."""
    if wrap.startswith("ddp"):
        return nn.parallel.DistributedDataParallel(
            model, gradient_as_bucket_view=wrap == "ddp_view"
        )
    if wrap == "fsdp":
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        for layer in model.model.layers:
            fully_shard(layer, mp_policy=policy)
        fully_shard(model, mp_policy=policy)
    return model
