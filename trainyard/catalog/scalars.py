"""Reads scalars of YAML files, and writes a file that every reader reads alike.

Pulumi's engine reads a stack file with gopkg.in/yaml.v3 3.0.1 (resolve.go), writes it, reads it once
more, and hands each object to the program as JSON (Pulumi 3.259.0, sdk/go/common/workspace/loaders.go
and resource/config/object.go). PyYAML reads YAML 1.1. They differ: 1e-3 is a number for the engine and
text for PyYAML, yes is text for the engine and a boolean for PyYAML.
"""

from __future__ import annotations

import json
import math
import re
from datetime import datetime, tzinfo
from decimal import Decimal
from typing import Any

import yaml

STRING, MERGE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"
_OTHER = "tag:yaml.org,2002:value"
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **{f"{sign}{word}": math.inf for sign in ("", "+") for word in (".inf", ".Inf", ".INF")},
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
"""Words that the engine reads as something else than text: resolveMap of yaml.v3."""
_OLD_BOOLEANS = ("y", "Y", "n", "N")
"""Booleans of YAML 1.1 that neither PyYAML nor the engine reads so, but kubectl and Helm do
(sigs.k8s.io/yaml 1.4.0, goyaml.v2/resolve.go)."""
_INTEGER = re.compile(
    r"(?P<sign>[-+]?)(?:0[bB](?P<b2>[01]+)|0[oO]?(?P<b8>[0-7]+)|0[xX](?P<b16>[0-9a-fA-F]+)"
    r"|(?P<b10>0|[1-9][0-9]*))"
)
_SIGN_INSIDE = re.compile(r"0b(?P<b2>[-+][01]+)|0o(?P<b8>[-+][0-7]+)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
"""yamlStyleFloat of yaml.v3."""
_POINT_FIRST = re.compile(r"\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?")
_TIME = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{1,2}-[0-9]{1,2})(?:(?P<t>[Tt])?(?(t)| +)"
    r"(?P<clock>[0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2})(?:[.,](?P<part>[0-9]+))?"
    r"(?(t)(?P<zone>Z|[-+][0-9]{2}:[0-9]{2})))?"
)
"""allowedTimestampFormats of yaml.v3."""
_TIME_OF_ENGINE = re.compile(
    r"(?P<time>[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.(?P<part>[0-9]{1,9}))?"
    r" (?P<zone>[-+][0-9]{4}) (?:[A-Za-z]{1,6}|[-+][0-9]{2,4})"
)
"""String of a time in Go: 2027-01-04 11:30:00 +0000 UTC."""
_INT64, _UINT64, _NO_EXPONENT = 2**63, 2**64, 1e21
"""Go's JSON writes a number from 1e21 on with an exponent."""


def engine_value(text: str) -> Any:
    """The engine's value of a scalar without quotes and tag: None, a boolean, a number, a time or
    the text itself. A time has no zone where the text has none; the engine takes it as UTC.
    Infinity and NaN are values that the engine cannot hand to a program."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] == ".":
        number = float(text) if _POINT_FIRST.fullmatch(text) else math.inf
        return _number(number) if math.isfinite(number) else text
    if text[0] not in "+-0123456789":
        return text
    found = _time(text)
    if found is not None:
        return found
    number = _integer(text.replace("_", ""))
    return text if number is None else number


def _integer(plain: str) -> int | float | None:
    found = _INTEGER.fullmatch(plain) or _SIGN_INSIDE.fullmatch(plain)
    if found:
        [(base, digits)] = [
            (int(name[1:]), digits)
            for name, digits in found.groupdict().items()
            if digits is not None and name != "sign"
        ]
        sign = found.groupdict().get("sign") or ""
        number = int(f"{sign}{digits}", base)
        if -_INT64 <= number < (_INT64 if sign else _UINT64):
            return number if number < _INT64 else _number(float(number))
    number = float(plain) if _FLOAT.fullmatch(plain) else math.inf
    return _number(number) if math.isfinite(number) else None


def _number(number: float) -> int | float:
    """A number as JSON of Go has it: 1.0 is 1 there."""
    if number.is_integer() and abs(number) < _NO_EXPONENT:
        return int(Decimal(repr(number)))
    return number


def _time(text: str) -> datetime | None:
    found = _TIME.fullmatch(text)
    if not found:
        return None
    clock = (found["clock"] or "0:0:0").split(":")
    try:
        year, month, day, hour, minute, second = map(int, (*found["date"].split("-"), *clock))
        return datetime(
            year,
            month,
            day,
            hour,
            minute,
            second,
            _microseconds(found["part"]),
            _zone(found["zone"]),
        )
    except ValueError:  # a day that no calendar has
        return None


def engine_time(text: str) -> datetime | None:
    """The time that the engine had read, of the text that it hands to the program; None for any other
    text."""
    found = _TIME_OF_ENGINE.fullmatch(text)
    if not found:
        return None
    try:
        time, zone = datetime.fromisoformat(found["time"]), _zone(found["zone"])
    except ValueError:
        return None
    return time.replace(microsecond=_microseconds(found["part"]), tzinfo=zone)


def as_engine_time(time: datetime) -> str:
    """The text that the engine hands to the program for a time that it has read."""
    part = f".{time.microsecond:06}".rstrip("0") if time.microsecond else ""
    zone = time.strftime("%z") or "+0000"
    return f"{time:%Y-%m-%d %H:%M:%S}{part} {zone} {'UTC' if zone == '+0000' else zone}"


def _microseconds(digits: str | None) -> int:
    return int((digits or "0")[:6].ljust(6, "0"))


def _zone(text: str | None) -> tzinfo | None:
    return datetime.strptime(text, "%z").tzinfo if text else None


def is_text(text: str) -> bool:
    """True where every reader takes a scalar without quotes as the text that it is. PyYAML itself writes :0 without
    quotes into [] and {}, and does not read it there."""
    if text.startswith(":") or text in _OLD_BOOLEANS or not isinstance(engine_value(text), str):
        return False
    return _RESOLVER.resolve(yaml.ScalarNode, text, (True, False)) == STRING


_RESOLVER = yaml.resolver.Resolver()


class _Engine(yaml.resolver.Resolver):
    """Gives nodes the tags that the engine gives them."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        """The tag of a node that has none in the file."""
        if kind is not yaml.ScalarNode or not implicit[0]:
            return super().resolve(kind, value, implicit)
        return MERGE if value == "<<" else _TAGS[type(engine_value(value))]


_TAGS = {
    kind: f"tag:yaml.org,2002:{name}"
    for kind, name in {
        type(None): "null",
        bool: "bool",
        int: "int",
        float: "float",
        datetime: "timestamp",
        str: "str",
    }.items()
}


class EngineLoader(_Engine, yaml.CSafeLoader):
    """Reads a file as the engine does: `yaml.load(text, EngineLoader)`. The nodes that it composes
    have the engine's tags."""


def value_of(node: yaml.Node) -> Any:
    """The engine's value of a scalar that EngineLoader has composed."""
    return engine_value(node.value) if node.tag in _READ else node.value


def key_of(node: yaml.Node) -> str:
    """The engine's text for the key of a map."""
    value = value_of(node)
    if value is None:
        return "<nil>"
    if isinstance(value, datetime):
        return as_engine_time(value)
    return value if isinstance(value, str) else json.dumps(value)


_READ = {*_TAGS.values()} - {STRING}
for _each in (*_READ, MERGE):
    EngineLoader.add_constructor(_each, lambda _, node: value_of(node))


class Writer(yaml.SafeDumper):
    """Writes every text that a reader would take as something else in quotes."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        """The tag that a reader gives a node without quotes and tag."""
        tag = super().resolve(kind, value, implicit)
        is_plain = kind is yaml.ScalarNode and implicit[0] and tag == STRING
        return _OTHER if is_plain and not is_text(value) else tag

    def ignore_aliases(self, data: Any) -> bool:
        """Always true: a value that stands in two places is written twice, because people read
        these files."""
        return True


class Copier(_Engine, yaml.SafeDumper):
    """Writes the nodes that EngineLoader has composed, so that the engine reads the same again:
    `yaml.serialize(node, Dumper=Copier)`."""


def as_file(value: Any, **layout: Any) -> str:
    """A value as a YAML file that PyYAML, the engine, kubectl and Helm read alike."""
    return yaml.dump(value, Dumper=Writer, sort_keys=False, **layout)
