"""The arguments of a component as plain values, with the places of those that are not known yet or secret."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import pulumi
from pulumi.output import Unknown

from trainyard.plan import EnvironmentPlan, Planned
from trainyard.problems import At, InputError
from trainyard.settings.reading.contracts import whole_numbers

Steps = tuple[str | int, ...]
"""The way to a value: keys of maps, and numbers in lists."""
Values = dict[str, Any]
NOT_KNOWN = "not-known-yet"
"""Beginning of the last part of each stand-in. No value of a person has it."""
STAND_INS = (
    "arn:aws:kms:{region}:{account}:key/" + NOT_KNOWN,
    "arn:aws:iam::{account}:role/" + NOT_KNOWN,
    "arn:aws:iam::{account}:policy/" + NOT_KNOWN,
    "arn:aws:sns:{region}:{account}:" + NOT_KNOWN,
    NOT_KNOWN,
)
"""Texts that can stand in for a text in a preview. The first that no rule refuses does."""
NO_ACCOUNT = "000000000000"
SHORTEST = 4
"""Letters of a text that can be found again wherever the plan writes it."""


@dataclass(kw_only=True)
class Arguments:
    """Values as a program gives them to a component."""

    values: Values = field(default_factory=dict)
    """Plain data, without what is not known."""
    unknown: list[Steps] = field(default_factory=list)
    """Values that depend on resources which do not exist yet. Only in a preview."""
    secret: list[Steps] = field(default_factory=list)
    """Values that the engine keeps as secrets, with everything in them."""
    needs: set[pulumi.Resource] = field(default_factory=set)
    """Resources that the values are outputs of."""

    def secret_texts(self) -> frozenset[str]:
        """All texts of secret values."""
        return frozenset(
            each
            for steps in self.secret
            for each in _leaves(_at(self.values, steps))
            if _is_text(each)
        )


async def plain(inputs: Mapping[str, Any]) -> Arguments:
    """The values of arguments, once they are there."""
    found = Arguments()
    found.values = whole_numbers(await _plain(dict(inputs), (), found))
    return found


async def _plain(value: Any, steps: Steps, found: Arguments) -> Any:
    if isinstance(value, pulumi.Output):
        found.needs |= await value.resources()
        if await value.is_secret():
            found.secret.append(steps)
        return await _plain(await value.future(with_unknowns=True), steps, found)
    if isinstance(value, Unknown):
        found.unknown.append(steps)
        return None
    if isinstance(value, Mapping):
        made = {key: await _plain(each, (*steps, key), found) for key, each in value.items()}
        return {key: each for key, each in made.items() if each is not None}
    if isinstance(value, list | tuple):
        return [await _plain(each, (*steps, n), found) for n, each in enumerate(value)]
    return value


Judge = Callable[[Values], Planned]
"""Tells the plan of values, or why there is none."""


@dataclass(frozen=True, kw_only=True)
class Settled:
    """Arguments with a plan, or with the reasons why there is none."""

    values: Values
    """With the stand-ins."""
    planned: Planned
    stood_in: tuple[Steps, ...]
    """Places where something stands in for a text that is not known yet."""


def settled(given: Arguments, judge: Judge, *, region: str, account: str = NO_ACCOUNT) -> Settled:
    """Plan by arguments. A value that is not known and decides something is an error. `account`: of the
    stack, where it is known."""
    values, stood_in, errors = deepcopy(given.values), list[Steps](), list[InputError]()
    for steps in given.unknown:
        for text in STAND_INS:
            tried = deepcopy(values)
            _put(tried, steps, text.format(region=region, account=account))
            if not _refuses(judge(tried), steps):
                values = tried
                stood_in.append(steps)
                break
        else:
            errors.append(_unknown(steps))
    found = judge(values)
    known = [
        each for each in found.errors if not any(_is_at(each, steps) for steps in given.unknown)
    ]
    sound = Planned(
        plan=found.plan,
        errors=(*errors, *_secret_errors(given), *known),
        warnings=tuple(each for each in found.warnings if NOT_KNOWN not in str(each)),
    )
    return Settled(values=values, planned=sound, stood_in=tuple(stood_in))


def _refuses(planned: Planned, steps: Steps) -> bool:
    """True where a stand-in is an error, or names something that a preview looks up."""
    looked_up = planned.plan.existing if isinstance(planned.plan, EnvironmentPlan) else ()
    wrong = (_is_at(each, steps) or NOT_KNOWN in str(each) for each in planned.errors)
    path = path_of(steps)
    return any(wrong) or any(
        path.startswith(each.removeprefix("environment.")) for each in looked_up
    )


def _is_at(error: InputError, steps: Steps) -> bool:
    return error.path == path_of(steps)


def path_of(steps: Steps) -> str:
    """The path of an argument, as errors name it."""
    return ".".join(map(str, steps))


def _unknown(steps: Steps) -> InputError:
    return At(path_of(steps)).must(
        "be known in a preview, because the plan follows from it",
        got="an output of a resource that does not exist yet",
        fix="write the value, or make that resource first: pulumi up --target <its URN>",
    )


def _secret_errors(given: Arguments) -> Iterator[InputError]:
    """Secrets that cannot be kept: a number of nodes cannot be told from another number."""
    for steps in given.secret:
        if not all(_is_text(each) for each in _leaves(_at(given.values, steps))):
            yield At(path_of(steps)).must(
                f"not be a secret: only texts of {SHORTEST} letters or more can be kept",
                got="a secret, which is not shown",
                fix="write the value in clear, or by unsecret() of the SDK where it is none",
            )


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) >= SHORTEST


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        value = [*value.values()]
    if isinstance(value, list):
        for each in value:
            yield from _leaves(each)
    elif value is not None:
        yield value


def _at(value: Any, steps: Sequence[Any]) -> Any:
    for step in steps:
        value = value[step] if isinstance(value, list) else (value or {}).get(step)
    return value


def _put(value: Any, steps: Sequence[Any], text: str) -> None:
    *way, last = steps
    for step in way:
        value = value[step] if isinstance(value, list) else value.setdefault(step, {})
    value[last] = text
