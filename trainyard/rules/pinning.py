"""Images, clones and packages of a job that can be others tomorrow although nobody changed the
job."""

from __future__ import annotations

import re
from collections.abc import Iterator

PINNED = "be the same tomorrow, with environment.production: true"
"""Rule of an image, a clone and a package in production."""


def unpinned(image: str, script: str) -> Iterator[tuple[str, str, str]]:
    """(image or script, what was found, what to do) for everything that is not pinned."""
    if re.search(r":latest$", image):
        yield (
            "image",
            "the tag latest, which is another image tomorrow",
            "take a version, or a digest (@sha256:…)",
        )
    if "git clone" in script and not re.search(
        r"--branch|\s-b\s|git (-C \S+ )?(checkout|reset)", script
    ):
        yield (
            "script",
            "a clone of whatever is newest",
            "check out a commit (git checkout), or bake it into the image",
        )
    if found := re.search(r"\b(?:pip3?|conda) install(?!.*--no-index)[^\n;&|]*", script):
        yield (
            "script",
            f"`{found[0].strip()[:60]}` at every start of every pod, whose packages may be others tomorrow",
            "bake the packages into the image",
        )
