"""Settings of an environment's dollars: its budget, and the prices that its company pays. What follows from
them: trainyard/parts/budget.py and trainyard/catalog/aws/own_prices.py."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, ClassVar

import pydantic

from trainyard.catalog.aws.own_prices import OwnPrices


@dataclass(frozen=True, kw_only=True)
class BudgetConfig:
    """A budget of AWS Budgets for a calendar month. It counts what has this stack's tag
    `trainyard:stack`, once whoever pays has activated that tag as a cost allocation tag, and counts it as if
    no credits of AWS paid for it. AWS sends e-mails at 80 % and 100 % of the budget, and where it expects more
    than 100 %: it expects nothing before it has about 5 weeks of usage."""

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


Percent = Annotated[float, pydantic.Field(ge=0, lt=100)]


@dataclass(frozen=True, kw_only=True)
class PricesConfig:
    """Prices that your company pays, where they are not those of AWS's list. `trainyard plan` counts with them
    and shows list prices beside them. The contracts of teams have them too, because jobs of teams are priced by
    them."""

    discount_percent: Percent = 0
    """Per cent that a private pricing agreement with AWS, such as an Enterprise Discount Program, takes off
    each list price."""
    savings_plan_percent: dict[str, Percent] = field(default_factory=dict)
    """Family of instance types, such as `p5` → per cent that a Savings Plan takes off its price on demand:
    the rates of Savings Plans differ by family. It counts for nodes on demand and of reservations and for
    system nodes, not for Spot and Capacity Blocks. The plan counts as if the commitment covered all of these
    nodes. `discount_percent` is taken off what is left."""
    support_percent: Percent = 0
    """Per cent of a month that AWS charges for support. The summary of `trainyard plan` has a month with it;
    other sums, runs and the budget are without."""

    EXAMPLES: ClassVar[Mapping[str, Any]] = {
        "prices": {
            "discount_percent": 12,
            "savings_plan_percent": {"p5": 44, "m7i": 27},
            "support_percent": 3,
        }
    }
    OTHERS: ClassVar[Mapping[str, Any]] = {
        "prices": {"discount_percent": 1},
        "prices.savings_plan_percent": {"p4d": 10},
    }

    def own(self) -> OwnPrices:
        """The prices that follow, in exact numbers."""
        return OwnPrices(
            discount_percent=_exact(self.discount_percent),
            savings_plan_percent={
                family: _exact(percent) for family, percent in self.savings_plan_percent.items()
            },
            support_percent=_exact(self.support_percent),
        )


def _exact(percent: float) -> Decimal:
    return Decimal(str(percent))
