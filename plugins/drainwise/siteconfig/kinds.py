"""The kinds of value a site file knows: how each is read, shown, and described when it is wrong.

Every value ends up in a batch system's configuration, in a worker node's settings or in a script. So a kind
admits only characters that mean nothing there: no quotes, `$`, backticks, blanks or control characters in any of them.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Generic, TypeVar, cast

from drainwise.facts.client_rules import alternatives
from drainwise.facts.units import format_duration, format_size, parse_duration, parse_size
from drainwise.pool.identity import LONGEST, Rule, rule_of

T = TypeVar("T")

_INTEGER = re.compile("[0-9]{1,18}")
_DECIMAL = re.compile(r"[0-9]{1,9}(\.[0-9]{1,6})?")
_PATH = re.compile(r"(/[A-Za-z0-9_.+-]+)+")
_TEXT = re.compile("[A-Za-z0-9 _.,:/@%+=-]*")
_URL = re.compile(r"https?://(?:[A-Za-z0-9.-]|%h)+(:[0-9]{1,5})?(/[A-Za-z0-9_.-]+)*/?")
_PATTERNS = re.compile(r"[A-Za-z0-9 _.,:/@()+*?\[\]=-]{1,400}")
_RULE = re.compile(r"[A-Za-z0-9 _.,:;/@%+=|{}()\[\]~*#-]+")
_WORD = re.compile("[A-Za-z][A-Za-z0-9_]{0,31}")


@dataclass(frozen=True)
class TextKind(Generic[T]):
    """One kind of value: `parse` raises ValueError on what is not `expected`; `show` is its inverse.

    `name` and `limits` say the same in short, for a table.
    """

    name: str
    limits: str
    expected: str
    parse: Callable[[str], T]
    show: Callable[[T], str]


def duration(least: str, most: str) -> TextKind[int]:
    """Return the kind of seconds, written with units, within [least, most]."""
    return TextKind(
        "duration",
        f"{least} to {most}",
        f"a duration from {least} to {most} with its unit (d, h, m, s), such as 90s, 30m, 1h30m or 7d",
        _within(parse_duration, parse_duration(least), parse_duration(most)),
        format_duration,
    )


def size(least: str, most: str) -> TextKind[int]:
    """Return the kind of bytes, written with units, within [least, most]."""
    return TextKind(
        "size",
        f"{least} to {most}",
        f"a size from {least} to {most} with its unit, such as 20GB (1000-based) or 16GiB (1024-based)",
        _within(parse_size, parse_size(least), parse_size(most)),
        format_size,
    )


def integer(least: int, most: int) -> TextKind[int]:
    """Return the kind of a whole number within [least, most]."""
    return TextKind(
        "integer",
        f"{least} to {most}",
        f"a whole number from {least} to {most}",
        _within(_parse_integer, least, most),
        str,
    )


def integer_or(name: str, least: int, most: int) -> TextKind[str]:
    """Return the kind of a whole number within [least, most], or one word; kept as it was written."""
    number = integer(least, most)

    def parse(text: str) -> str:
        return text if text == name else str(number.parse(text))

    return TextKind("integer", f"{name}, or {number.limits}", f"{name}, or {number.expected}", parse, str)


def decimal(least: str, most: str) -> TextKind[Decimal]:
    """Return the kind of a decimal number within [least, most], kept exactly as it was written."""
    return TextKind(
        "decimal",
        f"{least} to {most}",
        f"a number from {least} to {most}, such as 10 or 10.5",
        _within(_parse_decimal, Decimal(least), Decimal(most)),
        lambda number: format(number, "f"),
    )


def choice(*names: str) -> TextKind[str]:
    """Return the kind of one of a few words."""
    return TextKind(
        "choice", ", ".join(names), f"one of {', '.join(names)}", lambda text: names[names.index(text)], str
    )


def listed(names: Iterable[str], is_known: Callable[[str], bool], more: str) -> TextKind[str]:
    """Return the kind of one of a few words or of other known names; more: a text for these."""
    return TextKind("choice", ", ".join(names), f"one of {', '.join(names)}, or {more}", _as_it_is(is_known), str)


def path(longest: int = 200) -> TextKind[str]:
    """Return the kind of an absolute path in normal form."""

    def is_right(text: str) -> bool:
        return _PATH.fullmatch(text) is not None and len(text) <= longest and not {".", ".."} & set(text.split("/"))

    expected = f"an absolute path of letters, digits and _ . + - without . or .. parts, at most {longest} characters"
    return TextKind("path", "absolute", expected, _as_it_is(is_right), str)


def url(longest: int = 150) -> TextKind[str]:
    """Return the kind of a web server's base URL; `%h` in it is the node's own name."""

    def is_right(text: str) -> bool:
        return _URL.fullmatch(text) is not None and len(text) <= longest

    expected = f"a URL such as https://%h:8443 (%h: the node's name) of at most {longest} characters"
    return TextKind("URL", "http or https", expected, _as_it_is(is_right), str)


def ip_address() -> TextKind[str]:
    """Return the kind of an IPv4 or IPv6 address."""

    def is_right(text: str) -> bool:
        try:
            return str(ipaddress.ip_address(text)) == text
        except ValueError:
            return False

    expected = "an IP address such as 127.0.0.1, ::1 or 0.0.0.0, in its usual spelling"
    return TextKind("address", "IPv4 or IPv6", expected, _as_it_is(is_right), str)


def word() -> TextKind[str]:
    """Return the kind of a name that HTCondor can put into the names of its configuration macros."""
    expected = "a letter and then at most 31 letters, digits or _"
    return TextKind("word", "letters, digits, _", expected, _as_it_is(lambda text: bool(_WORD.fullmatch(text))), str)


def patterns() -> TextKind[str]:
    """Return the kind of patterns that nodes' names, CPU models or features must match; see `facts.name_patterns`."""
    expected = "patterns with * ? [001-120], several with commas, of letters, digits, blanks and _ . , : / @ ( ) + = -"
    return TextKind(
        "patterns", "* ? [001-120], commas", expected, _as_it_is(lambda text: bool(_PATTERNS.fullmatch(text))), str
    )


def rule(longest: int = 300) -> TextKind[Rule]:
    """Return the kind of a rule for the texts that name a pilot; see `identity.rules`."""

    def parse(text: str) -> Rule:
        if _RULE.fullmatch(text) is None or len(text) > longest:
            raise ValueError(text)
        return rule_of(text)

    names = ", ".join(f"{{{name}}}" for name in LONGEST)
    expected = (
        f"a text with fields such as vo={{vo}} job={{ce_job}} {{}}, at most {longest} characters; there are {names}"
        " and {}, each once in a pattern, with a text between two of them; ` | ` stands between patterns"
    )
    return TextKind("rule", "{vo}, {ce_job} and so on", expected, parse, lambda found: found.written)


def payload_patterns() -> TextKind[str]:
    """Return the kind of the site's own patterns of payloads; see `node.payloads.payload_trees`."""
    expected = "name=part of a command line, several with commas; a name has small letters, digits, _ and -"
    one = re.compile(r"[a-z0-9_-]{1,16}=[A-Za-z0-9_./:+@-]{3,60}")

    def is_right(written: str) -> bool:
        rows = [row.strip() for row in written.split(",")]
        return len(rows) <= 16 and all(one.fullmatch(row) for row in rows)

    return TextKind("patterns", "name=text, commas", expected, _as_it_is(is_right), str)


def client_conditions() -> TextKind[str]:
    """Return the kind of a row of `[clients]`: conditions on a pilot, see `facts.client_rules`."""

    def is_right(written: str) -> bool:
        try:
            return _PATTERNS.fullmatch(written) is not None and bool(alternatives(written))
        except ValueError:
            return False

    expected = (
        "conditions user=, account=, name=, comment=, partition=, qos=, feature=, licence= (Slurm) or job.ATTRIBUTE="
        " (HTCondor) with patterns, such as user=atlas*,usatlas* or account=group_panda.*"
    )
    return TextKind("conditions", "KEY=PATTERNS, or", expected, _as_it_is(is_right), str)


def text(longest: int = 200) -> TextKind[str]:
    """Return the kind of one line of harmless characters."""

    def is_right(written: str) -> bool:
        return _TEXT.fullmatch(written) is not None and len(written) <= longest

    expected = f"at most {longest} letters, digits, blanks and _ . , : / @ % + = -"
    return TextKind("text", f"at most {longest} characters", expected, _as_it_is(is_right), str)


def _as_it_is(is_right: Callable[[str], bool]) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if not is_right(text):
            raise ValueError(text)
        return text

    return parse


N = TypeVar("N", int, Decimal)


def _within(parse: Callable[[str], N], least: N, most: N) -> Callable[[str], N]:
    def bounded(text: str) -> N:
        number = parse(text)
        if not least <= number <= most:
            raise ValueError(text)
        return number

    return bounded


def _parse_integer(text: str) -> int:
    if _INTEGER.fullmatch(text) is None:
        raise ValueError(text)
    return int(text)


def _parse_decimal(text: str) -> Decimal:
    if _DECIMAL.fullmatch(text) is None:
        raise ValueError(text)
    return Decimal(text)


def key(kind: TextKind[T], default: T, meaning: str) -> T:
    """Declare a key with a default value."""
    return field(default=default, metadata={"kind": kind, "meaning": meaning})


def optional(kind: TextKind[T], example: str, meaning: str) -> T | None:
    """Declare a key that a site may leave out; its value is then None."""
    return field(default=None, metadata={"kind": kind, "meaning": meaning, "example": example})


@dataclass(frozen=True)
class Key:
    """One key; `default` is the text that a site file would have, empty when there is none.

    `example` is what a key without a default may look like.
    """

    section: str
    name: str
    kind: TextKind[Any]
    default: str
    meaning: str
    example: str


def keys_of(section: str, table: type[Any]) -> Iterator[Key]:
    """Yield the keys of a table in their order."""
    for row in dataclasses.fields(table):
        kind = cast("TextKind[Any]", row.metadata["kind"])
        default = "" if row.default is None else kind.show(row.default)
        meaning, example = str(row.metadata["meaning"]), str(row.metadata.get("example", ""))
        yield Key(section, row.name, kind, default, meaning, example)
