"""`python -m operations.mirror STACK`: list every image that the nodes of a stack pull, and copy those
that are missing into the registry that `artifacts.images` names.

Which images: stacks/derive/mirror.py. Images of EKS's own add-ons are in ECR of each region already.
A second run copies nothing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import command_line
from operations.builders import CannotBuild, require_crane
from operations.consent import ask
from operations.copies import make_copies, missing_copies
from operations.stack import Stack, read_stack
from operations.target import TargetError, add_live, require_account
from plans.images import Copy, images_in, in_region
from stacks.derive.credentials import NotAssumed, aws_session
from stacks.plan import plan_stack
from stacks.planned import EnvironmentPlan, TeamPlan
from stacks.settings.problems import Refused

NOTHING = "Nothing was copied."


def main(arguments: list[str]) -> int:
    """Return 0 where every copy is there at the end, 1 where one is not, 2 where there is no terminal
    to ask."""
    parser = command_line.parser(
        "operations.mirror",
        "List the images that the nodes of a stack pull; copy those that its own registry lacks.",
    )
    parser.add_argument("stack", metavar="STACK", help="read Pulumi.STACK.yaml of this folder")
    parser.add_argument("--list", action="store_true", help="print the list, and ask no account")
    parser.add_argument("--json", action="store_true", help="print it as JSON, for programs")
    parser.add_argument("--yes", action="store_true", help="copy without a question, for programs")
    add_live(parser)
    options = parser.parse_args(arguments)
    try:
        require_account(options.live)
        stack = read_stack(options.stack)
        plan = plan_stack(stack.reading).accepted()
        if options.list:
            _print(_listed(stack, plan), as_json=options.json)
            return 0
        _require_mirror(stack)
        return _copied(stack, plan, yes=options.yes, as_json=options.json)
    except (CannotBuild, TargetError, NotAssumed, FileNotFoundError, Refused) as error:
        print(f"{error}\n{NOTHING}", file=sys.stderr)
        return 1


def _listed(stack: Stack, plan: EnvironmentPlan | TeamPlan) -> Sequence[Copy]:
    """Images with their copies; without a registry for copies, the images alone."""
    images = (image for image in images_in(plan) if not in_region(image, stack.region))
    return plan.copies or [Copy(image=image, copy="") for image in images]


def _require_mirror(stack: Stack) -> None:
    artifacts = stack.environment.artifacts
    if artifacts is None or artifacts.images is None:
        raise CannotBuild(
            "the environment names no registry for copies. Fix: add artifacts: {images:"
            f" <account>.dkr.ecr.{stack.region}.amazonaws.com/mirror}} to environment; LIST=1 lists"
            " the images without it"
        )


def _copied(stack: Stack, plan: EnvironmentPlan | TeamPlan, *, yes: bool, as_json: bool) -> int:
    """Copy what is missing, after a question."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        session, region = aws_session(plan.access), plan.access.region
        _require_account(session.create_client("sts", region), plan.copies)
        ecr = session.create_client("ecr", region)
        missing = [*missing_copies(ecr, plan.copies)]
        _print([each.copy for each in missing], as_json=as_json, of=len(plan.copies))
        if not missing:
            return 0
        require_crane()
        if code := ask(f"Copy {len(missing)} images?", yes=yes, otherwise=NOTHING):
            return code
        failed = make_copies(session, ecr, missing)
    except (BotoCoreError, ClientError) as error:
        raise CannotBuild(f"ECR: {error}") from None
    if failed:
        print(f"{len(failed)} of {len(missing)} images were not copied:", file=sys.stderr)
        print(*command_line.table(failed.items()), sep="\n", file=sys.stderr)
    return 1 if failed else 0


def _require_account(sts: Any, copies: Sequence[Copy]) -> None:
    """CannotBuild where the registry is of another account than the caller's."""
    mine = str(sts.get_caller_identity()["Account"])
    theirs = next((copy.copy.partition(".")[0] for copy in copies), mine)
    if mine != theirs:
        raise CannotBuild(
            f"artifacts.images is a registry of account {theirs}, and the caller is in {mine}. Fix: log"
            " in to the account of artifacts.images, or correct it"
        )


def _print(copies: Sequence[Copy], *, as_json: bool, of: int | None = None) -> None:
    """The list, for people or programs. `of`: how many copies there must be, where these are those
    that are missing."""
    if as_json:
        print(json.dumps([{"image": each.image, "copy": each.copy} for each in copies], indent=2))
        return
    rows = [(each.image, each.copy) for each in copies]
    for line in command_line.table(rows) if rows else ():
        print(line.rstrip())
    print(f"{len(copies)} images" if of is None else f"{len(copies)} of {of} images are missing")


if __name__ == "__main__":
    command_line.run(main)
