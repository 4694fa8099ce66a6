"""Refusals of pydantic as errors that say what to write instead.

`EXPLANATIONS` has a function for each of pydantic's error types, `PATTERNS` words for each pattern of
a setting's type.
"""

from __future__ import annotations

import difflib
import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import date
from typing import Any, get_origin

from trainyard.problems import REMOVE, InputError
from trainyard.settings.aws import KEYS, REPLACEMENTS
from trainyard.settings.environment import SETTING_HINTS
from trainyard.settings.job import NO_SETTINGS, JobConfig, ManifestConfig
from trainyard.settings.reading.examples import PATTERNS, as_name, example, known_version
from trainyard.settings.reading.lookup import is_required, keys_at, types_at
from trainyard.settings.reading.yaml_file import as_yaml

SIMILAR = 0.74
"""Similarity of two names from which one is proposed for the other; below it they mean different
things: network_policies is not network."""
COMMAND_LINES = ("arguments", "command")
"""Settings that list the words of a command line."""
UNITS = {"gib": r"gi?b?", "minutes": r"m|min|minutes?", "mbps": r"mb(ps|/s)"}
"""Unit in a setting's name → how people write it behind the number."""


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """One error of pydantic."""

    steps: tuple[str, ...]
    """The path to the value."""
    type: str
    """Pydantic's name for what is wrong."""
    value: Any
    limits: Mapping[str, Any]
    """The bound, pattern or choices that the value breaks."""
    is_key: bool
    """The last step is itself what is wrong: the name of a pool, for example."""
    in_manifest: bool
    """The setting stands in a job that is a YAML file."""
    written: str
    """The value's characters in the stack file, where they are known and it is no text."""

    @property
    def path(self) -> str:
        return path_of(self.steps)

    @property
    def text(self) -> str:
        """The value as the file writes it; a text without its quotes."""
        return self.value if isinstance(self.value, str) else self.written or shown(self.value)

    @property
    def key(self) -> str:
        return self.steps[-1]

    def error(self, must: str, fix: str, write: Any = None) -> InputError:
        return InputError(
            path=self.path, must=must, got=self.written or shown(self.value), fix=fix, write=write
        )


def path_of(steps: Sequence[Any]) -> str:
    """aws:assumeRoles.0.roleArn, as the stack file writes it; or environment.zone."""
    first, *rest = map(str, steps)
    if first == "region":
        return "aws:region"
    return f"aws:{'.'.join(rest)}" if first == "aws" else ".".join((first, *rest))


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
    if is_encrypted and explanation is not _unknown_setting:
        return _encrypted(mistake)
    return explanation(mistake)


def shown(value: Any) -> str:
    """A value as JSON, cut to 80 characters, without what is encrypted in it."""
    return json.dumps(_without_secrets(value), default=str)[:80]


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        if "secure" in value:
            return "a secret"
        return {str(key): _without_secrets(item) for key, item in value.items()}
    return [_without_secrets(item) for item in value] if isinstance(value, list) else value


def _encrypted(mistake: Mistake) -> InputError:
    return InputError(
        path=mistake.path,
        must="not be encrypted",
        got="a secret",
        fix=(
            "write the value in clear if it is no secret; a job takes a secret from AWS Secrets"
            " Manager, as in secrets: {HF_TOKEN: {secrets_manager: vision/hf-token, key: token}}"
        ),
    )


def _unknown_setting(mistake: Mistake) -> InputError:
    if (
        mistake.steps[0] == "aws"
        and len(mistake.steps) == 2
        and (instead := REPLACEMENTS.get(mistake.key))
    ):
        return InputError(
            path=mistake.path,
            must="not be set in a stack file",
            got="a secret" if mistake.key in KEYS else shown(mistake.value),
            fix=instead,
            write=REMOVE,
        )
    if other := _setting_of_other_jobs(mistake):
        return other
    plain = re.sub("[-_]", "", mistake.key).lower()
    above = mistake.steps[-2:-1] if "environment" in mistake.steps[-3:-2] else mistake.steps[-3:-1]
    hints = (SETTING_HINTS.get((holder, plain)) for holder in reversed(above))
    hint = NO_SETTINGS.get(plain) if "jobs" in mistake.steps else next(filter(None, hints), None)
    fix = hint or _known_settings(mistake)
    return InputError(
        path=mistake.path,
        must="be the name of a setting",
        got=as_yaml(mistake.key)[:80],
        fix=fix,
        write=REMOVE if fix.startswith("delete it") else None,
    )


def _setting_of_other_jobs(mistake: Mistake) -> InputError | None:
    """A setting that only a job described here has, in a job that is a file; or the reverse."""
    if len(mistake.steps) != 4 or mistake.steps[1] != "jobs":
        return None
    typed, from_file = ({field.name for field in fields(c)} for c in (JobConfig, ManifestConfig))
    if mistake.in_manifest and mistake.key in typed:
        says = "says numNodes or replicas" if mistake.key == "nodes" else "says it"
        return mistake.error(
            "not be set beside manifest", f"delete it; the manifest file itself {says}", REMOVE
        )
    if not mistake.in_manifest and mistake.key in from_file - typed:
        return mistake.error("not be set without manifest", "delete it", REMOVE)
    return None


def _known_settings(mistake: Mistake) -> str:
    known = keys_at(mistake.steps[:-1]) if mistake.steps[:-1] else ["environment", "team"]
    lower = mistake.key.lower().replace("-", "_")
    near = difflib.get_close_matches(lower, known, n=1, cutoff=SIMILAR)
    near = near or [name for name in known if name.lower() == lower.replace("_", "")]
    return f"did you mean {near[0]}?" if near else f"delete it; the settings are {', '.join(known)}"


def _missing(mistake: Mistake) -> InputError:
    value = example(mistake.steps)
    fix = f"add {mistake.key}" if value is None else f"add {mistake.key}: {as_yaml(value)}"
    return InputError(path=mistake.path, must="be set", got="nothing", fix=fix, write=value)


def _not_text(mistake: Mistake) -> InputError:
    if isinstance(mistake.value, bool) and example(mistake.steps) is not None:
        return _wrong_kind(mistake, "be text")
    if isinstance(mistake.value, int | float | date):
        meant = known_version(mistake.steps, mistake.text) or mistake.text
        return mistake.error("be text", f"write {as_yaml(meant)}", meant)
    if isinstance(mistake.value, list) and len(mistake.value) == 1:
        [only] = mistake.value
        if isinstance(only, str):
            return mistake.error("be text, not a list", f"write {as_yaml(only)}", only)
    if isinstance(mistake.value, dict) and {"secret", "secrets_manager"} & mistake.value.keys():
        says = f"secrets: {{{mistake.key}: {as_yaml(mistake.value)}}}"
        return mistake.error("be text", f"delete it, and write {says} in the job")
    return _wrong_kind(mistake, "be text")


def _not_a_whole_number(mistake: Mistake) -> InputError:
    number = _number(mistake)
    if number is not None:
        return mistake.error("be a whole number", f"write {number}", number)
    unit = next((unit for unit in UNITS if unit in mistake.key), "")
    suffix = f", without a unit: it is in {unit}" if unit and isinstance(mistake.value, str) else ""
    return _wrong_kind(mistake, "be a whole number", suffix)


def _number(mistake: Mistake) -> int | None:
    """4 of 4.0, "4" and 4GiB, where GiB is the setting's unit."""
    if isinstance(mistake.value, float) and mistake.value.is_integer():
        return int(mistake.value)
    units = "|".join(forms for unit, forms in UNITS.items() if unit in mistake.key.split("_"))
    found = re.fullmatch(rf"(\d{{1,9}})\s*({units})?", str(mistake.value).strip(), re.IGNORECASE)
    return int(found[1]) if found and isinstance(mistake.value, str) else None


def _not_a_number(mistake: Mistake) -> InputError:
    return _wrong_kind(mistake, "be a number")


def _out_of_bounds(mistake: Mistake) -> InputError:
    """The bound is what to write; where the bound itself is too much or too little, the next whole
    number."""
    words = {"ge": "at least", "le": "at most", "gt": "more than", "lt": "less than"}
    [(kind, bound)] = [(kind, mistake.limits[kind]) for kind in words if kind in mistake.limits]
    whole = int(bound) if float(bound).is_integer() else bound
    nearest = whole + {"gt": 1, "lt": -1}.get(kind, 0)
    return mistake.error(f"be {words[kind]} {whole}", f"write {nearest}", nearest)


def _not_true_or_false(mistake: Mistake) -> InputError:
    meant = {"yes": True, "true": True, "on": True, "1": True} | dict.fromkeys(
        ("no", "false", "off", "0"), False
    )
    value = meant.get(str(mistake.value).lower())
    if value is not None:
        return mistake.error("be true or false", f"write {as_yaml(value)}", value)
    return _wrong_kind(mistake, "be true or false", ", true or false")


def _no_choice(mistake: Mistake) -> InputError:
    choices = [text for _, text in re.findall(r"(['\"])(.+?)\1", mistake.limits["expected"])]
    listed = ", ".join(choices)
    must = f"be {listed}" if len(choices) == 1 else f"be one of {listed}"
    text = str(mistake.value)
    near = [choice for choice in choices if _plain(choice) == _plain(text)]
    near += [choice for choice in choices if text and _plain(choice).startswith(_plain(text))]
    near += difflib.get_close_matches(text, choices, n=1, cutoff=SIMILAR)
    near += choices if len(choices) == 1 else []
    if near:
        return mistake.error(must, f"write {near[0]}", near[0])
    return mistake.error(must, f"write one of {listed}")


def _plain(text: str) -> str:
    return re.sub("[-_ ]", "", text).lower()


def _no_match(mistake: Mistake) -> InputError:
    pattern = PATTERNS.get(mistake.limits["pattern"])
    if pattern is None:
        return _anything(mistake)
    meant = pattern.meant(str(mistake.value))
    if not mistake.is_key and mistake.steps != ("stack",):
        fix = (
            f"write {as_yaml(meant)}" if meant else f"write one such as {as_yaml(pattern.example)}"
        )
        return mistake.error(f"be {pattern.is_}", fix, meant or pattern.example)
    if mistake.is_key:
        meant = as_name(mistake.key, mistake.steps[-2])
        return mistake.error(f"be {pattern.is_}", f"rename it to {meant}")
    return mistake.error(
        f"be {pattern.is_}", f"rename the stack, and its file to Pulumi.{meant}.yaml"
    )


def _too_short(mistake: Mistake) -> InputError:
    return _wrong_kind(mistake, "not be empty")


def _not_a_list(mistake: Mistake) -> InputError:
    if isinstance(mistake.value, str | int | float | date) and mistake.value != "":
        item = mistake.text if str in types_at([*mistake.steps, "0"]) else mistake.value
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
    return _wrong_kind(mistake, "be a map of names")


def _is_pair(item: Any) -> bool:
    """{name: A, value: "1"}, as Kubernetes writes a variable."""
    return isinstance(item, dict) and {*item} == {"name", "value"} and isinstance(item["name"], str)


def _not_settings(mistake: Mistake) -> InputError:
    """Something else where a map of settings belongs: nothing, or the one setting that it needs."""
    classes = [found for found in types_at(mistake.steps) if is_dataclass(found)]
    required = [
        field.name
        for field in (fields(classes[0]) if classes else ())
        if field.default is MISSING and field.default_factory is MISSING
    ]
    if isinstance(mistake.value, str) and mistake.value and len(required) == 1:
        lists = any(get_origin(each) is tuple for each in types_at((*mistake.steps, required[0])))
        meant = {required[0]: [mistake.value] if lists else mistake.value}
        return mistake.error("be settings", f"write {as_yaml(meant)}", meant)
    if classes and not required and example(mistake.steps) is None:
        empty, fix = mistake.value is None, f"write {mistake.key}: {{}}"
        must = f"be settings{', not empty' * empty}"
        return mistake.error(must, f"{fix}{', or delete the line' * empty}", {})
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


def _wrong_kind(mistake: Mistake, must: str, suffix: str = "") -> InputError:
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
        return mistake.error(must, f"write {what}{suffix}")
    return mistake.error(must, f"write a value such as {as_yaml(value)}{suffix}", value)


def _anything(mistake: Mistake) -> InputError:
    """An error type that nothing above explains: no setting of today raises one."""
    value = example(mistake.steps)
    fix = "write another value, as docs/stack-file.md describes it"
    return mistake.error(
        "be a value of its type",
        fix if value is None else f"write a value such as {as_yaml(value)}",
    )


EXPLANATIONS: dict[str, Callable[[Mistake], InputError]] = {
    "extra_forbidden": _unknown_setting,
    "unexpected_keyword_argument": _unknown_setting,
    "invalid_key": _unknown_setting,
    "missing": _missing,
    "missing_keyword_only_argument": _missing,
    "string_type": _not_text,
    "string_unicode": _not_text,
    "string_too_short": _too_short,
    "too_short": _too_short,
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
