"""`trainyard mirror STACK`: list every image that the nodes of a stack pull, and copy those that are missing
into the registry that `artifacts.images` names.

Which images: trainyard/derive/mirror.py. Images of EKS's own add-ons are in ECR of each region already.
A second run copies nothing, and names images whose tag was moved since: nodes go on pulling the copy.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TextIO

from trainyard import command_line
from trainyard.catalog.versions import NOTEBOOK_IMAGE
from trainyard.decide import plan_stack
from trainyard.derive.credentials import NotAssumed
from trainyard.operations.images.builders import CannotBuild, require_crane
from trainyard.operations.images.charts import copy_charts
from trainyard.operations.images.copies import Looked, Mirror, coming
from trainyard.operations.reach.consent import ask
from trainyard.operations.reach.stack import Stack, read_stack
from trainyard.plan import EnvironmentPlan, TeamPlan
from trainyard.plans.images import Copy, copy_of, images_in, in_region, parts
from trainyard.problems import Refused

NOTHING = "Nothing was copied."


def main(options: argparse.Namespace) -> int:
    """Return 0 where every copy is there at the end, 1 where one is not or is of an image that its tag no longer
    means, 2 where there is no terminal to ask."""
    try:
        stack = read_stack(options.stack)
        plan = plan_stack(stack.reading).accepted()
        if options.notebook:
            plan = _with_notebook(stack, plan)
        if options.list:
            listed = _listed(stack, plan)
            if options.json:
                _print_json({each: parts(each.image).digest for each in listed})
            else:
                _print(listed, sys.stdout)
                print(f"{len(listed)} images")
            return 0
        if options.charts:
            return copy_charts(stack, nothing=NOTHING, yes=options.yes, as_json=options.json)
        named = _named_by_people(stack, plan, _require_mirror(stack))
        return _copied(plan, named, yes=options.yes, as_json=options.json)
    except (CannotBuild, NotAssumed, FileNotFoundError, Refused) as error:
        print(f"{error}\n{NOTHING}", file=sys.stderr)
        return 1


def _listed(stack: Stack, plan: EnvironmentPlan | TeamPlan) -> Sequence[Copy]:
    """Images with their copies; without a registry for copies, the images alone."""
    images = (image for image in images_in(plan) if not in_region(image, stack.region))
    return plan.copies or [Copy(image=image, copy="") for image in images]


def _with_notebook(stack: Stack, plan: EnvironmentPlan | TeamPlan) -> EnvironmentPlan | TeamPlan:
    """The plan with one copy more: the image of `trainyard notebook`, which no plan has."""
    copy = Copy(image=NOTEBOOK_IMAGE, copy=copy_of(NOTEBOOK_IMAGE, _require_mirror(stack)))
    return replace(plan, copies=(*plan.copies, copy))


def _require_mirror(stack: Stack) -> str:
    """The registry for copies; CannotBuild where the environment names none."""
    artifacts = stack.environment.artifacts
    if artifacts is None or artifacts.images is None:
        raise CannotBuild(
            "the environment names no registry for copies. Fix: add artifacts: {images:"
            f" <account>.dkr.ecr.{stack.region}.amazonaws.com/mirror}} to environment; --list lists"
            " the images without it"
        )
    return artifacts.images


def _named_by_people(stack: Stack, plan: EnvironmentPlan | TeamPlan, mirror: str) -> set[str]:
    """Copies of the images of jobs and of own runtimes. Trainyard pins the others to one version, and nobody waits
    for what their registries put under its tag later."""
    runtimes = stack.environment.trainer.own_runtimes.values()
    return {
        *(job.image for job in plan.jobs.values()),
        *(copy_of(each.image, mirror) for each in runtimes),
    }


def _copied(
    plan: EnvironmentPlan | TeamPlan, named: Collection[str], *, yes: bool, as_json: bool
) -> int:
    """Copy what is missing, after a question. `named`: of _named_by_people."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        mirror = Mirror(plan)
        found = {each.copy: each for each in mirror.look()}
        absent = [each for each in found.values() if not each.digest]
        imported = _imported(mirror, absent)
        missing = [each for each in absent if each not in imported]
        _announce(missing, imported, len(found), sys.stderr if as_json else sys.stdout)
        moved = _moved(mirror, [each for each in found.values() if each.copy.copy in named])
        made, failed, code = list[Looked](), dict[str, str](), 0
        if missing:
            require_crane()
            mirror.require_push(missing)
            code = ask(f"Copy {len(missing)} images?", yes=yes, otherwise=NOTHING)
            made, failed = ([], {}) if code else mirror.make(missing)
    except (BotoCoreError, ClientError) as error:
        raise CannotBuild(f"ECR: {error}") from None
    _tell(found | {each.copy: each for each in made}, made, as_json=as_json)
    _regret(failed, len(missing))
    _warn(moved)
    return code or int(bool(failed or moved))


def _moved(mirror: Mirror, looked: Sequence[Looked]) -> list[tuple[Looked, str]]:
    """Copies of tags that mean another image today. Those that a pull-through rule imports ECR renews by itself,
    once a day."""
    tagged = [each for each in looked if each.digest and not parts(each.copy.image).digest]
    found = mirror.moved(tagged)
    imported = _imported(mirror, [each for each, _ in found])
    return [(each, today) for each, today in found if each not in imported]


def _imported(mirror: Mirror, absent: Sequence[Looked]) -> list[Looked]:
    """Copies that a pull-through rule imports when a node pulls them."""
    return coming(absent, mirror.rules()) if absent else []


def _regret(failed: Mapping[str, str], of: int) -> None:
    """Print the images that were not copied, and why."""
    if failed:
        print(f"{len(failed)} of {of} images were not copied:", file=sys.stderr)
        print(*command_line.table(failed.items()), sep="\n", file=sys.stderr)


def _warn(moved: Sequence[tuple[Looked, str]]) -> None:
    """Print the images whose tag was moved after they were copied."""
    for each, today in moved:
        print(
            f"{each.copy.image} is another image now, {today}, than its copy, {each.digest}, which nodes go on"
            " pulling. Fix: write the digest of now, or a new tag, into the stack file",
            file=sys.stderr,
        )


def _announce(missing: Sequence[Looked], imported: Sequence[Looked], of: int, to: TextIO) -> None:
    """Print the missing copies, and those of them that ECR imports by itself."""
    _print([each.copy for each in missing], to)
    if imported:
        images = [each.copy.image for each in imported]
        print("when a node pulls them, pull-through rules import", *images, file=to)
    print(f"{len(missing)} of {of} images are missing", file=to)


def _tell(found: Mapping[Copy, Looked], made: Sequence[Looked], *, as_json: bool) -> None:
    """Print what was copied, with its digest; for programs, every copy."""
    if as_json:
        _print_json({copy: each.digest for copy, each in found.items()})
    elif made:
        print(*command_line.table([(each.copy.image, each.digest) for each in made]), sep="\n")
        print(f"{len(made)} images were copied")


def _print(copies: Sequence[Copy], to: TextIO) -> None:
    rows = [(each.image, each.copy) for each in copies]
    for line in command_line.table(rows) if rows else ():
        print(line.rstrip(), file=to)


def _print_json(digests: Mapping[Copy, str]) -> None:
    """For programs. `digests`: empty where none is known."""
    rows = [{"image": e.image, "copy": e.copy, "digest": d or None} for e, d in digests.items()]
    print(json.dumps(rows, indent=2))
