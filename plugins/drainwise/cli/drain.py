"""`drainwise drain NODE... --by TIME`: drain nodes: give their jobs deadlines so that the nodes are empty by a time."""

from __future__ import annotations

import argparse
import difflib
import re
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from drainwise.cli.command_line.options import MAY, Command, option
from drainwise.cli.on_request import cancel_request, list_requests, nodes_in, request_of, request_options, run_request
from drainwise.cli.pool_options import DECISION, open_pool
from drainwise.common.typed_table import read_text
from drainwise.facts.errors import UsageError

MOST_NODES = 100_000
_LARGEST_FILE = 1 << 22  # bytes
_PART = re.compile(r"(?P<head>[^\[\],\s]*)(?:\[(?P<ranges>[0-9,\-]+)\](?P<tail>(?:[^\[\],\s]|\[[0-9,\-]+\])*))?")
_RANGE = re.compile(r"(?P<first>[0-9]{1,9})(?:-(?P<last>[0-9]{1,9}))?")
_COMMA = re.compile(r",(?![^\[]*\])")  # outside brackets


def run(args: argparse.Namespace) -> int:
    """Order, cancel or list; return the exit code. Raises UsageError for nodes or a time that are none."""
    if args.list or args.cancel is not None:
        if args.nodes or args.act or args.by is not None:
            raise UsageError("--list and --cancel go without nodes, --by and --act")
        return list_requests(args) if args.list else cancel_request(args)
    names = nodes_of(args.nodes)
    if not names:
        raise UsageError("expected nodes: names, ranges such as rack7-[01-12], or @FILE")
    if args.by is None:
        raise UsageError("expected --by TIME: when must the nodes be empty?")
    now = int(time.time())
    request = request_of(args, now)  # a wrong time needs no pool
    return run_request(args, replace(request, nodes=known_nodes(names, nodes_in(open_pool(args).snapshot(now)))))


def nodes_of(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the names in `texts`, each once, in their order.

    A text is names and ranges with commas between them, or `@FILE`: such texts, a line each, `#` begins a comment.
    Raises UsageError for what is neither, for more than MOST_NODES names, and ConfigurationError for a bad file.
    """
    found: dict[str, None] = {}
    for text in texts:
        words = [text]
        if text.startswith("@"):
            wanted, shorter = "a file with names of nodes, a line each", "a shorter list of nodes"
            lines = read_text(text[1:], _LARGEST_FILE, wanted, shorter).splitlines()
            words = [word for line in lines for word in line.partition("#")[0].split()]
        for name in (name for word in words for name in _names(word)):
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


def _names(text: str) -> Iterator[str]:
    """Yield the names in a text; of several ranges in a name the last varies fastest."""
    for part in filter(None, _COMMA.split(text.strip())):
        shape = _PART.fullmatch(part)
        if shape is None:
            raise UsageError(f"{part[:80]!r}: expected a node, or a range such as node[01-12,15]")
        if shape["ranges"] is None:
            yield part
            continue
        for one in shape["ranges"].split(","):
            ends = _RANGE.fullmatch(one)
            if ends is None:
                raise UsageError(f"{part[:80]!r}: {one!r} is no range; expected numbers such as 01-12")
            first, last = ends["first"], ends["last"] or ends["first"]
            if int(last) < int(first) or int(last) - int(first) >= MOST_NODES:
                raise UsageError(f"{part[:80]!r}: {one!r} is no range of at most {MOST_NODES} nodes")
            for number in range(int(first), int(last) + 1):
                yield from _names(f"{shape['head']}{number:0{len(first)}d}{shape['tail']}")


COMMAND = Command(
    "drain nodes: give their jobs deadlines so that the nodes are empty by a time",
    (
        option("nodes NODE", "a node, a range such as rack7-[01-12,15], or @FILE with one a line", nargs="*"),
        option("--act", "order it; without it, only show what would be ordered"),
        option("--journal FILE", "append its events there (default: the site's journal)"),
        *request_options(MAY),
        *DECISION,
    ),
    run,
)
