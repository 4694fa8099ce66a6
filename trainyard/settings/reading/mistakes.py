"""Refusals of pydantic as errors that say what to write instead.

`EXPLANATIONS` has a function for each of pydantic's error types, `PATTERNS` words for each pattern of
a setting's type.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from datetime import date
from typing import Any, get_origin

from trainyard.problems import REMOVE, SIMILAR, InputError
from trainyard.settings.reading.examples import example, known_version
from trainyard.settings.reading.lookup import choices_at, defaults_at, is_required, types_at
from trainyard.settings.reading.mistake import Mistake
from trainyard.settings.reading.numbers_meant import (
    SOLD,
    no_number_of,
    number_meant,
    out_of_bounds,
    whole_number,
)
from trainyard.settings.reading.patterns import PATTERNS, as_name
from trainyard.settings.reading.unknown_settings import is_needed, unknown_setting
from trainyard.settings.reading.yaml_file import as_yaml

COMMAND_LINES = ("arguments", "command")
"""Settings that list the words of a command line."""
MEANINGS: Mapping[tuple[str, ...], str] = {
    (
        "s3",
        "private",
    ): "s3 is the endpoint of S3 alone, private adds one for each AWS API that the stack calls"
}
"""Choices of a setting → what each of them is, where people write something else and their words do not tell."""
SET = "be set"
"""Rule of a setting without a default."""


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


OF_NOBODY = "example.com"
"""Part of the addresses of examples, which somebody must not keep."""


def _missing(mistake: Mistake) -> InputError:
    value = example(mistake.steps)
    said = "" if value is None else f": {as_yaml(value)}"
    fix = f"add {mistake.key}{said}"
    if OF_NOBODY in said:
        fix += ", with your own in its place"
    if value is None and (choices := choices_at(mistake.steps)):
        fix, value = f"add {mistake.key}: {' or '.join(choices)}", choices[0]
    if mistake.steps[-3:-2] == ("secrets",) and mistake.key == "key":
        fix = f"write the key under which the secret holds the value, such as {value}"
    return InputError(path=mistake.path, must=SET, got="nothing", fix=fix, write=value)


def _not_text(mistake: Mistake) -> InputError:
    if isinstance(mistake.value, bool) and example(mistake.steps) is not None:
        return _wrong_kind(mistake, "be text")
    if isinstance(mistake.value, int | float | date):
        return _unquoted(mistake)
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


def _unquoted(mistake: Mistake) -> InputError:
    """A number or a date where text belongs, such as a version."""
    known = known_version(mistake.steps, mistake.text)
    must = "be a whole release" if known and known.startswith(f"{mistake.text}.") else "be text"
    return mistake.error(must, f"write {as_yaml(known or mistake.text)}", known or mistake.text)


def _not_a_whole_number(mistake: Mistake) -> InputError:
    number = whole_number(mistake)
    if number is None:
        return _wrong_kind(mistake, "be a whole number")
    sold = SOLD.get(mistake.key)
    if sold and (meant := sold.nearest(number)) != number:
        must = f"be a whole number, {sold.sizes}, and not {number}"
        return mistake.error(must, f"write {sold.near(number)}", meant)
    return mistake.error("be a whole number", f"write {number}", number)


def _not_a_number(mistake: Mistake) -> InputError:
    meant = number_meant(mistake)
    if meant is None:
        return _wrong_kind(mistake, "be a number")
    number = int(meant) if meant.denominator == 1 else round(float(meant), 3)
    return mistake.error("be a number", f"write {number}", number)


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
        return no_number_of(mistake, [*map(int, re.findall(r"\d+", mistake.limits["expected"]))])
    listed = ", ".join(choices)
    must = f"be {listed}" if len(choices) == 1 else f"be one of {listed}"
    if means := MEANINGS.get(tuple(choices)):
        must = f"{must}: {means}"
    if mistake.key == "throughput" and (mibps := _throughput(mistake)):
        return mistake.error(
            must, f"write provisioned and throughput_mibps: {mibps}, or delete it for elastic"
        )
    near = _near(str(mistake.value), choices)
    if near:
        return mistake.error(must, f"write {near[0]}", near[0])
    defaults = [each for each in defaults_at(mistake.steps) if each in choices]
    go = "leave it out" if "delete" in choices else "delete it"
    otherwise = f", or {go} for {defaults[0]}" if defaults else ""
    return mistake.error(must, f"write one of {listed}{otherwise}")


def _throughput(mistake: Mistake) -> int | None:
    """The MiB/s that stand in the place of the mode of an EFS."""
    there = (*mistake.steps[:-1], "throughput_mibps")
    return whole_number(replace(mistake, steps=there, value=str(mistake.value)))


def _near(text: str, choices: Sequence[str]) -> list[str]:
    """Choices that a text can mean, the likeliest first."""
    near = [choice for choice in choices if _plain(choice) == _plain(text)]
    near += [choice for choice in choices if text and _plain(choice).startswith(_plain(text))]
    near += difflib.get_close_matches(text, choices, n=1, cutoff=SIMILAR)
    return near + ([*choices] if len(choices) == 1 else [])


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
    """Nothing where something is needed: the section that needs it can go, where nothing needs the section."""
    error, section = _wrong_kind(mistake, "not be empty"), mistake.steps[:-1]
    if mistake.value == [] and is_required(mistake.steps) and not is_required(section):
        return replace(error, fix=f"{error.fix}; or delete {section[-1]}")
    return error


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
    text, whole = mistake.text.strip('"'), ""
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        text, whole = f"{text}T11:30:00Z", "the whole time, such as "
    elif re.fullmatch(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?", text):
        text = text.replace(" ", "T") + "Z"
    else:
        text = "2027-01-01T11:30:00Z"
    return mistake.error("be a time with a time zone", f"write {whole}{as_yaml(text)}", text)


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
    "greater_than": out_of_bounds,
    "greater_than_equal": out_of_bounds,
    "less_than": out_of_bounds,
    "less_than_equal": out_of_bounds,
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
