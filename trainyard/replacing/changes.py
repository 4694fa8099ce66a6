"""Differences between two runs of a job, in words.

The engine does not compare specs, because controllers write to them. What a spec only points at is said as itself:
the files of a ConfigMap, and the directory for checkpoints.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from trainyard.command_line import cut_apart, is_option
from trainyard.objects.jobs.pod_template import FILES
from trainyard.plans.jobs import JobPlan, beside_name, files_name
from trainyard.problems import few
from trainyard.settings.reading.contracts import whole_numbers

CONFIG_MAP = "kubernetes:core/v1:ConfigMap"
"""Type of the resources that hold the files of jobs."""
SHOWN, WIDTH = 6, 60
"""Differences that are shown of a run, and characters of a value."""
MANAGER = "manager"
"""Field of a patch of a runtime: who asks for it. Kueue adds patches of its own to a TrainJob that it admits (Trainer
2.2, runtimePatches)."""
LEFT_OUT = ("spec", "trainer", "template", "value")
"""Fields that every path has."""


@dataclass(frozen=True, kw_only=True)
class _Difference:
    """A value, or words of a list, or lines of a text, that are not the same."""

    path: tuple[str, ...] = ()
    """Fields that lead to the value; empty for words and lines."""
    old: Any
    new: Any

    def __str__(self) -> str:
        change = _change(_said(self.old), _said(self.new))
        return f"`{_name(self.path)}` {change}" if self.path else change

    @property
    def is_of_files(self) -> bool:
        """It is in the volume of a job's files, or a mount of it that came or went with them."""
        if ("volumes", FILES) in zip(self.path, self.path[1:], strict=False):
            return True
        return FILES in self.path[-2:] and None in (self.old, self.new)


def differences(old: Any, new: Any, job: JobPlan | None = None, files: Sequence[str] = ()) -> str:
    """Differences of two specs of a job, in words: `numNodes` 2 → 4, `--lr=1e-4` → `--lr=2e-4`. Fields that only
    the old one has are left out: they are defaults of the API server, or nobody asks for them any more. `job`: the
    new run. `files`: what file_changes says of it."""
    found = [*_differences((), whole_numbers(old), new)]
    places = [_of_place(each, job) if job else "" for each in found]
    others = [
        str(each)
        for each, place in zip(found, places, strict=True)
        if not place and not (files and each.is_of_files)
    ]
    return few(list(dict.fromkeys([*files, *others, *filter(None, places)])), SHOWN)


def file_changes(
    entry: str, job: JobPlan, before: Mapping[str, Mapping[str, str]]
) -> Iterator[str]:
    """Files of a job that changed, came or went, in words. `before`: logical name of each ConfigMap that is
    deployed → its data."""
    paths = job.files.paths if job.files else {}
    was, now = before.get(files_name(entry), {}), job.files.data if job.files else {}
    for name in sorted({*was, *now}, key=lambda name: paths.get(name, name)):
        if said := _compared(was.get(name), now.get(name)):
            yield f"`{paths.get(name, name)}` {said}"
    for made in job.objects:
        if made["kind"] != "ConfigMap":
            continue
        called = made["metadata"]["name"]
        was, now = before.get(beside_name(entry, made), {}), made.get("data") or {}
        for name in sorted({*was, *now}):
            if said := _compared(was.get(name), now.get(name)):
                yield f"`{name}` of ConfigMap {called} {said}"


def _compared(old: str | None, new: str | None) -> str:
    """Words about a file; empty where it is the same."""
    if old == new:
        return ""
    return "is new" if old is None else "is gone" if new is None else "changed"


def _of_place(found: _Difference, job: JobPlan) -> str:
    """Words about the directory for checkpoints, where a difference is one of it; empty otherwise."""
    store, _, directory = (job.checkpoints or "").partition("/")
    old, new = found.old, found.new
    if not store or not directory or not isinstance(old, str) or not isinstance(new, str):
        return ""
    mount, at, rest = new.rpartition(directory)
    if not at or rest or mount[-1:] not in ("", "/") or old == mount + directory:
        return ""
    if job.when_changed == "afresh":
        return f"the run begins in a directory of its own, `{job.checkpoints}`"
    return f"`checkpoints.directory` {_change(old.removeprefix(mount), directory)}"


def _differences(path: tuple[str, ...], old: Any, new: Any) -> Iterator[_Difference]:
    """Each leaf that is not the same. A list of objects is compared by their names, or by their places where they
    have none; other lists, and texts of several lines, are compared by their parts."""
    if (named := _by_name(new)) is not None:
        given = _by_name(old) or {}
        gone = given if isinstance(new, list) and MANAGER not in new[0] else ()
        for key in dict.fromkeys([*gone, *named]):
            yield from _differences((*path, str(key)), given.get(key), named.get(key))
    elif _objects(old) and _objects(new) and len(old) == len(new):
        for number, (was, now) in enumerate(zip(old, new, strict=True)):
            yield from _differences((*path, f"[{number}]"), was, now)
    elif (words := _texts(new)) is not None and (before := _texts(old)) is not None:
        yield from _of_texts(before, words)
    elif old != new:
        yield _Difference(path=path, old=old, new=new)


def _by_name(value: Any) -> Mapping[str, Any] | None:
    """A mapping, or a list of objects that have names, or a manager each, as one; None of anything else."""
    if not _objects(value):
        return value if isinstance(value, Mapping) else None
    called = MANAGER if MANAGER in value[0] else "name"
    names = [each.get(called) for each in value]
    if None in names or len({*names}) < len(names):
        return None
    return {
        name: {key: it for key, it in each.items() if key != called}
        for name, each in zip(names, value, strict=True)
    }


def _objects(value: Any) -> bool:
    """True for a list that has objects only."""
    return (
        isinstance(value, list) and bool(value) and all(isinstance(each, Mapping) for each in value)
    )


def _texts(value: Any) -> list[str] | None:
    """Words of a list, lines of a text that has several; None of anything else."""
    if isinstance(value, str) and "\n" in value:
        return value.split("\n")
    return _with_values([_word(each) for each in value]) if isinstance(value, list) else None


def _with_values(words: Sequence[str]) -> list[str]:
    """Words of a command, in which an option and the value behind it are one: a value alone says little. A script
    stays alone, because its lines are compared."""
    kept = list[str]()
    for number, word in enumerate(words):
        before = words[number - 1] if number else ""
        if is_option(before, word) and "\n" not in word:
            kept[-1] += f" {word}"
        else:
            kept.append(word)
    return kept


def _word(value: Any) -> str:
    """A word of a list. Objects in it are the same in any order of their fields: the engine keeps another one
    than the program."""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _of_texts(old: Sequence[str], new: Sequence[str]) -> Iterator[_Difference]:
    """Words or lines that are not the same. A word that is a script is compared by its lines."""
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    for what, begin, end, first, last in codes:
        was, now = old[begin:end], new[first:last]
        if what == "replace" and len(was) == len(now) == 1 and "\n" in was[0] + now[0]:
            yield from _of_texts(was[0].split("\n"), now[0].split("\n"))
        elif what != "equal":
            yield _Difference(old=_words(was), new=_words(now))


def _change(old: str | None, new: str | None) -> str:
    """Both texts, cut where they do not differ."""
    cut = cut_apart(old or "", new or "", WIDTH)
    return " → ".join(
        "nothing" if text is None else f"`{shown}`"
        for text, shown in zip((old, new), cut, strict=True)
    )


def _words(words: Sequence[str]) -> str | None:
    return _said(" ".join(word.strip() for word in words) if words else None)


def _said(value: Any) -> str | None:
    return None if value is None else " ".join(str(value).replace("`", "'").split())


def _name(path: Sequence[str]) -> str:
    """The words of a path that say what it is: numNodes, or env.LEARNING_RATE. A place in a list says nothing."""
    kept = [part for part in path if part not in LEFT_OUT and not part.startswith("[")]
    return ".".join(kept[-2:])
