"""Warnings where a budget counts nothing, because nobody has activated the tag of the stack as a cost
allocation tag.

Only the account that pays can activate a tag, and ask about it (AWS Billing user guide,
activating-tags)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from trainyard.live.questions.account import Account
from trainyard.live.questions.caller import NotAnswered
from trainyard.parts.parts import cost_tags
from trainyard.plan import EnvironmentPlan
from trainyard.problems import InputWarning

ACTIVATE = (
    "aws ce update-cost-allocation-tags-status --cost-allocation-tags-status"
    " TagKey={key},Status=Active"
)


def cost_tag_checks(
    account: Account, plan: EnvironmentPlan
) -> dict[str, Callable[[], Iterator[InputWarning]]]:
    """The question for each tag by which a part counts costs."""
    return {
        f"cost allocation tag {key}": lambda key=key, path=path: _warnings(account, key, path)
        for key, path in cost_tags(plan).items()
    }


def _warnings(account: Account, key: str, path: str) -> Iterator[InputWarning]:
    command = ACTIVATE.format(key=key)
    try:
        status = account.cost_tag(key)
    except NotAnswered as reason:
        yield InputWarning(
            path=path,
            text=(
                f"whether the cost allocation tag {key} is active cannot be asked: {reason}. Only the"
                " account that pays may ask, and without an active tag the budget counts nothing."
                f" There, run `{command}`"
            ),
        )
        return
    if status == "Active":
        return
    when = "" if status else ", once AWS lists the tag, up to 24 hours after the first `pulumi up`"
    yield InputWarning(
        path=path,
        text=(
            f"the cost allocation tag {key} is not active, so the budget counts nothing: run"
            f" `{command}`{when}"
        ),
    )
