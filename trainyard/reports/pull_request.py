"""`python -m trainyard.reports.pull_request STACK [PREVIEW]`: what a pull request changes, as a comment in
Markdown.

PREVIEW is what `pulumi preview --json` has printed for the stack. Without it nobody knows what is
deployed, and the comment says so.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from trainyard import command_line
from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.plan import EnvironmentPlan, TeamPlan
from trainyard.plans.jobs import JobPlan, files_name
from trainyard.problems import InputError, counted
from trainyard.replacing.changes import differences, file_changes
from trainyard.replacing.new_runs import otherwise, resumes
from trainyard.reports.plan import summary
from trainyard.reports.stack_file import report_on
from trainyard.settings.reading.reader import Reading

CHANGES = {
    "create": "to create",
    "update": "to update",
    "replace": "to replace",
    "delete": "to delete",
    "same": "unchanged",
}
"""Keys of `changeSummary` → words."""
CONFIG_MAP = "ConfigMap"
REPLACED = ("replace", "create-replacement")
EMPTY = (
    "No credentials are configured, so this is not a comparison: it previews an empty account, and"
    " every resource reads as new."
)

NOTHING_SAID = "the preview failed before it compared anything; the log of the job says why"
"""The error of a preview without counts: every stack has a resource, which is the stack itself."""


def main(arguments: list[str]) -> int:
    """Print the comment; 1 where the stack file has errors."""
    parser = command_line.parser(
        "trainyard.reports.pull_request", "Print what a pull request changes, as Markdown."
    )
    parser.add_argument("stack", metavar="STACK", help="read Pulumi.STACK.yaml of this folder")
    parser.add_argument(
        "preview",
        metavar="PREVIEW",
        nargs="?",
        type=Path,
        help="file with the output of `pulumi preview --json` (an empty account by default)",
    )
    options = parser.parse_args(arguments)
    print(f"### {options.stack}\n")

    def report(_: Reading, plan: EnvironmentPlan | TeamPlan) -> int:
        preview = options.preview
        lines = [EMPTY, ""]
        if preview:
            lines = [*previewed(json.loads(preview.read_text()), plan.jobs)]
        print("\n".join([*lines, *figures(summary(plan))]))
        return 0

    return report_on(options.stack, report, _refused)


def _refused(stack: str, errors: Sequence[InputError]) -> str:
    return f"The stack file has {counted(errors)}: run `trainyard check {stack}`."


def previewed(preview: dict[str, Any], jobs: Mapping[str, JobPlan]) -> Iterator[str]:
    """Changes that Pulumi would make: counts, then each new run, replacement and deletion by name, and each
    error. `jobs`: the jobs of the stack."""
    counts = preview.get("changeSummary") or {}
    problems = preview.get("diagnostics") or []
    errors = [each["message"].strip() for each in problems if each.get("severity") == "error"]
    if counts:
        said = [f"{counts[key]} {words}" for key, words in CHANGES.items() if counts.get(key)]
        yield f"Compared with what is deployed: {', '.join(said) or 'nothing changes'}."
        yield ""
    yield from _lost(preview.get("steps") or [], jobs)
    yield from (f"- **error**: {error}" for error in errors or ([] if counts else [NOTHING_SAID]))
    yield ""


def _lost(steps: list[dict[str, Any]], jobs: Mapping[str, JobPlan]) -> Iterator[str]:
    """Resources that are replaced or deleted, each once. A job that is replaced is a new run."""
    replaced = {step["urn"]: step for step in steps if step["op"] in REPLACED}
    files = _config_maps(steps)
    again = _started(replaced)
    said_by_runs = {f"{CONFIG_MAP} {files_name(name)}" for name in jobs}
    for urn, step in replaced.items():
        kind, _, name = _name(urn).partition(" ")
        if kind in JOB_KINDS:
            yield f"- **new run** of `{name}`: {_new_run(step, name, jobs.get(name), files, again)}"
        elif _name(urn) not in said_by_runs:
            why = ", ".join(step.get("replaceReasons") or []) or "not said"
            yield f"- **replaces** `{_name(urn)}`, because of {why}"
    for step in steps:
        if step["op"] == "delete" and step["urn"] not in replaced:
            yield f"- **deletes** `{_name(step['urn'])}`"


def _started(urns: Iterable[str]) -> set[str]:
    """Names of the jobs among resources."""
    named = [_name(urn).partition(" ") for urn in urns]
    return {name for kind, _, name in named if kind in JOB_KINDS}


def _new_run(
    step: dict[str, Any],
    name: str,
    job: JobPlan | None,
    files: Mapping[str, Mapping[str, str]],
    again: Collection[str],
) -> str:
    """The difference between the new run of a job and the one before it, and where the new one begins. `files`: of
    _config_maps. `again`: jobs with new runs."""
    changes = [*file_changes(name, job, files)] if job else []
    said = _changed(step, job, changes) or otherwise(job, again)
    return f"{said}{resumes(job) if job else ''}"


def _config_maps(steps: Sequence[dict[str, Any]]) -> dict[str, dict[str, str]]:
    """Logical name of each ConfigMap that is deployed → its data."""
    given = ((_name(step["urn"]), _inputs(step, "oldState").get("data") or {}) for step in steps)
    return {
        name.removeprefix(f"{CONFIG_MAP} "): data
        for name, data in given
        if name.startswith(CONFIG_MAP)
    }


def _changed(step: dict[str, Any], job: JobPlan | None, files: Sequence[str]) -> str:
    """The difference between the new run of a job and the one before it; empty where nothing shows it."""
    old, new = (_inputs(step, state).get("spec") for state in ("oldState", "newState"))
    known = isinstance(old, dict) and isinstance(new, dict)
    return differences(old, new, job, files) if known else ""


def _inputs(step: dict[str, Any], state: str) -> dict[str, Any]:
    return (step.get(state) or {}).get("inputs") or {}


def figures(values: dict[str, Any]) -> Iterator[str]:
    """Dollars, minutes and the rest of `trainyard plan`, as a table."""
    yield "| figure | value |"
    yield "|---|---|"
    for key, value in values.items():
        if value is not None:
            yield f"| {key.replace('_', ' ')} | {value} |"


def _name(urn: str) -> str:
    """Type and name, without stack and parents."""
    _, _, kind, name = urn.split("::", 3)
    return f"{kind.rpartition('$')[2].rpartition(':')[2]} {name}"


if __name__ == "__main__":
    command_line.run(main)
