"""IAM documents, and ARNs, as plain data."""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]


def account_of(arn: str) -> str:
    """The id of the account that a resource belongs to."""
    return arn.split(":")[4]
