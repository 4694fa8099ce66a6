"""Texts that an entry cannot have because a secret stands in them: the text is left out, and a
sentence says where it stood and how to give the secret. No text that was changed to hide a secret
is printed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from trainyard.command_line import is_option
from trainyard.manifests.document import Container, Workload
from trainyard.migrate.result import Migration
from trainyard.settings.reading.secrets.secrets import HIDDEN

INSTEAD = (
    "write it into AWS Secrets Manager, and name it in secrets: {HF_TOKEN: {secrets_manager: NAME}};"
    " the script reads the variable"
)
"""Advice: how to give a job a secret."""
NOT_SHOWN = "a secret, which is not shown"
"""Words of a sentence in the place of a value."""
_PART = re.compile(r"(\s*(?:&&|;)\s*)")


def without_secrets(job: Workload, container: Container) -> tuple[Container, list[str]]:
    """The container without the parts of its command that have a secret, and a sentence for each."""
    kept, left = list[str](), list[str]()
    for number, word in enumerate(container.command):
        if HIDDEN not in word:
            kept.append(word)
        elif "\n" in word.strip() or " " in word.strip():
            text, lines = _without_lines(word)
            kept.append(text)
            left += [f"line {line} of the script" for line in lines]
        else:
            option = kept[-1] if kept and is_option(kept[-1], word) else ""
            kept = kept[:-1] if option else kept
            name = option or word.partition("=")[0].replace(HIDDEN, "")
            left.append(f"word {number + 1} of the command{f', {name},' if name else ''}")
    where = job.where(*container.runs)
    return replace(container, command=tuple(kept)), [
        f"{where}: {each} is left out: a secret stands in it; {INSTEAD}" for each in left
    ]


def _without_lines(script: str) -> tuple[str, list[int]]:
    """A script without the statements that have a secret, and the numbers of their lines."""
    kept, left = list[str](), list[int]()
    for number, line in enumerate(script.split("\n"), 1):
        if HIDDEN not in line:
            kept.append(line)
            continue
        left.append(number)
        rest = _without_statements(line)
        if rest:
            kept.append(rest)
        elif kept and kept[-1].endswith("\\") and not line.endswith("\\"):
            kept[-1] = kept[-1].rstrip("\\").rstrip()  # the command ends here now
    return "\n".join(kept), left


def _without_statements(line: str) -> str:
    """Rest of a line of several statements; nothing where a quote goes over them."""
    parts = _PART.split(line)
    statements, signs = parts[::2], ["", *parts[1::2]]
    if line.endswith("\\") or any(text.count(quote) % 2 for text in statements for quote in "'\""):
        return ""
    kept = [
        (sign, text) for sign, text in zip(signs, statements, strict=True) if HIDDEN not in text
    ]
    return "".join(sign + text for sign, text in kept).removeprefix(kept[0][0]) if kept else ""


def leave_out_secrets(migration: Migration) -> None:
    """Take every value with a secret in it out of the entry, and say so."""
    for settings in (migration.entry, migration.pytorch_job):
        found = [*_with_secrets(settings)]
        for path in reversed(found):
            _remove(settings, path)
            shown = ".".join(str(step) for step in path if HIDDEN not in str(step))
            migration.no_counterpart.append(
                f"{shown or 'a setting'}: left out: a secret stands in it; {INSTEAD}"
            )
    for sentences in (migration.changed, migration.no_counterpart, migration.left_over):
        sentences[:] = [sentence.replace(HIDDEN, NOT_SHOWN) for sentence in sentences]


def _with_secrets(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Paths of the values with a secret, from the first to the last."""
    if isinstance(value, dict):
        for name, item in value.items():
            if HIDDEN in str(name):
                yield (*path, name)
            else:
                yield from _with_secrets(item, (*path, name))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _with_secrets(item, (*path, number))
    elif HIDDEN in str(value):
        yield path


def _remove(value: Any, path: tuple[str | int, ...]) -> None:
    *way, last = path
    for step in way:
        value = value[step]
    del value[last]
