"""Nodes of a job that run a command of its script: all of them, or those whose rank a condition asks for."""

from __future__ import annotations

import re

from trainyard.derive.shell import read_script
from trainyard.derive.variables import values_at, with_values

_RANK = r"(?:(?:PET_)?(?:NODE_|GROUP_|MACHINE_)?RANK|JOB_COMPLETION_INDEX)"
_ASKS = re.compile(rf"\b{_RANK}\b|\bhostname\b|\b(?:HOSTNAME|POD_NAME)\b")
"""A variable by which a pod knows which one it is."""
_VALUE = rf"\"?(?:\$\{{?|\$\()?{_RANK}(?::?-\w*)?[}})]?\"?"
_ONE = re.compile(
    rf"(?m)^(?:if )?(?:\[\[? {_VALUE} (?:==?|-eq) \"?\d+\"? \]\]?|test {_VALUE} (?:=|-eq) \"?\d+\"?"
    rf"|\(\( ?{_VALUE} ?== ?\d+ ?\)\))(?: &&[^|\n]*)?$|^case {_VALUE} in \"?\d+\"?$"
)
"""A condition that is true of one node."""
_ENDS = re.compile(r"exit\b|exec[ \t]+[^\s<>\d]|sleep[ \t]+inf")


def conditions_at(script: str, end: int) -> str:
    """Conditions under which the command runs that ends at an offset, a line each; of those under which the script has
    ended before, the opposite."""
    commands = read_script(script[:end]).commands
    found = [each.under for each in commands[-1:]]
    found += [f"else {each.under}" for each in commands[:-1] if _ENDS.match(each.text)]
    text = "\n".join(filter(None, found))
    return with_values(text, values_at(script, end)) if text else ""


def asks_for_a_rank(conditions: str) -> bool:
    """True of conditions that are those of some nodes."""
    return bool(_ASKS.search(conditions))


def is_one_node(conditions: str) -> bool:
    """True of conditions that are those of one node."""
    return bool(_ONE.search(conditions))
