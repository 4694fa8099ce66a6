"""`python -m trainyard.reports.pull_request STACK [PREVIEW] [--exit-code CODE]`: what a pull request changes, as a
comment in Markdown.

PREVIEW is what `pulumi preview --json` has printed for the stack, and CODE its exit code: a preview that violates a
policy fails, and its JSON does not say so. Without PREVIEW nobody knows what is deployed, and the comment says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from trainyard import command_line
from trainyard.problems import InputError, counted, grouped, told
from trainyard.replacing.previewed import as_markdown, deployed_figures, items, previewed
from trainyard.reports.check import judged
from trainyard.reports.plan import summary
from trainyard.reports.stack_file import HAS_ERRORS, NO_FILE, planned_file

EMPTY = (
    "No credentials are configured, so this is not a comparison: it previews an empty account, and"
    " every resource reads as new."
)


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
    parser.add_argument(
        "--exit-code",
        metavar="CODE",
        type=int,
        default=0,
        help="exit code of that `pulumi preview` (0 by default)",
    )
    options = parser.parse_args(arguments)
    print(f"### {options.stack}\n")
    found = planned_file(options.stack)
    if found is None:
        return NO_FILE
    reading, read = found
    planned = judged(read, reading.lines)
    if planned.plan is None:
        print("\n".join(_refused(options.stack, planned.errors)))
        return HAS_ERRORS
    lines, before, known = [EMPTY, ""], {}, told(planned.warnings)
    if options.preview:
        preview = json.loads(options.preview.read_text())
        failed = options.exit_code != 0
        lines = [*previewed(preview, planned.plan.jobs, known, failed=failed)]
        before = deployed_figures(preview)
    print("\n".join([*lines, *figures(summary(planned.plan), before), *_folded(known)]))
    return 0


def _refused(stack: str, errors: Sequence[InputError]) -> Iterator[str]:
    yield f"The stack file has {counted(errors)}, which `trainyard check {stack}` prints too:"
    yield ""
    yield from items("error", grouped(errors))


def _folded(warnings: Sequence[str]) -> Iterator[str]:
    """The warnings of the stack file, which a reader unfolds: nobody knows which of them the change has brought."""
    if warnings:
        count = f"{len(warnings)} warning{'s' * (len(warnings) != 1)}"
        yield from ("", f"<details><summary>{count} of the stack file, old and new</summary>", "")
        yield from (*(f"- {as_markdown(line)}" for line in warnings), "", "</details>")


def figures(
    values: Mapping[str, Any], before: Mapping[str, Any] = MappingProxyType({})
) -> Iterator[str]:
    """Dollars, minutes and the rest of `trainyard plan`, as a table. `before`: the same of what is deployed, in a
    column of its own where one of them is another; empty where nobody knows."""
    now, was = dict(figure_rows(values)), dict(figure_rows(before))
    if not was or (now.keys() == was.keys() and all(is_same(now[name], was[name]) for name in now)):
        yield from ("| figure | value |", "|---|---|")
        yield from (f"| {name} | {value} |" for name, value in now.items())
        return
    yield from ("| figure | with this change | deployed |", "|---|---|---|")
    for name in dict.fromkeys([*now, *was]):
        other = "the same" if is_same(now.get(name), was.get(name)) else was.get(name, "nothing")
        yield f"| {name} | {now.get(name, 'nothing')} | {other} |"


def figure_rows(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Name and words of each figure. What is said of each job or quota has a row each."""
    for key, value in values.items():
        name = key.replace("_", " ")
        if isinstance(value, Mapping):
            yield from ((f"{name} {each}", str(it)) for each, it in value.items())
        elif value is not None:
            yield name, str(value)


def is_same(one: str | None, other: str | None) -> bool:
    """True for equal figures. The state of a stack has 20 where a plan has 20.0."""
    try:
        return one == other or float(one or "") == float(other or "")
    except ValueError:
        return False


if __name__ == "__main__":
    command_line.run(main)
