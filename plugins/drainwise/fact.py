"""An immutable record: what a frozen dataclass would be, without the 16 ms that importing dataclasses costs a hook."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


class Fact:
    """Base of small facts: a subclass names its fields in `__slots__` and sets them with `set_field` when made."""

    __slots__: tuple[str, ...] = ()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} cannot be changed ({name})")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} cannot be changed ({name})")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return _values(self) == _values(other)

    def __hash__(self) -> int:
        return hash(_values(self))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in type(self).__slots__)
        return f"{type(self).__name__}({fields})"


set_field = object.__setattr__


def _values(fact: Fact) -> tuple[object, ...]:
    return tuple(getattr(fact, name) for name in type(fact).__slots__)
