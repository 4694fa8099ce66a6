"""Problems of derived entries, as the runs of a sweep are, in the words of the entry that somebody has written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from trainyard.problems import InputError, InputWarning, Problem

P = TypeVar("P", bound=Problem)


@dataclass(frozen=True, kw_only=True)
class Derived:
    """A derived entry, and the entry in the file that it is a run of."""

    path: str
    """Path of the entry in the file."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Text of the derived entry → the text that the file has in its place."""
    values: Mapping[str, str] = field(default_factory=dict)
    """Value of this run → its name in the file. A value may also stand where the file has no name."""


def in_the_file(problems: Iterable[P], derived: Mapping[str, Derived]) -> list[P]:
    """The problems at the paths and in the words of the file. `derived`: path → entry. What several runs have, and
    differs in their values alone, is a problem of the entry."""
    found: list[tuple[P, P]] = []
    of_runs: dict[P, set[P]] = {}
    for problem in problems:
        run = next((path for path in derived if _is_at(problem.path, path)), None)
        if run is None:
            found.append((problem, problem))
            continue
        entry = derived[run]
        moved = replace(problem, path=entry.path + problem.path[len(run) :])
        general = _rewritten(moved, entry.values, whole=True)
        of_runs.setdefault(general, set()).add(moved)
        found.append((general, _rewritten(moved, entry.texts, whole=False)))
    return [general if len(of_runs.get(general, ())) > 1 else own for general, own in found]


def _is_at(path: str, place: str) -> bool:
    return path == place or path.startswith(f"{place}.")


def _rewritten(problem: P, words: Mapping[str, str], *, whole: bool) -> P:
    """A problem in other words: all of it, or only its fix."""
    if isinstance(problem, InputWarning):
        return replace(problem, text=_with(words, problem.text)) if whole else problem
    if not isinstance(problem, InputError):
        return problem
    if whole:
        problem = replace(problem, must=_with(words, problem.must), got=_with(words, problem.got))
    return replace(problem, fix=_with(words, problem.fix))


def _with(words: Mapping[str, str], text: str) -> str:
    """A text with other words in the place of whole ones, all at once."""
    given: Sequence[str] = sorted(words, key=len, reverse=True)
    if not given:
        return text
    alternatives = "|".join(map(re.escape, given))
    return re.sub(
        rf"(?<![\w.{{])(?:{alternatives})(?![\w}}]|\.\w)", lambda found: words[found[0]], text
    )
