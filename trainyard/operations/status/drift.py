"""`trainyard drift STACK [--json]`: every object of a stack that is not as its last update left it, in the
account and in the cluster. Pulumi reads each one; neither its state nor an object is changed.

`trainyard status` sees the objects in the cluster that somebody has deleted or changed (by_hand.py) in a
second. This word also sees AWS, Helm releases and Secrets, and takes as long as a refresh.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from trainyard import command_line
from trainyard.operations.reach.pulumi import PulumiError, deployment, pulumi
from trainyard.operations.reach.updates import history_of
from trainyard.operations.status.added_policies import added_policies
from trainyard.operations.status.added_rules import added_rules
from trainyard.operations.status.by_hand import CIPHER, FORCE, REFRESH, UP, difference
from trainyard.operations.status.finding import Drift
from trainyard.operations.status.last_update import refreshed
from trainyard.replacing.urn import name_of, type_of
from trainyard.reports.plan import as_json

STEP = re.compile(r"""\.?([^.\[\]"]+)|\["([^"]*)"\]|\[(\d+)\]""")
"""A step of a path as Pulumi writes it: name, ["name"] or [0]."""
READS = "reads every object of {stack} in the account and in the cluster, as `pulumi refresh` does"
NO_VALUE = object()


def main(options: argparse.Namespace) -> int:
    """Print the objects; 1 where there is one, where a refresh hides some, or where an object cannot be read."""
    try:
        found = drift(options.stack)
        hidden = refreshed(options.stack, history_of(options.stack))
    except (PulumiError, BotoCoreError, ClientError) as error:
        print(error, file=sys.stderr)
        return 1
    if options.json:
        print(as_json(found))
    elif found or not hidden:
        print("\n".join(text(options.stack, found)))
    if hidden:
        print(hidden, file=sys.stderr if options.json else sys.stdout)
    return 1 if found or hidden else 0


def drift(stack: str) -> list[Drift]:
    """Every object that is gone or changed. PulumiError where an object cannot be read, and botocore's errors where
    the rules of security groups or the policies of roles cannot."""
    with command_line.showing(READS.format(stack=stack)):
        answer = pulumi(stack, "refresh", "--preview-only", "--json")
        changed = drifted(json.loads(answer).get("steps") or ())
        state = deployment(stack)
        return [*changed, *added_rules(state), *added_policies(state)]


def drifted(steps: Iterable[dict[str, Any]]) -> Iterator[Drift]:
    """The objects of a refresh's steps that are gone or changed."""
    for step in steps:
        if step["op"] in ("delete", "update"):
            gone = step["op"] == "delete"
            yield Drift(
                name=name_of(step["urn"]),
                type=type_of(step["urn"]),
                gone=gone,
                changed=() if gone else tuple(_changes(step)),
            )


def _changes(step: Mapping[str, Any]) -> Iterator[str]:
    for path in step.get("detailedDiff") or step.get("diffReasons") or ():
        was, now = (
            _at((step[state] or {}).get("outputs"), path) for state in ("oldState", "newState")
        )
        if NO_VALUE in (was, now):
            yield path
        else:
            yield difference(path, now, was)


def _at(value: Any, path: str) -> Any:
    """Value at a path; NO_VALUE where Pulumi hides it, or where the path leads nowhere."""
    for name, quoted, number in STEP.findall(path):
        if isinstance(value, dict) and CIPHER not in value:
            value = value.get(name or quoted)
        elif isinstance(value, list) and number:
            value = value[int(number)] if int(number) < len(value) else None
        elif value is not None:
            return NO_VALUE
    hidden = isinstance(value, dict) and CIPHER in value or value == "[secret]"
    return NO_VALUE if hidden else value


def text(stack: str, found: list[Drift]) -> list[str]:
    """The list for a person, with the commands that mend it."""
    if not found:
        return [f"{stack}: every object is as the last update left it"]
    objects = "1 object is" if len(found) == 1 else f"{len(found)} objects are"
    lines = [
        f"{stack}: {objects} not as the last update left {'it' if len(found) == 1 else 'them'}"
    ]
    rows = [("gone" if one.gone else "changed", one.name, one.type) for one in found]
    for one, row in zip(found, command_line.table(rows), strict=True):
        lines += [row, *(f"      {change}" for change in one.changed)]
    return [*lines, "", *_mending(stack, found)]


def _mending(stack: str, found: list[Drift]) -> list[str]:
    """The commands that mend objects."""
    by_hand = [f"{command}   # no update deletes it" for one in found for command in one.mends]
    if all(one.mends for one in found):
        return by_hand
    force = any(not one.gone and one.type.startswith("kubernetes:") for one in found)
    return [
        *by_hand,
        f"{REFRESH.format(stack=stack)}   # writes into the state what is there",
        f"{FORCE if force else ''}{UP.format(stack=stack)}   # makes it as the stack file says",
    ]
