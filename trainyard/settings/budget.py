"""Settings of an environment's budget. Their plan: trainyard/parts/budget.py."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import pydantic


@dataclass(frozen=True, kw_only=True)
class BudgetConfig:
    """A budget of AWS Budgets for a calendar month. It counts what has this stack's tag
    `trainyard:stack`, once whoever pays has activated that tag as a cost allocation tag. AWS sends
    e-mails at 80 % and 100 % of the budget, and where it expects more than 100 %."""

    dollars_a_month: Annotated[float, pydantic.Field(ge=1)]
    """USD for a calendar month. `trainyard check` refuses less than an idle month costs, and warns where an
    idle month and one run of each job that has `expected_hours` cost more."""
    emails: Annotated[tuple[str, ...], pydantic.Field(min_length=1, max_length=10)]
    """E-mail addresses that AWS writes to."""

    EXAMPLES: ClassVar[Mapping[str, Any]] = {
        "budget": {"dollars_a_month": 20000, "emails": ["gpu-budget@example.com"]}
    }
    OTHERS: ClassVar[Mapping[str, Any]] = {
        "budget": {"dollars_a_month": 1, "emails": ["other@example.com"]},
        "budget.emails": ["other@example.com"],
    }
