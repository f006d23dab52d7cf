"""A file that a person wrote in TOML or JSON, and its values, each read by its kind: what is wrong is refused by name.

TOML where this Python can, JSON everywhere. A table of kinds is the table of keys: one that it has not got is refused.
Errors name file, key, value and what was expected.
"""

from __future__ import annotations

import difflib
import importlib
import json
import os
import re
import stat
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Generic, NoReturn, TypeVar

from drainwise.facts.errors import ConfigurationError

T = TypeVar("T")

Wrong = Callable[[str, str, str], Exception]
"""Makes the error of a key, its value as text, and what was expected."""

SHELL = ("/bin/sh", "-c")

_LONGEST = 60
_TOML_READERS = ("tomllib", "tomli")
"""The standard library's since Python 3.11, and the package of the same interface for older ones."""


@dataclass(frozen=True)
class Kind(Generic[T]):
    """One kind of value: `read` gives it, or raises ValueError on what is not `expected`."""

    expected: str
    read: Callable[[object], T]


class UnexpectedPartError(ValueError):
    """A part of a list or table is not what was expected; `key` names it within."""

    def __init__(self, key: str, value: object, expected: str) -> None:
        self.key, self.value, self.expected = key, value, expected
        super().__init__(key)


def checked(expected: str, is_right: Callable[[Any], bool]) -> Kind[Any]:
    """Return the kind of the values that `is_right` accepts, as they are."""

    def read(value: object) -> object:
        if not is_right(value):
            raise ValueError
        return value

    return Kind(expected, read)


def truth() -> Kind[bool]:
    """Return the kind of true and false."""
    return checked("true or false", lambda value: isinstance(value, bool))


def whole(least: int, most: int, expected: str = "") -> Kind[int]:
    """Return the kind of whole numbers within [least, most]."""
    return checked(
        expected or f"a whole number from {least} to {most}",
        lambda value: isinstance(value, int) and not isinstance(value, bool) and least <= value <= most,
    )


def number(least: float, most: float, expected: str = "", above: bool = False) -> Kind[float]:
    """Return the kind of numbers within [least, most], or `above` the least one. A NaN is none."""
    return checked(
        expected or f"a number {'above' if above else 'from'} {least:g}, at most {most:g}",
        lambda value: (
            isinstance(value, (int, float))
            and not isinstance(value, bool)
            and least <= value <= most
            and not (above and value == least)
        ),
    )


def text(longest: int, least: int = 0, expected: str = "") -> Kind[str]:
    """Return the kind of printable texts of `least` to `longest` characters."""
    return checked(
        expected or f"a printable text of {f'{least} to' if least else 'at most'} {longest} characters",
        lambda value: isinstance(value, str) and least <= len(value) <= longest and value.isprintable(),
    )


def matching(pattern: str, expected: str) -> Kind[str]:
    """Return the kind of texts that a regular expression matches as a whole."""
    compiled = re.compile(pattern)
    return checked(expected, lambda value: isinstance(value, str) and compiled.fullmatch(value) is not None)


def choice(*names: str) -> Kind[str]:
    """Return the kind of a few words."""
    return checked(f"one of {', '.join(names)}", lambda value: isinstance(value, str) and value in names)


def absolute_path() -> Kind[str]:
    """Return the kind of absolute paths."""
    return checked(
        "an absolute path", lambda value: isinstance(value, str) and os.path.isabs(value) and value.isprintable()
    )


def argument() -> Kind[str]:
    """Return the kind of texts that a process can be given."""

    def is_right(value: object) -> bool:
        try:
            return isinstance(value, str) and "\0" not in value and bool(value.encode() or True)
        except UnicodeEncodeError:
            return False

    return checked("text that is UTF-8 and has no NUL", is_right)


def command() -> Kind[tuple[str, ...]]:
    """Return the kind of commands: a list of words, of which the first is not empty, or a text for the shell."""
    word = argument()
    words = list_of(word, "a list of words", least=1)

    def read(value: object) -> tuple[str, ...]:
        if isinstance(value, str) and value.strip():
            return (*SHELL, word.read(value))
        if isinstance(value, list) and value and value[0]:
            return words.read(value)
        raise ValueError

    return Kind("a list of words, or a text for the shell, UTF-8 without NUL", read)


def optional(kind: Kind[T]) -> Kind[T | None]:
    """Return the kind with null, too."""
    return Kind(f"{kind.expected}, or null", lambda value: None if value is None else kind.read(value))


def list_of(kind: Kind[T], expected: str, least: int = 0) -> Kind[tuple[T, ...]]:
    """Return the kind of lists of at least `least` values of a kind."""

    def read(value: object) -> tuple[T, ...]:
        if not isinstance(value, list) or len(value) < least:
            raise ValueError
        try:
            return tuple([kind.read(one) for one in value])
        except ValueError:  # only then its place is looked for
            return tuple(_part(str(place), one, kind) for place, one in enumerate(value, 1))

    return Kind(expected, read)


def table_of(kind: Kind[T], expected: str = "a table", name: Kind[str] | None = None) -> Kind[dict[str, T]]:
    """Return the kind of tables whose values are of a kind, and whose keys are of the kind `name`."""

    def read(value: object) -> dict[str, T]:
        if not isinstance(value, dict):
            raise ValueError
        try:
            if name is not None:
                for key in value:
                    name.read(key)
            return {key: kind.read(one) for key, one in value.items()}
        except ValueError:  # only then its place is looked for
            if name is not None:
                for key in value:
                    _part(shown(key), key, name)
            return {key: _part(str(key), one, kind) for key, one in value.items()}

    return Kind(expected, read)


def anything() -> Kind[Any]:
    """Return the kind of values that are read elsewhere."""
    return checked("a value", lambda _: True)


def _part(key: str, value: object, kind: Kind[T]) -> T:
    try:
        return kind.read(value)
    except UnexpectedPartError as part:
        raise UnexpectedPartError(f"{key}.{part.key}", part.value, part.expected) from None
    except ValueError:
        raise UnexpectedPartError(key, value, kind.expected) from None


def read_value(key: str, value: object, kind: Kind[T], wrong: Wrong) -> T:
    """Return a value of its kind. Raises what `wrong` makes."""
    try:
        return _part(key, value, kind)
    except UnexpectedPartError as part:
        raise wrong(part.key[:_LONGEST], shown(part.value), part.expected) from None


def read_table(
    found: object, kinds: Mapping[str, Kind[Any]], wrong: Wrong, required: Collection[str] = ()
) -> dict[str, Any]:
    """Return the values of a table by key, each of its kind. Raises what `wrong` makes, for missing keys as well."""
    if not isinstance(found, dict):
        raise wrong("", shown(found), "a table")
    missing = [key for key in required if key not in found]
    if not missing:
        with suppress(KeyError, ValueError):  # only then its place is looked for
            return {key: kinds[key].read(value) for key, value in found.items()}
    refuse_unknown(found, kinds, wrong)
    for key in missing:
        raise wrong(key, "missing", kinds[key].expected)
    return {key: read_value(key, value, kinds[key], wrong) for key, value in found.items()}


def key(kind: Kind[Any], default: Any = MISSING) -> Any:
    """Return a field of a dataclass that is a key of a table; one without a default is required."""
    return field(default=default, metadata={"kind": kind})


def kinds_of(fields_of: type[Any]) -> dict[str, Kind[Any]]:
    """Return the kinds of the fields of a dataclass that were made by `key`."""
    return {one.name: one.metadata["kind"] for one in fields(fields_of) if "kind" in one.metadata}


def read_keys(found: object, fields_of: type[Any], wrong: Wrong) -> dict[str, Any]:
    """Return the values of a table whose keys are fields of a dataclass, made by `key`. Raises as `read_table`."""
    required = [one.name for one in fields(fields_of) if "kind" in one.metadata and one.default is MISSING]
    return read_table(found, kinds_of(fields_of), wrong, required)


def refuse_unknown(found: Mapping[Any, object], known: Collection[str], wrong: Wrong) -> None:
    """Raise what `wrong` makes for the first key that is none of `known`."""
    for key, value in found.items():
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise wrong(str(key)[:_LONGEST], shown(value), f"one of {', '.join(known)}{hint}")


def in_file(file: str, section: str = "") -> Wrong:
    """Return a function that makes the error of a key in a section of a file."""
    return lambda key, value, expected: ConfigurationError(file, section, key, value, expected)


def shown(value: object) -> str:
    """Return the beginning of a value that somebody wrote, for a message."""
    try:
        return (value if isinstance(value, str) else ascii(value))[:_LONGEST]
    except ValueError:  # a whole number of too many digits
        return "a very large number"


def read_json(text: str, wrong: Wrong) -> object:
    """Return the value of JSON text in which each key stands once and each number is one. Raises what `wrong` makes."""

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found: dict[str, object] = {}
        for key, value in pairs:
            if key in found:
                raise wrong(key[:_LONGEST], shown(value), "the key once")
            found[key] = value
        return found

    def no_number(word: str) -> NoReturn:
        raise wrong("", word, "JSON, which has no such number")

    try:
        found: object = json.loads(text, object_pairs_hook=once, parse_constant=no_number)
    except RecursionError:
        raise wrong("", "nested too deeply", "JSON") from None
    except ValueError as fault:
        raise wrong("", str(fault)[:120], "JSON") from None
    return found


def read_text(path: str, longest: int, wanted: str, shorter: str) -> str:
    """Read the text of a regular file of at most `longest` bytes. Raises ConfigurationError.

    wanted: what is expected in words where that is no file, or none that can be read; shorter: where it is longer.
    O_NONBLOCK keeps a FIFO in the file's place from holding the command for ever.
    """
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ConfigurationError(path, "", "", "not a regular file", wanted)
            content = file.read(longest + 1)
    except (OSError, ValueError) as fault:  # ValueError: a NUL in the path
        reason = getattr(fault, "strerror", "") or str(fault)
        raise ConfigurationError(path, "", "", reason, wanted) from None
    if len(content) > longest:
        raise ConfigurationError(path, "", "", f"more than {longest} bytes", shorter)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        line, byte = content.count(b"\n", 0, fault.start) + 1, f"byte {content[fault.start]:#x}"
        raise ConfigurationError(path, "", "", byte, f"UTF-8 text on line {line}") from None


def toml_reader() -> Callable[[str], object] | None:
    """Return the reader of TOML; None on a Python before 3.11 without the package tomli."""
    for name in _TOML_READERS:
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        read: Callable[[str], object] = module.loads
        return read
    return None


def from_toml(path: str, text: str) -> object:
    """Read the value. Raises ConfigurationError."""
    read = toml_reader()
    if read is None:
        expected = "JSON in a file whose name ends in .json: TOML needs Python 3.11 or the package tomli"
        raise ConfigurationError(path, "", "", "TOML", expected)
    try:
        return read(text)
    except (ValueError, RecursionError) as fault:  # TOMLDecodeError is a ValueError, and names line and column
        raise ConfigurationError(path, "", "", " ".join(str(fault).split())[:120], "TOML") from None


def from_json(path: str, text: str) -> object:
    """Return the value of JSON; a key that stands twice and what is no number are refused: ConfigurationError."""
    return read_json(text, in_file(path))
