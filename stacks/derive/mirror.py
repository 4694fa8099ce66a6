"""What a plan is whose images are all copies in a registry of the account, and which images those are.

The one place where images are renamed: every image of a plan goes through it, those of jobs, runtimes,
charts and controllers alike. What nodes can pull: docs/network.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from frozen import dataclass
from plans.images import changed, copy_of, images_in, in_region
from stacks.settings.environment import ArtifactsConfig

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Copy:
    """An image, and what its copy is called."""

    image: str
    copy: str


def mirrored(plan: T, region: str, artifacts: ArtifactsConfig | None) -> T:
    """The plan with the copies of its images; the same plan where the stack file names no registry for
    them."""
    if artifacts is None or artifacts.images is None:
        return plan
    mirror = artifacts.images
    return changed(plan, lambda image: _pulled(image, region, mirror))


def copies(plan: object, region: str, mirror: str) -> list[Copy]:
    """Every image of a plan that is not in ECR of the region, with its copy. The plan must not be a
    mirrored one."""
    return [
        Copy(image=image, copy=copy_of(image, mirror))
        for image in images_in(plan)
        if not in_region(image, region)
    ]


def prefixes(listed: Iterable[str], region: str, artifacts: ArtifactsConfig | None) -> list[str]:
    """Beginnings of images' names, and those of their copies."""
    own = [*listed]
    if artifacts is None or artifacts.images is None:
        return own
    return [*own, *(copy_of(each, artifacts.images) for each in own if not in_region(each, region))]


def _pulled(image: str, region: str, mirror: str) -> str:
    if not image or in_region(image, region):
        return image
    return copy_of(image, mirror)
