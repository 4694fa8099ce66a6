"""`dataclass` of the standard library, for frozen classes only and cheaper to define.

The standard decorator compiles the text of six methods for each class: with some 150 classes that is
a quarter of `make check`. This one has it compile `__init__` alone. Comparison, hash, text and the
refusal to write mean the same, and are the same few functions for every class. The one difference:
dataclasses.FrozenInstanceError comes from here too, but `__dataclass_params__` does not say frozen,
so a frozen class of the standard decorator cannot be derived from a class of this one.
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
    dataclasses.dataclass(kw_only=kw_only, repr=False, eq=False)(cls)
    written: dict[str, Any] = {
        **_comparison(cls),
        "__repr__": _text,
        "__setattr__": _write_once,
        "__delattr__": _delete,
    }
    for name, method in written.items():
        if name not in own:
            setattr(cls, name, method)
    return cls


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


def _write_once(self: Any, name: str, value: Any) -> None:
    """`__init__` writes each field once; nothing else is written."""
    if name in self.__dict__ or name not in self.__dataclass_fields__:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _delete(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
