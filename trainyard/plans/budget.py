"""A monthly budget of AWS Budgets: which costs it counts, and whom AWS tells.

Source: AWS Cost Management user guide, budgets-create and budgets-create-filters.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

COST_TAG = "trainyard:stack"
"""Key of the tag by which AWS Budgets counts."""


def plain(dollars: float) -> str:
    """All digits and no exponent: AWS reads no other number."""
    return format(Decimal(str(dollars)).normalize(), "f")


@dataclass(frozen=True, kw_only=True)
class BudgetPlan:
    """The budget of an environment."""

    name: str
    dollars: str
    """USD a month, as AWS writes the number."""
    emails: tuple[str, ...]
    tag: str
    """Value of the filter TagKeyValue: tags of users have a word before their key."""
