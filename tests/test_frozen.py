"""frozen.dataclass means what dataclasses.dataclass(frozen=True) means."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

import frozen

DECORATORS = (dataclasses.dataclass, frozen.dataclass)


def _made(decorator: Callable[..., Any]) -> tuple[type, type, type]:
    """The same three classes by one decorator: derived, without fields, with its own methods."""

    @decorator(frozen=True, kw_only=True)
    class Base:
        name: str

    @decorator(frozen=True, kw_only=True)
    class Derived(Base):
        size: int = 3
        notes: list[str] = dataclasses.field(default_factory=list, compare=False)
        hidden: str = dataclasses.field(default="-", repr=False)

    @decorator(frozen=True)
    class Empty:
        pass

    @decorator(frozen=True)
    class Own:
        size: int

        def __eq__(self, other: object) -> bool:
            return False

        def __repr__(self) -> str:
            return "own"

    return Derived, Empty, Own


@pytest.mark.parametrize("decorator", DECORATORS)
def test_objects_are_equal_by_the_fields_that_are_compared(decorator: Callable[..., Any]) -> None:
    derived, empty, own = _made(decorator)
    assert derived(name="a", notes=["x"]) == derived(name="a", notes=["y"])
    assert derived(name="a") != derived(name="b")
    assert derived(name="a") != derived(name="a", hidden="h")
    assert derived(name="a") != "a"
    assert empty() == empty()
    assert own(1) != own(1)
    assert len({derived(name="a"), derived(name="a"), derived(name="b")}) == 2
    assert len({empty(), empty()}) == 1


@pytest.mark.parametrize("decorator", DECORATORS)
def test_the_text_of_an_object_names_its_fields(decorator: Callable[..., Any]) -> None:
    derived, empty, own = _made(decorator)
    assert repr(derived(name="a")).endswith("Derived(name='a', size=3, notes=[])")
    assert repr(empty()).endswith("Empty()")
    assert repr(own(1)) == "own"


@pytest.mark.parametrize("decorator", DECORATORS)
def test_nobody_writes_to_an_object(decorator: Callable[..., Any]) -> None:
    derived, _, _ = _made(decorator)
    one = derived(name="a")
    for name in ("name", "size", "unknown"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(one, name, 1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        del one.name
    assert dataclasses.asdict(dataclasses.replace(one, size=4))["size"] == 4
    with pytest.raises(TypeError):
        derived("a")


@pytest.mark.parametrize("decorator", DECORATORS)
def test_an_object_begins_with_a_value_for_each_field(decorator: Callable[..., Any]) -> None:
    @decorator(frozen=True)
    class Line:
        start: int
        end: int = 9
        notes: list[str] = dataclasses.field(default_factory=list)

        def __post_init__(self) -> None:
            self.notes.append("made")

    assert vars(Line(1)) == {"start": 1, "end": 9, "notes": ["made"]}
    assert vars(Line(1, end=2, notes=[])) == {"start": 1, "end": 2, "notes": ["made"]}
    assert Line(1).notes is not Line(1).notes
    for positional, named in (
        ((), {}),
        ((1,), {"start": 1}),
        ((1,), {"far": 1}),
        ((1, 2, [], 4), {}),
    ):
        with pytest.raises(TypeError, match="Line"):
            Line(*positional, **named)


def test_a_class_that_is_not_frozen_needs_the_standard_decorator() -> None:
    with pytest.raises(TypeError, match=r"dataclasses\.dataclass"):
        frozen.dataclass(frozen=False)
