"""AWS Budgets: a name, a limit, filters, and who is told. Nobody pays here, so nobody is told.

Source: AWS Cost Management API reference, AWS Budgets. moto knows no UpdateBudget and no subscribers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rehearsal.aws import backends
from rehearsal.aws.operations import Call, Fields, answers, refuse
from rehearsal.aws.service import Service, register

MOST_EMAILS, MOST_NOTIFICATIONS = 10, 5
"""Most addresses of a notification, and most notifications of a budget (API reference,
CreateNotification and CreateBudget)."""


@dataclass(kw_only=True)
class Budget:
    """One budget. A notification is known by all that it says."""

    view: Fields
    told: list[tuple[Fields, list[Fields]]] = field(default_factory=list)
    tags: dict[str, str] = field(default_factory=dict)


BUDGETS: dict[str, Budget] = {}
"""Name → budget. The account has no region."""


def arn(name: str) -> str:
    """ARN of a budget, by its name."""
    return f"arn:aws:budgets::{backends.ACCOUNT}:budget/{name}"


def name_of(call: Call) -> str:
    """The budget that a call names; empty where it names none."""
    inside = call["Budget"] or call["NewBudget"] or {}
    return (
        inside.get("BudgetName")
        or call["BudgetName"]
        or (call["ResourceARN"] or "").rpartition("/")[2]
    )


def _known(call: Call) -> Budget:
    name = name_of(call)
    refuse(name not in BUDGETS, "NotFoundException", f"Unable to get budget: {name}")
    return BUDGETS[name]


@answers("budgets", "CreateBudget")
def _create(call: Call) -> Fields:
    name, told = name_of(call), call["NotificationsWithSubscribers"] or []
    refuse(name in BUDGETS, "DuplicateRecordException", f"the budget already exists: {name}")
    refuse(
        len(told) > MOST_NOTIFICATIONS, "CreationLimitExceededException", "too many notifications"
    )
    made = Budget(view=call["Budget"], tags=_pairs(call["ResourceTags"]))
    for each in told:
        _tell(made, each["Notification"], each["Subscribers"])
    BUDGETS[name] = made
    return {}


@answers("budgets", "UpdateBudget")
def _update(call: Call) -> Fields:
    _known(call).view = call["NewBudget"]
    return {}


@answers("budgets", "DescribeBudget")
def _describe(call: Call) -> Fields:
    return {"Budget": _known(call).view}


@answers("budgets", "DeleteBudget")
def _delete(call: Call) -> Fields:
    _known(call)
    del BUDGETS[name_of(call)]
    return {}


@answers("budgets", "CreateNotification")
def _notify(call: Call) -> Fields:
    _tell(_known(call), call["Notification"], call["Subscribers"])
    return {}


@answers("budgets", "DeleteNotification")
def _quiet(call: Call) -> Fields:
    found = _known(call)
    found.told = [each for each in found.told if each[0] != call["Notification"]]
    return {}


@answers("budgets", "DescribeNotificationsForBudget")
def _notifications(call: Call) -> Fields:
    return {"Notifications": [notification for notification, _ in _known(call).told]}


@answers("budgets", "DescribeSubscribersForNotification")
def _subscribers(call: Call) -> Fields:
    told = _known(call).told
    return {"Subscribers": next(who for which, who in told if which == call["Notification"])}


@answers("budgets", "ListTagsForResource", "TagResource", "UntagResource")
def _tag(call: Call) -> Fields:
    tags = _known(call).tags
    tags |= _pairs(call["ResourceTags"])
    for key in call["ResourceTagKeys"] or ():
        tags.pop(key, None)
    return {"ResourceTags": [{"Key": key, "Value": value} for key, value in tags.items()]}


def _tell(budget: Budget, notification: Fields, subscribers: list[Fields]) -> None:
    known = [which for which, _ in budget.told]
    refuse(notification in known, "DuplicateRecordException", "the notification already exists")
    emails = [one for one in subscribers if one["SubscriptionType"] == "EMAIL"]
    refuse(len(emails) > MOST_EMAILS, "CreationLimitExceededException", "too many subscribers")
    budget.told.append((notification, subscribers))


def _pairs(tags: Any) -> dict[str, str]:
    return {one["Key"]: one["Value"] for one in tags or ()}


register(
    Service(
        name="budgets",
        ours=True,
        actions={
            **{
                f"budgets:{one}": "budgets:ModifyBudget"
                for one in (
                    "CreateBudget",
                    "DeleteBudget",
                    "UpdateBudget",
                    "CreateNotification",
                    "DeleteNotification",
                )
            },
            **{
                f"budgets:Describe{one}": "budgets:ViewBudget"
                for one in ("Budget", "NotificationsForBudget", "SubscribersForNotification")
            },
        },
        arns=lambda call: [arn(name) for name in [name_of(call)] if name],
        things=lambda: [("budget", name, name, "", one.tags) for name, one in BUDGETS.items()],
        kept=BUDGETS,
    )
)
