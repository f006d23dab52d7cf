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
from drainwise.pool.billing import CORES, SITE, parse_billing
from drainwise.pool.identity import LONGEST, Rule, rule_of

T = TypeVar("T")
N = TypeVar("N", int, Decimal)

_PATH = r"(?!(.*/)?\.\.?(/|$))(/[A-Za-z0-9_.+-]+)+"
_TEXT = "[A-Za-z0-9 _.,:/@%+=-]*"
_URL = r"https?://(?:[A-Za-z0-9.-]|%h)+(:[0-9]{1,5})?(/[A-Za-z0-9_.-]+)*/?"
_PATTERNS = r"[A-Za-z0-9 _.,:/@()+*?\[\]=-]{1,400}"
_RULE = r"[A-Za-z0-9 _.,:;/@%+=|{}()\[\]~*#-]+"
_FILE = r"[A-Za-z0-9_.*?+-]{1,60}"
_FILES = rf"(?!.*\.\.){_FILE}(/{_FILE})?(, ?{_FILE}(/{_FILE})?){{0,7}}"
_PAYLOAD = r"[a-z0-9_-]{1,16}=[A-Za-z0-9_./:+@-]{3,60}"


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


def _within(
    name: str, expected: str, parse: Callable[[str], N], show: Callable[[N], str], least: str, most: str
) -> TextKind[N]:
    """Return the kind of numbers within [least, most], as they are written."""
    limits = f"{least} to {most}"
    lowest, highest = parse(least), parse(most)

    def bounded(text: str) -> N:
        number = parse(text)
        if not lowest <= number <= highest:
            raise ValueError(text)
        return number

    return TextKind(name, limits, expected.format(limits), bounded, show)


def _digits(pattern: str, number: Callable[[str], N]) -> Callable[[str], N]:
    def parse(text: str) -> N:
        if re.fullmatch(pattern, text) is None:
            raise ValueError(text)
        return number(text)

    return parse


def _matching(name: str, limits: str, expected: str, is_right: Callable[[str], object]) -> TextKind[str]:
    """Return the kind of the texts that `is_right` accepts, as they are; it may raise ValueError."""

    def parse(text: str) -> str:
        if not is_right(text):
            raise ValueError(text)
        return text

    return TextKind(name, limits, expected, parse, str)


def duration(least: str, most: str) -> TextKind[int]:
    """Return the kind of seconds, written with units, within [least, most]."""
    expected = "a duration from {} with its unit (d, h, m, s), such as 90s, 30m, 1h30m or 7d"
    return _within("duration", expected, parse_duration, format_duration, least, most)


def size(least: str, most: str) -> TextKind[int]:
    """Return the kind of bytes, written with units, within [least, most]."""
    expected = "a size from {} with its unit, such as 20GB (1000-based) or 16GiB (1024-based)"
    return _within("size", expected, parse_size, format_size, least, most)


def integer(least: int, most: int) -> TextKind[int]:
    """Return the kind of a whole number within [least, most]."""
    return _within("integer", "a whole number from {}", _digits("[0-9]{1,18}", int), str, str(least), str(most))


def integer_or(name: str, least: int, most: int) -> TextKind[str]:
    """Return the kind of a whole number within [least, most], or one word; kept as it was written."""
    number = integer(least, most)

    def parse(text: str) -> str:
        return text if text == name else str(number.parse(text))

    return TextKind("integer", f"{name}, or {number.limits}", f"{name}, or {number.expected}", parse, str)


def decimal(least: str, most: str) -> TextKind[Decimal]:
    """Return the kind of a decimal number within [least, most], kept exactly as it was written."""
    parse = _digits(r"[0-9]{1,9}(\.[0-9]{1,6})?", Decimal)
    return _within("decimal", "a number from {}, such as 10 or 10.5", parse, "{:f}".format, least, most)


def choice(*names: str) -> TextKind[str]:
    """Return the kind of one of a few words."""
    return _matching("choice", ", ".join(names), f"one of {', '.join(names)}", names.__contains__)


def listed(names: Iterable[str], is_known: Callable[[str], bool], more: str) -> TextKind[str]:
    """Return the kind of one of a few words or of other known names; more: a text for these."""
    return _matching("choice", ", ".join(names), f"one of {', '.join(names)}, or {more}", is_known)


def path(longest: int = 200) -> TextKind[str]:
    """Return the kind of an absolute path in normal form."""
    expected = f"an absolute path of letters, digits and _ . + - without . or .. parts, at most {longest} characters"
    return _matching("path", "absolute", expected, lambda text: len(text) <= longest and re.fullmatch(_PATH, text))


def url(longest: int = 150) -> TextKind[str]:
    """Return the kind of a web server's base URL; `%h` in it is the node's own name."""
    expected = f"a URL such as https://%h:8443 (%h: the node's name) of at most {longest} characters"
    return _matching("URL", "http or https", expected, lambda text: len(text) <= longest and re.fullmatch(_URL, text))


def ip_address() -> TextKind[str]:
    """Return the kind of an IPv4 or IPv6 address."""
    expected = "an IP address such as 127.0.0.1, ::1 or 0.0.0.0, in its usual spelling"
    return _matching("address", "IPv4 or IPv6", expected, lambda text: str(ipaddress.ip_address(text)) == text)


def word() -> TextKind[str]:
    """Return the kind of a name that HTCondor can put into the names of its configuration macros."""
    expected = "a letter and then at most 31 letters, digits or _"
    pattern = re.compile("[A-Za-z][A-Za-z0-9_]{0,31}")
    return _matching("word", "letters, digits, _", expected, pattern.fullmatch)


def patterns() -> TextKind[str]:
    """Return the kind of patterns that nodes' names, CPU models or features must match; see `facts.name_patterns`."""
    expected = "patterns with * ? [001-120], several with commas, of letters, digits, blanks and _ . , : / @ ( ) + = -"
    return _matching("patterns", "* ? [001-120], commas", expected, re.compile(_PATTERNS).fullmatch)


def rule(longest: int = 300) -> TextKind[Rule]:
    """Return the kind of a rule for the texts that name a pilot; see `identity.rules`."""

    def parse(text: str) -> Rule:
        if re.fullmatch(_RULE, text) is None or len(text) > longest:
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

    def is_right(written: str) -> bool:
        rows = [row.strip() for row in written.split(",")]
        return len(rows) <= 16 and all(re.fullmatch(_PAYLOAD, row) for row in rows)

    return _matching("patterns", "name=text, commas", expected, is_right)


def billing_weights() -> TextKind[str]:
    """Return the kind of weights of resources; see `pool.billing`."""
    expected = f"{CORES}, {SITE}, or weights of CPU, Mem, GRES/NAME, such as CPU=1,Mem=0.25G,GRES/gpu=16"
    return _matching("weights", f"{CORES}, {SITE}, or CPU=1,Mem=0.25G,GRES/gpu=16", expected, parse_billing)


def file_patterns() -> TextKind[str]:
    """Return the kind of patterns of files below a job's directory, in it or one directory below."""
    expected = "names of files below the job's directory with * and ?, several with commas: *.ckpt, restart/*.h5"
    return _matching("patterns", "names, commas", expected, lambda text: re.fullmatch(_FILES, text))


def client_conditions() -> TextKind[str]:
    """Return the kind of a row of `[clients]`: conditions on a pilot, see `facts.client_rules`."""
    expected = (
        "conditions user=, account=, name=, comment=, partition=, qos=, feature=, licence= (Slurm) or job.ATTRIBUTE="
        " (HTCondor) with patterns, such as user=atlas*,usatlas* or account=group_panda.*"
    )
    return _matching(
        "conditions", "KEY=PATTERNS, or", expected, lambda text: re.fullmatch(_PATTERNS, text) and alternatives(text)
    )


def text(longest: int = 200) -> TextKind[str]:
    """Return the kind of one line of harmless characters."""
    expected = f"at most {longest} letters, digits, blanks and _ . , : / @ % + = -"
    limits = f"at most {longest} characters"
    return _matching("text", limits, expected, lambda text: len(text) <= longest and re.fullmatch(_TEXT, text))


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
