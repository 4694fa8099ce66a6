"""Questions of `trainyard check --live` about images that nodes pull from ECR: the copies of
`artifacts.images`, and those of the environment's own jobs in its account."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from trainyard.live.questions.account import Account
from trainyard.live.questions.caller import NotAnswered
from trainyard.objects.iam.pull_through import CacheRule, fills, imported
from trainyard.plan import EnvironmentPlan, TeamPlan
from trainyard.plans.documents import account_of
from trainyard.plans.images import Copy, images_in, in_region, parts
from trainyard.problems import At, InputError, InputWarning

IMAGES = "environment.artifacts.images"
Plan = EnvironmentPlan | TeamPlan
Finding = InputError | InputWarning


def copy_checks(account: Account, plan: Plan) -> dict[str, Callable[[], Iterable[Finding]]]:
    """The question whether the copies are there, where nodes pull copies."""
    if not plan.copies:
        return {}
    return {"copies of images": lambda: _asked(account, plan)}


def _asked(account: Account, plan: Plan) -> Iterator[Finding]:
    """Rules are asked for only where copies are missing."""
    missing = [each for each in plan.copies if not account.has_image(each.copy)]
    if not missing:
        return
    try:
        rules = account.pull_through_rules(parts(missing[0].copy).registry.partition(".")[0])
    except NotAnswered as reason:
        yield InputWarning(
            path=_path(plan),
            text=(
                f"the registry lacks {_named(plan, missing)}; whether pull-through rules import them is"
                f" not known: {reason}"
            ),
        )
        return
    yield from copy_findings(plan, missing, rules)


def image_checks(
    account: Account, plan: EnvironmentPlan, caller: str
) -> dict[str, Callable[[], Iterable[Finding]]]:
    """The question whether ECR has each image of a job, for those in the region and the account of the caller: another
    account may let nodes pull and not the caller ask."""
    ours, copies = account_of(caller), {each.copy for each in plan.copies}
    return {
        f"image {image} of job {name}": lambda name=name, image=image: _image(
            account, plan, name, image
        )
        for name, job in plan.jobs.items()
        for image in images_in(job)
        if in_region(image, plan.access.region)
        and image.startswith(f"{ours}.")
        and image not in copies
    }


def _image(account: Account, plan: EnvironmentPlan, name: str, image: str) -> Iterator[Finding]:
    """An image that ECR lacks. A pull-through rule may import it at the first pull, but into no repository that the
    stack makes."""
    if account.has_image(image):
        return
    named, place = parts(image), At(f"environment.jobs.{name}")
    own = named.repository in {each.name for each in plan.registries.values()}
    try:
        rules = [] if own else account.pull_through_rules(named.registry.partition(".")[0])
    except NotAnswered as reason:
        yield place.warning(
            f"ECR lacks its image {image}; whether a pull-through rule imports it is not known: {reason}"
        )
        return
    if not fills(rules, named.repository):
        push = (
            f"push it: trainyard image {name} --from <folder> --stack {plan.identity.stack} --live"
        )
        first = f"; where the stack has not made {named.repository} yet, run `pulumi up` without the job first"
        yield place.must(
            "have an image that ECR has: its nodes would start and wait for it at full price",
            got=image,
            fix=f"{push}{first}"
            if own
            else f"push it to {named.repository}, or name another image",
        )


def copy_findings(
    plan: Plan, missing: Sequence[Copy], rules: Sequence[CacheRule]
) -> Iterator[Finding]:
    """Copies that the registry lacks: nodes cannot pull those that no rule imports, and the first pull
    of the others comes from another network where nodes have no way to the internet (ECR user guide,
    pull-through-cache, considerations)."""
    mirror = f"run trainyard mirror {plan.identity.stack} --live"
    coming = [copy for copy in missing if imported(copy, rules)]
    if left := [copy for copy in missing if copy not in coming]:
        yield InputError(
            path=_path(plan),
            must="have a copy of every image that nodes pull",
            got=f"a registry without {_named(plan, left)}",
            fix=mirror,
        )
    if coming and _is_isolated(plan):
        yield InputWarning(
            path=_path(plan),
            text=(
                f"the registry lacks {_named(plan, coming)}; pull-through rules import them, but not for"
                " nodes without a way to the internet: pull each of them once from another network"
            ),
        )


def _path(plan: Plan) -> str:
    """The setting that names the images, or that names where their copies are."""
    return "team.jobs" if isinstance(plan, TeamPlan) else IMAGES


def _is_isolated(plan: Plan) -> bool:
    """True where nodes have no way to the internet. A team learns it from its environment's contract; an existing
    VPC can lead there without NAT gateways of the stack."""
    if isinstance(plan, EnvironmentPlan):
        return plan.karpenter.isolated
    return plan.contract["environment"].get("network", {}).get("internet") == "none"


def _named(plan: Plan, copies: Sequence[Copy]) -> str:
    images = ", ".join(each.image for each in copies)
    return f"{len(copies)} of the {len(plan.copies)} copies: {images}"
