"""`dataclass` of the standard library, for frozen classes only and cheaper to define.

The standard decorator compiles the text of six methods for each class: with some 200 classes that is
a quarter of `make check`. This one compiles nothing. Its methods mean the same, and are the same few
functions for every class. The one difference: dataclasses.FrozenInstanceError comes from here too,
but `__dataclass_params__` does not say frozen, so a frozen class of the standard decorator cannot be
derived from a class of this one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*, frozen: bool, kw_only: bool = False) -> Callable[[type], type]:
        """The decorator; `frozen` is there to be read, and must be True."""
        if not frozen:
            raise TypeError("use dataclasses.dataclass for a class that is not frozen")
        return lambda cls: _frozen(cls, kw_only)


def _frozen(cls: type, kw_only: bool) -> type:
    # Without a docstring the standard decorator writes one, from a signature that takes long to make.
    cls.__doc__ = cls.__doc__ or cls.__name__
    own = vars(cls)
    dataclasses.dataclass(kw_only=kw_only, init=False, repr=False, eq=False)(cls)
    written: dict[str, Any] = {
        "__init__": _initializer(cls),
        **_comparison(cls),
        "__repr__": _text,
        "__setattr__": _refuse_to_write,
        "__delattr__": _delete,
    }
    for name, method in written.items():
        if name not in own:
            setattr(cls, name, method)
    return cls


def _initializer(cls: type) -> Callable[..., None]:
    """`__init__`, which takes a value for each field that has no default."""
    fields = dataclasses.fields(cls)
    names = {field.name for field in fields}
    in_order = [field.name for field in fields if not field.kw_only]
    defaults = {f.name: f.default for f in fields if f.default is not dataclasses.MISSING}
    factories = {
        field.name: field.default_factory
        for field in fields
        if field.default_factory is not dataclasses.MISSING
    }
    has_more_to_do = hasattr(cls, "__post_init__")

    def initialize(self: Any, /, *positional: Any, **values: Any) -> None:
        if positional:
            values = _named(cls, in_order, positional, values)
        if len(values) < len(names):
            made = {name: make() for name, make in factories.items() if name not in values}
            values = {**defaults, **made, **values}
        if values.keys() != names:
            wrong = ", ".join(sorted(values.keys() ^ names))
            raise TypeError(f"{cls.__qualname__} misses or does not have: {wrong}")
        self.__dict__.update(values)
        if has_more_to_do:
            self.__post_init__()

    return initialize


def _named(
    cls: type, names: list[str], positional: tuple[Any, ...], values: dict[str, Any]
) -> dict[str, Any]:
    """The values that were given by position, under their names, and those given by name."""
    if len(positional) > len(names):
        raise TypeError(f"{cls.__qualname__} takes {len(names)} values by position")
    by_position = dict(zip(names, positional, strict=False))
    twice = ", ".join(sorted(by_position.keys() & values.keys()))
    if twice:
        raise TypeError(f"{cls.__qualname__} was given twice: {twice}")
    return {**by_position, **values}


def _comparison(cls: type) -> dict[str, Callable[..., Any]]:
    """Equality and hash by the values of all fields, as those of a tuple."""
    names = [field.name for field in dataclasses.fields(cls) if field.compare]
    values: Callable[[Any], Any] = attrgetter(*names) if names else lambda _: ()

    def equal(self: Any, other: Any) -> Any:
        return (
            values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented
        )

    return {"__eq__": equal, "__hash__": lambda self: hash(values(self))}


def _text(self: Any) -> str:
    shown = (field.name for field in dataclasses.fields(self) if field.repr)
    values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
    return f"{self.__class__.__qualname__}({values})"


def _refuse_to_write(self: Any, name: str, value: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _delete(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
