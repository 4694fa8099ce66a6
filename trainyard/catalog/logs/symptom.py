"""A message with its cause and the next command. Their tables: symptoms.py.

It imports nothing of ours, so that a program in a pod can have it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

BEGINS = ("ContainerCreating", "PodInitializing")
"""Reasons for which containers wait in a pod that starts as it should: kubelet pulls images and mounts volumes."""
ANY_VALUE = "--from-literal=<key>=…"
"""Option for the value of a Secret whose keys nobody knows."""


@dataclass(frozen=True, kw_only=True)
class Symptom:
    """A message, its cause and the next command. In both texts {0} is what the pattern's group
    matched, and a named group stands under its name. In `do`, {namespace} is the job's namespace, {job} the selector
    of its pods, {literals} the values of a Secret and {of_stack} the option for the environment's stack."""

    pattern: str
    why: str
    do: str


def read(symptoms: Iterable[Symptom], text: str, otherwise: str, **names: str) -> tuple[str, str]:
    """The cause with the line that shows it, and what to do. Where no symptom matches: the text
    itself, and `otherwise`."""
    for symptom in symptoms:
        if match := re.search(symptom.pattern, text):
            value = next(filter(None, match.groups()), "")
            line = text[text.rfind("\n", 0, match.start()) + 1 :].partition("\n")[0]
            named = {"literals": ANY_VALUE, "of_stack": "", **names, **match.groupdict()}
            return f"{symptom.why.format(value, **named)}\n    {line}", symptom.do.format(
                value, **named
            )
    return text, otherwise
