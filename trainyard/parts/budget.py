"""A budget of AWS Budgets for what has the tag of the stack."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from trainyard.objects.iam.policies import OptionalService
from trainyard.parts.emails import email_errors
from trainyard.parts.part import Around, Part
from trainyard.plans.budget import COST_TAG, BudgetPlan, plain
from trainyard.plans.identity import Identity
from trainyard.problems import InputError
from trainyard.settings.budget import BudgetConfig
from trainyard.settings.environment import EnvironmentConfig


class Budget(Part[BudgetConfig, BudgetPlan]):
    """`environment.budget`: AWS tells somebody what the environment costs."""

    name = section = "budget"
    compared = "dollars_a_month"
    services = (
        OptionalService(name="budgets", arn="arn:aws:budgets::*:budget/{stack}-*", regional=False),
    )

    def plan(self, me: Identity, settings: BudgetConfig, around: Around) -> BudgetPlan:
        return BudgetPlan(
            name=me.name("month"),
            dollars=plain(settings.dollars_a_month),
            emails=settings.emails,
            tag=f"user:{COST_TAG}${me.stack}",
        )

    def errors(
        self, settings: BudgetConfig, region: str, wanted: EnvironmentConfig
    ) -> Iterator[InputError]:
        yield from email_errors("environment.budget.emails", settings.emails)

    def resource_types(self, plan: BudgetPlan) -> tuple[str, ...]:
        return ("aws:budgets/budget:Budget",)

    def cost_tag(self, plan: BudgetPlan) -> str:
        return COST_TAG

    def monthly_limit(self, plan: BudgetPlan) -> Decimal:
        return Decimal(plan.dollars)
