"""YAML files as plain values, with the line of every value: stack files, and job files that people
bring.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import yaml

from trainyard.catalog.scalars import EngineLoader, is_text, key_of, value_of
from trainyard.problems import At, InputError, Problem
from trainyard.settings.reading.files import MOST_BYTES, NO_TEXT
from trainyard.settings.reading.placeholders import (
    is_only_a_placeholder,
    masked,
    placeholder_error,
    unmasked,
)
from trainyard.settings.reading.secrets.secrets import Secret, hidden, secrets_of_text, withheld

Path = tuple[str | int, ...]
"""Place of a value in a document: ("spec", "trainer", "env", 0, "name")."""
P = TypeVar("P", bound=Problem)
VALUES, DEPTH = 100_000, 100
"""Values of a file, and levels, at most; the largest sample has 600 and 14."""
REPAIRS = 9
"""Lines that cannot be YAML, at most, before the rest of a file is given up."""
INDENT = "indent the line with blanks, as the lines it belongs to"
YAML_FIXES = {
    "mapping values are not allowed": f"{INDENT}, or quote a value that has a colon and a blank",
    "cannot start any token": "indent with blanks, not with tabs; quote a value that begins with @ or `",
    "unexpected end of stream": "close the quotes",
    "expected ',' or": "close the bracket, or write a comma between two values",
    "expected node content": "close the bracket",
    "undefined alias": "quote the value: * begins an alias",
    "constructor for the tag": "quote the value: ! begins a tag",
    "control characters": "delete the control character",
}
"""Part of PyYAML's reason → what to write."""


@dataclass(kw_only=True)
class Document:
    """One YAML document; anchors and merge keys are followed."""

    file: str
    value: Any = None
    lines: dict[Path, int] = field(default_factory=dict)
    """Path → its line, from 1."""
    written: dict[Path, str] = field(default_factory=dict)
    """Path of a value that is no text → its characters in the file: 1.30, of which YAML makes 1.3."""
    text: str = field(default="", repr=False)
    """The whole file, without its secrets."""
    by_engine: bool = False
    """The values are those that Pulumi's engine reads."""
    placeholders: Sequence[str] = ()
    """Placeholders that YAML would read as something else: words stand in their places in the nodes."""
    secrets: list[Secret] = field(default_factory=list)
    """Places of secrets. They are in neither `value` nor `written` nor `text`."""
    errors: list[InputError] = field(default_factory=list)

    def line(self, *path: str | int) -> int:
        """The line of a value; of the nearest value above it where it is not there."""
        known = (path[:n] for n in range(len(path), -1, -1) if path[:n] in self.lines)
        return self.lines[next(known)]


@dataclass(frozen=True, kw_only=True)
class Lines:
    """Lines of the settings of a stack file."""

    file: str = ""
    of: Mapping[str, int] = field(default_factory=dict)
    """Path, as problems name it → line."""
    written: Mapping[str, str] = field(default_factory=dict)
    """Path, as problems name it → the characters in the file of a value that is no text."""

    def locate(self, problem: P) -> P:
        """The problem with file and line; those of the nearest setting above where its own is not
        there."""
        path = problem.path
        while path and path not in self.of:
            path = path.rpartition(".")[0]
        if not path or problem.file:
            return problem
        return replace(problem, file=self.file, line=self.of[path])


def read_documents(
    text: str, file: str, *, drop: bool = False, by_engine: bool = False
) -> tuple[list[Document], tuple[InputError, ...]]:
    """Every document of a file, and what is wrong with the file itself. A line that cannot be YAML
    is an error, and the rest is read as if the line were indented as the one before it; with `drop`,
    or where that does not help, as if it were not there. `by_engine`: the values are those that
    Pulumi's engine reads; else those of YAML 1.1, as PyYAML reads them."""
    if reason := _unreadable(text):
        return [], (replace(reason, file=file),)
    errors: list[InputError] = []
    whole = text
    text, found = masked(text) if "{{" in text else (text, ())
    for _ in range(REPAIRS):
        try:
            _measure(text)
            documents = _documents(file, text, by_engine, found)
            beside = _secrets_beside(whole, file, documents)
            of_documents = (e for document in documents for e in document.errors)
            return documents, (*beside, *errors, *of_documents)
        except _TooLarge:
            return [], (*errors, replace(TOO_LARGE, file=file))
        except yaml.YAMLError as error:
            if not found and (again := masked(text))[1]:
                text, found = again
                continue
            wrong, text = _without_the_line(hidden(text)[0], file, error, found, drop)
            errors += [wrong] if wrong not in errors else []
    return [], (*_secrets_beside(whole, file, []), *errors)


def _without_the_line(
    text: str, file: str, error: yaml.YAMLError, found: Sequence[str], drop: bool
) -> tuple[InputError, str]:
    """The error of a line that cannot be YAML, and the text with the line mended, or without it. `text`: of
    as many lines as the file. `found`: the placeholders that are masked in it."""
    lines, at = text.splitlines(), _line_of(text, error)
    if (only := _only_a_placeholder(lines, at)) is not None:
        wrong = _placeholder(file, unmasked(lines[only], found), only)
        lines[only] = ""
        return wrong, "\n".join(lines)
    wrong = _no_yaml(file, [unmasked(line, found) for line in lines], at, error)
    aligned = _aligned(lines, at)
    lines[at] = "" if drop or aligned == lines[at] else aligned
    return wrong, "\n".join(lines)


def _only_a_placeholder(lines: Sequence[str], at: int) -> int | None:
    """Number of the line at which a file stops to be YAML because a placeholder is all there is in it: that
    of the error, or the one before."""
    before = (number for number in range(at - 1, -1, -1) if lines[number].strip())
    near = (at, next(before, at))
    return next((number for number in near if is_only_a_placeholder(lines[number])), None)


def _placeholder(file: str, line: str, at: int) -> InputError:
    return placeholder_error(At("", file, at + 1), line.strip()[:60])


class _TooLarge(Exception):
    """A document with more values, or deeper ones, than any stack or job has."""


TOO_LARGE = InputError(
    path="",
    must=f"have at most {VALUES} values, also where aliases repeat them, and {DEPTH} levels",
    got="more",
    fix="write out what an alias repeats, and delete an alias inside its own anchor",
)
MOST_DIGITS = 1000
"""Most digits of a number, also of one in a text that somebody counts with; Python reads 4,300 at
most."""


def _unreadable(text: str) -> InputError | None:
    """Error about a text that cannot be a file of settings."""
    if NO_TEXT in text:
        return InputError(
            path="",
            must=f"be text in UTF-8, of at most {MOST_BYTES >> 20} MiB",
            got="other bytes" if len(text) < MOST_BYTES else "a larger file",
            fix="save it as UTF-8",
        )
    if found := re.search(rf"\d{{{MOST_DIGITS}}}", text):
        return InputError(
            path="",
            must=f"have no number of more than {MOST_DIGITS} digits",
            got=f"{found[0][:20]}… in line {text.count(chr(10), 0, found.start()) + 1}",
            fix="write a number that a machine can have",
        )
    opened = text.count("[") + text.count("{") - text.count("]") - text.count("}")
    if opened > 10 * DEPTH:  # libyaml takes minutes for what is then an error
        return TOO_LARGE
    return None


def _measure(text: str) -> None:
    """Raise _TooLarge for a text with too many values or levels. What an alias repeats counts each
    time; an alias inside its own anchor counts as too many."""
    known: dict[str, _Node] = {}
    above = [_Node()]
    for event in yaml.parse(text, yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionEndEvent):
            node = above.pop()
        elif isinstance(event, yaml.AliasEvent):
            node = known.get(event.anchor, _Node())
            if any(event.anchor == each.anchor for each in above):
                raise _TooLarge
        elif isinstance(event, yaml.NodeEvent):
            node = _Node(anchor=event.anchor)
            if isinstance(event, yaml.CollectionStartEvent):
                above.append(node)
                continue
        else:
            continue
        if node.anchor:
            known[node.anchor] = node
        above[-1].values += node.values
        above[-1].levels = max(above[-1].levels, node.levels + 1)
        if above[-1].values > VALUES or len(above) + node.levels > DEPTH:
            raise _TooLarge


@dataclass
class _Node:
    """A value and all below it."""

    anchor: str | None = None
    values: int = 1
    levels: int = 0


def _secrets_beside(text: str, file: str, documents: Sequence[Document]) -> Iterator[InputError]:
    """Secrets in comments, and in a file that is no YAML."""
    known = [secret.kind for document in documents for secret in document.secrets]
    for line, kind in secrets_of_text(text, known):
        yield Secret(path=(), kind=kind).error(At("", file, line))


def as_yaml(value: Any) -> str:
    """A value on one line, as one writes it into a YAML file: [a, b], {a: 1}, "1.30"."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{as_yaml(key)}: {as_yaml(item)}' for key, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(as_yaml, value))}]"
    return value if isinstance(value, str) and _is_plain(value) else json.dumps(value, default=str)


def _is_plain(text: str) -> bool:
    """True where a text needs no quotes in a YAML file, nor in a list."""
    if re.search(r"[,\[\]{}#:]\s|[,\[\]{}]|^$|:$", text) or not is_text(text):
        return False
    try:
        node = yaml.compose(text, yaml.CSafeLoader)
    except yaml.YAMLError:
        return False
    return isinstance(node, yaml.ScalarNode) and not node.style and node.value == text


def _documents(file: str, text: str, by_engine: bool, found: Sequence[str]) -> list[Document]:
    loader = EngineLoader if by_engine else yaml.CSafeLoader
    roots = [node for node in yaml.compose_all(text, loader) if node]
    text = hidden(text)[0]
    return [_document(file, text, root, by_engine, found) for root in roots]


def _document(
    file: str, text: str, root: yaml.Node, by_engine: bool, found: Sequence[str]
) -> Document:
    document = Document(
        file=file, text=unmasked(text, found), by_engine=by_engine, placeholders=found
    )
    value = _value(document, root, ())
    document.value, document.secrets = withheld(value)
    for secret in document.secrets:
        document.written.pop(secret.path, None)
    return document


def _value(document: Document, node: yaml.Node, path: Path) -> Any:
    document.lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        return _mapping(document, node, path)
    if isinstance(node, yaml.SequenceNode):
        return [_value(document, item, (*path, index)) for index, item in enumerate(node.value)]
    value = value_of(node) if document.by_engine else _by_yaml_1_1(node)
    if isinstance(value, str):
        return unmasked(value, document.placeholders)
    if node.value:
        document.written[path] = node.value
    return value


def _by_yaml_1_1(node: yaml.Node) -> Any:
    # Kubernetes knows no dates and no numbers to the base of 60, which 12:30 would be.
    if re.search(r":\d|-\d+-", node.value):
        return node.value
    try:
        return yaml.constructor.SafeConstructor().construct_object(node)
    except (AttributeError, IndexError, KeyError, ValueError):
        return node.value  # of thousands of digits, or no value of its tag: !!int "", !!bool often


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
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            document.errors.append(_template(document, path, line))
            continue
        name = _name(document, key, path)
        if name in own:
            document.errors.append(
                InputError(
                    path=".".join(map(str, (*path, name))),
                    file=document.file,
                    line=line,
                    must="be set once",
                    got=f"another value in line {document.lines[*path, name]}, which was not checked",
                    fix="delete one of the two",
                )
            )
        document.lines[*path, name] = line
        own[name] = _value(document, item, (*path, name))
    return merged | own


def _name(document: Document, key: yaml.ScalarNode, path: Path) -> str:
    """A key as text. An error where the engine makes another text of it."""
    name = key_of(key) if document.by_engine else key.value
    name = unmasked(name, document.placeholders)
    if not document.placeholders and name not in (key.value, key.value.lower()):
        document.errors.append(
            InputError(
                path=".".join(map(str, (*path, key.value))),
                file=document.file,
                line=key.start_mark.line + 1,
                must="be text",
                got=f"{key.value or 'nothing'}, which Pulumi reads as {name}",
                fix=f"write {json.dumps(key.value)}",
            )
        )
    return name


def _template(document: Document, path: Path, line: int) -> InputError:
    """A key that is a map itself: {{ .Values.image }} of a template reads so."""
    return InputError(
        path=".".join(map(str, path)),
        file=document.file,
        line=line,
        must="be a value, not a template or a map as a key",
        got=document.text.splitlines()[line - 1].strip()[:60],
        fix="fill the template in first (`helm template`), or put the text in quotes",
    )


def _line_of(text: str, error: yaml.YAMLError) -> int:
    """The line that cannot be YAML, from 0."""
    return min(getattr(getattr(error, "problem_mark", None), "line", 0), len(text.splitlines()) - 1)


def _aligned(lines: Sequence[str], at: int) -> str:
    """A line, indented as the one before it."""
    above = next((line for line in reversed(lines[:at]) if line.strip()), "")
    return above[: len(above) - len(above.lstrip())] + lines[at].lstrip()


def _no_yaml(file: str, lines: Sequence[str], at: int, error: yaml.YAMLError) -> InputError:
    return InputError(
        path="",
        file=file,
        line=at + 1,
        must=f"be YAML ({hidden(_reason(error))[0]})",
        got=lines[at].strip()[:60] or "nothing",
        fix=next((fix for part, fix in YAML_FIXES.items() if part in _reason(error)), INDENT),
    )


def _reason(error: yaml.YAMLError) -> str:
    """PyYAML's reason, without the name that it gives to a file."""
    reason = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    return re.sub(r'\s+in "<unicode string>".*', "", str(reason), flags=re.DOTALL)
