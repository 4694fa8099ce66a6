"""A monthly budget of AWS Budgets, with those whom AWS tells, and when it tells them.

Settings: `environment.budget` in the stack file.
"""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from trainyard.plans.budget import BudgetPlan
from trainyard.plans.identity import Identity

TOLD_AT = ((80, "ACTUAL"), (100, "ACTUAL"), (100, "FORECASTED"))
"""Percent of the budget, and whether it is spent or expected. AWS requires about 5 weeks of usage before it expects
anything (AWS Cost Management user guide, Best practices for AWS Budgets)."""


class Budget(pulumi.ComponentResource):
    """Budget of the environment for a month."""

    def __init__(
        self,
        name: str,
        plan: BudgetPlan,
        *,
        identity: Identity,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("trainyard:money:Budget", name, None, opts)
        aws.budgets.Budget(
            name,
            name=plan.name,
            budget_type="COST",
            time_unit="MONTHLY",
            limit_amount=plan.dollars,
            limit_unit="USD",
            # Credits would hide the month until they are used up (AWS Budgets API, CostTypes: included by default). The
            # provider's defaults of the other types are those of AWS (internal/service/budgets/budget.go).
            cost_types=aws.budgets.BudgetCostTypesArgs(include_credit=False),
            cost_filters=[
                aws.budgets.BudgetCostFilterArgs(name="TagKeyValue", values=[plan.tag]),
            ],
            notifications=[
                aws.budgets.BudgetNotificationArgs(
                    comparison_operator="GREATER_THAN",
                    threshold=percent,
                    threshold_type="PERCENTAGE",
                    notification_type=kind,
                    subscriber_email_addresses=list(plan.emails),
                )
                for percent, kind in TOLD_AT
            ],
            tags=identity.tags(name),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})
