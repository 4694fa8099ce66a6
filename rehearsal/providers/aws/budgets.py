"""A monthly budget. AWS names it by account and name, and tells of its notifications one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rehearsal.providers.aws.account import Account
from rehearsal.providers.aws.resource_type import Kind, Seen, Tagging, lower, renamed, upper
from rehearsal.providers.wire import Properties, words

NOTIFICATION = ("comparisonOperator", "notificationType", "threshold", "thresholdType")


@dataclass(frozen=True, kw_only=True)
class Budget(Kind):
    """Its own shape, both ways."""

    def make(self, aws: Account, new: Properties) -> str:
        account = aws.call("sts", "get_caller_identity")["Account"]
        told = [{"Notification": which, "Subscribers": who} for which, who in _told(new)]
        tags = [{"Key": key, "Value": value} for key, value in (new.get("tags") or {}).items()]
        aws.call(
            "budgets",
            "create_budget",
            AccountId=account,
            Budget=_budget(new),
            NotificationsWithSubscribers=told,
            ResourceTags=tags,
        )
        return f"{account}:{new['name']}"

    def find(self, aws: Account, id_: str, hint: Properties) -> Seen | None:
        named = _named(id_)
        answer = aws.seen("budgets", "describe_budget", **named)
        if answer is None:
            return None
        found, arn = answer["Budget"], _arn(id_)
        listed = aws.call("budgets", "list_tags_for_resource", ResourceARN=arn)["ResourceTags"]
        return Seen(
            id=id_,
            tags={one["Key"]: one["Value"] for one in listed},
            state={
                "accountId": named["AccountId"],
                "arn": arn,
                "name": found["BudgetName"],
                "budgetType": found["BudgetType"],
                "timeUnit": found["TimeUnit"],
                "limitAmount": found["BudgetLimit"]["Amount"],
                "limitUnit": found["BudgetLimit"]["Unit"],
                "costFilters": [
                    {"name": key, "values": values} for key, values in found["CostFilters"].items()
                ],
                "costTypes": renamed(found.get("CostTypes") or {}, lower),
                "notifications": [*_notifications(aws, named)],
            },
        )

    def change(
        self, aws: Account, id_: str, changed: frozenset[str], new: Properties, state: Properties
    ) -> None:
        named = _named(id_)
        if changed - {"notifications"}:
            account = named["AccountId"]
            aws.call("budgets", "update_budget", AccountId=account, NewBudget=_budget(new))
        if "notifications" in changed:
            for which, _ in _told({"notifications": [*_notifications(aws, named)]}):
                aws.call("budgets", "delete_notification", **named, Notification=which)
            for which, who in _told(new):
                given = {"Notification": which, "Subscribers": who}
                aws.call("budgets", "create_notification", **named, **given)

    def remove(self, aws: Account, id_: str, state: Properties) -> None:
        aws.call("budgets", "delete_budget", **_named(id_))


def _named(id_: str) -> dict[str, str]:
    account, _, name = id_.partition(":")
    return {"AccountId": account, "BudgetName": name}


def _arn(id_: str) -> str:
    return f"arn:aws:budgets::{id_.replace(':', ':budget/', 1)}"


def _budget(new: Properties) -> dict[str, Any]:
    return {
        "BudgetName": new["name"],
        "BudgetType": new["budgetType"],
        "TimeUnit": new["timeUnit"],
        "BudgetLimit": {"Amount": new["limitAmount"], "Unit": new["limitUnit"]},
        "CostTypes": renamed(new.get("costTypes") or {}, upper),
        "CostFilters": {each["name"]: each["values"] for each in new.get("costFilters") or ()},
    }


def _told(new: Properties) -> Iterator[tuple[dict[str, Any], list[dict[str, str]]]]:
    """When AWS tells somebody, and whom."""
    for each in new.get("notifications") or ():
        who = each.get("subscriberEmailAddresses") or ()
        yield (
            renamed({key: each[key] for key in NOTIFICATION}, upper),
            [{"SubscriptionType": "EMAIL", "Address": address} for address in who],
        )


def _notifications(aws: Account, named: dict[str, str]) -> Iterator[Properties]:
    found = aws.call("budgets", "describe_notifications_for_budget", **named)["Notifications"]
    for which in found:
        asked = {**named, "Notification": which}
        who = aws.call("budgets", "describe_subscribers_for_notification", **asked)["Subscribers"]
        yield {
            **{key: which[upper(key)] for key in NOTIFICATION},
            "subscriberEmailAddresses": [one["Address"] for one in who],
        }


KINDS = (
    Budget(
        token="aws:budgets/budget:Budget",
        service="budgets",
        create="create_budget",
        read="describe_budget",
        delete="delete_budget",
        id="{name}",
        asks={},
        updates=dict.fromkeys(
            words("budgetType timeUnit limitAmount limitUnit costFilters costTypes notifications"),
            "update_budget",
        ),
        tagging=Tagging(
            target="ResourceARN", by="arn", tags="ResourceTags", keys="ResourceTagKeys"
        ),
        minutes=2,
    ),
)
