#!/usr/bin/env -S python3 -S
"""git for training containers: clones from the checkout's workloads/ what is there, and has no network for the rest."""

import os
import shutil
import sys

MIRROR = os.environ.get("GIT_MIRROR", "/opt/mirror")
WITH_VALUE = {"-b", "--branch", "--depth", "-o", "--origin", "-j", "--jobs", "-c", "--config", "--filter"}
FATAL = 128


def positional(arguments: list[str]) -> list[str]:
    """The words that are neither options nor their values."""
    words, skip = [], False
    for word in arguments:
        if not skip and not word.startswith("-"):
            words.append(word)
        skip = not skip and word in WITH_VALUE
    return words


def host(url: str) -> str:
    """Whose name a real clone would look up."""
    return url.split("://", 1)[-1].split("@", 1)[-1].replace(":", "/").split("/", 1)[0]


def clone(url: str, folder: str | None) -> int:
    """Copy the repository's namesake of the mirror."""
    name = url.rstrip("/").rsplit("/", 1)[-1].removesuffix(".git")
    target, source = folder or name, os.path.join(MIRROR, name)
    if os.path.isdir(target) and os.listdir(target):
        return fail(f"destination path '{target}' already exists and is not an empty directory.")
    print(f"Cloning into '{target}'...", file=sys.stderr)
    if not os.path.isdir(source):
        return fail(f"unable to access '{url}': Could not resolve host: {host(url)}")
    shutil.copytree(source, target, dirs_exist_ok=True)
    print(f"stand-in git: copied workloads/{name} of the checkout", file=sys.stderr)
    return 0


def fail(message: str) -> int:
    """As git dies."""
    print(f"fatal: {message}", file=sys.stderr)
    return FATAL


def main(arguments: list[str]) -> int:
    """Only clone."""
    command, *rest = arguments or [""]
    words = positional(rest)
    if command != "clone":
        return fail(f"the rehearsal's git does not implement '{command}'")
    if not words:
        return fail("You must specify a repository to clone.")
    return clone(words[0], words[1] if len(words) > 1 else None)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
