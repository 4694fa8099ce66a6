"""Models that do not fit the GPUs of their job, however they are sharded."""

from __future__ import annotations

from collections.abc import Iterator

from trainyard.derive.pools import job_type
from trainyard.problems import At, InputWarning
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.job import JobConfig

BYTES_BESIDE_CHECKPOINT = 4
"""Bytes of a parameter in mixed precision that no checkpoint holds: its weight and its gradient in bf16,
two bytes each (Rajbhandari et al., ZeRO, arXiv:1910.02054, section 3.1)."""


def model_memory_warnings(
    path: str, job: JobConfig, environment: EnvironmentConfig
) -> Iterator[InputWarning]:
    """A model whose states alone are larger than all GPUs of the job. Less sharding than ZeRO-3 or
    full FSDP, and activations, take more."""
    kind = job_type(job, environment)
    if kind is None or not kind.gpus or job.parameters_billion is None:
        return
    gpus = job.nodes * (job.gpus_per_node or kind.gpus)
    room_gb = gpus * kind.gpu_memory_mib * 2**20 / 1e9
    bytes_each = job.bytes_per_parameter + BYTES_BESIDE_CHECKPOINT
    needed_gb = job.parameters_billion * bytes_each
    if needed_gb > room_gb:
        yield At(f"{path}.parameters_billion").warning(
            f"{job.parameters_billion:g} billion parameters of {bytes_each:g} bytes"
            f" ({job.bytes_per_parameter:g} of a checkpoint, and weight and gradient in bf16)"
            f" need {needed_gb:,.0f} GB, and the {gpus} GPUs of the job have {room_gb:,.0f} GB:"
            " sharded over all of them (ZeRO-3, FSDP) they do not fit either, before any"
            " activation; take more nodes, or offload or freeze a part"
        )
