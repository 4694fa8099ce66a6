"""A model that no sharding makes fit is a warning with the arithmetic."""

from __future__ import annotations

from tests.support.cases.jobs import JOB
from tests.support.stackfile import at, planned


def said(billions: float, **settings: object) -> list[str]:
    """The warnings about the memory of a model, on two nodes with 8 GPUs of 48 GB."""
    edits = [at(f"{JOB}.{name}", value) for name, value in settings.items()]
    made = planned(at(f"{JOB}.parameters_billion", billions), *edits)
    return [str(each) for each in made.warnings if "ZeRO-3" in each.text]


def test_a_model_larger_than_all_gpus_is_said_with_the_sum() -> None:
    [warning] = said(70)
    assert warning.startswith("environment.jobs.t5-large.parameters_billion: 70 billion parameters")
    assert "of 16 bytes (12 of a checkpoint," in warning
    assert "need 1,120 GB, and the 16 GPUs of the job have " in warning


def test_a_model_that_fits_sharded_is_not_called_too_large() -> None:
    assert said(30) == []


def test_fewer_gpus_and_smaller_optimizers_count() -> None:
    assert len(said(30, gpus_per_node=2)) == 1
    assert said(70, bytes_per_parameter=2) == []
