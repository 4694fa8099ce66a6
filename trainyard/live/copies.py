"""Questions of `trainyard check --live` about the copies of images that nodes pull
(`artifacts.images`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from trainyard.live.questions.account import Account
from trainyard.live.questions.caller import NotAnswered
from trainyard.objects.iam.pull_through import CacheRule, imported
from trainyard.plan import EnvironmentPlan
from trainyard.plans.images import Copy, parts
from trainyard.problems import InputError, InputWarning

IMAGES = "environment.artifacts.images"
Finding = InputError | InputWarning


def copy_checks(
    account: Account, plan: EnvironmentPlan
) -> dict[str, Callable[[], Iterable[Finding]]]:
    """The question whether the copies are there, where nodes pull copies."""
    if not plan.copies:
        return {}
    return {"copies of images": lambda: _asked(account, plan)}


def _asked(account: Account, plan: EnvironmentPlan) -> Iterator[Finding]:
    """Rules are asked for only where copies are missing."""
    missing = [each for each in plan.copies if not account.has_image(each.copy)]
    if not missing:
        return
    try:
        rules = account.pull_through_rules(parts(missing[0].copy).registry.partition(".")[0])
    except NotAnswered as reason:
        yield InputWarning(
            path=IMAGES,
            text=(
                f"the registry lacks {_named(plan, missing)}; whether pull-through rules import them is"
                f" not known: {reason}"
            ),
        )
        return
    yield from copy_findings(plan, missing, rules)


def copy_findings(
    plan: EnvironmentPlan, missing: Sequence[Copy], rules: Sequence[CacheRule]
) -> Iterator[Finding]:
    """Copies that the registry lacks: nodes cannot pull those that no rule imports, and the first pull
    of the others comes from another network where nodes have no way to the internet (ECR user guide,
    pull-through-cache, considerations)."""
    mirror = f"run trainyard mirror {plan.identity.stack} --live"
    coming = [copy for copy in missing if imported(copy, rules)]
    if left := [copy for copy in missing if copy not in coming]:
        yield InputError(
            path=IMAGES,
            must="have a copy of every image that nodes pull",
            got=f"a registry without {_named(plan, left)}",
            fix=mirror,
        )
    if coming and plan.karpenter.isolated:
        yield InputWarning(
            path=IMAGES,
            text=(
                f"the registry lacks {_named(plan, coming)}; pull-through rules import them, but not for"
                " nodes without a way to the internet: pull each of them once from another network"
            ),
        )


def _named(plan: EnvironmentPlan, copies: Sequence[Copy]) -> str:
    images = ", ".join(each.image for each in copies)
    return f"{len(copies)} of the {len(plan.copies)} copies: {images}"
