"""A kernel that writes far beyond its tensor."""

import torch
import triton
import triton.language as tl


@triton.jit
def _write(pointer: tl.tensor) -> None:
    tl.store(pointer + 0x7FFFFFFFFF, 1.0)


def write_far(data: torch.Tensor) -> None:
    _write[(1,)](data)
