"""Pulumi's side of the aws plugin: names, differences and states, the same for every resource
type."""

from __future__ import annotations

import json
import re
import traceback
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module, metadata
from pathlib import Path
from typing import ClassVar

from rehearsal.providers.aws import lookups, parameters
from rehearsal.providers.aws.account import Account, Clients
from rehearsal.providers.aws.comparison import filled, same, shaped
from rehearsal.providers.aws.resource_type import MAPS, Kind, Seen
from rehearsal.providers.call import Call
from rehearsal.providers.plugin import Diff, Found, Plugin
from rehearsal.providers.problems import Invalid, NotReady, Refused
from rehearsal.providers.protocol import serve
from rehearsal.providers.wire import Changes, Properties, changes, top, unknown, words

KINDS: dict[str, Kind] = {
    kind.token: kind
    for file in sorted(Path(__file__).parent.glob("*.py"))
    if file.stem not in ("__init__", Path(__file__).stem)
    for kind in getattr(import_module(f"rehearsal.providers.aws.{file.stem}"), "KINDS", ())
}
"""Type → its row, of all files beside this one."""

CONFIG = words(
    "region profile version skipCredentialsValidation skipMetadataApiCheck skipRegionValidation "
    "skipRequestingAccountId pluginDownloadURL"
)
"""Provider settings: region and profile, and some that have no effect here."""
AS_JSON = words("assumeRoles allowedAccountIds forbiddenAccountIds defaultTags")
"""Provider settings that the engine hands over as JSON text. Any other is refused by name."""
PARTITION = "aws:index/getPartition:getPartition"

Finish = Callable[[Properties], None]
"""Function that does what is left once the object is ready, given the object's state."""


class Aws(Plugin):
    name: ClassVar[str] = "aws"
    version: ClassVar[str] = metadata.version("pulumi-aws")

    def __init__(self) -> None:
        self.clients = Clients(None)
        self.region = ""
        self.default_tags: Properties = {}

    def check_config(self, inputs: Properties) -> Properties:
        for key, value in inputs.items():
            if value is not None and key not in CONFIG | AS_JSON:
                raise Invalid(key, "this aws plugin does not implement this provider setting")
        return inputs

    def diff_config(self, old: Properties, new: Properties) -> Diff:
        return Diff(changes=changes(old, new), replaces=frozenset(changes(old, new)) & {"region"})

    def configure(self, config: Properties) -> None:
        given = {key: json.loads(config[key]) for key in AS_JSON & config.keys()}
        self.clients = Clients(
            config.get("region"), config.get("profile"), *given.get("assumeRoles", ())
        )
        self.region = self.clients.session.region_name or ""
        if not self.region:
            raise Refused("no region: set aws:region or AWS_REGION")
        self.default_tags = given.get("defaultTags", {}).get("tags", {})
        allowed, forbidden = given.get("allowedAccountIds"), given.get("forbiddenAccountIds", ())
        if allowed or forbidden:
            account = self.clients.get("sts", self.region).get_caller_identity()["Account"]
            if account in forbidden or (allowed and account not in allowed):
                raise Refused(f"AWS account ID not allowed: {account}")

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
        if (
            kind.tagging
            and not unknown(new.get("tags"))
            and self._default(new)
            != {
                key: value
                for key, value in (state.get("tagsAll") or {}).items()
                if key not in (state.get("tags") or {})
            }
        ):
            found["tagsAll"] = "update"
        replaces = frozenset(path for path in found if _replacing(kind, path))
        alone = kind.alone or _keeps_its_name(call, kind, new)
        return Diff(changes=found, replaces=replaces, delete_before_replace=alone)

    def create(self, call: Call, inputs: Properties) -> tuple[str, Properties]:
        kind = _kind(call)
        if call.preview:
            return "", self._foreseen(kind, inputs, {})
        aws = self._account(call, inputs)
        id_ = kind.make(aws, self._tagged(kind, inputs))
        return id_, self._settled(
            aws, kind, id_, inputs, {}, lambda seen: kind.finish(aws, id_, inputs)
        )

    def update(self, call: Call, old: Properties, new: Properties, state: Properties) -> Properties:
        kind = _kind(call)
        changed = _changed(kind, old, new, state)
        if call.preview:
            return self._foreseen(kind, new, state)
        aws = self._account(call, new)
        if kind.tagging:
            was = state.get("tagsAll") or state.get("tags") or {}
            wanted = self._tagged(kind, new).get("tags") or {}
            put = {key: value for key, value in wanted.items() if was.get(key) != value}
            kind.retag(aws, call.id, state, put, sorted(was.keys() - wanted.keys()))
        return self._settled(
            aws,
            kind,
            call.id,
            new,
            state,
            lambda seen: kind.change(aws, call.id, changed, new, {**seen, **state}),
        )

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
        if not kind.delete:
            return
        aws = self._account(call, state)
        seconds = kind.minutes * 60
        aws.patiently(seconds, lambda: kind.remove(aws, call.id, state))
        call.until(
            lambda: not kind.find(aws, call.id, state),
            default=seconds,
            what=f"{call.id} to be gone",
        )

    def invoke(self, token: str, arguments: Properties) -> Properties:
        if token == parameters.GET:
            return parameters.get(self.clients, self.region, arguments)
        if token in lookups.LOOKUPS:
            return lookups.LOOKUPS[token](self.clients, self.region, arguments)
        if token != PARTITION:
            raise Refused(f"this aws plugin does not implement {token}")
        partition = self.clients.session.get_partition_for_region(
            arguments.get("region") or self.region
        )
        return {**arguments, "id": partition, "partition": partition}

    def _account(self, call: Call, properties: Properties) -> Account:
        return Account(self.clients, properties.get("region") or self.region, call)

    def _settled(
        self,
        aws: Account,
        kind: Kind,
        id_: str,
        inputs: Properties,
        state: Properties,
        finish: Finish,
    ) -> Properties:
        """Make complete what was begun. Whatever goes wrong from here, the object is there and its
        state is kept."""
        hint = state or inputs
        try:
            finish(_ready(aws, kind, id_, hint).state)
            return self._state(aws, kind, _ready(aws, kind, id_, hint), inputs)
        except Exception as fault:
            kept = {**hint, **inputs}
            with suppress(Exception):
                if seen := kind.find(aws, id_, hint):
                    kept = self._state(aws, kind, seen, inputs)
            reason = str(fault) if isinstance(fault, Refused) else traceback.format_exc()
            raise NotReady(id_, kept, inputs, reason) from fault

    def _foreseen(self, kind: Kind, inputs: Properties, state: Properties) -> Properties:
        """Properties that are known before the update. The engine takes outputs that are missing
        here as unknown."""
        known = filled(filled({"region": self.region, **inputs}, state), kind.unknown)
        tags = (
            {"tagsAll": self._tagged(kind, inputs).get("tags") or {}}
            if kind.tagging and not unknown(inputs.get("tags"))
            else {}
        )
        return {**known, **tags}

    def _state(self, aws: Account, kind: Kind, seen: Seen, inputs: Properties) -> Properties:
        """The outputs: what AWS says, in the program's words, and what it does not say as the
        program said it."""
        untold = {key: inputs[key] for key in kind.unread | kind.local if key in inputs}
        tags = {}
        if kind.tagging:
            default = self._default(inputs)
            own = {k: v for k, v in seen.tags.items() if default.get(k) != v}
            tags = {"tags": own, "tagsAll": seen.tags}
        return {**untold, **shaped(seen.state, inputs, whole=True), "region": aws.region, **tags}

    def _default(self, inputs: Properties) -> Properties:
        """Default tags that an object gets: the ones that it does not set itself."""
        own = inputs.get("tags") or {}
        return {key: value for key, value in self.default_tags.items() if key not in own}

    def _tagged(self, kind: Kind, inputs: Properties) -> Properties:
        """The inputs with the default tags among their own."""
        if not kind.tagging or not self.default_tags:
            return inputs
        return {**inputs, "tags": {**(inputs.get("tags") or {}), **self._default(inputs)}}


def _kind(call: Call) -> Kind:
    if call.type not in KINDS:
        raise Refused(f"this aws plugin does not implement {call.type}")
    return KINDS[call.type]


def _differences(kind: Kind, old: Properties, new: Properties, state: Properties) -> Changes:
    """Wishes of the program that are not so. Where the program is silent, AWS's choice and the
    defaults are no difference."""
    was, wanted = filled(old, kind.defaults), filled(new, kind.defaults)
    found = {
        key: "delete"
        for key, value in was.items()
        if key not in {*wanted, *kind.chosen, "region"} and value
    }
    for key, want in wanted.items():
        before = was.get(key, state.get(key))
        if before is not None or key not in kind.unread | kind.local:
            found |= changes(before if key in MAPS else shaped(before, want), want, key, same)
    return found


def _changed(kind: Kind, old: Properties, new: Properties, state: Properties) -> frozenset[str]:
    """The properties to set: those that differ, and late ones that an interrupted create never came
    to."""
    late = {key: new[key] for key in kind.later & new.keys()}
    undone = _differences(
        kind, {key: state[key] for key in late.keys() & state.keys()}, late, state
    )
    changed = (
        frozenset(map(top, {**_differences(kind, old, new, state), **undone}))
        - kind.unread
        - kind.local
    )
    possible = {key for key in kind.updates if new.get(key) is not None or key in kind.undo}
    refused = sorted(key for key in changed - possible - {"tags"} if not unknown(new.get(key)))
    if refused:
        raise Refused(
            f"this aws plugin cannot change {', '.join(refused)} of a {kind.token} in place, as"
            " AWS can"
        )
    return changed & kind.updates.keys()


def _replacing(kind: Kind, path: str) -> bool:
    return any(
        path == fixed or path.startswith((fixed + ".", fixed + "["))
        for fixed in {*kind.replaces, "region"}
    )


def _keeps_its_name(call: Call, kind: Kind, new: Properties) -> bool:
    """True where the program itself names the object: a second one of that name cannot stand beside
    it."""
    name = str(new.get(kind.auto_name, ""))
    return bool(name) and not re.fullmatch(re.escape(call.name) + "-[0-9a-f]{7}", name)


def _inputs(kind: Kind, inputs: Properties, full: Properties) -> Properties:
    """The inputs a program would give to have this object: the same ones as before or, on import,
    all but defaults."""
    if inputs:
        known = {
            key: shaped(full[key], value)
            for key, value in inputs.items()
            if full.get(key) is not None
        }
        return known | (
            {"tags": full["tags"]} if kind.tagging and (full["tags"] or "tags" in inputs) else {}
        )
    wanted = {key: full.get(key) for key in kind.inputs | {"tags"}}
    return {key: value for key, value in wanted.items() if not same(value, kind.defaults.get(key))}


def _ready(aws: Account, kind: Kind, id_: str, hint: Properties) -> Seen:
    """The object once AWS has finished with it; Refused with AWS's reason if it failed or took too
    long."""
    last = Seen(state={})

    def settled() -> bool:
        nonlocal last
        found = kind.find(aws, id_, hint)
        last = found or last
        return found is not None and found.status not in kind.busy

    try:
        aws.request.until(settled, default=kind.minutes * 60, what=f"{id_} to become ready")
    except Refused as fault:
        raise Refused(f"{fault}: {last.status} {last.reason}".rstrip(": ")) from None
    if last.status not in kind.good:
        raise Refused(f"{id_} is {last.status}: {last.reason or 'AWS gives no reason'}")
    return last


if __name__ == "__main__":
    serve(Aws())
