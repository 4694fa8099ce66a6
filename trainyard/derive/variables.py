"""Variables and arrays of a shell script whose values can be read from it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from trainyard.derive.shell import READS_MORE, Command, read_script, words_of

_USED = re.compile(r"(?<!\\)\$(?:\{(\w+)(?:\[[@*]\]|:?[-?][^{}]*)?\}|(\w+))")
_DEPTH = 5
"""Variables in the values of others that are read, at most: a circle has no end."""
_DECLARES = ("export", "readonly", "declare", "typeset")
_ASKS = re.compile(r"\[|\(\(|\|\||\b(?:test|grep)\b")
"""Words before && that say more than that a command succeeded."""
_COMMENT = re.compile(r"(?m)^[ \t]*#[^\n]*")
_COMMAND = re.compile(r"\$\((?!\()[^()]*\)|`[^`]*`")
"""A command whose output stands in its place: its words are no variables."""
_SHOWN = re.compile(
    r"(?m)(?:^|[;&|])[ \t]*(?:echo|printf(?![ \t]+-v))\b[^\n;&|]*|(?:^|[ \t])#[^\n]*"
)


def values_at(script: str, at: int) -> dict[str, str]:
    """Variable → value, as a script writes it before an offset: those that it assigns once, whatever happens."""
    found: dict[str, str] = {}
    before = read_script(script[:at])
    if READS_MORE.search(before.text):
        return found
    text = _SHOWN.sub(" ", script)
    for command in before.commands:
        for name, written in _assigned(command).items():
            if _is_assigned_once(name, text) and not _uses(name, written):
                found[name] = _unquoted(written)
    return found


def with_values(text: str, values: Mapping[str, str]) -> str:
    """A text with the values of variables in their places, and of those in the values."""
    for _ in range(_DEPTH):
        text = _USED.sub(lambda found: values.get(found[1] or found[2], found[0]), text)
    return text


def in_arithmetic(text: str) -> list[str]:
    """Names in $((…)), where a variable needs no dollar sign."""
    return [
        name
        for found in re.finditer(r"\$\(\(([^\n]*?)\)\)", text)
        for name in re.findall(r"(?<![\w$#{])[A-Z][A-Z0-9_]*\b", _COMMAND.sub(" ", found[1]))
    ]


def is_used(name: str, text: str) -> bool:
    """True where a script reads a variable."""
    return bool(re.search(rf"(?<!\\)\$\{{?[#!]?{name}\b", text)) or name in in_arithmetic(text)


def is_assigned(name: str, script: str) -> bool:
    """True where a script gives a variable a value for which it needs none of it, wherever: A=1, A=${A:-1} and
    ((A = 1)), but neither A=$A nor A=$((A * 8)). What a function or a text says of A=$A counts for nothing."""
    if re.search(rf"\(\([^\n()]*?(?<![\w$]){name}\s*=(?!=)", script):
        return True
    values = (value for _, value in _values(name, script))
    return any(not is_used(name, re.sub(rf"\$\{{{name}:?[-+?=]", "", each)) for each in values)


def is_assigned_first(name: str, script: str) -> bool:
    """True where a script gives a variable a value before it reads it, with a default or without one."""
    before, value = next(_values(name, script), ("", ""))
    return bool(value) and not is_used(name, f"{before} {value}")


def _values(name: str, script: str) -> Iterator[tuple[str, str]]:
    """The text before each assignment of a variable, and the assignment."""
    text = _COMMENT.sub("", script)
    for found in re.finditer(rf"(?<![\w$-]){name}(?:\[[^\]]*\])?\+?=(?!=)", text):
        yield text[: found.start()], "".join(words_of(text[found.start() :])[:1])


def _assigned(command: Command) -> dict[str, str]:
    """Variable → value as it is written, of a command that assigns and does nothing else."""
    always = not command.depth and not _ASKS.search(command.under)
    if not always or command.operator in ("|", "&"):
        return {}
    words = words_of(command.text)
    if words[:1] and words[0] in _DECLARES:
        words = [word for word in words[1:] if not word.startswith("-")]
    pairs = [re.fullmatch(r"(?s)([A-Za-z_]\w*)=(.*)", word) for word in words]
    return {pair[1]: pair[2] for pair in pairs if pair} if all(pairs) else {}


def _unquoted(value: str) -> str:
    """The text that a shell makes of a value, but of its variables."""
    if value.startswith("("):
        return " ".join(map(_unquoted, words_of(value[1:-1])))
    if re.fullmatch("'[^']*'", value):
        return value[1:-1].replace("$", "\\$")
    return value.replace("\\\n", " ").replace('"', "")


def _is_assigned_once(name: str, text: str) -> bool:
    assigns = rf"(?<![\w$-])(?<!\$\{{){name}(?:\[[^\]]*\])?[ \t]*(?:[-+*/]?=(?!=)|\+\+|--)"
    reads = rf"\b(?:read|for|unset|mapfile|readarray|getopts|printf[ \t]+-v)\b[^\n;&|]*\b{name}\b"
    return len(re.findall(rf"{assigns}|{reads}", text)) == 1


def _uses(name: str, value: str) -> bool:
    return any(name in used for used in _USED.findall(value))
