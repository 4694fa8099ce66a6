"""Words with which a fix begins: an action, in the imperative."""

from __future__ import annotations

import re

IMPERATIVES = frozenset(
    re.findall(
        r"\w+",
        """
        add allow bake begin bring build buy change check choose clone close copy correct create delete
        describe drop encrypt extend fill give have indent install keep leave let limit link list log
        lower make mount move name pin point push put quote raise remove rename replace replicate request
        restore revoke run save send set shorten split start take turn update use wait write
        """,
    )
)


def begins_with_a_verb(fix: str) -> bool:
    """True where a fix begins so, or asks whether another word is meant."""
    return re.split(r"[^a-z]", fix, maxsplit=1)[0] in IMPERATIVES or fix.startswith("did you mean ")


def without_a_verb(lines: list[str]) -> list[str]:
    """The lines of errors whose fix begins with anything else."""
    fixes = {line: line.partition(". Fix: ")[2] for line in lines if ". Fix: " in line}
    return [line for line, fix in fixes.items() if not begins_with_a_verb(fix)]
