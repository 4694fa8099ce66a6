"""Changes that `pulumi preview --json` shows, as lines in Markdown: each new run, replacement, deletion, update
and creation by its name, errors, and the warnings that only this change brings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.plans.jobs import JobPlan, files_name
from trainyard.problems import few
from trainyard.replacing.changes import differences, file_changes
from trainyard.replacing.deployed import UNKNOWN
from trainyard.replacing.new_runs import counted_on, otherwise, resumes
from trainyard.replacing.urn import title_of, type_of

CHANGES = {
    "create": "to create",
    "update": "to update",
    "replace": "to replace",
    "delete": "to delete",
    "same": "unchanged",
}
"""Keys of `changeSummary` → words."""
CONFIG_MAP, STACK = "ConfigMap", "pulumi:pulumi:Stack"
"""Kind of an object with files, and type of the stack itself."""
REPLACED = ("replace", "create-replacement")
LISTED = 20
"""Updates that have a line each, and creations that are named."""

WHOLE = "Compared with what is deployed"
FAILED = "The preview failed, and has compared only this with what is deployed"
NOTHING_SAID = "the preview failed before it compared anything; the log of the job says why"
"""The error of a preview without counts: every stack has a resource, which is the stack itself."""
UNSAID = (
    "the preview failed without an error in its JSON, as for a violated policy; the same `pulumi preview` without"
    " --json prints why"
)
"""The error of a preview that ended with an exit code alone: its JSON leaves out all events of policies (pulumi 3.259,
pkg/backend/display/json.go, ShowPreviewDigest)."""


def previewed(
    preview: Mapping[str, Any],
    jobs: Mapping[str, JobPlan],
    known: Collection[str] = (),
    *,
    failed: bool = False,
) -> Iterator[str]:
    """Changes that Pulumi would make. `jobs`: the jobs of the stack. `known`: warnings of the stack file, which no
    change brings. `failed`: the exit code of the preview is not 0."""
    steps = preview.get("steps") or []
    yield from _counted(preview, failed=failed)
    yield from _lost(steps, jobs)
    yield from _deleted(steps)
    yield from _updated(steps)
    yield from _created(steps)
    warnings = [line for line in _said(preview, "warning") if line not in known]
    yield from items("warning", warnings)
    yield ""


def deployed_figures(preview: Mapping[str, Any]) -> Mapping[str, Any]:
    """The output `plan` of the last update, which has the figures of what is deployed; empty before the first
    one."""
    for step in preview.get("steps") or []:
        if _is_stack(step):
            return ((step.get("oldState") or {}).get("outputs") or {}).get("plan") or {}
    return {}


def items(severity: str, lines: Iterable[str]) -> Iterator[str]:
    """Messages as items of a list in Markdown. The workflow fails where one begins with `- **error**`."""
    return (f"- **{severity}**: {as_markdown(line)}" for line in lines)


def as_markdown(line: str) -> str:
    """A message as a comment shows it: <account> is no tag of HTML, and a * begins nothing. What stands between
    backquotes is shown as it is."""
    parts = line.split("`")
    parts[::2] = [
        part.replace("&", "&amp;").replace("<", "&lt;").replace("*", r"\*") for part in parts[::2]
    ]
    return "`".join(parts)


def _counted(preview: Mapping[str, Any], *, failed: bool) -> Iterator[str]:
    """Errors, and the number of resources by what happens to them."""
    counts = preview.get("changeSummary") or {}
    unsaid = [UNSAID] if failed else []
    errors = _said(preview, "error") or (unsaid if counts else [NOTHING_SAID])
    if errors:
        yield from (*items("error", errors), "")
    if counts:
        said = [f"{counts[key]} {words}" for key, words in CHANGES.items() if counts.get(key)]
        yield f"{FAILED if errors else WHOLE}: {', '.join(said) or 'nothing changes'}."
        yield ""


def _said(preview: Mapping[str, Any], severity: str) -> list[str]:
    """Messages of one severity, each once."""
    problems = [
        each["message"].strip().removeprefix(f"{severity}: ")
        for each in preview.get("diagnostics") or []
        if each.get("severity") == severity
    ]
    return [*dict.fromkeys(problems)]


def _lost(steps: Sequence[Mapping[str, Any]], jobs: Mapping[str, JobPlan]) -> Iterator[str]:
    """Resources that are replaced, each once. A job that is replaced is a new run."""
    replaced = {step["urn"]: step for step in steps if step["op"] in REPLACED}
    files = _config_maps(steps)
    again = _started(replaced)
    said_by_runs = {f"{CONFIG_MAP} {files_name(name)}" for name in jobs}
    for urn, step in replaced.items():
        kind, _, name = title_of(urn).partition(" ")
        if kind in JOB_KINDS:
            yield f"- **new run** of `{name}`: {_new_run(step, name, jobs.get(name), files, again)}"
        elif kind == CONFIG_MAP and title_of(urn) not in said_by_runs:
            yield f"- **updates** `{title_of(urn)}`, which is made anew"
        elif kind != CONFIG_MAP:
            why = ", ".join(step.get("replaceReasons") or []) or "not said"
            yield f"- **replaces** `{title_of(urn)}`, because of {why}"


def _deleted(steps: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    replaced = {step["urn"] for step in steps if step["op"] in REPLACED}
    for step in steps:
        if step["op"] == "delete" and step["urn"] not in replaced:
            yield f"- **deletes** `{title_of(step['urn'])}`"


def _updated(steps: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Resources that stay and are changed, with what changes."""
    updated = [step for step in steps if step["op"] == "update" and not _is_stack(step)]
    for step in updated[:LISTED]:
        yield f"- **updates** `{title_of(step['urn'])}`: {_difference(step)}"
    if more := [title_of(step["urn"]) for step in updated[LISTED:]]:
        yield f"- **updates** {few([f'`{name}`' for name in more], LISTED)}"


def _created(steps: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    created = [
        f"`{title_of(step['urn'])}`{_whose(step)}" for step in steps if step["op"] == "create"
    ]
    if created:
        yield f"- **creates** {few(created, LISTED)}"


def _whose(step: Mapping[str, Any]) -> str:
    """The role that an access entry lets in, which a reviewer looks for."""
    arn = _inputs(step, "newState").get("principalArn")
    return f" for {arn}" if arn else ""


def _difference(step: Mapping[str, Any]) -> str:
    """Inputs of a resource that change, in words; their names where only the update knows the values."""
    reasons = step.get("diffReasons") or []
    names = {reason.replace("[", ".").partition(".")[0] for reason in reasons}
    old, new = (
        {name: value for name, value in _inputs(step, state).items() if name in names}
        for state in ("oldState", "newState")
    )
    return differences(old, _readable(new)) or ", ".join(reasons) or "not said"


def _readable(value: Any) -> Any:
    """A value with words in the place of what is not known yet."""
    if isinstance(value, Mapping):
        return {key: _readable(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_readable(each) for each in value]
    return "known after the update" if value == UNKNOWN else value


def _started(urns: Iterable[str]) -> set[str]:
    """Names of the jobs among resources."""
    named = [title_of(urn).partition(" ") for urn in urns]
    return {name for kind, _, name in named if kind in JOB_KINDS}


def _new_run(
    step: Mapping[str, Any],
    name: str,
    job: JobPlan | None,
    files: Mapping[str, Mapping[str, str]],
    again: Collection[str],
) -> str:
    """The difference between the new run of a job and the one before it, and where the new one begins. `files`: of
    _config_maps. `again`: jobs with new runs."""
    changes = [*file_changes(name, job, files)] if job else []
    counted = counted_on(job, _inputs(step, "oldState")) if job else ""
    said = _changed(step, job, changes) or counted or otherwise(job, again)
    return f"{said}{resumes(job) if job else ''}"


def _config_maps(steps: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Logical name of each ConfigMap that is deployed → its data."""
    given = ((title_of(step["urn"]), _inputs(step, "oldState").get("data") or {}) for step in steps)
    return {
        name.removeprefix(f"{CONFIG_MAP} "): data
        for name, data in given
        if name.startswith(CONFIG_MAP)
    }


def _changed(step: Mapping[str, Any], job: JobPlan | None, files: Sequence[str]) -> str:
    """The difference between the new run of a job and the one before it; empty where nothing shows it."""
    old, new = (_inputs(step, state).get("spec") for state in ("oldState", "newState"))
    known = isinstance(old, dict) and isinstance(new, dict)
    return differences(old, new, job, files) if known else ""


def _inputs(step: Mapping[str, Any], state: str) -> dict[str, Any]:
    return (step.get(state) or {}).get("inputs") or {}


def _is_stack(step: Mapping[str, Any]) -> bool:
    """True for the stack itself, which is updated where an output is another one."""
    return type_of(step["urn"]) == STACK
