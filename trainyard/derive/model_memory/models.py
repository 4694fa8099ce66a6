"""Public models as facts: parameters and shape. A new model is a row.

Source of each row: config.json of its repository at huggingface.co; of the parameters, the sum of its
tensors as the page of the repository shows it. tests/trainyard/derive/model_memory computes
the parameters of each row from its shape again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

GATED, PLAIN = 3, 2
"""Matrices of an MLP: gate, up and down (Shazeer, arXiv:2002.05202), or up and down."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Sizes of a transformer that its activations follow from."""

    layers: int
    hidden: int
    query: int
    """Width of all heads together."""
    keys: int
    """Width of the heads of keys, and of those of values."""
    inner: int
    """Width of one MLP; of a mixture of experts, of one expert."""
    vocabulary: int
    heads: int
    matrices: int = GATED
    experts: int = 1
    active: int = 1
    """Experts that a token passes."""
    tied: bool = False
    """Input and output embeddings are the same tensor."""
    cross: bool = False
    """An encoder with a decoder, which has half of the layers: a sequence is that of either. Attention has
    a bias, so that its scores are held."""

    @property
    def layer(self) -> float:
        """Parameters of a layer, norms and biases apart."""
        attention = 2 * self.hidden * (self.query + self.keys)
        return attention + self.matrices * self.hidden * self.inner * self.experts

    @property
    def embeddings(self) -> float:
        """Parameters of the input and output embeddings."""
        return self.vocabulary * self.hidden * (1 if self.tied else 2)

    @property
    def parameters(self) -> float:
        """Parameters that follow from the sizes."""
        attention = 2 * self.hidden * (self.query + self.keys)
        across = self.layers / 2 * attention if self.cross else 0
        return self.layers * self.layer + across + self.embeddings


@dataclass(frozen=True, kw_only=True)
class Model:
    """A public model."""

    name: str
    billions: float
    """Parameters, in billions."""
    shape: Shape | None
    """None for an architecture whose activations this program does not count."""

    @property
    def parameters(self) -> float:
        """Number of parameters."""
        return self.billions * 1e9


_ROWS = """
repository                   billions layers hidden query  keys inner experts active vocabulary heads notes
meta-llama/Llama-2-7b           6.738     32   4096  4096  4096 11008       1      1      32000    32 -
meta-llama/Llama-2-13b         13.016     40   5120  5120  5120 13824       1      1      32000    40 -
meta-llama/Llama-2-70b         68.977     80   8192  8192  1024 28672       1      1      32000    64 -
huggyllama/Llama-7b             6.738     32   4096  4096  4096 11008       1      1      32000    32 -
huggyllama/Llama-13b           13.016     40   5120  5120  5120 13824       1      1      32000    40 -
meta-llama/Llama-3-8B           8.030     32   4096  4096  1024 14336       1      1     128256    32 -
meta-llama/Llama-3-70B         70.554     80   8192  8192  1024 28672       1      1     128256    64 -
meta-llama/Llama-3.1-8B         8.030     32   4096  4096  1024 14336       1      1     128256    32 -
meta-llama/Llama-3.1-70B       70.554     80   8192  8192  1024 28672       1      1     128256    64 -
meta-llama/Llama-3.1-405B     405.853    126  16384 16384  1024 53248       1      1     128256   128 -
meta-llama/Llama-3.2-1B         1.236     16   2048  2048   512  8192       1      1     128256    32 tied
meta-llama/Llama-3.2-3B         3.213     28   3072  3072  1024  8192       1      1     128256    24 tied
meta-llama/Llama-3.3-70B       70.554     80   8192  8192  1024 28672       1      1     128256    64 -
mistralai/Mistral-7B            7.242     32   4096  4096  1024 14336       1      1      32000    32 -
mistralai/Mixtral-8x7B         46.703     32   4096  4096  1024 14336       8      2      32000    32 -
Qwen/Qwen1.5-7B                 7.721     32   4096  4096  4096 11008       1      1     151936    32 -
Qwen/Qwen2.5-0.5B               0.494     24    896   896   128  4864       1      1     151936    14 tied
Qwen/Qwen2.5-1.5B               1.544     28   1536  1536   256  8960       1      1     151936    12 tied
Qwen/Qwen2.5-3B                 3.086     36   2048  2048   256 11008       1      1     151936    16 tied
Qwen/Qwen2.5-7B                 7.616     28   3584  3584   512 18944       1      1     152064    28 -
Qwen/Qwen2.5-14B               14.770     48   5120  5120  1024 13824       1      1     152064    40 -
Qwen/Qwen2.5-32B               32.764     64   5120  5120  1024 27648       1      1     152064    40 -
Qwen/Qwen2.5-72B               72.706     80   8192  8192  1024 29568       1      1     152064    64 -
Qwen/Qwen3-0.6B                 0.596     28   1024  2048  1024  3072       1      1     151936    16 tied
Qwen/Qwen3-1.7B                 1.721     28   2048  2048  1024  6144       1      1     151936    16 tied
Qwen/Qwen3-4B                   4.022     36   2560  4096  1024  9728       1      1     151936    32 tied
Qwen/Qwen3-8B                   8.191     36   4096  4096  1024 12288       1      1     151936    32 -
Qwen/Qwen3-14B                 14.768     40   5120  5120  1024 17408       1      1     151936    40 -
Qwen/Qwen3-32B                 32.762     64   5120  8192  1024 25600       1      1     151936    64 -
Qwen/Qwen3-30B-A3B             30.532     48   2048  4096   512   768     128      8     151936    32 -
Qwen/Qwen3-235B-A22B          235.094     94   4096  8192   512  1536     128      8     151936    64 -
google/gemma-2-2b               2.614     26   2304  2048  1024  9216       1      1     256000     8 tied
google/gemma-2-9b               9.242     42   3584  4096  2048 14336       1      1     256000    16 tied
google/gemma-2-27b             27.227     46   4608  4096  2048 36864       1      1     256000    32 tied
microsoft/Phi-3-mini            3.821     32   3072  3072  3072  8192       1      1      32064    32 -
microsoft/phi-4                14.660     40   5120  5120  1280 17920       1      1     100352    40 -
openai-community/gpt2           0.124     12    768   768   768  3072       1      1      50257    12 tied,plain
openai-community/gpt2-medium    0.355     24   1024  1024  1024  4096       1      1      50257    16 tied,plain
openai-community/gpt2-large     0.774     36   1280  1280  1280  5120       1      1      50257    20 tied,plain
openai-community/gpt2-xl        1.558     48   1600  1600  1600  6400       1      1      50257    25 tied,plain
EleutherAI/gpt-j-6b             6.053     28   4096  4096  4096 16384       1      1      50400    16 plain
deepseek-ai/DeepSeek-V3       671.026      -      -     -     -     -       -      -          -     - -
google-t5/t5-base               0.223     24    768   768   768  3072       1      1      32128    12 tied,plain,cross
google-t5/t5-large              0.738     48   1024  1024  1024  4096       1      1      32128    16 tied,plain,cross
google-t5/t5-3b                 2.852     48   1024  4096  4096 16384       1      1      32128    32 tied,plain,cross
google-t5/t5-11b               11.307     48   1024 16384 16384 65536       1      1      32128   128 tied,plain,cross
google/flan-t5-large            0.783     48   1024  1024  1024  2816       1      1      32128    16 cross
google/flan-t5-xl               2.850     48   2048  2048  2048  5120       1      1      32128    32 cross
google/flan-t5-xxl             11.135     48   4096  4096  4096 10240       1      1      32128    64 cross
"""


def _model(row: str) -> Model:
    repository, billions, *sizes, notes = row.split()
    name = repository.rpartition("/")[2]
    if sizes[0] == "-":
        return Model(name=name, billions=float(billions), shape=None)
    layers, hidden, query, keys, inner, experts, active, vocabulary, heads = map(int, sizes)
    shape = Shape(
        layers=layers,
        hidden=hidden,
        query=query,
        keys=keys,
        inner=inner,
        vocabulary=vocabulary,
        heads=heads,
        matrices=PLAIN if "plain" in notes else GATED,
        experts=experts,
        active=active,
        tied="tied" in notes,
        cross="cross" in notes,
    )
    return Model(name=name, billions=float(billions), shape=shape)


MODELS = {model.name: model for model in map(_model, _ROWS.strip().splitlines()[1:])}
"""Name, without its owner → the model."""


@cache
def public_model(name: str) -> Model | None:
    """The model that a name of a repository or the path of a copy means: Qwen/Qwen3-30B-A3B-Base,
    /models/Llama-2-7b-hf. None where no row fits."""
    last = name.rstrip("/").rpartition("/")[2].lower()
    fitting = [
        model
        for model in MODELS.values()
        if re.search(rf"(?:^|-){re.escape(model.name.lower())}(?![.\w])", last)
    ]
    return max(fitting, key=lambda model: len(model.name), default=None)


def is_fp8(name: str) -> bool:
    """True where the name of a repository says that its weights are FP8: Qwen/Qwen3-30B-A3B-FP8."""
    return bool(re.search(r"(?i)(?:^|[-_./])fp8(?![a-z0-9])", name))
