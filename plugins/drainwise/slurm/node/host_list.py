"""Slurm's lists of hosts, such as `node[001-004,7],gpu[1-2]`, expanded without asking Slurm."""

from __future__ import annotations

MOST_HOSTS = 65536
"""Slurm's own limit of nodes in a job."""

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
_MOST_DIGITS = 9
_LONGEST = 1 << 17  # characters; the kernel allows no longer variable
_MOST_BRACKETS = 8


def hosts(text: str) -> list[str]:
    """Return the hosts in their order, as `scontrol show hostnames` prints them.

    Of several brackets in a part the last varies fastest, then the first, the second and so on: so does Slurm. Raises
    ValueError for anything that is not surely understood, and for more than 65,536 hosts.
    """
    if len(text) > _LONGEST:
        raise ValueError("the list of hosts is too long")
    found: list[str] = []
    for part in _split(text):
        names = [""]
        pieces, behind = _pieces(part)
        for left, (literal, bracket) in zip(range(len(pieces) - 1, -1, -1), pieces):
            numbers = _numbers(bracket)
            if len(found) + len(names) * len(numbers) > MOST_HOSTS:
                raise ValueError("too many hosts")
            if not left:
                names = [name + literal + number for name in names for number in numbers]
            else:
                names = [name + literal + number for number in numbers for name in names]
        found += [name + behind for name in names]
        if len(found) > MOST_HOSTS:
            raise ValueError("too many hosts")
    return found


def first_host(text: str) -> str:
    """Return the first of such a list, where a job's script runs; "" for what is not surely understood."""
    try:
        return next(iter(hosts(text)), "")
    except ValueError:
        return ""


def _split(text: str) -> list[str]:
    """Return the parts between those commas that stand outside of brackets."""
    parts: list[str] = []
    open_part: list[str] = []
    depth = 0
    for piece in text.split(","):
        open_part.append(piece)
        depth += piece.count("[") - piece.count("]")
        if depth <= 0:
            parts.append(",".join(open_part))
            open_part, depth = [], 0
    return [*parts, ",".join(open_part)] if open_part else parts


def _pieces(part: str) -> tuple[list[tuple[str, str]], str]:
    """Return each bracket's content with what stands before it; and what stands behind the last."""
    found: list[tuple[str, str]] = []
    rest = part
    while "[" in rest and len(found) <= _MOST_BRACKETS:
        literal, _, behind = rest.partition("[")
        inside, closed, rest = behind.partition("]")
        if not closed or literal.strip(_LETTERS):
            raise ValueError("not a list of hosts")
        found.append((literal, inside))
    if rest.strip(_LETTERS) or not part or len(found) > _MOST_BRACKETS:
        raise ValueError("not a list of hosts")
    return found, rest


def _numbers(bracket: str) -> list[str]:
    """Return the numbers in a bracket as text: `08-10,7` is 08, 09, 10, 7."""
    found: list[str] = []
    for span in bracket.split(","):
        first, dash, last = span.partition("-")
        low, high = _whole(first), _whole(last if dash else first)
        if low > high:
            raise ValueError("not a range of hosts")
        if len(found) + high - low >= MOST_HOSTS:
            raise ValueError("too many hosts")
        found += [str(number).rjust(len(first), "0") for number in range(low, high + 1)]
    return found


def _whole(digits: str) -> int:
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS):
        raise ValueError("not a number of hosts")
    return int(digits)
