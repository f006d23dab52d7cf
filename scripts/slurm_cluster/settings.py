"""slurm.conf as text: one setting a line, where what a site adds takes the place of what was there. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from real_daemons.errors import DaemonsError

# Lines that begin with one of these stand beside others of their kind; the name tells them apart.
_NAMED = ("nodename", "partitionname", "nodeset", "downnodes")


def merged(*texts: str) -> str:
    """One text of all: a later line replaces an earlier one of the same key, `Key=` alone removes it.

    Lines of nodes and partitions are kept apart by their names. Raises DaemonsError on a line that is no setting.
    """
    lines: dict[str, str] = {}
    for line in _lines_of(texts):
        key, equals, value = (part.strip() for part in line.partition("="))
        if not equals or not key or " " in key:
            raise DaemonsError(f"{line!r} is no line of slurm.conf: expected Key=Value")
        name = key.lower()
        if name in _NAMED:
            name = f"{name}={value.split()[0] if value else ''}"
        if value:
            lines[name] = line
        else:
            lines.pop(name, None)
    return "".join(f"{line}\n" for line in lines.values())


def _lines_of(texts: Iterable[str]) -> Iterable[str]:
    for text in texts:
        for line in text.splitlines():
            if (setting := line.strip()) and not setting.startswith("#"):
                yield setting
