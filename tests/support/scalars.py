"""Scalars of YAML that readers take differently, and what the engine hands to the program."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import yaml
from hypothesis import strategies as st

from trainyard.catalog.scalars import EngineLoader, as_engine_time

TEXTS = (
    *(
        "1e-3",
        "+1e3",
        "1E5",
        "1.e3",
        ".5",
        "+.5",
        "-.5",
        ".5e3",
        ".1_0",
        "5.",
        "1.0",
        "1.30",
        "-0.0",
    ),
    *(
        "0o17",
        "-0o7",
        "0O7",
        "017",
        "-017",
        "0777",
        "08",
        "0127",
        "012345678901",
        "0888.5",
        "0b-11",
    ),
    *(
        "0x1F",
        "0X1f",
        "0x_1F",
        "0b11",
        "-0b11",
        "0B1",
        "0b1_1",
        "1_000",
        "1__0",
        "_1",
        "1_e3",
        "+12",
    ),
    *("1e20", "1e21", "1e400", "1e-7", "1e-400", "9007199254740993", "18446744073709551615"),
    *("18446744073709551616", "-9223372036854775809", "12345678901234567890.5", "0x1.8p3", "1d2"),
    *("2026-01-02", "2026-1-2", "2026-02-30", "2026-13-01T00:00:00Z", "2027-01-04T11:30:00Z"),
    *(
        "2027-01-04T11:30:00",
        "2027-01-04 11:30:00",
        "2027-01-04T11:30:00+09:00",
        "2027-01-04 1:2:3.5",
    ),
    *("2001-12-14t21:59:43.10-05:00", "2001-12-14 21:59:43.10 -5", "2027-01-04 11:30:00 +0000 UTC"),
    *("true", "True", "TRUE", "tRUE", "false", "on", "On", "off", "yes", "no", "NO", "y", "Y", "n"),
    *("~", "null", "Null", "NULL", "nULL", "NaN", "Infinity", ".inf", "-.INF", ".nan"),
    *(
        "60:30",
        "1:30",
        "190:20:30",
        "1:30.5",
        "=",
        "<<",
        "0o",
        "0b",
        "0x",
        "1e",
        "e1",
        "..5",
        ".e1",
    ),
    *(
        "",
        "a",
        "a b",
        "a: b",
        "a, b",
        "- a",
        "# a",
        "a #b",
        "'a'",
        '"a"',
        "[a]",
        "{a}",
        "&a",
        "*a",
        "!a",
    ),
)
"""Words, numbers, times and texts."""
_PIECES = (
    "0",
    "1",
    "7",
    "9",
    "_",
    "+",
    "-",
    ".",
    "e",
    "E",
    "0x",
    "0o",
    "0b",
    "a",
    "F",
    ":",
    "~",
    "y",
)


def texts() -> st.SearchStrategy[str]:
    """Texts that some reader may take as something else."""
    times = st.datetimes(min_value=datetime(1000, 1, 1))
    zoned = st.datetimes(min_value=datetime(1000, 1, 1), timezones=st.just(UTC))
    return (
        st.sampled_from(TEXTS)
        | st.lists(st.sampled_from(_PIECES), max_size=6).map("".join)
        | st.floats(allow_nan=False, allow_infinity=False).map(repr)
        | st.floats(allow_nan=False, allow_infinity=False).map("{:.2e}".format)
        | st.integers(-(2**65), 2**65).map(str)
        | st.dates(min_value=datetime(1000, 1, 1).date()).map(str)
        | (times | zoned).map(str)
        | (times | zoned).map(datetime.isoformat)
    )


def can_be_bare(text: str) -> bool:
    """True for a text that can stand in a file without quotes, whatever is then read."""
    try:
        node = yaml.compose(f"{{a: {text}}}", yaml.CSafeLoader)
    except yaml.YAMLError:
        return False
    assert isinstance(node, yaml.MappingNode)
    value = node.value[0][1]
    return isinstance(value, yaml.ScalarNode) and not value.style and value.value == text


def handed_over(text: str) -> dict[str, str]:
    """The configuration that the engine hands to the program for a stack file:
    tests/trainyard/catalog/test_scalars.py compares this with the engine."""
    config = yaml.load(text, EngineLoader)["config"]
    return {key: it if isinstance(it, str) else json.dumps(_json(it)) for key, it in config.items()}


def _json(value: Any) -> Any:
    if isinstance(value, dict):
        return {_key(key): _json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_json(item) for item in value]
    return as_engine_time(value) if isinstance(value, datetime) else value


def _key(value: Any) -> str:
    names: dict[Any, str] = {None: "<nil>", True: "true", False: "false"}
    return names[value] if value is None or isinstance(value, bool) else str(_json(value))
