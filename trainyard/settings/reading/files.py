"""Files of the checkout that a stack needs: read without surprises, and only from inside it."""

from __future__ import annotations

from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from pathlib import Path

MOST_BYTES = 4 << 20
"""A file of settings or jobs is never larger; etcd takes an object of 1.5 MiB."""
NO_TEXT = "\ufffd"
"""Character that stands in a text for bytes that are none."""


def text_of(path: Path) -> str:
    """The text of a file in UTF-8 or, with a byte order mark, UTF-16; NO_TEXT for what is neither,
    and for the end of a file that is too large. Raises OSError where there is no such file."""
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if content.startswith((BOM_UTF16_BE, BOM_UTF16_LE)):
        return content.decode("utf-16", errors="replace")
    text = content[:MOST_BYTES].decode("utf-8-sig", errors="replace")
    return text + NO_TEXT * (len(content) > MOST_BYTES)


def is_inside(folder: Path, name: str) -> bool:
    """True where a name leads to a file inside a folder; False where it leaves the folder, also by
    a symbolic link."""
    try:
        found = (folder / name).resolve(strict=True)
        return found.is_relative_to(folder.resolve()) and found.is_file()
    except (OSError, RuntimeError, ValueError):  # too long, a circle of links, a NUL
        return False
