"""Patterns of names in the site file, as hooks and commands compare them; names that somebody types.

Shell patterns without `re`: importing `re` would cost a hook more than all the rest. `*` any text, `?` one character,
`[001-120,130]` a number of as many digits as the first one, without leading zeros there of any length. Letters compare
without case; several patterns stand between commas.
"""

from __future__ import annotations

from drainwise.facts.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_MOST_NAMED = 20
"""Known names that a refusal shows."""


def any_matches(patterns: str, texts: Iterable[str]) -> bool:
    """Decide whether one of the texts is as one of the patterns says; an empty text never is."""
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


def called(name: str, known: Collection[str]) -> set[str]:
    """Return the known names that `name` means: itself, else those that are it with a domain, `alice@pool`."""
    return {name} & set(known) or {one for one in known if one.partition("@")[0] == name}


def nodes_called(pattern: str, known: Collection[str]) -> set[str]:
    """Return the known nodes that a pattern means, with their domain or without it; patterns as in `name_patterns`."""
    return {one for one in known if matches(pattern, one) or matches(pattern, one.partition(".")[0])}


def unknown_name(what: str, name: str, known: Collection[str]) -> UsageError:
    """Return the refusal of a name that nothing is called by, which shows known names; what: such as "user"."""
    shown = sorted(known)
    more = f" and {len(shown) - _MOST_NAMED} more" if len(shown) > _MOST_NAMED else ""
    return UsageError(f"no {what} is called {name!r}; there is {', '.join(shown[:_MOST_NAMED]) or 'nobody'}{more}")
