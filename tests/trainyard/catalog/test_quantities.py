"""A quantity is the number that Kubernetes understands by it."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainyard.catalog.quantities import THOUSANDS, amount


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("1", "1000m"),
        ("8Gi", "8192Mi"),
        (0.5, "500m"),
        ("1e3", "1k"),
        ("2E", "2e18"),
        (".5", "500000u"),
        ("+1.", 1),
        ("1Ki", 1024),
    ],
)
def test_quantities_of_the_same_number_are_equal(left: object, right: object) -> None:
    assert amount(left) == amount(right) is not None


def test_each_suffix_is_a_thousand_of_the_one_before() -> None:
    decimal = [amount(f"1{suffix}") for suffix in ("n", "u", "m", "", *"kMGTPE")]
    binary = [amount(f"1{suffix}") for suffix in ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")]
    for found, step in ((decimal, 1000), (binary, 1024)):
        assert found == [found[0] * step**power for power in range(len(found))]  # type: ignore[operator]
    assert decimal[3] == binary[0] == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "8GB",
        "64 Gi",
        "1ki",
        "1K",
        "Gi",
        "1.2.3",
        None,
        "1e",
        "--1",
        "1e99999999",
        "9" * 5000,
    ],
)
def test_text_that_kubernetes_refuses_is_no_quantity(text: object) -> None:
    assert amount(text) is None


@given(st.integers(-(10**9), 10**9), st.sampled_from(sorted({*THOUSANDS} - {"K"})))
def test_a_suffix_scales_exactly(number: int, suffix: str) -> None:
    assert amount(f"{number}{suffix}") == number * Fraction(1000) ** THOUSANDS[suffix]
    if suffix in {*"MGTPE"}:
        assert amount(f"{number}{suffix}i") == number * 1024 ** THOUSANDS[suffix]
