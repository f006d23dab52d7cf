"""Decide which kind of node this is, where one site file speaks of several: by its names, CPU model and features.

A hook imports this only where its settings have kinds. Patterns are shell patterns without `re`, whose import costs
more than all the rest: `*` any text, `?` one character, `[001-120,130]` a number of as many digits as the first one,
without leading zeros there of any length. Letters compare without case; several patterns stand between commas.
"""

from __future__ import annotations

import posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Kind = tuple[str, Mapping[str, str]]
    """Its name; its conditions and values by key."""

HOST, CPU_MODEL, FEATURE = "host", "cpu_model", "feature"

CPUINFO = "/proc/cpuinfo"
_BEGINNING = 4096
"""Bytes: the first CPU stands there; the kernel writes no more of the file than is read."""


def kind_of(kinds: Iterable[Kind], names: Iterable[str], features: Iterable[str]) -> Kind | None:
    """Return the first kind of which all conditions hold; None for none.

    names: of this host in the batch system, to which the kernel's is added; the part before the first point counts as
    well. features: what the batch system says of the node.
    """
    hosts: set[str] = set()
    for name in (*names, posix.uname().nodename):
        hosts |= {name, name.partition(".")[0]}
    words = {word.lower() for word in features}
    model: list[str] = []
    for kind in kinds:
        conditions = kind[1]
        if HOST in conditions and not _any_matches(conditions[HOST], hosts):
            continue
        if FEATURE in conditions and words.isdisjoint(word.lower() for word in features_asked(conditions)):
            continue
        if CPU_MODEL in conditions:
            model = model or [cpu_model()]
            if not _any_matches(conditions[CPU_MODEL], model):
                continue
        return kind
    return None


def features_asked(conditions: Mapping[str, str]) -> list[str]:
    """Return the features of which a kind asks for one, as the site writes them."""
    return [word for part in conditions.get(FEATURE, "").split(",") if (word := part.strip())]


def cpu_model(path: str = CPUINFO) -> str:
    """Return the model name of this host's first CPU, with single blanks; "" where the kernel names none."""
    try:
        descriptor = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    except OSError:
        return ""
    try:
        text = posix.read(descriptor, _BEGINNING).decode("ascii", "replace")
    except OSError:
        return ""
    finally:
        posix.close(descriptor)
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon and name.strip() in {"model name", "cpu model", "cpu"}:
            return " ".join(value.split())
    return ""


def _any_matches(patterns: str, texts: Iterable[str]) -> bool:
    parts = patterns_in(patterns)
    return any(matches(pattern, text) for text in texts if text for pattern in parts)


def patterns_in(text: str) -> list[str]:
    """Return the patterns between commas, but for commas in brackets."""
    found, depth, begin = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth <= 0:
            found.append(text[begin:place].strip())
            begin = place + 1
    return [pattern for pattern in (*found, text[begin:].strip()) if pattern]


def matches(pattern: str, text: str) -> bool:
    """Decide whether the whole text is as the pattern says.

    >>> matches("wn[001-120].*", "wn017.example.org"), matches("wn[001-120]", "wn17"), matches("EPYC 7*", "epyc 7763")
    (True, False, True)
    """
    pieces, text = _pieces(pattern.lower()), text.lower()
    at = piece = 0
    star = resume = -1
    while at < len(text) or piece < len(pieces):
        if piece < len(pieces):
            if pieces[piece] == "*":
                star, resume = piece, at
                piece += 1
                continue
            end = _end_of(pieces[piece], text, at)
            if end is not None:
                at, piece = end, piece + 1
                continue
        if star < 0 or resume >= len(text):
            return False
        resume += 1  # the last star takes one character more
        at, piece = resume, star + 1
    return True


def _pieces(pattern: str) -> list[str]:
    found, at = [], 0
    while at < len(pattern):
        end = pattern.find("]", at) if pattern[at] == "[" else -1
        found.append(pattern[at : end + 1] if end > 0 else pattern[at])
        at = end + 1 if end > 0 else at + 1
    return found


def _end_of(piece: str, text: str, at: int) -> int | None:
    """Return where a piece that begins at `at` ends in the text; None where it does not stand there."""
    if piece[0] == "[" and len(piece) > 1:
        for numbers in piece[1:-1].split(","):
            first, _, last = numbers.partition("-")
            last = last or first
            if not (first.isdigit() and last.isdigit()):
                continue
            end, is_padded = at + len(first), first[0] == "0" and len(first) > 1
            while not is_padded and end < len(text) and text[end].isdigit():
                end += 1
            number = text[at:end]
            fits = len(number) == len(first) if is_padded else number[:1] != "0" or number == "0"
            if fits and number.isdigit() and len(number) <= 18 and int(first) <= int(number) <= int(last):
                return end
        return None
    return at + 1 if at < len(text) and piece in {"?", text[at]} else None
