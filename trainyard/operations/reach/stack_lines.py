"""The lines of a stack file that describe a job, found in its YAML, so that a command can change them
and leave comments and layout alone."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

import yaml

from trainyard.settings.reading.yaml_file import read_documents


@dataclass(frozen=True, kw_only=True)
class Change:
    """A line of the stack file, and what stands there afterwards."""

    line: int
    """From 1."""
    text: str
    replaces: bool
    """The text stands in the place of that line; else it stands before it."""

    def applied(self, text: str) -> str:
        """The text of the file with the change."""
        lines = text.splitlines(keepends=True)
        index = self.line - 1
        lines[index : index + self.replaces] = [f"{self.text}\n"]
        return "".join(lines)


def job_entry(text: str, name: str) -> yaml.MappingNode | None:
    """The mapping of a job."""
    found = (_at(_at(node, "jobs"), name) for _, node in _stacks(text))
    return next((node for node in found if isinstance(node, yaml.MappingNode)), None)


def scalar_of_job(text: str, name: str, key: str, value: str) -> Change | None:
    """Change that gives a setting of a job another value; None where it has none, or not on one
    line."""
    entry = job_entry(text, name)
    found = _at(entry, key)
    if not isinstance(found, yaml.ScalarNode) or found.start_mark.line != found.end_mark.line:
        return None
    line, start, end = found.start_mark.line, found.start_mark.column, found.end_mark.column
    old = text.splitlines()[line]
    return Change(line=line + 1, text=f"{old[:start]}{value}{old[end:]}", replaces=True)


def values_of_jobs(text: str, key: str, default: object = None) -> dict[str, object]:
    """Job of a stack file → its setting of this name; the default where it has none."""
    config = read_documents(text, "", by_engine=True)[0][0].value["config"]
    stacks = [value for key, value in config.items() if ":" in key and isinstance(value, dict)]
    return {
        name: entry.get(key, default)
        for stack in stacks
        for name, entry in (stack.get("jobs") or {}).items()
        if isinstance(entry, dict)
    }


def with_job(text: str, entry: str) -> str | None:
    """The text with an entry as its first job; None where the jobs, or what they are part of, are in
    braces. `entry`: lines that begin in the first column."""
    stack = next((node for _, node in _stacks(text)), None)
    if not isinstance(stack, yaml.MappingNode) or stack.flow_style or not stack.value:
        return None
    key, jobs = next(
        ((key, node) for key, node in stack.value if key.value == "jobs"), (None, None)
    )
    if key is None or jobs is None:
        first = stack.value[0][0].start_mark
        lines = f"{' ' * first.column}jobs:\n{_indented(entry, first.column + 2)}"
        return Change(line=first.line + 1, text=lines, replaces=False).applied(text)
    if not jobs.value:
        line, mark = text.splitlines()[key.start_mark.line], jobs.end_mark
        rest = line[mark.column :] if mark.line == key.start_mark.line else ""
        lines = (
            f"{line[: key.end_mark.column]}:{rest}\n{_indented(entry, key.start_mark.column + 2)}"
        )
        return Change(line=key.start_mark.line + 1, text=lines, replaces=True).applied(text)
    if jobs.flow_style:
        return None
    first = jobs.value[0][0].start_mark
    lines = _indented(entry, first.column)
    return Change(line=first.line + 1, text=lines, replaces=False).applied(text)


def _indented(entry: str, columns: int) -> str:
    return textwrap.indent(entry.rstrip("\n"), " " * columns)


def _stacks(text: str) -> list[tuple[str, yaml.Node]]:
    """config.<project>:environment, or the team."""
    root = yaml.compose(text, yaml.SafeLoader)
    return [
        (key, node)
        for key, node in _items(_at(root, "config"))
        if ":" in key and isinstance(node, yaml.MappingNode)
    ]


def _at(node: yaml.Node | None, key: str) -> yaml.Node | None:
    return next((value for found, value in _items(node) if found == key), None)


def _items(node: yaml.Node | None) -> list[tuple[str, yaml.Node]]:
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    return [(str(key.value), value) for key, value in pairs]
