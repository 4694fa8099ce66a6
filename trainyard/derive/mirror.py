"""Plan whose images are all copies in a registry of the account, and the list of those images.

The one place where images are renamed: every image of a plan goes through it, those of jobs, runtimes,
charts and controllers alike. What nodes can pull: docs/network.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from trainyard.plans.images import Copy, changed, copy_of, in_region
from trainyard.settings.environment import ArtifactsConfig

Plan = TypeVar("Plan")


def mirrored(
    plan: Plan, region: str, artifacts: ArtifactsConfig | None
) -> tuple[Plan, tuple[Copy, ...]]:
    """The plan with the copies of its images, and those; the same plan where the stack file names no
    registry for them."""
    if artifacts is None or artifacts.images is None:
        return plan, ()
    mirror, found = artifacts.images, dict[str, str]()

    def pulled(image: str) -> str:
        if not image or in_region(image, region):
            return image
        return found.setdefault(image, copy_of(image, mirror))

    renamed: Plan = changed(plan, pulled)
    return renamed, tuple(Copy(image=image, copy=found[image]) for image in sorted(found))


def prefixes(listed: Iterable[str], region: str, artifacts: ArtifactsConfig | None) -> list[str]:
    """Beginnings of images' names, and those of their copies."""
    own = [*listed]
    if artifacts is None or artifacts.images is None:
        return own
    return [*own, *(copy_of(each, artifacts.images) for each in own if not in_region(each, region))]
