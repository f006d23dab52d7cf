"""Read the few literals that a hook needs out of a ClassAd in HTCondor's long text form.

A hook must not import a ClassAd library (start-up is most of its cost), and it needs only literals: an expression where
a literal was expected counts as unknown.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    Literal = str | int | float | bool


def raw_values(ad: bytes, wanted: Iterable[str]) -> dict[str, str]:
    """Return the text right of `Name = ` for each wanted attribute that is there, a character a byte.

    Names compare without case; none stands twice in an ad.
    """
    found = {}
    lowered = b""
    for name in wanted:
        text, key = ad, b"\n%b = " % name.encode("ascii")
        start = ad.find(key)
        if start < 0:  # in another case, or on the first line
            text, key = b"\n" + ad, key.lower()
            lowered = lowered or text.lower()
            start = lowered.find(key)
        if start >= 0:
            start += len(key)
            end = text.find(b"\n", start)
            found[name] = text[start : end if end >= 0 else None].decode("latin-1").strip(" \t\r")
    return found


def literal(raw: str) -> Literal | None:
    """Return the value of an integer, real, boolean or string literal; None for anything else.

    In the long form only the quotation mark is escaped inside a string; a backslash elsewhere stands for itself.
    """
    if raw[:1] == '"' == raw[-1:] and len(raw) >= 2:
        inside = raw[1:-1]
        if '"' in inside:
            inside = inside.replace('\\"', "\0")  # a NUL cannot stand in an ad
            return None if '"' in inside else inside.replace("\0", '"')
        return inside
    digits = raw[1:] if raw[:1] == "-" else raw
    if digits.isdigit() and digits.isascii() and len(digits) <= 19:
        return int(raw)
    lower = raw.lower()
    if lower in {"true", "false"}:
        return lower == "true"
    if raw.isascii() and digits[:1].isdigit() and ("." in raw or "e" in lower) and "_" not in raw and len(raw) <= 40:
        try:
            return float(raw)
        except ValueError:
            return None
    return None


def literals(ad: bytes, wanted: Iterable[str]) -> dict[str, Literal]:
    """Return the wanted attributes of an ad that are literals."""
    values = {}
    for name, raw in raw_values(ad, wanted).items():
        value = literal(raw)
        if value is not None:
            values[name] = value
    return values


def whole(ad: dict[str, Literal], name: str) -> int | None:
    """Return an attribute as a whole number ≥ 0 (a real is cut: `TotalCpus = 24.0`); None when it is not one."""
    value = ad.get(name)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 2**63:
        return int(value)
    return None


def string(ad: dict[str, Literal], name: str) -> str | None:
    """Return an attribute as a string; None when it is not one."""
    value = ad.get(name)
    return value if isinstance(value, str) else None
