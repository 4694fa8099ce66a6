#!/usr/bin/env -S python3 -S
"""pip for training containers: says what it would install; a requirements file must exist."""

import argparse
import sys

WITH_VALUE = (
    ("-i", "--index-url"),
    ("--extra-index-url",),
    ("-f", "--find-links"),
    ("-t", "--target"),
    ("-c", "--constraint"),
)


def requirements(path: str) -> list[str]:
    """The lines of a file that name something."""
    with open(path) as file:
        lines = (line.split(" #")[0].strip() for line in file)
        return [line for line in lines if line and not line.startswith(("#", "-"))]


def main(arguments: list[str]) -> int:
    """Only install."""
    if arguments[:1] != ["install"]:
        sys.exit(f"ERROR: the rehearsal's pip does not implement '{' '.join(arguments[:1])}'")
    parser = argparse.ArgumentParser(prog="pip install")
    for flags in WITH_VALUE:
        parser.add_argument(*flags)
    parser.add_argument("-r", "--requirement", action="append", default=[])
    parser.add_argument("names", nargs="*")
    asked, _ = parser.parse_known_args(arguments[1:])
    try:
        names = [*(name for file in asked.requirement for name in requirements(file)), *asked.names]
    except OSError as error:
        sys.exit(
            f"ERROR: Could not open requirements file: [Errno {error.errno}] {error.strerror}:"
            f" '{error.filename}'"
        )
    if not names:
        sys.exit("ERROR: You must give at least one requirement to install")
    print(f"stand-in pip: would install {', '.join(names)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
