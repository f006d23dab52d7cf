"""Read a list of nodes as an administrator writes it: names, ranges such as `rack7-[01-12,15]`, files of names."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator

from drainwise.common.written_file import read_text
from drainwise.facts.errors import UsageError

MOST_NODES = 100_000
_LARGEST_FILE = 1 << 22  # bytes
_PART = re.compile(r"(?P<head>[^\[\],\s]*)(?:\[(?P<ranges>[0-9,\-]+)\](?P<tail>(?:[^\[\],\s]|\[[0-9,\-]+\])*))?")
_RANGE = re.compile(r"(?P<first>[0-9]{1,9})(?:-(?P<last>[0-9]{1,9}))?")
_COMMA = re.compile(r",(?![^\[]*\])")  # outside brackets


def nodes_of(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the names in `texts`, each once, in their order.

    A text is names and ranges with commas between them, or `@FILE`: such texts, a line each, `#` begins a comment.
    Raises UsageError for what is neither, for more than MOST_NODES names, and ConfigurationError for a bad file.
    """
    found: dict[str, None] = {}
    for text in texts:
        for name in _names_in_file(text[1:]) if text.startswith("@") else _names(text):
            found[name] = None
            if len(found) > MOST_NODES:
                raise UsageError(f"{text[:80]!r}: expected at most {MOST_NODES} nodes")
    return tuple(found)


def known_nodes(names: Iterable[str], known: Collection[str]) -> tuple[str, ...]:
    """Return the full names of nodes; a name without its domain will do where one node has it.

    Raises UsageError for one that is not among them, naming the nearest that is.
    """
    short: dict[str, list[str]] = {}
    for node in known:
        short.setdefault(node.partition(".")[0], []).append(node)
    found, full = [], set(known)
    for name in names:
        fitting = [name] if name in full else short.get(name, [])
        if len(fitting) != 1:
            near = ", ".join(fitting or difflib.get_close_matches(name, full, 3)) or "none that is like it"
            raise UsageError(f"no node with pilots, or where jobs could start, is called {name!r}; there is {near}")
        found += fitting
    return tuple(found)


def _names_in_file(path: str) -> Iterator[str]:
    text = read_text(path, _LARGEST_FILE, "a file with names of nodes, a line each", "a shorter list of nodes")
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        for word in words:
            yield from _names(word)


def _names(text: str) -> Iterator[str]:
    for part in filter(None, _COMMA.split(text.strip())):
        shape = _PART.fullmatch(part)
        if shape is None or not (shape["head"] or shape["ranges"]):
            raise UsageError(f"{part[:80]!r}: expected a node, or a range such as node[01-12,15]")
        if shape["ranges"] is None:
            yield shape["head"]
            continue
        for number in _numbers(shape["ranges"], part):
            yield from _names_after(shape["head"] + number, shape["tail"])


def _names_after(head: str, tail: str) -> Iterator[str]:
    yield from _names(head + tail) if "[" in tail else iter((head + tail,))


def _numbers(ranges: str, part: str) -> Iterator[str]:
    for one in ranges.split(","):
        shape = _RANGE.fullmatch(one)
        if shape is None:
            raise UsageError(f"{part[:80]!r}: {one!r} is no range; expected numbers such as 01-12")
        first, last = shape["first"], shape["last"] or shape["first"]
        if int(last) < int(first) or int(last) - int(first) >= MOST_NODES:
            raise UsageError(f"{part[:80]!r}: {one!r} is no range of at most {MOST_NODES} nodes")
        for number in range(int(first), int(last) + 1):
            yield f"{number:0{len(first)}d}"
