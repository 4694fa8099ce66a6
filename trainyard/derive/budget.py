"""What follows from `environment.budget`: a budget for what has the tag of the stack."""

from __future__ import annotations

from trainyard.plans.budget import BudgetPlan, plain
from trainyard.plans.parts import Identity
from trainyard.settings.environment import EnvironmentConfig


def budget_plan(me: Identity, wanted: EnvironmentConfig) -> BudgetPlan | None:
    """None where AWS tells nobody what the environment costs."""
    if wanted.budget is None:
        return None
    return BudgetPlan(
        name=me.name("month"),
        dollars=plain(wanted.budget.dollars_a_month),
        emails=wanted.budget.emails,
        tag=f"user:trainyard:stack${me.stack}",
    )
