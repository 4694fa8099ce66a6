"""Fixes as a machine reads them: the sentence of an error, with its alternatives, as edits of the file.

A fix says what to do in a fixed way: a verb of `ACTS`, then a setting or a value. What leaves a value or a place open
is for a person.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import yaml

from trainyard.problems import REMOVE, InputError

Edit = Callable[[Any], None]
Act = Callable[[str, InputError, Any], Iterator[Edit]]
ROOT = "trainyard:environment"
NAME = r"[A-Za-z_][\w-]*(?:\.[\w-]+)*"
OPEN = re.compile(
    r"…|<[^>]*>|^(?:an?|the|what|each|another|wider|fewer|such|its|text|settings|numbers)\b"
    r"|^(?:for|if|where|which) "
)
"""A value that the sentence leaves open."""


CUT = 60
"""Characters of a value that an error shows at most, where it cuts."""


class NotForAMachine(Exception):
    """The sentence leaves to a person what to write."""


def alternatives(fix: str) -> list[str]:
    """The sentences of a fix that are joined by or; a name behind "delete x or" is deleted, too."""
    inside = r"(?![^{\[(]*[}\])])"
    parts = re.split(rf"(?:[,;] or |; | or (?!(?:less|more|fewer)\b)){inside}", fix)
    return [part.strip() for part in parts]


def ways(error: InputError, raw: Any) -> list[tuple[str, list[Edit]]]:
    """The alternatives of a fix that a machine can apply, each with its words. `raw`: the values of the file."""
    found, others = [], alternatives(error.fix)
    if error.write is not None:
        found, others = [(others[0], [_put(error.path, error.write)])], others[1:]
    for words in others:
        with contextlib.suppress(NotForAMachine):
            found.append((words, [*_acts(words, error, raw)]))
    return found


def applied(raw: Any, edits: list[Edit]) -> Any:
    """The values with the edits of one alternative."""
    made = json.loads(json.dumps(raw))  # an alias of YAML is one object in two places
    for edit in edits:
        edit(made)
    return made


def _acts(words: str, error: InputError, raw: Any) -> Iterator[Edit]:
    """The edits of a sentence, which may have several verbs."""
    sentence = re.sub(r" for an? \w+Job$", "", words)
    for act in re.split(rf",? and (?=(?:{'|'.join(ACTS)}) )", sentence):
        verb, _, rest = act.partition(" ")
        if verb not in ACTS:
            raise NotForAMachine
        yield from ACTS[verb](rest, error, raw)


def _write(rest: str, error: InputError, raw: Any) -> Iterator[Edit]:
    """write 4, write one of a, b, write key: value under place, write key: value in its place."""
    if found := re.fullmatch(r"(?:one|some) of ([\w/-][^ ]*(?:, .*)?)", rest):
        yield _put(error.path, _value(found[1].split(", ")[0]))
        return
    if found := re.fullmatch(rf"({NAME}): (.*?)(?: or more)? (?:under|in) ({NAME})(?:,.*)?", rest):
        yield _put(f"{found[3]}.{found[1]}", _value(found[2]))
        return
    if rest.endswith(" in its place"):
        yield _put(error.path, REMOVE)
        rest = rest.removesuffix(" in its place")
    rest = rest.removeprefix("it without quotes: ")
    rest = re.sub(r"^(?:(?:one|a value|.*,) such as|such as|at most|fewer than) ", "", rest)
    rest = re.sub(r" or (?:less|more)$", "", rest)
    first, *others = re.split(r",? (?:and|with) (?=[\w.]+: )", rest)
    if found := re.fullmatch(rf"({NAME}): (.*)", first):
        yield _put(_place(found[1], error, raw), _value(found[2]))
    elif _is_in_text(error, raw):
        yield _replaced(error.path, error.got, first)
    else:
        yield _put(error.path, _value(first))
    for other in others:
        key, _, value = other.partition(": ")
        yield _put(_place(key, error, raw), _value(value))


def _delete(rest: str, error: InputError, raw: Any) -> Iterator[Edit]:
    if rest in ("it", "the line"):
        inside = _is_in_text(error, raw)
        yield _replaced(error.path, error.got, "") if inside else _put(error.path, REMOVE)
    elif re.fullmatch(NAME, rest):
        yield _put(_place(rest, error, raw), REMOVE)
    else:
        raise NotForAMachine


def _add(rest: str, error: InputError, raw: Any) -> Iterator[Edit]:
    found = re.fullmatch(rf"({NAME}): (.*)", rest.removesuffix(" to the job"))
    if not found:
        raise NotForAMachine
    yield _put(_place(found[1], error, raw), _value(found[2]))


def _set(rest: str, error: InputError, raw: Any) -> Iterator[Edit]:
    found = re.fullmatch(rf"({NAME}) to (\S+)", rest)
    if not found:
        raise NotForAMachine
    yield _put(_place(found[1], error, raw), _value(found[2]))


def _rename(rest: str, error: InputError, raw: Any) -> Iterator[Edit]:
    found = re.fullmatch(r"it(?: to|, such as|, for example) (\S+)", rest)
    if not found:
        raise NotForAMachine
    yield _renamed(error.path, found[1])


def _mean(rest: str, error: InputError, raw: Any) -> Iterator[Edit]:
    found = re.fullmatch(r"you mean (\S+)\?", rest)
    if not found:
        raise NotForAMachine
    yield _renamed(error.path, found[1])


ACTS: dict[str, Act] = {
    "write": _write,
    "delete": _delete,
    "add": _add,
    "set": _set,
    "raise": _set,
    "lower": _set,
    "rename": _rename,
    "did": _mean,
}
"""Verb → the edits of what follows it."""


def _value(text: str) -> Any:
    """A value as YAML has it."""
    if OPEN.search(text):
        raise NotForAMachine
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError:
        raise NotForAMachine from None
    if isinstance(found, str) and " " in found and not re.search(r"[/=$-]", found):
        raise NotForAMachine
    return found


def steps(raw: Any, path: str) -> list[str | int]:
    """The steps to a place, whether or not it is there: names may have dots in them."""
    found: list[str | int] = []
    place, rest = raw, path
    if isinstance(raw, dict) and ROOT in raw and path.startswith("environment"):
        found.append(ROOT)
        place, rest = raw[ROOT], path[12:]
    while rest:
        if isinstance(place, list) and (number := re.match(r"\[?(\d+)\]?\.?", rest)):
            index = int(number[1])
            rest = rest[number.end() :]
            place = place[index] if index < len(place) else None
            found.append(index)
        else:
            names = place if isinstance(place, dict) else {}
            ends = ("", ".", "[")
            known = (k for k in names if rest[len(k) : len(k) + 1] in ends and rest.startswith(k))
            step = next(known, re.split(r"[.\[]", rest, maxsplit=1)[0])
            rest = rest[len(step) :].removeprefix(".")
            place = names.get(step)
            found.append(step)
    return found


def at(raw: Any, path: str) -> Any:
    """The value at a place; None where there is none."""
    place = raw
    for step in steps(raw, path):
        if isinstance(place, dict):
            place = place.get(step)
        elif isinstance(place, list) and isinstance(step, int) and step < len(place):
            place = place[step]
        else:
            return None
    return place


def _place(name: str, error: InputError, raw: Any) -> str:
    """The setting that a sentence names: in the job that is wrong as a whole, beside the error's place, beside what
    that is in, or from the environment on."""
    first, way = name.split(".")[0], error.path.split(".")
    if name.startswith("environment."):
        return name
    if len(way) == 3 and way[1] == "jobs":
        return f"{error.path}.{name}"
    for depth in range(len(way) - 1, 1, -1):
        if way[depth] == name:
            return ".".join(way[: depth + 1])
        beside = at(raw, ".".join(way[:depth]))
        if isinstance(beside, dict) and first in beside:
            return ".".join([*way[:depth], name])
    return f"environment.{name}" if "." in name else ".".join([*way[:-1], name])


def _is_in_text(error: InputError, raw: Any) -> bool:
    """True where the error is about a part of a longer text, of which `got` is not the cut beginning."""
    place = at(raw, error.path)
    if (
        not error.got
        or isinstance(place, str)
        and place.startswith(error.got)
        and len(error.got) >= CUT
    ):
        return False
    texts = place if isinstance(place, list) else [place]
    return any(isinstance(each, str) and error.got in each for each in texts if each != error.got)


def _put(path: str, value: Any) -> Edit:
    """Write a value, or delete it; of an item that is known by its name, the whole."""

    def edit(raw: Any) -> None:
        *way, last = steps(raw, path)
        if value is REMOVE and last == "name" and way and isinstance(way[-1], int):
            *way, last = way
        place = raw
        for step in way:
            if isinstance(place, dict) and not isinstance(place.get(step), dict | list):
                place[step] = {}
            place = place[step]
        if value is not REMOVE:
            place[last] = json.loads(json.dumps(value))
        elif isinstance(place, dict):
            place.pop(last, None)
        else:
            del place[last]

    return edit


def _replaced(path: str, old: str, new: str) -> Edit:
    """Write a part of a text, or of each text of a list, anew."""

    def edit(raw: Any) -> None:
        text = at(raw, path)
        is_list = isinstance(text, list)
        made = [each.replace(old, new) if isinstance(each, str) else each for each in text]
        _put(path, made if is_list else text.replace(old, new))(raw)

    return edit


def _renamed(path: str, name: str) -> Edit:
    """Give an entry another name; a store, a pool or a job also where it is named."""

    def edit(raw: Any) -> None:
        *way, last = steps(raw, path)
        if way[:1] == [ROOT] and way[1:] in (["storage"], ["pools"], ["jobs"]):
            raw[ROOT] = _with_name(raw[ROOT], str(last), name)
            return
        place = raw
        for step in way:
            place = place[step]
        place[name] = place.pop(last)

    return edit


def _with_name(value: Any, old: str, new: str) -> Any:
    if isinstance(value, dict):
        return {
            new if key == old else key: _with_name(each, old, new) for key, each in value.items()
        }
    if isinstance(value, list):
        return [_with_name(item, old, new) for item in value]
    return new if value == old else value
