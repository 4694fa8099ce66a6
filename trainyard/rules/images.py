"""Names of images: the references that container runtimes read.

Source: the grammar of github.com/distribution/reference v0.6.0 (reference.go, regexp.go), which
containerd uses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainyard.problems import At, InputError, InputWarning

_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_REGISTRY = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_WORD = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_DIGEST = r"sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128}"
REFERENCE = re.compile(
    rf"(?P<repository>(?:{_REGISTRY}/)?{_WORD}(?:/{_WORD})*)"
    rf"(?P<version>(?::\w[\w.-]{{0,127}})?(?:@(?:{_DIGEST}))?)",
    re.ASCII,
)
LONGEST_REPOSITORY = 255
"""Most characters of registry and repository together (NameTotalLengthMax)."""
LONGEST = 600
"""No reference with a tag and a digest is longer."""
IMAGE_ID = re.compile(r"[a-f0-9]{64}")
"""Name that no repository can have: it is read as the id of an image."""
SHORT = 60


def image_errors(image: str, place: At) -> Iterator[InputError]:
    """The error of an image that no container runtime can pull."""
    if _reference(image):
        return
    meant = _meant(image)
    digest = image.partition("@sha256:")[2]
    name = image.partition("@")[0]
    if digest and _reference(name) and re.fullmatch(r"[0-9a-f]+", digest):
        yield place.must(
            "have 64 hex digits behind @sha256:",
            got=f"{len(digest)} in {image[:SHORT]}",
            fix=f"write the whole digest, which `docker buildx imagetools inspect {name}:<tag>` prints",
        )
        return
    if wrong := _wrong_part(image):
        yield place.must(wrong[0], got=image[:SHORT], fix=wrong[1])
        return
    if meant and "://" in image:
        yield place.must(
            "be the name of an image, without a scheme such as https:// or docker://",
            got=image[:SHORT],
            write=meant,
        )
        return
    yield place.must(
        "be in small letters, but for the tag" if _is_capital(image, meant) else FORM,
        got=image[:SHORT] or "nothing",
        fix=f"write {meant}" if meant else "write registry/name:tag, better registry/name@sha256:…",
        write=meant,
    )


def _is_capital(image: str, meant: str | None) -> bool:
    """True where capital letters before the tag are all that is wrong."""
    return meant is not None and meant.lower() == image.lower() and "@" not in image


FORM = (
    "be the name of an image in small letters: registry/name, and :tag, which begins with a letter or a"
    " digit, or @sha256: with 64 hex digits"
)
OF_SAMPLES = "trainyard/"
"""Beginning of the names that workloads/README.md has for images. No registry has them."""


def sample_warnings(image: str, place: At) -> Iterator[InputWarning]:
    """The warning about an image that has no registry."""
    if image.startswith(OF_SAMPLES):
        yield place.warning(
            f"{image} is a name of workloads/README.md, and no registry has it: before `pulumi up` on AWS write the"
            " image that your nodes pull; otherwise they wait in ImagePullBackOff while you pay for them"
        )


def is_untagged(image: str) -> bool:
    """True where an image has neither a tag nor a digest: then it means the tag latest."""
    found = _reference(image)
    return found is not None and not found["version"]


def tag_errors(image: str, place: At) -> Iterator[InputError]:
    """The error of an image of a stack file that has neither a tag nor a digest."""
    if is_untagged(image):
        yield place.must(
            "have a tag: without one it is whatever is newest",
            got=image,
            fix=f"write {image}:<version>, better a digest (@sha256:…)",
        )


def _reference(image: str) -> re.Match[str] | None:
    found = REFERENCE.fullmatch(image) if len(image) <= LONGEST else None
    too_long = found and len(found["repository"]) > LONGEST_REPOSITORY
    return None if too_long or IMAGE_ID.fullmatch(image) else found


def _wrong_part(image: str) -> tuple[str, str] | None:
    """The rule that one part of an image breaks, and the fix; None where more is wrong."""
    if _reference("".join(image.split())) and len(image.split()) > 1:
        return "have no blank in it: it is one word", "delete the blank"
    name, colon, tag = image.rpartition(":")
    if colon and is_untagged(name) and not re.match(r"\w", tag):
        must = "have a tag behind its colon"
        if tag:
            must += " that begins with a letter, a digit or _"
        return must, f"write {name}:<version>, better {name}@sha256:…"
    reference = _reference(name)
    if reference and reference["version"] and "@" not in name:
        first = name.rpartition(":")[0]
        return (
            "have one tag, and a tag has no colon",
            f"write {first}:<version>, better {first}@sha256:…",
        )
    small = image.lower()
    if image != small and is_untagged(small):
        must = "have small letters, and a tag or a digest"
        return must, f"write {small}:<version>, better {small}@sha256:…"
    if "//" in image and "://" not in image:
        return (
            "have a name between its slashes",
            "write the part that is missing there, or delete one of the slashes",
        )
    return None


def _meant(image: str) -> str | None:
    """The reference, with a tag or digest, that a slip was to be: blanks, a scheme or capital
    letters too many."""
    bare = re.sub(r"^\w+://", "", image.strip())
    slips = (found for each in (bare, bare.lower()) if (found := _reference(each)))
    return next((found[0] for found in slips if found["version"]), None)
