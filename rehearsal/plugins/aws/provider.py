"""Pulumi's side of the aws plugin: names, differences and states, the same for every resource type."""

from __future__ import annotations

import json
import re
import traceback
from collections.abc import Callable
from contextlib import suppress
from importlib import metadata
from typing import ClassVar

from rehearsal.plugins.aws import eks, events, iam, network, storage
from rehearsal.plugins.aws.account import Account, Clients
from rehearsal.plugins.aws.kind import MAPS, Kind, Seen, filled, same, shaped, spoken
from rehearsal.plugins.base import Call, Diff, Found, Invalid, NotReady, Plugin, Refused, serve
from rehearsal.plugins.wire import Changes, Properties, changes, top, unknown, words

KINDS = {kind.token: kind() for module in (network, iam, eks, events, storage) for kind in module.KINDS}

CONFIG = words("region defaultTags profile accessKey secretKey token")
"""Provider settings with an effect; the ones below have none here, any other is refused by name."""
CONFIG_WITHOUT_EFFECT = words(
    "version maxRetries skipCredentialsValidation skipMetadataApiCheck skipRegionValidation skipRequestingAccountId "
    "pluginDownloadURL"
)

Finish = Callable[[Properties], None]
"""What is left to do once the object is ready, given its state."""


class Aws(Plugin):
    name: ClassVar[str] = "aws"
    version: ClassVar[str] = metadata.version("pulumi-aws")

    def __init__(self) -> None:
        self.clients = Clients({})
        self.region = ""
        self.default_tags: dict[str, str] = {}

    def check_config(self, inputs: Properties) -> Properties:
        for key, value in inputs.items():
            if value is not None and key not in CONFIG | CONFIG_WITHOUT_EFFECT:
                raise Invalid(key, "this aws plugin does not implement this provider setting")
        return inputs

    def diff_config(self, old: Properties, new: Properties) -> Diff:
        return Diff(changes=changes(old, new), replaces=frozenset(changes(old, new)) & {"region"})

    def configure(self, config: Properties) -> None:
        self.clients = Clients(config)
        self.region = config.get("region") or self.clients.session.region_name or ""
        if not self.region:
            raise Refused("no region: set aws:region or AWS_REGION")
        given = config.get("defaultTags") or "{}"
        self.default_tags = (json.loads(given) if isinstance(given, str) else given).get("tags") or {}

    def check(self, call: Call, old: Properties, new: Properties) -> Properties:
        kind = _kind(call)
        given = {key: value for key, value in new.items() if value is not None}
        known = kind.inputs | {"region"} | ({"tags"} if kind.tagging else set())
        for key in sorted(given.keys() - known):
            raise Invalid(key, f"this aws plugin does not implement {key} of {kind.token}")
        if kind.auto_name and kind.auto_name not in given:
            given[kind.auto_name] = old.get(kind.auto_name) or f"{call.name}-{call.suffix()}"
        return given

    def diff(self, call: Call, old: Properties, new: Properties, state: Properties) -> Diff:
        kind = _kind(call)
        found = _differences(kind, old, new, state)
        if kind.tagging and "tags" not in map(top, found) and not unknown(new.get("tags")):
            found |= changes(state.get("tagsAll") or {}, self._all_tags(new), "tagsAll")
        replaces = frozenset(path for path in found if _replacing(kind, path))
        alone = kind.alone or _keeps_its_name(call, kind, new)
        return Diff(changes=found, replaces=replaces, delete_before_replace=alone)

    def create(self, call: Call, inputs: Properties) -> tuple[str, Properties]:
        kind = _kind(call)
        if call.preview:
            return "", self._foreseen(kind, inputs, {})
        aws = self._account(call, inputs)
        id_ = kind.create(aws, {**inputs, "tags": self._all_tags(inputs)})
        return id_, self._settled(aws, kind, id_, inputs, {}, lambda seen: kind.finish(aws, id_, inputs, seen))

    def update(self, call: Call, old: Properties, new: Properties, state: Properties) -> Properties:
        kind = _kind(call)
        if call.preview:
            return self._foreseen(kind, new, state)
        aws = self._account(call, new)
        changed = _changed(kind, old, new, state)
        self._retag(aws, kind, call.id, new, state)

        def finish(seen: Properties) -> None:
            if changed:
                kind.change(aws, call.id, changed, new, {**seen, **state})

        return self._settled(aws, kind, call.id, new, state, finish)

    def read(self, call: Call, inputs: Properties, state: Properties) -> Found | None:
        kind = _kind(call)
        aws = self._account(call, inputs)
        seen = kind.find(aws, call.id, state)
        if not seen:
            return None
        full = self._state(aws, kind, seen, inputs)
        return Found(_inputs(kind, inputs, full), full, seen.id)

    def delete(self, call: Call, state: Properties) -> None:
        kind = _kind(call)
        aws = self._account(call, state)
        seconds = kind.minutes.delete * 60
        aws.patiently(seconds, lambda: kind.remove(aws, call.id, state))
        call.until(lambda: not kind.find(aws, call.id, state), default=seconds, what=f"{call.id} to be gone")

    def invoke(self, token: str, arguments: Properties) -> Properties:
        aws = Account(self.clients, arguments.get("region") or self.region, Call(urn=f"::::{token}::{token}"))
        if token not in INVOKES:
            raise Refused(f"this aws plugin does not implement {token}")
        return {**arguments, **INVOKES[token](aws)}

    def _account(self, call: Call, properties: Properties) -> Account:
        return Account(self.clients, properties.get("region") or self.region, call)

    def _all_tags(self, inputs: Properties) -> dict[str, str]:
        return {**self.default_tags, **(inputs.get("tags") or {})}

    def _tags(self, seen: Seen, inputs: Properties) -> dict[str, str]:
        """The object's own tags: without those that only the provider's defaultTags gave it."""
        own = inputs.get("tags") or {}
        return {k: v for k, v in seen.tags.items() if k in own or self.default_tags.get(k) != v}

    def _retag(self, aws: Account, kind: Kind, id_: str, new: Properties, state: Properties) -> None:
        if kind.tagging:
            was, wanted = state.get("tagsAll") or {}, self._all_tags(new)
            put = {key: value for key, value in wanted.items() if was.get(key) != value}
            kind.retag(aws, id_, state, put, sorted(was.keys() - wanted.keys()))

    def _settled(
        self, aws: Account, kind: Kind, id_: str, inputs: Properties, state: Properties, finish: Finish
    ) -> Properties:
        """Make complete what was begun. Whatever goes wrong from here, the object is there and its state is kept."""
        hint = state or inputs
        minutes = kind.minutes.update if state else kind.minutes.create
        try:
            finish(_ready(aws, kind, id_, hint, minutes).state)
            return self._state(aws, kind, _ready(aws, kind, id_, hint, minutes), inputs)
        except Exception as fault:
            reason = str(fault) if isinstance(fault, Refused) else traceback.format_exc()
            raise NotReady(id_, self._kept(aws, kind, id_, inputs, hint), inputs, reason) from fault

    def _kept(self, aws: Account, kind: Kind, id_: str, inputs: Properties, hint: Properties) -> Properties:
        """As much of the state as can be had when something failed."""
        with suppress(Exception):
            if seen := kind.find(aws, id_, hint):
                return self._state(aws, kind, seen, inputs)
        return {**hint, **inputs}

    def _state(self, aws: Account, kind: Kind, seen: Seen, inputs: Properties) -> Properties:
        """The outputs: what AWS says, in the program's words, and what it does not say as the program said it."""
        untold = {key: inputs[key] for key in kind.unread | kind.local if key in inputs}
        tags = {"tags": self._tags(seen, inputs), "tagsAll": seen.tags} if kind.tagging else {}
        return {**untold, **spoken(seen.state, inputs), "region": aws.region, **tags}

    def _foreseen(self, kind: Kind, inputs: Properties, state: Properties) -> Properties:
        """What is known before the update. The engine takes outputs that are missing here as unknown."""
        known = filled(filled({"region": self.region, **inputs}, state), kind.unknown)
        tags = {"tagsAll": self._all_tags(inputs)} if kind.tagging and not unknown(inputs.get("tags")) else {}
        return {**known, **tags}


def _kind(call: Call) -> Kind:
    if call.type not in KINDS:
        raise Refused(f"this aws plugin does not implement {call.type}")
    return KINDS[call.type]


def _differences(kind: Kind, old: Properties, new: Properties, state: Properties) -> Changes:
    """What of the program's wishes is not so. Where it is silent, AWS's choice and the defaults are no difference."""
    was, wanted = filled(old, kind.defaults), filled(new, kind.defaults)
    found = {key: "delete" for key, value in was.items() if key not in {*wanted, *kind.chosen, "region"} and value}
    for key, want in wanted.items():
        before = was.get(key, state.get(key))
        if before is not None or key not in kind.unread | kind.local:
            found |= changes(before if key in MAPS else shaped(before, want), want, key, same)
    return found


def _changed(kind: Kind, old: Properties, new: Properties, state: Properties) -> frozenset[str]:
    """The properties to set: those that differ, and late ones that an interrupted create never came to."""
    late = {key: new[key] for key in kind.later & new.keys()}
    undone = _differences(kind, {key: state[key] for key in late.keys() & state.keys()}, late, state)
    return frozenset(map(top, {**_differences(kind, old, new, state), **undone})) - {"tags"}


def _replacing(kind: Kind, path: str) -> bool:
    return any(path == fixed or path.startswith((fixed + ".", fixed + "[")) for fixed in {*kind.replaces, "region"})


def _keeps_its_name(call: Call, kind: Kind, new: Properties) -> bool:
    """Whether the program itself names the object: a second one of that name cannot stand beside it."""
    name = str(new.get(kind.auto_name, ""))
    return bool(name) and not re.fullmatch(re.escape(call.name) + "-[0-9a-f]{7}", name)


def _inputs(kind: Kind, inputs: Properties, full: Properties) -> Properties:
    """The inputs a program would give to have this object: the same ones as before or, on import, all but defaults."""
    if inputs:
        known = {key: shaped(full[key], value) for key, value in inputs.items() if full.get(key) is not None}
        return known | ({"tags": full["tags"]} if kind.tagging and (full["tags"] or "tags" in inputs) else {})
    wanted = {key: full.get(key) for key in kind.inputs | {"tags"}}
    return {key: value for key, value in wanted.items() if not same(value, kind.defaults.get(key))}


def _ready(aws: Account, kind: Kind, id_: str, hint: Properties, minutes: float) -> Seen:
    """The object once AWS has finished with it; Refused with AWS's reason if it failed or took too long."""
    last = Seen(state={})

    def settled() -> bool:
        nonlocal last
        found = kind.find(aws, id_, hint)
        last = found or last
        return found is not None and found.status not in kind.busy

    try:
        aws.request.until(settled, default=minutes * 60, what=f"{id_} to become ready")
    except Refused as fault:
        raise Refused(f"{fault}: {last.status} {last.reason}".rstrip(": ")) from None
    if last.status not in kind.good:
        raise Refused(f"{id_} is {last.status}: {last.reason or 'AWS gives no reason'}")
    return last


def _zones(aws: Account) -> Properties:
    only_zones = [{"Name": "zone-type", "Values": ["availability-zone"]}]
    zones = aws.call("ec2", "describe_availability_zones", Filters=only_zones)["AvailabilityZones"]
    names, ids = ([zone[key] for zone in sorted(zones, key=lambda z: z["ZoneName"])] for key in ("ZoneName", "ZoneId"))
    return {"id": aws.region, "region": aws.region, "names": names, "zoneIds": ids, "groupNames": [aws.region]}


def _caller(aws: Account) -> Properties:
    who = aws.identity
    return {"id": who["Account"], "accountId": who["Account"], "arn": who["Arn"], "userId": who["UserId"]}


def _partition(aws: Account) -> Properties:
    suffix = "amazonaws.com.cn" if aws.partition == "aws-cn" else "amazonaws.com"
    reverse = ".".join(reversed(suffix.split(".")))
    return {"id": aws.partition, "partition": aws.partition, "dnsSuffix": suffix, "reverseDnsPrefix": reverse}


def _region(aws: Account) -> Properties:
    return {"id": aws.region, "name": aws.region, "region": aws.region, "endpoint": f"ec2.{aws.region}.amazonaws.com"}


INVOKES = {
    "aws:index/getAvailabilityZones:getAvailabilityZones": _zones,
    "aws:index/getCallerIdentity:getCallerIdentity": _caller,
    "aws:index/getPartition:getPartition": _partition,
    "aws:index/getRegion:getRegion": _region,
}


if __name__ == "__main__":
    serve(Aws())
