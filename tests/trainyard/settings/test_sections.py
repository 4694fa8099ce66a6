"""A section with nothing in it means neither its defaults nor that it is not there: it is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any, get_args, get_type_hints

import pydantic
import pytest

from tests.support.stackfile import at, errors
from trainyard.settings.environment import EnvironmentConfig, StackConfig, TeamConfig


def _sections(holder: Any, known: set[Any]) -> Iterator[tuple[Any, str, Any]]:
    """Class, name and type of each setting that is settings itself, or None."""
    if not is_dataclass(holder) or holder in known:
        return
    known.add(holder)
    for name, kind in get_type_hints(holder, include_extras=True).items():
        bare = get_type_hints(holder)[name]
        if type(None) in get_args(bare) and any(map(is_dataclass, get_args(bare))):
            yield holder, name, kind
        for inner in _inside(bare):
            yield from _sections(inner, known)


def _inside(kind: Any) -> Iterator[Any]:
    yield kind
    for each in get_args(kind):
        yield from _inside(each)


SECTIONS = [each for each in _sections(StackConfig, set()) if each[0] is not StackConfig]


def test_every_section_of_the_settings_refuses_to_be_empty() -> None:
    """StackConfig's own two are keys of Pulumi, which makes text of an empty one."""
    assert {(EnvironmentConfig, "metrics"), (EnvironmentConfig, "history")} <= {
        (holder, name) for holder, name, _ in SECTIONS
    }
    assert len(SECTIONS) > 25 and TeamConfig not in {holder for holder, _, _ in SECTIONS}
    for _, _, kind in SECTIONS:
        with pytest.raises(pydantic.ValidationError):
            pydantic.TypeAdapter(kind).validate_python(None)


@pytest.mark.parametrize("name", ["metrics", "repair", "history", "logs", "queues"])
def test_an_empty_section_says_how_to_turn_it_on(name: str) -> None:
    [error] = errors(at(name, None))
    assert error == (
        f"environment.{name}: must be settings, not empty; got null. Fix: write {name}: {{}}, or"
        " delete the line"
    )
    [error] = errors(at(name, True))
    assert error.endswith(f": must be settings; got true. Fix: write {name}: {{}}")


@pytest.mark.parametrize(
    "name", ["artifacts", "budget", "training_operator", "jobs.t5-large.files"]
)
def test_an_empty_section_with_required_settings_is_refused_too(name: str) -> None:
    [error, *_] = errors(at(name, None))
    says = f"environment.{name}: must be settings, not empty; got null. Fix: delete the line"
    assert error.startswith(says)
