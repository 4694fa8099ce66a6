"""Refusals of pydantic as errors that say what to write instead.

`EXPLANATIONS` has a function for each of pydantic's error types, `PATTERNS` words for each pattern of
a setting's type.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date
from fractions import Fraction
from typing import Any, get_origin

from trainyard.catalog.aws.storage import lustre_sold
from trainyard.problems import REMOVE, SIMILAR, InputError
from trainyard.settings.reading.examples import PATTERNS, as_name, example, known_version
from trainyard.settings.reading.lookup import choices_at, defaults_at, is_required, types_at
from trainyard.settings.reading.mistake import Mistake
from trainyard.settings.reading.unknown_settings import is_needed, unknown_setting
from trainyard.settings.reading.yaml_file import as_yaml

COMMAND_LINES = ("arguments", "command")
"""Settings that list the words of a command line."""
SET = "be set"
"""Rule of a setting without a default."""
UNITS: Mapping[str, Mapping[str, int | Fraction]] = {
    "gib": {r"gi?b?": 1, r"ti?b?": 1024},
    "minutes": {r"m|min|minutes?": 1, r"h|hours?": 60, r"d|days?": 1440},
    "hours": {r"m|min|minutes?": Fraction(1, 60), r"h|hours?": 1, r"d|days?": 24},
    "days": {r"d|days?": 1, r"w|weeks?": 7},
    "mbps": {r"mb(?:ps|/s)": 1, r"gb(?:ps|/s)": 1000},
    "mibps": {r"mi?b(?:ps|/s)": 1, r"gi?b(?:ps|/s)": 1024},
    "billion": {r"b|bn|billion": 1, r"t|trillion": 1000},
    "dollars": {r"usd|\$|dollars?": 1, r"k": 1000},
}
"""Unit in a setting's name → how people write it and others behind a number, and how many of the setting's each of
them is."""

SOLD: Mapping[str, Callable[[int], int]] = {"capacity_gib": lustre_sold}
"""Setting → the nearest number that AWS sells: 5TB of Lustre is none."""


def explained(
    steps: Sequence[Any], error: Mapping[str, Any], in_manifest: bool, written: str
) -> InputError:
    """An error of pydantic as one of ours. `steps`: the path to the value. `written`: its characters
    in the file, where they are known."""
    mistake = Mistake(
        steps=tuple(str(step) for step in steps if step != "[key]"),
        type=error["type"],
        value=error.get("input"),
        limits=error.get("ctx", {}),
        is_key="[key]" in steps,
        in_manifest=in_manifest,
        written=written,
    )
    explanation = EXPLANATIONS.get(mistake.type, _anything)
    is_encrypted = isinstance(mistake.value, dict) and "secure" in mistake.value
    if is_encrypted and explanation is not unknown_setting:
        return _encrypted(mistake)
    return explanation(mistake)


def _encrypted(mistake: Mistake) -> InputError:
    return InputError(
        path=mistake.path,
        must="not be encrypted: AWS or the cluster shows it to others",
        got="a secret",
        fix=(
            "write the value as plain text if it is no secret; a job takes a secret from AWS Secrets"
            " Manager, as in secrets: {HF_TOKEN: {secrets_manager: vision/hf-token, key: token}}"
        ),
    )


def _missing(mistake: Mistake) -> InputError:
    value = example(mistake.steps)
    fix = f"add {mistake.key}" if value is None else f"add {mistake.key}: {as_yaml(value)}"
    if value is None and (choices := choices_at(mistake.steps)):
        fix, value = f"add {mistake.key}: {' or '.join(choices)}", choices[0]
    return InputError(path=mistake.path, must=SET, got="nothing", fix=fix, write=value)


def _not_text(mistake: Mistake) -> InputError:
    if isinstance(mistake.value, bool) and example(mistake.steps) is not None:
        return _wrong_kind(mistake, "be text")
    if isinstance(mistake.value, int | float | date):
        known = known_version(mistake.steps, mistake.text)
        must = "be a whole release" if known and known.startswith(f"{mistake.text}.") else "be text"
        return mistake.error(must, f"write {as_yaml(known or mistake.text)}", known or mistake.text)
    if isinstance(mistake.value, list) and len(mistake.value) == 1:
        [only] = mistake.value
        if isinstance(only, str):
            return mistake.error("be text, not a list", f"write {as_yaml(only)}", only)
    if isinstance(mistake.value, dict) and {"secret", "secrets_manager"} & mistake.value.keys():
        says = f"secrets: {{{mistake.key}: {as_yaml(mistake.value)}}}"
        return mistake.error("be text", f"delete it, and write {says} in the job")
    if isinstance(mistake.value, dict) and [*mistake.value] == ["value"]:
        meant = str(mistake.value["value"])
        return mistake.error("be text", f"write {as_yaml(meant)}", meant)
    return _wrong_kind(mistake, "be text")


def _not_a_whole_number(mistake: Mistake) -> InputError:
    number = _number(mistake)
    if number is None:
        return _wrong_kind(mistake, "be a whole number")
    meant = SOLD.get(mistake.key, int)(number)
    return mistake.error("be a whole number", f"write {meant}", meant)


def _number(mistake: Mistake) -> int | None:
    """4 of 4.0, "4", 4GiB and 4 TiB in a setting in GiB: 4096."""
    meant = _meant(mistake)
    return int(meant) if meant is not None and meant.denominator == 1 else None


def _meant(mistake: Mistake) -> Fraction | None:
    """The number that somebody means: 1/2 of 30m in a setting in hours. A part of a TiB is counted as FSx does, whose
    1.2 TiB are 1,200 GiB."""
    if isinstance(mistake.value, float) and mistake.value.is_integer():
        return Fraction(mistake.value)
    if not isinstance(mistake.value, str):
        return None
    forms: dict[str, int | Fraction] = {"": 1}
    for unit in {*UNITS} & {*mistake.key.split("_")}:
        forms |= UNITS[unit]
    for form, times in forms.items():
        if found := re.fullmatch(
            rf"\$?(\d{{1,9}}(?:\.\d{{1,3}})?)\s*(?:{form})", mistake.value.strip(), re.IGNORECASE
        ):
            number = Fraction(found[1])
            if number.denominator > 1 and times == 1024:
                times = 1000
            return number * times
    return None


def _not_a_number(mistake: Mistake) -> InputError:
    meant = _meant(mistake)
    if meant is None:
        return _wrong_kind(mistake, "be a number")
    number = int(meant) if meant.denominator == 1 else round(float(meant), 3)
    return mistake.error("be a number", f"write {number}", number)


def _out_of_bounds(mistake: Mistake) -> InputError:
    """The bound is what to write; where the bound itself is too much or too little, the example of the setting,
    or the next whole number."""
    words = {"ge": "at least", "le": "at most", "gt": "more than", "lt": "less than"}
    [(kind, bound)] = [(kind, mistake.limits[kind]) for kind in words if kind in mistake.limits]
    whole = int(bound) if float(bound).is_integer() else bound
    must, nearest = f"be {words[kind]} {whole}", whole + {"gt": 1, "lt": -1}.get(kind, 0)
    if kind == "ge" and -mistake.value >= bound > 0:
        return mistake.error(must, f"write {-mistake.value}", -mistake.value)
    if kind == "gt" and (value := example(mistake.steps)) is not None:
        return mistake.error(must, f"write a value such as {value}", value)
    return mistake.error(must, f"write {nearest}", nearest)


def _not_true_or_false(mistake: Mistake) -> InputError:
    meant = {"yes": True, "true": True, "on": True, "1": True} | dict.fromkeys(
        ("no", "false", "off", "0"), False
    )
    value = meant.get(str(mistake.value).lower())
    if value is not None:
        return mistake.error("be true or false", f"write {as_yaml(value)}", value)
    return _wrong_kind(mistake, "be true or false")


def _no_choice(mistake: Mistake) -> InputError:
    choices = [text for _, text in re.findall(r"(['\"])(.+?)\1", mistake.limits["expected"])]
    if not choices:
        return _no_number_of(mistake, [*map(int, re.findall(r"\d+", mistake.limits["expected"]))])
    listed = ", ".join(choices)
    must = f"be {listed}" if len(choices) == 1 else f"be one of {listed}"
    text = str(mistake.value)
    near = [choice for choice in choices if _plain(choice) == _plain(text)]
    near += [choice for choice in choices if text and _plain(choice).startswith(_plain(text))]
    near += difflib.get_close_matches(text, choices, n=1, cutoff=SIMILAR)
    near += choices if len(choices) == 1 else []
    if near:
        return mistake.error(must, f"write {near[0]}", near[0])
    defaults = [each for each in defaults_at(mistake.steps) if each in choices]
    otherwise = f", or delete it for {defaults[0]}" if defaults else ""
    return mistake.error(must, f"write one of {listed}{otherwise}")


def _no_number_of(mistake: Mistake, choices: Sequence[int]) -> InputError:
    """A number that is none of a few: the nearest is what to write."""
    must, given = f"be one of {', '.join(map(str, choices))}", _number(mistake)
    if isinstance(mistake.value, int) and not isinstance(mistake.value, bool):
        given = mistake.value
    if given is None:
        return mistake.error(must, f"write one of {', '.join(map(str, choices))}", choices[0])
    nearest = min(choices, key=lambda choice: abs(choice - given))
    return mistake.error(must, f"write {nearest}", nearest)


def _plain(text: str) -> str:
    return re.sub("[-_ ]", "", text).lower()


def _no_match(mistake: Mistake) -> InputError:
    pattern = PATTERNS.get(mistake.limits["pattern"])
    if pattern is None:
        return _anything(mistake)
    meant = pattern.meant(str(mistake.value))
    if not mistake.is_key and mistake.steps != ("stack",):
        if way := pattern.way(str(mistake.value)):
            return mistake.error(f"be {pattern.is_}", way)
        # A deployer of one team is no deployer of another one.
        shown = example(mistake.steps) if mistake.steps[-1] == "deployer" else pattern.example
        fix = f"write {as_yaml(meant)}" if meant else f"write one such as {as_yaml(shown)}"
        return mistake.error(f"be {pattern.is_}", fix, meant or shown)
    if mistake.is_key:
        meant = as_name(mistake.key, mistake.steps[-2])
        return mistake.error(f"be {pattern.is_}", f"rename it to {meant}")
    return mistake.error(
        f"be {pattern.is_}", f"rename the stack, and its file to Pulumi.{meant}.yaml"
    )


def _too_short(mistake: Mistake) -> InputError:
    return _wrong_kind(mistake, "not be empty")


def _too_long(mistake: Mistake) -> InputError:
    most, given = mistake.limits["max_length"], len(mistake.value)
    return InputError(
        path=mistake.path,
        must=f"have at most {most} entries",
        got=str(given),
        fix=f"delete {given - most} of them",
    )


def _not_a_list(mistake: Mistake) -> InputError:
    if isinstance(mistake.value, str | int | float | date) and mistake.value != "":
        kinds = types_at([*mistake.steps, "0"])
        is_text = str in kinds and type(mistake.value) not in kinds
        item = mistake.text if is_text else mistake.value
        listed = _words(item) if mistake.key in COMMAND_LINES else [item]
        return mistake.error("be a list", f"write {as_yaml(listed)}", listed)
    return _wrong_kind(mistake, "be a list")


def _words(value: Any) -> list[str]:
    """The words of a command line, as a shell separates them."""
    try:
        return shlex.split(str(value)) or [str(value)]
    except ValueError:  # a quote that is not closed
        return str(value).split()


def _not_a_map(mistake: Mistake) -> InputError:
    value = mistake.value
    if isinstance(value, list) and value and all(_is_pair(item) for item in value):
        named = {item["name"]: item["value"] for item in value}
        return mistake.error("be a map, not a list", f"write {as_yaml(named)}", named)
    if isinstance(value, list) and value and all(_is_assignment(item) for item in value):
        named = dict(item.split("=", 1) for item in value)
        return mistake.error("be a map, not a list", f"write {as_yaml(named)}", named)
    return _wrong_kind(mistake, "be a map, with a value for each name")


def _is_pair(item: Any) -> bool:
    """{name: A, value: "1"}, as Kubernetes writes a variable."""
    return isinstance(item, dict) and {*item} == {"name", "value"} and isinstance(item["name"], str)


def _is_assignment(item: Any) -> bool:
    """A=1, as Docker and a shell write a variable."""
    return isinstance(item, str) and re.match(r"[A-Za-z_]\w*=", item) is not None


def _not_settings(mistake: Mistake) -> InputError:
    """Something else where a map of settings belongs: nothing, or the one setting that it needs."""
    classes = [found for found in types_at(mistake.steps) if is_dataclass(found)]
    required = [field.name for field in (fields(classes[0]) if classes else ()) if is_needed(field)]
    if meant := _of_the_kind(mistake, classes):
        return mistake.error("be settings", f"write {as_yaml(meant)}", meant)
    if isinstance(mistake.value, str) and mistake.value and len(required) == 1:
        lists = any(get_origin(each) is tuple for each in types_at((*mistake.steps, required[0])))
        meant = {required[0]: [mistake.value] if lists else mistake.value}
        return mistake.error("be settings", f"write {as_yaml(meant)}", meant)
    if meant := _with_text(mistake, required):
        return mistake.error("be settings", f"write a value such as {as_yaml(meant)}", meant)
    if classes and not required and example(mistake.steps) is None:
        empty, fix = mistake.value is None, f"write {mistake.key}: {{}}"
        must = f"be settings{', not empty' * empty}"
        return mistake.error(must, f"{fix}{', or delete the line' * empty}", {})
    return _with_examples(mistake, required)


def _of_the_kind(mistake: Mistake, classes: Sequence[Any]) -> dict[str, Any] | None:
    """Settings of the kind that the text in their place names: of scratch: lustre; None for other texts."""
    kinds = {field.name for each in classes for field in fields(each)}
    if not isinstance(mistake.value, str) or mistake.value not in kinds:
        return None
    shape = example([*mistake.steps, mistake.value])
    return {mistake.value: shape} if isinstance(shape, dict) else None


def _with_text(mistake: Mistake, required: Sequence[str]) -> dict[str, Any] | None:
    """An example of a map of settings with the text that stands in its place as the first of those that it needs;
    None where that is no text, or where there is no example."""
    shape = example(mistake.steps)
    if not isinstance(mistake.value, str) or not mistake.value or not isinstance(shape, dict):
        return None
    first = next(iter(required), "")
    return {**shape, first: mistake.value} if isinstance(shape.get(first), str) else None


def _with_examples(mistake: Mistake, required: Sequence[str]) -> InputError:
    """An example of each setting that a map of settings needs."""
    examples = {name: example([*mistake.steps, name]) for name in required}
    can_go = mistake.value is None and not is_required(mistake.steps)
    is_known = required and None not in examples.values() and example(mistake.steps) is None
    if is_known and not can_go:
        return mistake.error("be settings", f"write a value such as {as_yaml(examples)}", examples)
    return _wrong_kind(mistake, "be settings")


def _no_time(mistake: Mistake) -> InputError:
    text = mistake.text.strip('"')
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        text += "T11:30:00Z"
    elif re.fullmatch(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?", text):
        text = text.replace(" ", "T") + "Z"
    else:
        text = "2027-01-01T11:30:00Z"
    return mistake.error("be a time with a time zone", f"write {as_yaml(text)}", text)


def _wrong_kind(mistake: Mistake, must: str) -> InputError:
    """Nothing better is known than an example, or that the line can go."""
    value = example(mistake.steps)
    if mistake.value is None and not is_required(mistake.steps):
        write = REMOVE if value is None else None
        fix = "delete the line" + (f", or write {as_yaml(value)}" if value is not None else "")
        return mistake.error(f"{must}, not empty" if must != "not be empty" else must, fix, write)
    if value is None and mistake.value is None and mistake.written and must == "be text":
        return mistake.error(must, f"write {as_yaml(mistake.written)}", mistake.written)
    if value is None:
        what = must.removeprefix("be ") if must.startswith("be ") else "a value"
        return mistake.error(must, f"write {what}")
    return mistake.error(must, f"write a value such as {as_yaml(value)}", value)


def _anything(mistake: Mistake) -> InputError:
    """An error type that nothing above explains: no setting of today raises one."""
    value = example(mistake.steps)
    fix = "write another value, as docs/stack-file.md describes it"
    return mistake.error(
        "be a value of its type",
        fix if value is None else f"write a value such as {as_yaml(value)}",
    )


EXPLANATIONS: dict[str, Callable[[Mistake], InputError]] = {
    "extra_forbidden": unknown_setting,
    "unexpected_keyword_argument": unknown_setting,
    "invalid_key": unknown_setting,
    "missing": _missing,
    "missing_keyword_only_argument": _missing,
    "string_type": _not_text,
    "string_unicode": _not_text,
    "string_too_short": _too_short,
    "too_short": _too_short,
    "too_long": _too_long,
    "string_pattern_mismatch": _no_match,
    "int_type": _not_a_whole_number,
    "int_parsing": _not_a_whole_number,
    "int_from_float": _not_a_whole_number,
    "int_parsing_size": _not_a_whole_number,
    "float_type": _not_a_number,
    "float_parsing": _not_a_number,
    "finite_number": _not_a_number,
    "greater_than": _out_of_bounds,
    "greater_than_equal": _out_of_bounds,
    "less_than": _out_of_bounds,
    "less_than_equal": _out_of_bounds,
    "bool_type": _not_true_or_false,
    "bool_parsing": _not_true_or_false,
    "literal_error": _no_choice,
    "tuple_type": _not_a_list,
    "dict_type": _not_a_map,
    "dataclass_type": _not_settings,
    "timezone_aware": _no_time,
    "datetime_type": _no_time,
    "datetime_parsing": _no_time,
    "datetime_from_date_parsing": _no_time,
    "datetime_object_invalid": _no_time,
}
"""Pydantic's error type → its explanation."""
