#!/usr/bin/env -S python3 -S
"""git for training containers: clones what is in the folder that images.json names, and has no
network for the rest."""

import argparse
import os
import shutil
import sys

MIRROR = os.environ.get("GIT_MIRROR", "/opt/mirror")
WITH_VALUE = (
    ("-b", "--branch"),
    ("--depth",),
    ("-o", "--origin"),
    ("-j", "--jobs"),
    ("-c", "--config"),
    ("--filter",),
)


def host(url: str) -> str:
    """Host whose name a real clone would look up."""
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
    print(f"stand-in git: copied {name} of this machine", file=sys.stderr)
    return 0


def fail(message: str) -> int:
    """As git dies."""
    print(f"fatal: {message}", file=sys.stderr)
    return 128


def main(arguments: list[str]) -> int:
    """Only clone, whatever its options say."""
    if arguments[:1] != ["clone"]:
        return fail(f"the rehearsal's git does not implement '{' '.join(arguments[:1])}'")
    parser = argparse.ArgumentParser(prog="git clone")
    for flags in WITH_VALUE:
        parser.add_argument(*flags)
    parser.add_argument("url")
    parser.add_argument("folder", nargs="?")
    asked, _ = parser.parse_known_args(arguments[1:])
    return clone(asked.url, asked.folder)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
