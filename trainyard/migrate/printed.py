"""A value of a file is in the output of `trainyard migrate` where the output for a file with another value
in its place, or without it, is another one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from trainyard.manifests.document import Path, Workload, of_body
from trainyard.migrate.replicas import alike
from trainyard.migrate.result import Migration, NotMigrated

REMOVED = object()
"""In the place of a value: the field is deleted."""
Conversion = Callable[[Workload, Sequence[Workload]], Migration]
"""A job and the objects of its files → its migration, but for the list of what is not in the entry."""


@dataclass(frozen=True, kw_only=True)
class Printed:
    """Output about a job, made anew for each value that is asked for: the name of a field says nothing of
    where its value went."""

    job: Workload
    others: Sequence[Workload]
    convert: Conversion

    @cached_property
    def whole(self) -> str:
        """Output for the files as they are."""
        return self._said(self.job, self.others)

    def has(self, workload: Workload, path: Path) -> bool:
        """True where the value at a path of an object is in the entry or in a sentence. It changes in all replicas
        that have it: in one alone it would be printed as their difference."""
        if workload.where(*path) in self.whole:
            return True
        places = alike(workload, path)
        changed = (_with(workload, places, value) for value in _instead(workload.get(*path)))
        return any(self._said_with(workload, each) != self.whole for each in changed)

    def _said_with(self, workload: Workload, changed: Workload) -> str:
        """Output where an object is another one."""
        job, *others = (changed if each is workload else each for each in (self.job, *self.others))
        return self._said(job, others)

    def _said(self, job: Workload, others: Sequence[Workload]) -> str:
        try:
            made = self.convert(job, others)
        except NotMigrated as reason:
            return str(reason)
        sentences = (*made.changed, *made.no_counterpart, *made.left_over)
        settings = repr(
            (made.name, made.entry, made.pytorch_job)
        )  # to write YAML takes 20 times as long
        return "\n".join([settings, *sentences])


def _instead(value: Any) -> Iterator[Any]:
    """Other values for a field, the likeliest to change something first."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield value + 1
    elif isinstance(value, str):
        yield str(int(value) + 1) if value.isdecimal() else f"{value}-other"
        yield "7"
    yield REMOVED


def _with(workload: Workload, paths: Sequence[Path], value: Any) -> Workload:
    """The object with another value at these paths; each value keeps its line."""
    body = workload.body
    for path in paths:
        body = _put(body, path, value)
    return replace(of_body(body), file=workload.file, lines=workload.lines)


def _put(body: Any, path: Path, value: Any) -> Any:
    """A copy with another value at a path; the rest is the same object."""
    step, *below = path
    copied: Any = {**body} if isinstance(body, dict) else [*body]
    if below:
        copied[step] = _put(body[step], tuple(below), value)
    elif value is REMOVED:
        del copied[step]
    else:
        copied[step] = value
    return copied
