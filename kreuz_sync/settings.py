"""The base of every setting: fixed once made, shown without its secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self


class Setting:
    """Values that never change after construction, compared and shown by their fields.

    A subclass lists its `fields` and gives each a value with `_fix` in `__init__`. The
    standard library's dataclasses would do this too, but importing them takes a sixth
    of the time that importing requests takes, and nothing else here needs them.
    """

    fields: tuple[str, ...] = ()
    secret_fields: frozenset[str] = frozenset()

    def _fix(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} is fixed; make another {type(self).__name__} instead")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} is fixed")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.fields)

    def __hash__(self) -> int:
        return hash((type(self), *(getattr(self, name) for name in self.fields)))

    def __repr__(self) -> str:
        shown = (
            f"{name}=..." if name in self.secret_fields else f"{name}={getattr(self, name)!r}" for name in self.fields
        )
        return f"{type(self).__name__}({', '.join(shown)})"

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__.copy()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


class Single:
    """What holds a state that is shared: a copy of it is the same one."""

    __slots__ = ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


class Shared(Single, Setting):
    """A setting with a state that its sessions share: equal to itself alone, and a copy of it is the same one.

    A pickle carries `fields`; the subclass begins anew from them in `__setstate__`.
    """

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.fields}
