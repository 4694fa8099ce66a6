"""A monthly budget of AWS Budgets: which costs it counts, and when AWS tells somebody.

Source: AWS Cost Management user guide, budgets-create and budgets-create-filters.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

TOLD_AT = ((80, "ACTUAL"), (100, "ACTUAL"), (100, "FORECASTED"))
"""Percent of the budget, and whether it is spent or expected."""

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
