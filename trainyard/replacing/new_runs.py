"""New runs of jobs that were changed: what they ask for and the run before did not, and where they begin.

The engine shows a changed job as another digest in an annotation, because it does not compare specs:
controllers write to them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.plan import EnvironmentPlan, TeamPlan
from trainyard.plans.jobs import RUN, JobPlan
from trainyard.problems import InputWarning
from trainyard.replacing.deployed import Deployed

KINDS = {kind: f"kubernetes:{it.api_version}:{kind}" for kind, it in JOB_KINDS.items()}
TYPES = frozenset(KINDS.values())
"""Types of resources that the rule looks at."""
SHOWN, WIDTH = 6, 60
"""Differences that are shown of a run, and characters of a value."""
ELSE = "its `run`, or something that its spec does not show, is another one"
"""Said of a run that differs in nothing else."""
_GIVEN = "__inputs"
"""Output in which pulumi-kubernetes keeps what the program gave. Others have what the API server has made of
it, defaults among them."""


def run_warnings(plan: EnvironmentPlan | TeamPlan, deployed: Deployed) -> Iterator[InputWarning]:
    """Jobs of which the update ends a run, and starts another one."""
    where = "environment.jobs" if isinstance(plan, EnvironmentPlan) else "team.jobs"
    for name, job in plan.jobs.items():
        for kind, of_the_engine in KINDS.items():
            was = deployed.resources.get((of_the_engine, name))
            if was is None or _run_of(was) in (None, job.run):
                continue
            said = f"{kind} → {job.kind}"
            if kind == job.kind:
                said = differences((was.get(_GIVEN) or was).get("spec"), job.spec) or ELSE
            yield InputWarning(
                path=f"{where}.{name}",
                text=f"this update ends its run and starts another one: {said}",
            )


def _run_of(resource: Mapping[str, Any]) -> str | None:
    annotations = (resource.get("metadata") or {}).get("annotations") or {}
    return annotations.get(RUN)


def resumes(job: JobPlan) -> str:
    """Words about the checkpoint that a run resumes from; empty where the job names none."""
    if job.resumes_from is None:
        if not job.checkpoints or job.checkpoints.startswith("/"):  # a path in the container
            return ""
        return (
            f". It keeps its checkpoints in {job.checkpoints}: a changed job with the same `run` goes on"
            " from there"
        )
    return (
        f". It resumes from the checkpoint in {job.resumes_from}, if a run before it left one, and ends at"
        " once where that run has finished. To begin afresh, write another checkpoints.directory, such as"
        f" {job.other_directory}"
    )


def differences(old: Any, new: Any) -> str:
    """Differences of two specs of a job, in words: `numNodes` 2 → 4, `--lr=1e-4` → `--lr=2e-4`. Fields that only
    the old one has are left out: they are defaults of the API server, or nobody asks for them any more."""
    found = list(dict.fromkeys(_differences((), old, new)))
    more = [f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    return ", ".join([*found[:SHOWN], *more])


def _differences(path: tuple[str, ...], old: Any, new: Any) -> Iterator[str]:
    """Each leaf that is not the same. A list of objects with names is compared by name, other lists and texts
    of several lines by their parts."""
    if (named := _by_name(new)) is not None:
        given = _by_name(old) or {}
        gone = given if isinstance(new, list) else ()
        for key in dict.fromkeys([*gone, *named]):
            yield from _differences((*path, str(key)), given.get(key), named.get(key))
    elif (words := _texts(new)) is not None and (before := _texts(old)) is not None:
        yield from _of_texts(before, words)
    elif old != new:
        yield f"`{_name(path)}` {_said(old)} → {_said(new)}"


def _by_name(value: Any) -> Mapping[str, Any] | None:
    """A mapping, or a list of objects that have names as one; None of anything else."""
    if isinstance(value, list) and value:
        if all(isinstance(each, Mapping) and "name" in each for each in value):
            return {
                each["name"]: {key: it for key, it in each.items() if key != "name"}
                for each in value
            }
        return None
    return value if isinstance(value, Mapping) else None


def _texts(value: Any) -> list[str] | None:
    """Words of a list, lines of a text that has several; None of anything else."""
    if isinstance(value, str) and "\n" in value:
        return value.split("\n")
    return [str(each) for each in value] if isinstance(value, list) else None


def _of_texts(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    """Words or lines that are not the same. A word that is a script is compared by its lines."""
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    for what, begin, end, first, last in codes:
        was, now = old[begin:end], new[first:last]
        if what == "replace" and len(was) == len(now) == 1 and "\n" in was[0] + now[0]:
            yield from _of_texts(was[0].split("\n"), now[0].split("\n"))
        elif what != "equal":
            yield f"{_words(was)} → {_words(now)}"


def _words(words: Sequence[str]) -> str:
    return _said(" ".join(word.strip() for word in words) if words else None)


def _said(value: Any) -> str:
    if value is None:
        return "nothing"
    text = " ".join(str(value).replace("`", "'").split())
    return f"`{text if len(text) <= WIDTH else text[: WIDTH - 1] + '…'}`"


def _name(path: Sequence[str]) -> str:
    """The words of a path that say what it is: numNodes, or env.LEARNING_RATE."""
    kept = [part for part in path if part not in ("spec", "trainer", "template", "value")]
    return ".".join(kept[-2:])
