"""Configuration of the policies by a security team, and its errors.

A configuration is what `pulumi preview --policy-pack-config` takes (pulumi 3.259, pkg/resource/analyzer/
config.go): for each policy a level, or settings with the level among them; for "all" a level. The engine
ignores a policy that does not exist. Here a policy that is misspelt, or that is on without what it needs,
is an error: nobody must believe that it holds.
"""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from policy_pack.policies import RULES
from policy_pack.resource import Config, Rule
from trainyard import command_line
from trainyard.problems import SIMILAR, InputError
from trainyard.settings.reading.files import MOST_BYTES
from trainyard.settings.reading.mistake import shown
from trainyard.settings.reading.secrets.secrets import hidden
from trainyard.settings.reading.yaml_file import read_documents

LEVEL, ALL = "enforcementLevel", "all"
ADVISORY, MANDATORY, DISABLED = "advisory", "mandatory", "disabled"
LEVELS = (ADVISORY, MANDATORY, DISABLED)
REMEDIATE = "remediate"
"""One more level of the engine, for policies that repair what they find. No policy here does."""
CHECKOUT = Path(__file__).resolve().parents[1]
CONFIG = CHECKOUT / "policy_pack" / "config.json"
BY_NAME = {rule.name: rule for rule in RULES}
WRITE_NOTHING = "write {}, which leaves off what must be configured"


def main(arguments: list[str]) -> int:
    """Print what is wrong with a file that configures the policies; 1 where something is."""
    parser = command_line.parser(
        "policy_pack.configured", "Say what is wrong with a file that configures the policies."
    )
    parser.add_argument("file", metavar="FILE", nargs="?", type=Path, default=CONFIG)
    return 1 if sound(parser.parse_args(arguments).file) is None else 0


def sound(file: Path) -> Mapping[str, Any] | None:
    """Configuration of a file; None where it has errors, which are printed."""
    from trainyard.reports.stack_file import errors_of  # only here: the engine's pack needs no plan

    configured, errors = read_config(file)
    if errors:
        print(errors_of(named(file), errors))
        return None
    return configured


def named(file: Path) -> str:
    """A file, as messages name it."""
    return str(file.relative_to(CHECKOUT)) if file.is_relative_to(CHECKOUT) else str(file)


def read_config(file: Path) -> tuple[Mapping[str, Any], tuple[InputError, ...]]:
    """Configuration of a file, and all its errors."""
    name = named(file)
    try:
        with file.open("rb") as opened:
            content = opened.read(MOST_BYTES + 1)
    except OSError as error:
        unread = _error("", "be a file that can be read", error.strerror, WRITE_NOTHING)
        return {}, (replace(unread, file=name),)
    twice: list[str] = []
    try:
        text = content.decode()
        given = _parsed(text, twice)
    except (ValueError, RecursionError) as error:
        return {}, (replace(_no_json(error, content), file=name),)
    documents, _ = read_documents(text, name)
    lines = documents[0].lines if documents else {}
    by_path = {".".join(map(str, path)): line for path, line in lines.items()}
    errors = [*map(_set_twice, twice), *config_errors(given)]
    located = [replace(each, file=name, line=_line(by_path, each.path)) for each in errors]
    return given if isinstance(given, dict) else {}, tuple(located)


def config_errors(given: Any) -> Iterator[InputError]:
    """Errors of a configuration."""
    if not isinstance(given, Mapping):
        yield _error("", "be a map of policies", given, WRITE_NOTHING, {})
        return
    for name, entry in given.items():
        if name == ALL:
            yield from _entry_errors(name, entry, {})
        elif name in BY_NAME:
            yield from _entry_errors(name, entry, BY_NAME[name].config)
        else:
            yield _unknown(name, "policy", [*BY_NAME, ALL])
    for rule in RULES:
        if _is_on(rule, given):
            entry = given.get(rule.name)
            missing = [key for key in rule.needs_config if not _has(entry, key)]
            yield from (_missing(rule, key, _meant(_level(entry))) for key in missing)


def chosen(rule: Rule, given: Mapping[str, Any]) -> tuple[str, Config]:
    """The level of a policy and its settings, in a configuration without errors. A policy that must be
    configured is disabled until it is."""
    entry = given.get(rule.name, {})
    settings = {} if isinstance(entry, str) else {**entry}
    settings.pop(LEVEL, None)
    defaults = {key: each["default"] for key, each in rule.config.items() if "default" in each}
    level = _level(entry) or _level(given.get(ALL))
    if any(key not in settings for key in rule.needs_config):
        return DISABLED, defaults
    return level or (ADVISORY if rule.advisory else MANDATORY), {**defaults, **settings}


def _parsed(text: str, twice: list[str]) -> Any:
    """A JSON text as the engine reads it. Adds to `twice` the keys that one map has twice, of which
    the engine would take the last. Raises ValueError, RecursionError."""

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in found]
        twice.extend(sorted({key for key in keys if keys.count(key) > 1}))
        return dict(found)

    return json.loads(
        text,
        object_pairs_hook=pairs,
        parse_constant=_finite,
        parse_float=_finite,
        parse_int=lambda digits: int(_finite(digits)),
    )


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"no number is {text[:20]}")
    return number


def _no_json(error: Exception, content: bytes) -> InputError:
    line, reason = getattr(error, "lineno", 1), getattr(error, "msg", str(error))
    if isinstance(error, UnicodeDecodeError):
        reason = "other bytes than those of UTF-8"
    if isinstance(error, RecursionError):
        reason = "too many levels"
    lines = content.decode(errors="replace").split("\n")
    return InputError(
        path="",
        line=line,
        must=f"be JSON ({reason})",
        got=hidden(shown(lines[line - 1].strip()))[0] if content.strip() else "nothing",
        fix=f"correct it, or {WRITE_NOTHING}",
    )


def _line(lines: Mapping[str, int], path: str) -> int:
    """The line of a value; of the nearest value above it where it is not there."""
    while path and path not in lines:
        path = path.rpartition(".")[0]
    return lines.get(path, 0)


def _set_twice(key: str) -> InputError:
    return InputError(path=key, must="be set once", got="two values", fix="delete one of the two")


def _error(path: str, must: str, got: Any, fix: str, write: Any = None) -> InputError:
    return InputError(path=path, must=must, got=hidden(shown(got))[0], fix=fix, write=write)


def _entry_errors(name: str, entry: Any, settings: Mapping[str, Any]) -> Iterator[InputError]:
    """Errors in the configuration of one policy. `settings`: JSON schema of each of its own."""
    if isinstance(entry, str):
        yield from _level_errors(name, entry)
    elif not isinstance(entry, Mapping):
        example = {key: each["examples"][0] for key, each in settings.items()} or MANDATORY
        must = "be settings or a level" if settings else "be a level"
        yield _error(name, must, entry, f"write {json.dumps(example)}", example)
    else:
        for key, value in entry.items():
            path = f"{name}.{key}"
            if key == LEVEL:
                yield from _level_errors(path, value)
            elif key in settings:
                yield from _value_errors(path, value, settings[key])
            else:
                yield _unknown(path, "setting", [LEVEL, *settings])


def _level_errors(path: str, level: Any) -> Iterator[InputError]:
    if level not in LEVELS:
        known = ", ".join(LEVELS)
        meant = MANDATORY if level == REMEDIATE else _meant(level)
        fix = f"write {json.dumps(meant)}" if meant else f"write one of {known}"
        yield _error(path, f"be one of {known}", level, fix, meant)


def _value_errors(path: str, value: Any, schema: Mapping[str, Any]) -> Iterator[InputError]:
    """Errors of a setting, by its JSON schema: a number, or a list of texts."""
    [example] = schema["examples"]
    if schema["type"] == "number":
        least = schema["exclusiveMinimum"]
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or value <= least:
            yield _error(path, f"be a number above {least}", value, f"write {example}", example)
    elif not isinstance(value, list) or not value:
        listed = [value] if isinstance(value, str) and value else example
        must = "be a list, not empty"
        yield _error(path, must, value, f"write {json.dumps(listed)}", listed)
    else:
        for number, item in enumerate(value):
            if not isinstance(item, str) or not item.strip():
                fix = f"write {json.dumps(example[0])}"
                yield _error(f"{path}.{number}", "be text, not empty", item, fix, example[0])


def _unknown(path: str, what: str, known: Sequence[str]) -> InputError:
    key = path if what == "policy" else path.partition(".")[2]
    near = _nearest(key, known)
    others = {"policy": "policies"}.get(what, f"{what}s")
    fix = f"did you mean {near}?" if near else f"delete it; the {others} are {', '.join(known)}"
    return _error(path, f"be the name of a {what}", key, fix)


def _missing(rule: Rule, key: str, level: str | None) -> InputError:
    """A setting that a policy needs which is on. `level`: the one that is configured for it."""
    [example] = rule.config[key]["examples"]
    entry = {LEVEL: level, key: example} if level else {key: example}
    return InputError(
        path=f"{rule.name}.{key}",
        must="be set where the policy is on",
        got="nothing",
        fix=f'write {json.dumps({rule.name: entry})[1:-1]}, or "{rule.name}": "{DISABLED}"',
        write=example,
    )


def _is_on(rule: Rule, given: Mapping[str, Any]) -> bool:
    """True where somebody means a policy to judge."""
    entry = given.get(rule.name, {})
    if not isinstance(entry, str | Mapping):
        return False
    level = _level(entry) or _level(given.get(ALL))
    return rule.name in given if level is None else _meant(level) in (ADVISORY, MANDATORY)


def _has(entry: Any, key: str) -> bool:
    return isinstance(entry, Mapping) and key in entry


def _level(entry: Any) -> Any:
    """The level that an entry says; None where it says none."""
    return entry.get(LEVEL) if isinstance(entry, Mapping) else entry


def _meant(level: Any) -> str | None:
    """The level that somebody means who writes "mandtory"."""
    return _nearest(level, LEVELS) if isinstance(level, str) else None


def _nearest(word: str, known: Sequence[str]) -> str | None:
    plain = {name.lower(): name for name in known}
    lower = word.lower().replace("_", "-")
    near = difflib.get_close_matches(lower, plain, n=1, cutoff=SIMILAR)
    near = near or [name for name in plain if name.replace("-", "") == lower.replace("-", "")]
    return plain[near[0]] if near else None


if __name__ == "__main__":
    command_line.run(main)
