"""Errors about e-mail addresses that are none."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainyard.problems import InputError

EXAMPLE = "gpu-oncall@example.com"


def email_errors(path: str, addresses: tuple[str, ...]) -> Iterator[InputError]:
    """Every address that is none. `path`: of the list."""
    for number, address in enumerate(addresses):
        if not re.fullmatch(r"[^@\s]+@[\w-]+(\.[\w-]+)+", address):
            yield InputError(
                path=f"{path}[{number}]",
                must="be an e-mail address",
                got=address,
                fix=f"write such as {EXAMPLE}",
                write=EXAMPLE,
            )
