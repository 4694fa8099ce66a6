"""YAML files as plain values, with the line of every value: stack files, and job files that people
bring.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import yaml

from stacks.settings.problems import InputError, Problem

Path = tuple[str | int, ...]
"""Where a value stands in a document: ("spec", "trainer", "env", 0, "name")."""
P = TypeVar("P", bound=Problem)
REPAIRS = 9
"""Lines that cannot be YAML, at most, before the rest of a file is given up."""


@dataclass(kw_only=True)
class Document:
    """One YAML document; anchors and merge keys are followed."""

    file: str
    value: Any = None
    lines: dict[Path, int] = field(default_factory=dict)
    """Path → its line, from 1."""
    errors: list[InputError] = field(default_factory=list)

    def line(self, *path: str | int) -> int:
        """The line of a value; of the nearest value above it where it is not there."""
        known = (path[:n] for n in range(len(path), -1, -1) if path[:n] in self.lines)
        return self.lines[next(known)]


@dataclass(frozen=True, kw_only=True)
class Lines:
    """Where the settings of a stack file stand."""

    file: str = ""
    of: Mapping[str, int] = field(default_factory=dict)
    """Path, as problems name it → line."""

    def locate(self, problem: P) -> P:
        """The problem with file and line; those of the nearest setting above where its own is not
        there."""
        path = problem.path
        while path and path not in self.of:
            path = path.rpartition(".")[0]
        if not path or problem.file:
            return problem
        return replace(problem, file=self.file, line=self.of[path])


def read_documents(text: str, file: str) -> tuple[list[Document], tuple[InputError, ...]]:
    """Every document of a file, and what is wrong with the file itself. A line that cannot be YAML
    is an error, and the rest is read as if the line were indented as the one before it."""
    errors: list[InputError] = []
    for _ in range(REPAIRS):
        try:
            roots = [node for node in yaml.compose_all(text, yaml.CSafeLoader) if node]
            documents = [_document(file, root) for root in roots]
            return documents, (*errors, *(e for document in documents for e in document.errors))
        except yaml.YAMLError as error:
            text, wrong = _aligned(file, text, error)
            errors += [wrong] if wrong not in errors else []
    return [], tuple(errors)


def _document(file: str, root: yaml.Node) -> Document:
    document = Document(file=file)
    document.value = _value(document, root, ())
    return document


def _value(document: Document, node: yaml.Node, path: Path) -> Any:
    document.lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        return _mapping(document, node, path)
    if isinstance(node, yaml.SequenceNode):
        return [_value(document, item, (*path, index)) for index, item in enumerate(node.value)]
    # Kubernetes and Pulumi know no dates and no numbers to the base of 60, which 12:30 would be.
    if re.search(r":\d|-\d+-", node.value):
        return node.value
    return yaml.SafeLoader("").construct_object(node)


def _mapping(document: Document, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
    own: dict[str, Any] = {}
    merged: dict[str, Any] = {}
    for key, item in sorted(node.value, key=lambda pair: not pair[0].tag.endswith(":merge")):
        if key.tag.endswith(":merge"):
            sources = reversed(item.value) if isinstance(item, yaml.SequenceNode) else [item]
            for source in sources:
                value = _value(document, source, path)
                merged |= value if isinstance(value, Mapping) else {}
            continue
        name, line = str(key.value), key.start_mark.line + 1
        if name in own:
            document.errors.append(
                InputError(
                    path=".".join(map(str, (*path, name))),
                    file=document.file,
                    line=line,
                    must="be set once",
                    got="two values",
                    fix="delete one of the two",
                )
            )
        document.lines[*path, name] = line
        own[name] = _value(document, item, (*path, name))
    return merged | own


def _aligned(file: str, text: str, error: yaml.YAMLError) -> tuple[str, InputError]:
    """The text with the wrong line indented as the line before it, and the error."""
    lines = text.splitlines()
    at = min(getattr(getattr(error, "problem_mark", None), "line", 0), len(lines) - 1)
    above = next((line for line in reversed(lines[:at]) if line.strip()), "")
    wrong = InputError(
        path="",
        file=file,
        line=at + 1,
        must=f"be YAML ({getattr(error, 'problem', None) or getattr(error, 'reason', error)})",
        got=lines[at].strip()[:60],
        fix="indent the line with blanks, as the lines it belongs to",
    )
    lines[at] = above[: len(above) - len(above.lstrip())] + lines[at].lstrip()
    return "\n".join(lines), wrong
