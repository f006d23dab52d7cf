"""The facts that rooms hand to each other: errors, records, waste, a pool as it is.

Runs on every machine; needs the standard library alone.

`@fact`: a frozen class made of annotated fields, without the 16 ms that importing dataclasses costs a hook. It stands
here because each hook needs it, and a module of its own would cost each of them as much as making three such classes.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn, TypeVar

    from typing_extensions import dataclass_transform

    T = TypeVar("T")
else:

    def dataclass_transform(**_: bool) -> object:  # noqa: D103
        return lambda made: made


set_field = object.__setattr__
"""Set a field of a fact that is being made: for its `__post_init__` alone."""


def _refuse(self: object, name: str, *_: object) -> NoReturn:
    raise AttributeError(f"{type(self).__name__} cannot be changed ({name})")


@dataclass_transform(frozen_default=True)
def fact(wanted: type[T]) -> type[T]:
    """Return the class with slots, constructor, equality, hash and repr; `__post_init__` is called where it has one.

    Defaults must be immutable. The constructor is a plain loop: compiling one for each class would cost a hook more.
    """
    names = tuple(wanted.__annotations__)
    body = {name: value for name, value in vars(wanted).items() if name not in {"__dict__", "__weakref__"}}
    defaults = {name: body.pop(name) for name in names if name in body}
    post_init, count, last = body.get("__post_init__"), len(names), tuple(defaults.values())

    def whole(given: tuple[object, ...], named: dict[str, object]) -> tuple[object, ...]:
        missing = count - len(given)
        if not named and 0 < missing <= len(last):
            return given + last[-missing:]
        stated = {**dict(zip(names, given)), **named} if given else named
        values = {**defaults, **stated} if len(stated) < count else stated
        try:
            found = tuple(map(values.__getitem__, names))
        except KeyError:
            raise TypeError(wrong) from None
        if len(stated) < len(given) + len(named) or len(values) > count:
            raise TypeError(wrong)
        return found

    def make(self: object, *given: object, **named: object) -> None:
        if named or len(given) != count:
            given = whole(given, named)
        for put, value in zip(setters, given):
            put(self, value)
        if post_init is not None:
            post_init(self)

    def values_of(self: object) -> tuple[object, ...]:
        return tuple([getattr(self, name) for name in names])

    def equal(self: object, other: object) -> bool:
        return values_of(self) == values_of(other) if type(other) is type(self) else NotImplemented

    def shown(self: object) -> str:
        pairs = [(name, value) for name, value in zip(names, values_of(self)) if defaults.get(name, self) != value]
        return f"{wanted.__name__}({', '.join(f'{name}={value!r}' for name, value in pairs)})"

    body.update(__slots__=names, __match_args__=names, __init__=make, __eq__=equal, __repr__=shown)
    body.update(__hash__=lambda self: hash(values_of(self)), __setattr__=_refuse, __delattr__=_refuse)
    made: type[T] = type(wanted.__name__, (), body)
    setters = [getattr(made, name).__set__ for name in names]
    wrong = f"{wanted.__name__} takes each once: {', '.join(names)}"
    return made
