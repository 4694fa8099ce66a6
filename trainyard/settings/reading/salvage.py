"""Turns the values of a stack file into types, also where some are wrong: each error is reported,
and something sound stands in for the wrong value."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pydantic

from trainyard.catalog.aws.zones import ZONE_LETTERS
from trainyard.catalog.scalars import engine_value
from trainyard.problems import REMOVE, At, InputError
from trainyard.settings.environment import StackConfig
from trainyard.settings.reading.examples import IN_ARN, IN_REGION
from trainyard.settings.reading.mistake import path_of
from trainyard.settings.reading.mistakes import SET, explained
from trainyard.settings.reading.patterns import as_name
from trainyard.settings.reading.placeholders import (
    WITHOUT_SHELL,
    is_placeholder,
    placeholder_error,
    placeholders_of_value,
)
from trainyard.settings.reading.stand_ins import StandIns, stand_ins
from trainyard.settings.reading.sweep_values import gathered
from trainyard.settings.reading.unknown_settings import setting_meant
from trainyard.settings.reading.yaml_file import Lines

FREE_TEXT = frozenset(("script", "command", "arguments", "env"))
"""Settings of free text, in which a part that looks like a placeholder may be meant."""
Steps = tuple[Any, ...]
"""The way to a value: keys of maps, and numbers in lists. Behind a wrong name stands "[key]"."""
ROUNDS = 6
"""Number of times that a stand-in may cause another error before the file is given up."""
_ADAPTER = pydantic.TypeAdapter(StackConfig)
_BRANCH = re.compile(r"constrained-int$|literal\[")
_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
"""Pydantic's names for a setting that does not exist."""


@dataclass(frozen=True, kw_only=True)
class Salvaged:
    """The types of a stack file."""

    configs: tuple[StackConfig, ...]
    """The stack file; if values are wrong, once with each of their stand-ins. Empty where so much is
    wrong that nothing stands in for it."""
    errors: tuple[InputError, ...]
    stand_ins: StandIns


def salvaged(raw: dict[str, Any], lines: Lines) -> Salvaged:
    """Validate the values of a stack file. `lines`: where they stand."""
    first = _Attempt(raw=copy.deepcopy(raw), lines=lines, which=0)
    config = first.config()
    if not first.errors:
        return Salvaged(configs=(config,) if config else (), errors=(), stand_ins=StandIns())
    second = _Attempt(raw=copy.deepcopy(raw), lines=lines, which=1)
    configs = (config, second.config())
    found = StandIns(paths=tuple(dict.fromkeys(first.stood_in)), renamed=first.renamed)
    return Salvaged(
        configs=tuple(each for each in configs if each) if all(configs) else (),
        errors=tuple(first.errors),
        stand_ins=found,
    )


@dataclass(kw_only=True)
class _Attempt:
    """The values with one stand-in for each wrong one."""

    raw: dict[str, Any]
    lines: Lines
    which: int
    """0 for the first stand-in of each wrong value, 1 for the second."""
    errors: list[InputError] = field(default_factory=list)
    stood_in: list[str] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)

    def config(self) -> StackConfig | None:
        """The types; None where too much is wrong."""
        for section in ("aws", "environment", "team"):
            self._fill(self.raw.get(section), (section,))
        self.errors += gathered(self.raw)
        for _ in range(ROUNDS):
            try:
                return _ADAPTER.validate_python(self.raw)
            except pydantic.ValidationError as error:
                wrong = error.errors(include_url=False)
            self._correct(_by_setting(self.raw, wrong))
        return None

    def _fill(self, value: Any, steps: Steps) -> None:
        """Report each placeholder at and below a place, and put stand-ins there. A script, a variable and
        a directory of runs may mean what looks like a part of one: rules of jobs judge these."""
        if isinstance(value, dict):
            for key in [*value]:
                if isinstance(key, str) and (found := placeholders_of_value(key)):
                    self._blank((*steps, key), found[0])
                    self._rename((*steps, key), path_of((*steps, key)))
                else:
                    self._fill(value[key], (*steps, key))
        elif isinstance(value, list):
            items = [
                (*steps, number) for number, item in enumerate(value) if _blank_in(item, steps)
            ]
            for place in items:
                self._blank(place, _blank_in(_at(self.raw, place), steps))
            if items:
                self._stand_in(steps, items, None)
            else:
                for number, item in enumerate(value):
                    self._fill(item, (*steps, number))
        elif found := _blank_in(value, steps):
            self._blank(steps, found)
            self._stand_in(steps, [steps], self._own_runtime() if steps[-1] == "runtime" else None)

    def _own_runtime(self) -> str | None:
        """A runtime of the file: jobs may need what it has, and upstream's lack."""
        trainer = (self.raw.get("environment") or {}).get("trainer")
        own = trainer.get("own_runtimes") if isinstance(trainer, dict) else None
        return next(iter(own), None) if isinstance(own, dict) else None

    def _blank(self, steps: Steps, text: str) -> None:
        self.errors.append(placeholder_error(At(path_of(steps)), text))

    def _correct(self, wrong: Mapping[Steps, Mapping[Steps, Sequence[Any]]]) -> None:
        """Report what is wrong and put stand-ins there. `wrong`: setting → place in it → pydantic's
        errors."""
        known = StandIns(paths=tuple(self.stood_in))
        errors = {
            place: self._ours(_merged([_explained(each, self.lines) for each in mistakes]))
            for places in wrong.values()
            for place, mistakes in places.items()
        }
        named = {path for error in errors.values() if (path := setting_meant(error))}
        self.errors += [
            error
            for error in errors.values()
            if not known.covers(error.path) and not (error.must == SET and error.path in named)
        ]
        # A name is corrected after what stands below it.
        for setting, places in sorted(wrong.items(), key=lambda each: "[key]" in each[0]):
            place, mistakes = next(iter(places.items()))
            if mistakes[0]["type"] in _UNKNOWN:
                _put(self.raw, setting, REMOVE)
            elif setting[-1] == "[key]":
                self._rename(setting[:-1], errors[place].path)
            else:
                self._stand_in(setting, places, errors[place].write)

    def _ours(self, error: InputError) -> InputError:
        """The error with region and account of the stack file in what its fix proposes."""
        aws, region, own = self.raw.get("aws"), self.raw.get("region"), dict[str, str]()
        ids = aws.get("allowedAccountIds") if isinstance(aws, dict) else None
        if isinstance(ids, list) and ids and isinstance(ids[0], str):
            own[IN_ARN] = f":{ids[0]}:"
        if isinstance(region, str) and region in ZONE_LETTERS:
            own[IN_REGION] = region
        return replace(error, fix=_with(own, error.fix), write=_with(own, error.write))

    def _stand_in(self, setting: Steps, places: Iterable[Steps], meant: Any) -> None:
        """Put a stand-in into the place of a setting. `places`: of what is wrong with it. `meant`:
        what the file means, if it is known."""
        if setting not in places:  # the items of a list: it stays, without them
            items = enumerate(_at(self.raw, setting))
            meant = [item for number, item in items if (*setting, number) not in places] or None
        values = stand_ins([str(step) for step in setting], meant)
        _put(self.raw, setting, values[self.which])
        self.stood_in.append(path_of(setting))

    def _rename(self, place: Steps, path: str) -> None:
        """Give an entry whose name is wrong a name that is sound."""
        *above, wrong = place
        holder = _at(self.raw, above)
        name = as_name(str(wrong), str(above[-1]))
        while name in holder:
            name = f"{name[:30]}-x"
        holder[name] = holder.pop(wrong)
        self.renamed[path_of([*above, name])] = path


def _with(own: Mapping[str, str], value: Any) -> Any:
    """A value with other words in all its texts."""
    if isinstance(value, dict):
        return {_with(own, key): _with(own, item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with(own, item) for item in value]
    if isinstance(value, str):
        for words, instead in own.items():
            value = value.replace(words, instead)
    return value


def _blank_in(value: Any, steps: Steps) -> str:
    """The placeholder in a value; empty where there is none."""
    if not isinstance(value, str) or not (found := placeholders_of_value(value)):
        return ""
    if not FREE_TEXT & {*map(str, steps)}:
        return found[0]
    if value.startswith("$"):  # in a command a shell may read it
        return value.strip() if "env" in steps and WITHOUT_SHELL.fullmatch(value.strip()) else ""
    return value.strip() if is_placeholder(value) else ""


def _by_setting(raw: Any, wrong: Iterable[Any]) -> dict[Steps, dict[Steps, list[Any]]]:
    """Pydantic's errors by setting and by place: a value that fits no branch of a union breaks each
    of them. A list is one setting."""
    found: dict[Steps, dict[Steps, list[Any]]] = {}
    for each in wrong:
        place = _place(raw, each["loc"])
        in_list = isinstance(_at(raw, place[:-1]), list)
        setting = place[:-1] if in_list else place
        found.setdefault(setting, {}).setdefault(place, []).append(each)
    return found


def _place(raw: Any, location: Sequence[Any]) -> Steps:
    """The steps to a value: without the kinds of a union, which pydantic names on the way."""
    steps = _steps(location)
    for number, step in enumerate(steps):
        here = _at(raw, steps[:number])
        if not isinstance(here, dict | list):
            return steps[:number]
        if isinstance(here, dict) and step not in here and step != "[key]":
            return steps[: number + 1]
    return steps


def _steps(location: Sequence[Any]) -> Steps:
    """A location of pydantic without the kind of job that it names behind a job's name, and of secret
    behind a variable's or a token's, without that of the network, and without the branch of a union that it names
    at the end."""
    if location[1:2] == ("jobs",) and location[3:4] in (("job",), ("manifest",)):
        location = (*location[:3], *location[4:])
    for setting, secret in ((3, 5), (6, 7)):
        named = location[setting : setting + 1] in (("secrets",), ("token",))
        if named and location[secret : secret + 1] in (("kubernetes",), ("managed",)):
            location = (*location[:secret], *location[secret + 1 :])
    if location[1:2] == ("network",) and location[2:3] in (("own",), ("existing",)):
        location = (*location[:2], *location[3:])
    if location[-4:-3] == ("over",):  # a value of a sweep: text, a number, true or false
        location = location[:-1]
    return tuple(location[:-1] if _BRANCH.match(str(location[-1])) else location)


def _at(raw: Any, steps: Iterable[Any]) -> Any:
    for step in steps:
        raw = raw.get(step) if isinstance(raw, dict) else raw[step]
    return raw


def _put(raw: Any, place: Sequence[Any], value: Any) -> None:
    holder = _at(raw, place[:-1])
    if value is REMOVE:
        holder.pop(place[-1], None)
    else:
        holder[place[-1]] = copy.deepcopy(value)


def _explained(wrong: Any, lines: Lines) -> InputError:
    """An error of pydantic as one of ours."""
    location = wrong["loc"]
    steps = _steps(location)
    written = lines.written.get(path_of(steps), "")
    if written and repr(engine_value(written)) != repr(wrong.get("input")):
        written = ""  # the engine was given another value than the file has
    in_manifest = location[1:2] == ("jobs",) and "manifest" in location[3:4]
    return explained(steps, wrong, in_manifest, written)


def _merged(errors: Sequence[InputError]) -> InputError:
    """One error for one place."""
    first = errors[0]
    for error in errors[1:]:
        if error != first:
            first = replace(
                first,
                must=f"{first.must} or {error.must}",
                fix=f"{first.fix}; or {error.fix}",
                write=error.write if first.write is None else first.write,
            )
    return first
