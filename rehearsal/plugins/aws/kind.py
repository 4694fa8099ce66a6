"""What the plugin knows of every resource type, and what the types of one service share."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from rehearsal.plugins.aws.account import Account
from rehearsal.plugins.base import Refused
from rehearsal.plugins.wire import Properties, words

MAPS = frozenset({"tags", "labels"})
"""Properties whose keys are the user's: a missing key was taken away, while a missing field is left to AWS."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """An object as AWS describes it now."""

    state: Properties
    tags: dict[str, str] = field(default_factory=dict)
    status: str = ""
    reason: str = ""
    """Why it is in that status, where AWS says so."""
    id: str = ""
    """Its lasting id, where it can be asked for by another one as well (on import)."""


@dataclass(frozen=True, kw_only=True)
class Minutes:
    """How long to wait at most, as the genuine provider does."""

    create: float = 20
    update: float = 20
    delete: float = 20


@dataclass(frozen=True, kw_only=True)
class Tagging:
    """How a service's objects get and lose tags once they are there."""

    target: str
    """The parameter that names the object."""
    by: str = ""
    """The property of the state it is named by, if not by its id."""
    tag: str = "tag_resource"
    untag: str = "untag_resource"
    tags: str = "Tags"
    keys: str = "TagKeys"
    paired: bool = True
    """Whether tags are a list of Key and Value, and not a map."""
    wrap: Callable[[str], Any] = str


class Kind:
    """One resource type: which inputs it has and what is done to it."""

    token: ClassVar[str]
    inputs: ClassVar[frozenset[str]]
    """What a program may give, besides region and tags."""
    replaces: ClassVar[frozenset[str]] = frozenset()
    """Property paths that no update can change."""
    later: ClassVar[frozenset[str]] = frozenset()
    """Inputs that no create call takes: `change` sets them right after it."""
    local: ClassVar[frozenset[str]] = frozenset()
    """Inputs that tell the plugin how to act: no parameter of AWS, only remembered in the state."""
    unread: ClassVar[frozenset[str]] = frozenset()
    """Inputs that AWS takes but does not tell back."""
    chosen: ClassVar[frozenset[str]] = frozenset()
    """Inputs that AWS chooses where the program is silent; being silent again changes nothing."""
    defaults: ClassVar[Properties] = {}
    """What a silent program means."""
    unknown: ClassVar[Properties] = {}
    """Fields of given objects that only AWS knows, as UNKNOWN for the preview; missing properties need no entry."""
    names: ClassVar[dict[str, str]] = {}
    """Property → its name in AWS, where that is not the same in AWS's own case."""
    auto_name: ClassVar[str] = ""
    """The input that gets a name of our making where the program gives none."""
    alone: ClassVar[bool] = False
    """Whether AWS refuses a second one beside it, so that a replacement must delete it first."""
    service: ClassVar[str]
    tagging: ClassVar[Tagging | None] = None
    """None for a type that has no tags."""
    minutes: ClassVar[Minutes] = Minutes()
    busy: ClassVar[frozenset[str]] = words("pending creating updating CREATING PENDING UPDATING deleting DELETING")
    good: ClassVar[frozenset[str]] = words("available ACTIVE AVAILABLE") | {""}
    """Any other status is a failure."""

    def create(self, aws: Account, new: Properties) -> str:
        """Make the object with all its tags and give its id."""
        raise NotImplementedError

    def find(self, aws: Account, id_: str, hint: Properties) -> Seen | None:
        """The object by its id; `hint` is the state kept so far, empty on import."""
        raise NotImplementedError

    def finish(self, aws: Account, id_: str, new: Properties, state: Properties) -> None:
        """What comes after the create call, once the object is ready."""
        if late := self.later & new.keys():
            self.change(aws, id_, late, new, state)

    def change(self, aws: Account, id_: str, changed: frozenset[str], new: Properties, state: Properties) -> None:
        """Set the changed properties of an object that is there."""
        raise Refused(f"{self.token}: cannot change {', '.join(sorted(changed))}")

    def remove(self, aws: Account, id_: str, state: Properties) -> None:
        raise NotImplementedError

    def retag(self, aws: Account, id_: str, state: Properties, put: dict[str, str], drop: list[str]) -> None:
        way = self.tagging
        assert way
        target = {way.target: way.wrap(state[way.by] if way.by else id_)}
        if put:
            aws.call(self.service, way.tag, **target, **{way.tags: pairs(put) if way.paired else put})
        if drop:
            keys = [{"Key": key} for key in drop] if way.keys == way.tags else drop
            aws.call(self.service, way.untag, **target, **{way.keys: keys})

    def arguments(self, new: Properties, only: Iterable[str] | None = None) -> dict[str, Any]:
        """Inputs as AWS's parameters: all that the create call takes, or only some."""
        wanted = self.inputs - self.later - self.local if only is None else only
        given = {key: new[key] for key in sorted(wanted) if new.get(key) is not None}
        return {self.name(key): self.outward(value) for key, value in given.items()}

    def known(self, answer: dict[str, Any]) -> Properties:
        """The inputs that an answer of AWS tells."""
        pairs = {key: self.inward(answer.get(self.name(key))) for key in self.inputs}
        return {key: value for key, value in pairs.items() if value is not None}

    def name(self, key: str) -> str:
        return self.names.get(key, key)

    def outward(self, value: Any) -> Any:
        return value

    def inward(self, value: Any) -> Any:
        return value


class Pascal(Kind):
    """A type of a service that writes CamelCase, as EC2, IAM, FSx and EFS do."""

    def name(self, key: str) -> str:
        return self.names.get(key) or upper(key)

    def outward(self, value: Any) -> Any:
        return renamed(value, upper)

    def inward(self, value: Any) -> Any:
        return renamed(value, lower)


def upper(key: str) -> str:
    return key[:1].upper() + key[1:]


def lower(key: str) -> str:
    return key[:1].lower() + key[1:]


def snake(word: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", word).lower()


def renamed(value: Any, change: Any) -> Any:
    """The keys of nested properties in the other case."""
    if isinstance(value, dict):
        return {change(key): renamed(inner, change) for key, inner in value.items()}
    return [renamed(inner, change) for inner in value] if isinstance(value, list) else value


def pairs(tags: dict[str, str] | None) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in (tags or {}).items()]


def unpaired(tags: list[dict[str, str]] | None) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in tags or []}


def text(document: Any) -> str:
    """A policy document as text; botocore has parsed some of them already."""
    return document if isinstance(document, str) else json.dumps(document, separators=(",", ":"))


def same(old: Any, new: Any) -> bool:
    """Equal, or both empty, or lists of the same plain values, or JSON texts of the same meaning."""
    if old == new or _empty(old) and _empty(new):
        return True
    if isinstance(old, list) and isinstance(new, list):
        return all(isinstance(v, str) for v in old + new) and sorted(old) == sorted(new)
    if isinstance(old, str) and isinstance(new, str) and old[:1] == new[:1] == "{":
        return _meaning(old) == _meaning(new)
    return False


def _empty(value: Any) -> bool:
    return value is None or value in ("", [], {})


def _meaning(document: str) -> Any:
    try:
        return _normal(json.loads(document))
    except ValueError:
        return document


def _normal(value: Any) -> Any:
    """In IAM's documents a list of one is its element, and order means nothing."""
    if isinstance(value, dict):
        return {key: _normal(inner) for key, inner in value.items()}
    if not isinstance(value, list):
        return value
    normal = sorted((_normal(inner) for inner in value), key=repr)
    return normal[0] if len(normal) == 1 else normal


def filled(properties: Properties, defaults: Properties) -> Properties:
    """The properties with the defaults of what is not given, fields of objects included."""
    given = {key: value for key, value in properties.items() if value is not None}
    for key, default in defaults.items():
        if not isinstance(default, dict):
            given.setdefault(key, default)
        elif key not in MAPS and isinstance(given.get(key, {}), dict):
            given[key] = filled(given.get(key, {}), default)
    return given


def shaped(actual: Any, like: Any) -> Any:
    """What of `actual` the program spoke of, written as it wrote it where that means the same."""
    if same(actual, like):
        return like
    if isinstance(actual, dict) and isinstance(like, dict):
        return {key: shaped(actual[key], like[key]) for key in like if actual.get(key) is not None}
    if isinstance(actual, list) and isinstance(like, list) and len(actual) == len(like):
        return [shaped(a, b) for a, b in zip(actual, like, strict=True)]
    return actual


def spoken(state: Any, inputs: Any) -> Any:
    """The whole state, but in the program's words where both mean the same."""
    if inputs is not None and same(state, inputs):
        return inputs
    if isinstance(state, dict) and isinstance(inputs, dict):
        return {key: spoken(value, inputs.get(key)) for key, value in state.items()}
    if isinstance(state, list) and isinstance(inputs, list) and len(state) == len(inputs):
        return [spoken(a, b) for a, b in zip(state, inputs, strict=True)]
    return state
