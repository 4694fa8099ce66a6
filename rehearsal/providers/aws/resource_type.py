"""Knowledge of a resource type: a row of data. What no row can say is a method of a subclass.

A row names AWS's operations, and where in their questions and answers a property stands: a path
such as LustreConfiguration.DeploymentType or Attachments.0.VpcId. Another type is another row;
another input of a type is another word in `fixed` or `updates`, or in `replaces` of the catalog's row.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from rehearsal.providers.aws.account import Account
from rehearsal.providers.problems import Refused
from rehearsal.providers.wire import Properties, words
from trainyard.catalog.aws_types.table import AWS_TYPES

Names = Mapping[str, str]
NONE: frozenset[str] = frozenset()
MAPS = words("tags labels")
"""Properties whose keys are the user's: a missing key was taken away, while a missing field is left
to AWS."""
LOWER = ("amp", "ecr", "eks")
"""Services whose words begin in lower case, as the plugin's do."""
NAMES = ("name", "nodeGroupName", "creationToken")
"""Inputs that get a name of our making where the program gives none."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """An object as AWS describes it now."""

    state: Properties
    tags: dict[str, str] = field(default_factory=dict)
    status: str = ""
    reason: str = ""
    """Reason why the object is in that status, where AWS says so."""
    id: str = ""
    """Its lasting id, where it can be asked for by another one as well (on import)."""


@dataclass(frozen=True, kw_only=True)
class Tagging:
    """Calls and words by which objects get and lose tags."""

    target: str
    """The parameter that names the object."""
    by: str = "id"
    """The property it is named by."""
    tag: str = "tag_resource"
    untag: str = "untag_resource"
    tags: str = "Tags"
    """Where tags stand, in calls and in answers."""
    keys: str = "TagKeys"
    born: str = "Tags"
    """Place of the tags in the call that makes the object."""
    noun: str = ""
    """EC2's name of the type in the TagSpecifications of that call."""
    paired: bool = True
    """True where tags are a list of Key and Value, and not a map."""
    listed: str = ""
    """The operation that tells the tags, where the object's own does not."""

    def at_birth(self, tags: dict[str, str]) -> dict[str, Any]:
        if not tags:
            return {}
        specification = [{"ResourceType": self.noun, "Tags": self.written(tags)}]
        return (
            {"TagSpecifications": specification} if self.noun else {self.born: self.written(tags)}
        )

    def written(self, tags: dict[str, str]) -> Any:
        return (
            [{"Key": key, "Value": value} for key, value in tags.items()] if self.paired else tags
        )


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One resource type."""

    token: str
    service: str
    create: str
    read: str
    delete: str
    """Empty: it goes with what it belongs to, and not before."""
    made: str = ""
    """Path of the new object in the answer of `create`."""
    found: str = ""
    """Where the object, or the list it is in, stands in the answer of `read`."""
    among: str = ""
    """The property that tells it from others of that list."""
    id: str
    """Its id, made of fields of the new object and of inputs."""
    lasting: str = ""
    """Id of the object from what `read` finds, where that calls it otherwise."""
    import_id: str = ""
    """Id that `pulumi import` takes, where AWS is asked by more than an id."""
    asks: Names
    """Parameter of `read` → property, or `id`. A parameter with an s at its end takes a list."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Parameters of `read` that are always the same."""
    drops: Names = field(default_factory=dict)
    """Parameters of `delete` and of updates, where they are not those of `read`."""

    fixed: frozenset[str] = NONE
    """Inputs that the genuine provider changes in place and this one does not: such a change is
    refused by name."""
    updates: Names = field(default_factory=dict)
    """Input → the operation that changes it in place."""
    later: frozenset[str] = NONE
    """Inputs that `create` does not take: their operation follows it, one call each."""
    undo: Names = field(default_factory=dict)
    """Input → the operation that takes its value away, before another one and before the end."""
    local: frozenset[str] = NONE
    """Inputs that tell the plugin how to act: no parameter of AWS, only remembered in the state."""
    unread: frozenset[str] = NONE
    """Inputs that AWS takes but does not tell back."""
    chosen: frozenset[str] = NONE
    """Inputs that AWS chooses where the program is silent; being silent again changes nothing."""
    defaults: Properties = field(default_factory=dict)
    """Inputs that a program means where it does not give them."""
    unknown: Properties = field(default_factory=dict)
    """Fields of given objects that only AWS knows, as UNKNOWN for the preview; missing properties
    need no entry."""
    names: Names = field(default_factory=dict)
    """Input → its path in AWS, where that is not the same word in AWS's own case."""
    outputs: Names = field(default_factory=dict)
    """Property → its path in what was found: what AWS adds, and inputs that it tells elsewhere than
    it takes them."""
    tagging: Tagging | None = None
    """None for a type that has no tags."""
    alone: bool = False
    """True where AWS refuses a second object beside it, so a replacement must delete it first."""
    minutes: float = 20
    """Minutes to wait at most for an operation's end."""
    status: str = ""
    reason: str = ""
    """Where an object tells its status, and why it is in it."""
    busy: frozenset[str] = words("pending creating updating deleting")
    good: frozenset[str] = words("available active") | {""}
    """Any other status is a failure."""

    @property
    def replaces(self) -> frozenset[str]:
        """Inputs, or paths in them, that take a new object when they change."""
        return frozenset(AWS_TYPES[self.token].replaces)

    @property
    def inputs(self) -> frozenset[str]:
        """Inputs that a program may give, besides region and tags."""
        whole = {path for path in self.replaces if "." not in path}
        return self.fixed | self.local | self.unread | self.updates.keys() | whole

    @property
    def auto_name(self) -> str:
        return next((name for name in NAMES if name in self.inputs), "")

    def make(self, aws: Account, new: Properties) -> str:
        """Make the object with all its tags and give its id."""
        tags = self.tagging.at_birth(new.get("tags") or {}) if self.tagging else {}
        answer = aws.call(self.service, self.create, **self.arguments(new), **tags)
        return self.identify(self.id, {**dig(answer, self.made), **new})

    def identify(self, form: str, values: Properties) -> str:
        return form.format_map(values)

    def find(self, aws: Account, id_: str, hint: Properties) -> Seen | None:
        """The object by its id; `hint` is the state kept so far, empty on import."""
        place = self.place(id_, hint)
        found = dig(
            aws.seen(self.service, self.read, **parameters(self.asks, place), **self.options),
            self.found,
        )
        if self.among:
            found = next(
                (
                    one
                    for one in found or []
                    if self.known(one).get(self.among) == place[self.among]
                ),
                None,
            )
        if not found or self.status_of(found) == "deleted":
            return None
        told = {key: value for key, value in place.items() if key != "id"}
        state = told | self.known(found) | self.details(aws, found)
        lasting = (
            self.identify(self.lasting or self.id, {**found, **state}) if self.import_id else ""
        )
        tags = self.tags_of(aws, {**state, "id": id_}, found)
        return Seen(
            state=state,
            tags=tags,
            id=lasting,
            status=self.status_of(found),
            reason=self.reason_of(found),
        )

    def details(self, aws: Account, found: dict[str, Any]) -> Properties:
        """State that takes further questions."""
        return {}

    def status_of(self, found: dict[str, Any]) -> str:
        return str(dig(found, self.status) or "").lower() if self.status else ""

    def reason_of(self, found: dict[str, Any]) -> str:
        return str(dig(found, self.reason) or "") if self.reason else ""

    def tags_of(self, aws: Account, state: Properties, found: dict[str, Any]) -> dict[str, str]:
        way = self.tagging
        if not way:
            return {}
        told = (
            aws.call(self.service, way.listed, **{way.target: state[way.by]})
            if way.listed
            else found
        )
        tags = told.get(way.tags) or {}
        return {tag["Key"]: tag["Value"] for tag in tags} if way.paired else tags

    def finish(self, aws: Account, id_: str, new: Properties) -> None:
        """Do what comes after the create call, once the object is ready."""
        self.change(aws, id_, self.later & new.keys(), new, {})

    def change(
        self, aws: Account, id_: str, changed: frozenset[str], new: Properties, state: Properties
    ) -> None:
        """Set the changed inputs of an object that is there, those of one operation together."""
        calls: dict[tuple[str, str], set[str]] = {}
        for key in sorted(changed):
            calls.setdefault((self.updates[key], key if key in self.later else ""), set()).add(key)
        for (operation, _), keys in calls.items():
            self.withdraw(aws, id_, keys, state)
            if given := self.arguments(new, keys):
                self.update(aws, operation, self.which(id_, state), given, new)

    def update(
        self, aws: Account, operation: str, which: Properties, given: Properties, new: Properties
    ) -> None:
        aws.call(self.service, operation, **which, **given)

    def withdraw(self, aws: Account, id_: str, keys: Collection[str], state: Properties) -> None:
        for key in keys:
            if key in self.undo and state.get(key):
                aws.seen(
                    self.service,
                    self.undo[key],
                    **self.which(id_, state),
                    **self.arguments(state, {key}),
                )

    def remove(self, aws: Account, id_: str, state: Properties) -> None:
        if self.undo and (now := self.find(aws, id_, state)):
            self.withdraw(aws, id_, self.undo.keys(), now.state)
        aws.call(self.service, self.delete, **self.which(id_, state))

    def retag(
        self, aws: Account, id_: str, state: Properties, put: dict[str, str], drop: list[str]
    ) -> None:
        way = self.tagging
        assert way
        target = parameters({way.target: way.by}, {**state, "id": id_})
        if put:
            aws.call(self.service, way.tag, **target, **{way.tags: way.written(put)})
        if drop:
            keys = [{"Key": key} for key in drop] if way.keys == way.tags else drop
            aws.call(self.service, way.untag, **target, **{way.keys: keys})

    def place(self, id_: str, state: Properties) -> Properties:
        """The properties that say which object it is: as the state knows them, or on import as its
        id tells them."""
        keys = {*self.asks.values(), *self.drops.values(), self.among} - {"id", ""}
        if keys <= state.keys():
            return {"id": id_, **{key: state[key] for key in keys}}
        form = re.sub(r"\\{(\w+)\\}", r"(?P<\1>.+?)", re.escape(self.import_id))
        if not (parts := re.fullmatch(form, id_)):
            raise Refused(f"the id of a {self.token} is {self.import_id}, not {id_}")
        return {"id": id_, **parts.groupdict()}

    def which(self, id_: str, state: Properties) -> Properties:
        """The parameters that name one object in anything but a question."""
        return parameters(
            self.drops or {name.removesuffix("s"): key for name, key in self.asks.items()},
            self.place(id_, state),
        )

    def arguments(self, new: Properties, only: Collection[str] | None = None) -> dict[str, Any]:
        """Inputs as AWS's parameters: all that the create call takes, or only some."""
        wanted = self.inputs - self.later - self.local if only is None else only
        given = {key: new[key] for key in sorted(wanted) if new.get(key) is not None}
        return nested({self.name(key): self.outward(value) for key, value in given.items()})

    def known(self, found: dict[str, Any]) -> Properties:
        """The properties that an answer of AWS tells."""
        paths = {key: self.name(key) for key in self.inputs} | dict(self.outputs)
        told = {key: self.inward(path, dig(found, path)) for key, path in paths.items()}
        return nested({key: value for key, value in told.items() if value is not None})

    def name(self, key: str) -> str:
        return self.names.get(key) or (key if self.service in LOWER else upper(key))

    def outward(self, value: Any) -> Any:
        return value if self.service in LOWER else renamed(value, upper)

    def inward(self, path: str, value: Any) -> Any:
        if path.endswith("Document") and isinstance(value, dict):
            return json.dumps(
                value, separators=(",", ":")
            )  # botocore has parsed some of them already
        return value if self.service in LOWER else renamed(value, lower)


def parameters(names: Names, values: Properties) -> dict[str, Any]:
    return {
        name: [values[key]] if name.endswith("s") else values[key] for name, key in names.items()
    }


def dig(value: Any, path: str) -> Any:
    """Value at a path; None where there is nothing."""
    for step in filter(None, path.split(".")):
        if isinstance(value, list):
            value = value[int(step)] if int(step) < len(value) else None
        else:
            value = (value or {}).get(step)
    return value


def nested(flat: Mapping[str, Any]) -> Any:
    """Values by path as the objects that the paths speak of; a 0 in a path makes a list of one."""
    groups: dict[str, dict[str, Any]] = {}
    for path, value in flat.items():
        step, _, rest = path.partition(".")
        groups.setdefault(step, {})[rest] = value
    made = {step: inner[""] if "" in inner else nested(inner) for step, inner in groups.items()}
    return [made["0"]] if made.keys() == {"0"} else made


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
