"""Quantities as Kubernetes writes them: 500m, 8Gi, 1e3.

Source: Kubernetes 1.34, apimachinery pkg/api/resource. Read 2026-11-21.
"""

from __future__ import annotations

import re
from fractions import Fraction

QUANTITY = re.compile(
    r"([+-]?(?:\d{1,100}\.?\d{0,100}|\.\d{1,100}))"
    r"(?:[eE]([+-]?\d{1,2})|([KMGTPE])i|([numkMGTPE]?))"
)
"""A number, and behind it an exponent, a binary suffix or a decimal suffix. No more digits than any
machine needs: the exact value of 1e99999999 takes minutes and all memory."""
THOUSANDS = {
    "n": -3,
    "u": -2,
    "m": -1,
    "": 0,
    "k": 1,
    "K": 1,
    "M": 2,
    "G": 3,
    "T": 4,
    "P": 5,
    "E": 6,
}
"""Suffix → power of a thousand, or of 1024 before an i."""


def amount(value: object) -> Fraction | None:
    """The exact number that a quantity stands for. None: the value is no quantity."""
    match = QUANTITY.fullmatch(str(value))
    if match is None:
        return None
    number, exponent, binary, decimal = match.groups()
    if exponent:
        return Fraction(number) * Fraction(10) ** int(exponent)
    return Fraction(number) * (
        Fraction(1024) ** THOUSANDS[binary] if binary else Fraction(1000) ** THOUSANDS[decimal]
    )
