#!/usr/bin/env -S python3 -S
"""pip for training containers: says what it would install; a requirements file must exist."""

import sys

WITH_VALUE = {"-i", "--index-url", "--extra-index-url", "-f", "--find-links", "-t", "--target", "-c", "--constraint"}


def requirements(path: str) -> list[str]:
    """The lines of a file that name something."""
    with open(path) as file:
        lines = (line.split(" #")[0].strip() for line in file)
        return [line for line in lines if line and not line.startswith(("#", "-"))]


def wanted(arguments: list[str]) -> list[str]:
    """Everything an `install` would install."""
    names, words = [], iter(arguments)
    for word in words:
        if word in ("-r", "--requirement"):
            names += requirements(next(words, ""))
        elif word.startswith("--requirement="):
            names += requirements(word.partition("=")[2])
        elif word in WITH_VALUE:
            next(words, None)
        elif not word.startswith("-"):
            names.append(word)
    return names


def main(arguments: list[str]) -> int:
    """Only install."""
    if arguments[:1] != ["install"]:
        print(f"ERROR: the rehearsal's pip does not implement '{' '.join(arguments[:1])}'", file=sys.stderr)
        return 1
    try:
        names = wanted(arguments[1:])
    except OSError as error:
        print(f"ERROR: Could not open requirements file: [Errno {error.errno}] {error.strerror}: '{error.filename}'",
              file=sys.stderr)
        return 1
    if not names:
        print("ERROR: You must give at least one requirement to install", file=sys.stderr)
        return 1
    print(f"stand-in pip: would install {', '.join(names)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
