"""Numbers that somebody means who writes others: with a unit, out of bounds, or none of a few."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from trainyard.catalog.aws.storage import LUSTRE_SIZES, lustre_near, lustre_sold
from trainyard.problems import InputError
from trainyard.settings.reading.examples import example
from trainyard.settings.reading.mistake import Mistake

UNITS: Mapping[str, Mapping[str, int | Fraction]] = {
    "gib": {r"gi?b?": 1, r"ti?b?": 1024},
    "minutes": {r"m|min|minutes?": 1, r"h|hours?": 60, r"d|days?": 1440},
    "hours": {r"m|min|minutes?": Fraction(1, 60), r"h|hours?": 1, r"d|days?": 24},
    "days": {r"d|days?": 1, r"w|weeks?": 7},
    "mbps": {r"mb(?:ps|/s)": 1, r"gb(?:ps|/s)": 1000},
    "mibps": {r"mi?b(?:ps|/s)": 1, r"gi?b(?:ps|/s)": 1024},
    "billion": {r"b|bn|billion": 1, r"t|trillion": 1000},
    "dollars": {r"usd|\$|dollars?": 1, r"k": 1000},
}
"""Unit in a setting's name → how people write it and others behind a number, and how many of the setting's each of
them is."""

BOUNDS: Mapping[tuple[str, ...], str] = {
    ("delete_after_days", "*", "ge"): "nothing is deleted without the line",
    ("*", "gpus_per_node", "ge"): "a pod has all GPUs of its node without the line",
    ("*", "run", "ge"): "it is the number of the run, and a higher one starts the job again",
    ("checkpoints", "keep", "ge"): "the one before the newest is read where the newest cannot be",
    ("system_nodes", "nodes", "le"): "only controllers run there",
    ("system_nodes", "nodes", "ge"): "Karpenter's two replicas cannot share a node",
}
"""Last steps of a setting, and a kind of bound → the reason for the bound, where the setting does not tell."""


@dataclass(frozen=True, kw_only=True)
class Sold:
    """Sizes that AWS sells of something."""

    sizes: str
    """All of them, in words."""
    nearest: Callable[[int], int]
    near: Callable[[int], str]
    """The nearest and the next, in words."""


SOLD: Mapping[str, Sold] = {
    "capacity_gib": Sold(
        sizes=f"{LUSTRE_SIZES} as FSx sells it", nearest=lustre_sold, near=lustre_near
    )
}
"""Setting → the sizes that it can have: 5TB of Lustre is none."""


def whole_number(mistake: Mistake) -> int | None:
    """4 of 4.0, "4", 4GiB and 4 TiB in a setting in GiB: 4096."""
    meant = number_meant(mistake)
    return int(meant) if meant is not None and meant.denominator == 1 else None


def number_meant(mistake: Mistake) -> Fraction | None:
    """The number that somebody means: 1/2 of 30m in a setting in hours, 5000 of $5,000. A part of a TiB is counted
    as FSx does, whose 1.2 TiB are 1,200 GiB."""
    if isinstance(mistake.value, float) and mistake.value.is_integer():
        return Fraction(mistake.value)
    if not isinstance(mistake.value, str):
        return None
    text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", mistake.value.strip())
    forms: dict[str, int | Fraction] = {"": 1}
    for unit in {*UNITS} & {*mistake.key.split("_")}:
        forms |= UNITS[unit]
    for form, times in forms.items():
        if found := re.fullmatch(
            rf"\$?(\d{{1,9}}(?:\.\d{{1,3}})?)\s*(?:{form})", text, re.IGNORECASE
        ):
            number = Fraction(found[1])
            if number.denominator > 1 and times == 1024:
                times = 1000
            return number * times
    return None


WORDS = {"ge": "at least", "le": "at most", "gt": "more than", "lt": "less than"}
"""Kind of a bound → the same in words."""


def out_of_bounds(mistake: Mistake) -> InputError:
    """The bound is what to write; where the bound itself is too much or too little, the example of the setting,
    or the next whole number."""
    [(kind, bound)] = [(kind, mistake.limits[kind]) for kind in WORDS if kind in mistake.limits]
    whole = int(bound) if float(bound).is_integer() else bound
    must, nearest = _bound(mistake, kind, whole), whole + {"gt": 1, "lt": -1}.get(kind, 0)
    if kind == "ge" and mistake.value != -1 and -mistake.value >= bound > 0:
        return mistake.error(must, f"write {-mistake.value}", -mistake.value)
    shown, says_little = example(mistake.steps), kind == "gt" or (kind == "ge" and bound <= 1)
    or_none = ", or delete the line" if must.endswith("without the line") else ""
    if says_little and shown not in (None, nearest):
        return mistake.error(must, f"write a value such as {shown}{or_none}", shown)
    return mistake.error(must, f"write {nearest}{or_none}", nearest)


def _bound(mistake: Mistake, kind: str, bound: float) -> str:
    """A bound with its reason, in words."""
    holder, key = mistake.steps[-2:]
    why = next(
        filter(None, map(BOUNDS.get, ((holder, key, kind), (holder, "*", kind), ("*", key, kind)))),
        "",
    )
    reason = f": {why}" if why else ""
    if kind == "ge" and mistake.value == -1:
        reason += ", and -1 does not mean without limit"
    return f"be {WORDS[kind]} {bound}{reason}"


def no_number_of(mistake: Mistake, choices: Sequence[int]) -> InputError:
    """A number that is none of a few: the nearest is what to write."""
    must, given = f"be one of {', '.join(map(str, choices))}", whole_number(mistake)
    if isinstance(mistake.value, int) and not isinstance(mistake.value, bool):
        given = mistake.value
    if given is None:
        return mistake.error(must, f"write one of {', '.join(map(str, choices))}", choices[0])
    nearest = min(choices, key=lambda choice: abs(choice - given))
    return mistake.error(must, f"write {nearest}", nearest)
