"""n/N on a command line: the n-th of N parts of a list."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Part:
    """One part of so many."""

    number: int
    """From 1."""
    count: int

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def of(self, things: Sequence[T]) -> Sequence[T]:
        """The things of this part: every thing is in one part."""
        return things[self.number - 1 :: self.count]


def part(text: str) -> Part:
    """The part that an option names. Raises ArgumentTypeError, which argparse prints."""
    found = re.fullmatch(r"(\d{1,3})/(\d{1,3})", text)
    number, count = map(int, found.groups()) if found else (0, 0)
    if not 1 <= number <= count:
        raise argparse.ArgumentTypeError(f"must be n/N with 1 <= n <= N, such as 3/24; got {text}")
    return Part(number, count)
