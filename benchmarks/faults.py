"""One-line faults that can be planted in a Python source: what a hurried change could get wrong."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

FLIPPED = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.Div: ("/", "*"),
}
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
FOR_PEOPLE = {"must", "got", "fix", "text", "help", "description", "summary", "metavar"}
"""Arguments that are words for people: another one is no fault."""
TYPES = {"Literal", "Mapping", "Sequence", "Callable", "Iterator", "dict", "list", "tuple"}
"""Calls whose brackets no program looks at."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A stretch of a source and what stands there instead."""

    kind: str
    line: int
    start: int
    """Byte at which the stretch begins."""
    end: int
    text: str

    def planted(self, source: str) -> str:
        """The source with this fault."""
        data = source.encode()
        return (data[: self.start] + self.text.encode() + data[self.end :]).decode()


def faults(source: str) -> list[Fault]:
    """Every fault of the source, in the order of lines; a few of them leave it no Python.

    Docstrings, types, decorators, imports, f-strings and sentences for people are left alone.
    """
    reader = _Source(source)
    found = {fault for node in _code(ast.parse(source)) for fault in reader.of(node)}
    return sorted(found, key=lambda fault: (fault.line, fault.start, fault.kind, fault.text))


def is_another_program(source: str, fault: Fault) -> bool:
    """True where the source with the fault is Python, and differs from the source without it."""
    try:
        return ast.dump(ast.parse(fault.planted(source))) != ast.dump(ast.parse(source))
    except SyntaxError:
        return False


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """The node and all below it that a program runs."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_left_alone(child):
                yield from _code(child)


def _is_left_alone(node: ast.AST) -> bool:
    if isinstance(node, ast.Import | ast.ImportFrom | ast.JoinedStr):
        return True
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Name) and node.value.id in TYPES
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.If):
        return "__name__" in ast.unparse(node.test) or "TYPE_CHECKING" in ast.unparse(node.test)
    return isinstance(node, ast.keyword) and node.arg in FOR_PEOPLE


class _Source:
    """A source whose nodes are found by byte."""

    def __init__(self, source: str) -> None:
        self.data = source.encode()
        self.lines = [0]
        for line in self.data.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))

    def of(self, node: ast.AST) -> Iterator[Fault]:
        """Faults of one node, not of those below it."""
        if isinstance(node, ast.Constant):
            yield from self._constant(node)
        elif isinstance(node, ast.If | ast.IfExp):
            yield self._fault("condition", node.test, f"not ({self._text(node.test)})")
        elif isinstance(node, ast.Raise):
            yield self._fault("dropped statement", node, "pass")
        elif isinstance(node, ast.Expr):
            instead = "yield from ()" if isinstance(node.value, ast.Yield) else "pass"
            yield self._fault("dropped statement", node, instead)
        elif isinstance(node, ast.Call):
            yield from self._call(node)
        elif isinstance(node, ast.Compare | ast.BoolOp | ast.BinOp):
            yield from self._operators(node)
        elif isinstance(node, ast.Dict | ast.List | ast.Set | ast.Tuple):
            yield from self._parts(node)

    def _parts(self, node: ast.Dict | ast.List | ast.Set | ast.Tuple) -> Iterator[Fault]:
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if key is not None:
                    yield self._dropped("dropped entry", key, value)
        elif not isinstance(node, ast.Tuple) or isinstance(node.ctx, ast.Load):
            yield from (self._dropped("dropped element", part, part) for part in node.elts)

    def _call(self, node: ast.Call) -> Iterator[Fault]:
        for part in node.keywords:
            if part.arg not in FOR_PEOPLE:
                yield self._dropped("dropped argument", part, part)
        if self._has_an_order(node):
            first, second = node.args[:2]
            start, end = self._at(first)[0], self._at(second)[1]
            between = self.data[self._at(first)[1] : self._at(second)[0]].decode()
            swapped = f"{self._text(second)}{between}{self._text(first)}"
            yield Fault(
                kind="swapped arguments", line=first.lineno, start=start, end=end, text=swapped
            )
        if isinstance(node.func, ast.Name) and node.func.id in NAMES:
            yield self._fault("min/max, any/all", node.func, NAMES[node.func.id])

    def _has_an_order(self, node: ast.Call) -> bool:
        """True where its first two arguments are given one by one, and not to min or max."""
        starred = any(isinstance(part, ast.Starred) for part in node.args[:2])
        return len(node.args) > 1 and not starred and self._text(node.func) not in NAMES

    def _constant(self, node: ast.Constant) -> Iterator[Fault]:
        value = node.value
        if isinstance(value, bool):
            yield self._fault("constant", node, str(not value))
        elif isinstance(value, int | float):
            yield self._fault("constant", node, str(value + 1))
        elif isinstance(value, str) and value and len(value) < 60:
            yield self._fault("constant", node, repr(f"{value}x"))

    def _operators(self, node: ast.Compare | ast.BoolOp | ast.BinOp) -> Iterator[Fault]:
        if isinstance(node, ast.Compare):
            kind, sides, operators = "comparison", [node.left, *node.comparators], node.ops
        elif isinstance(node, ast.BoolOp):
            kind, sides, operators = "and/or", node.values, [node.op] * (len(node.values) - 1)
        else:
            kind, sides, operators = "arithmetic", [node.left, node.right], [node.op]
        for left, right, operator in zip(sides, sides[1:], operators, strict=False):
            start, end = self._at(left)[1], self._at(right)[0]
            between = self.data[start:end].decode()
            if type(operator) in FLIPPED:
                before, after = FLIPPED[type(operator)]
                text = re.sub(rf"(?<!\w){re.escape(before)}(?!\w)", after, between, count=1)
                yield Fault(kind=kind, line=left.end_lineno or 0, start=start, end=end, text=text)

    def _dropped(self, kind: str, first: ast.expr | ast.keyword, last: ast.AST) -> Fault:
        """Without what stands from `first` to `last`, and the comma behind it."""
        start, end = self._at(first)[0], self._at(last)[1]
        comma = re.match(rb"\)*\s*,", self.data[end:])
        end += len(comma.group()) if comma else 0
        return Fault(kind=kind, line=first.lineno, start=start, end=end, text="")

    def _fault(self, kind: str, node: ast.expr | ast.stmt, text: str) -> Fault:
        start, end = self._at(node)
        return Fault(kind=kind, line=node.lineno, start=start, end=end, text=text)

    def _text(self, node: ast.AST) -> str:
        start, end = self._at(node)
        return self.data[start:end].decode()

    def _at(self, node: Any) -> tuple[int, int]:
        return (
            self.lines[node.lineno - 1] + node.col_offset,
            self.lines[node.end_lineno - 1] + node.end_col_offset,
        )
